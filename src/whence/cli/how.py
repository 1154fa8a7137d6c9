from __future__ import annotations

import json
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
    annotations_argument,
    answering,
    bounds_of,
    fact_argument,
    open_session,
)
from whence.provenance.derive import CannotExplain
from whence.provenance.graph import DerivationGraph, Fact
from whence.provenance.how import how as ask
from whence.provenance.show import show_fact
from whence.provenance.tree import fact_to_json
from whence.provenance.why import graph_of
from whence.semiring import SEMIRINGS, NotInThisSemiring


def how(
    program: SubjectArgument,
    fact: FactArgument,
    *,
    facts: FactsOption = Path(),
    functions: FunctionsOption = None,
    semirings: Annotated[
        list[str] | None,
        typer.Option("--semiring", metavar="NAME", help=f"One of {', '.join(SEMIRINGS)}. May be repeated."),
    ] = None,
    annotations: Annotated[
        list[str] | None,
        typer.Option(
            "-a",
            "--annotation",
            metavar="WHAT=VALUE",
            help="""Of a fact ('link("a", "b")=3'), of all facts of a relation (link=3), or from a column (link=@cost). May be
            repeated. Without it a fact stands for itself.""",
        ),
    ] = None,
    as_json: JsonOption = False,
    depth: DepthOption = None,
    max_facts: MaxFactsOption = MAX_FACTS,
    seconds: SecondsOption = None,
) -> None:
    """Show how a fact comes from base facts: all its derivations, summed up in a semiring.

    polynomial has a term for each derivation, why the sets of base facts that are used together, posbool the smallest of
    these, lineage all base facts that are used. Others compute: tropical the least cost, viterbi the best confidence, counting
    the number of derivations.
    """
    for name in semirings or ():
        if name not in SEMIRINGS:
            raise typer.BadParameter(f"there is no semiring {name}; there are {', '.join(SEMIRINGS)}")
    if annotations and (semirings is None or len(semirings) != 1):
        raise typer.BadParameter("values belong to one semiring: name it with --semiring", param_hint="-a")
    with answering():
        session = open_session(program, functions, facts)
        asked = fact_argument(fact, session.program)
        parse = SEMIRINGS[semirings[0]].parse if semirings else str
        given = annotations_argument(annotations or (), session.program, parse, "-a")
        graph = graph_of(session, *asked, bounds=bounds_of(depth, max_facts, seconds))
        if graph.cut is not None:
            raise CannotExplain(f"the derivations were cut off at {graph.cut.reason}; raise the bound")
        values = (
            {name: ask(graph, asked, name, given) for name in semirings} if semirings else _default_values(graph, asked)
        )
    if as_json:
        typer.echo(json.dumps(fact_to_json(asked) | {"values": values}, ensure_ascii=False, indent=2))
        return
    typer.echo(show_fact(asked))
    width = max(map(len, values))
    for name, text in values.items():
        typer.echo(f"  {name:<{width}}  {text}")


def _default_values(graph: DerivationGraph, asked: Fact) -> dict[str, str]:
    """What is always finite, and the first terms of the polynomial where that has no end."""
    values = {name: ask(graph, asked, name) for name in ("lineage", "posbool", "why")}
    try:
        values["polynomial"] = ask(graph, asked, "polynomial")
    except NotInThisSemiring:
        values["series"] = f"{ask(graph, asked, 'series')} + …"
    return values
