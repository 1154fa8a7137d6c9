from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from whence.cli.programs import FunctionsOption
from whence.cli.questions import (
    MAX_FACTS,
    DepthOption,
    FactArgument,
    FactsOption,
    JsonOption,
    MaxFactsOption,
    SecondsOption,
    SubjectArgument,
    answering,
    bounds_of,
    fact_argument,
    open_session,
)
from whence.cli.terminal import err, show
from whence.provenance.export import EXPORTS, graph_of_proof
from whence.provenance.graph import DerivationGraph
from whence.provenance.tree import graph_to_json, proof_to_json, show_graph
from whence.provenance.why import Why, graph_of
from whence.provenance.why import why as ask
from whence.session import Session


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
    number: Annotated[
        int, typer.Option("-k", min=1, metavar="N", help="The N smallest proofs that differ, not only the smallest.")
    ] = 1,
    everything: Annotated[
        bool, typer.Option("--all", help="All derivations of the fact and of what they use, not only proofs.")
    ] = False,
    shape: Annotated[
        Format, typer.Option("--format", help="Text, Graphviz, a picture, a page, or W3C PROV as JSON.")
    ] = Format.TEXT,
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
        session = open_session(program, functions, facts)
        asked = fact_argument(fact, session.program)
        if everything:
            graph = graph_of(session, *asked, bounds=bounds)
            _print_graph(session, graph, shape, as_json=as_json)
            return
        answer = ask(session, *asked, number=number, bounds=bounds)
        _print_answer(session, answer, shape, as_json=as_json)


def _print_answer(session: Session, answer: Why, shape: Format, *, as_json: bool) -> None:
    if as_json:
        found = [proof_to_json(proof, session.program) for proof in answer.proofs]
        typer.echo(json.dumps({"proofs": found, "is_smallest": answer.is_certain}, ensure_ascii=False, indent=2))
    elif shape is Format.TEXT:
        typer.echo(str(answer))
    else:
        typer.echo(EXPORTS[shape](graph_of_proof(answer.proofs), session.program))
    if not answer.is_certain:
        show(err, "warning: the search met its bounds; there may be smaller proofs")


def _print_graph(session: Session, graph: DerivationGraph, shape: Format, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(graph_to_json(graph, session.program), ensure_ascii=False, indent=2))
    elif shape is Format.TEXT:
        typer.echo(show_graph(graph, session.program))
    else:
        typer.echo(EXPORTS[shape](graph, session.program))
    if graph.cut is not None:
        show(err, f"warning: cut off at {graph.cut.reason}: {len(graph.cut.facts)} facts were not looked into")
