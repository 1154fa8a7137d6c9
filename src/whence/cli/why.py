from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from whence.cli.programs import ConfinedOption, FunctionsOption
from whence.cli.questions import (
    MAX_FACTS,
    MOST,
    DepthOption,
    FactArgument,
    FactsOption,
    JsonOption,
    MaxFactsOption,
    MostOption,
    SecondsOption,
    SubjectArgument,
    answering,
    asked_argument,
    bounds_of,
    one_fact_argument,
    open_subject,
    print_json,
)
from whence.cli.terminal import err, show
from whence.lang.program import Program
from whence.provenance.export import EXPORTS, graph_of_proof
from whence.provenance.graph import DerivationGraph
from whence.provenance.to_json import graph_to_json, why_to_json
from whence.provenance.tree import show_graph
from whence.provenance.views import graph_of_views
from whence.provenance.why import Why, graph_of
from whence.provenance.why import why as ask

UNCERTAIN = "warning: the search met its bounds; there may be smaller proofs"


class Format(StrEnum):
    TEXT = "text"
    DOT = "dot"
    SVG = "svg"
    HTML = "html"
    PROV = "prov"


def why(
    program: SubjectArgument,
    fact: FactArgument,
    *,
    facts: FactsOption = Path(),
    functions: FunctionsOption = None,
    confined: ConfinedOption = False,
    number: Annotated[
        int, typer.Option("-k", min=1, metavar="N", help="The N smallest proofs that differ, not only the smallest.")
    ] = 1,
    everything: Annotated[
        bool, typer.Option("--all", help="All derivations of the fact and of what they use, not only proofs.")
    ] = False,
    shape: Annotated[
        Format, typer.Option("--format", help="Text, Graphviz, a picture, a page, or W3C PROV as JSON.")
    ] = Format.TEXT,
    most: MostOption = MOST,
    as_json: JsonOption = False,
    depth: DepthOption = None,
    max_facts: MaxFactsOption = MAX_FACTS,
    seconds: SecondsOption = None,
) -> None:
    """Show why a fact holds: its smallest proof, down to base facts.

    Below the proof are the rules it uses, with the lines they stand on. The exit code is 1 if the fact does not hold.
    """
    bounds = bounds_of(depth, max_facts, seconds)
    with answering():
        subject = open_subject(program, functions, facts, confined=confined)
        if everything:
            graph = graph_of(subject, *one_fact_argument(fact, subject), bounds=bounds)
            print_graph(graph, subject.program, shape, as_json=as_json)
            return
        asked = asked_argument(fact, subject, most)
        answers = [ask(subject, *each, number=number, bounds=bounds) for each in asked.facts]
        if as_json:
            asked.print_json(map(why_to_json, answers))
        elif shape is Format.TEXT:
            typer.echo("\n\n".join(map(str, answers)))
        else:
            proofs = [proof for answer in answers for proof in answer.shown]
            typer.echo(EXPORTS[shape](graph_of_proof(proofs), subject.program))
        if not all(answer.is_certain for answer in answers):
            show(err, UNCERTAIN)
        asked.tell_more()


def print_answer(answer: Why, shape: Format, *, as_json: bool) -> None:
    if as_json:
        print_json(why_to_json(answer))
    elif shape is Format.TEXT:
        typer.echo(str(answer))
    else:
        typer.echo(EXPORTS[shape](graph_of_proof(answer.shown), answer.program))
    if not answer.is_certain:
        show(err, UNCERTAIN)


def print_graph(graph: DerivationGraph, program: Program, shape: Format, *, as_json: bool) -> None:
    graph = graph_of_views(graph, program)
    if as_json:
        print_json(graph_to_json(graph, program))
    elif shape is Format.TEXT:
        typer.echo(show_graph(graph, program))
    else:
        typer.echo(EXPORTS[shape](graph, program))
    if graph.cut is not None:
        show(err, f"warning: cut off at {graph.cut.reason}: {len(graph.cut.facts)} facts were not looked into")
