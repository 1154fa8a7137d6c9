from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from whence.cli import completing
from whence.cli.evaluate import RUNAWAY
from whence.cli.mistakes import unknown
from whence.cli.programs import ConfinedOption, FunctionsOption
from whence.cli.progress import Progress
from whence.cli.questions import (
    MAX_FACTS,
    MOST,
    DepthOption,
    FactArgument,
    FactsOption,
    JsonOption,
    MaxFactsOption,
    MostOption,
    SubjectArgument,
    annotations_argument,
    answering,
    asked_argument,
    bounds_of,
    open_subject,
    refuse_unknown_base,
    time_limit,
)
from whence.cli.terminal import err
from whence.lang.program import Program
from whence.provenance.derivations import CannotExplain
from whence.provenance.graph import DerivationGraph, Fact
from whence.provenance.how import how as ask
from whence.provenance.show import show_fact
from whence.provenance.to_json import how_to_json
from whence.provenance.why import graph_of
from whence.semiring import SEMIRINGS, NotInThisSemiring

_DEFAULTS = ("lineage", "posbool", "why", "polynomial")


def how(
    program: SubjectArgument,
    fact: FactArgument,
    *,
    facts: FactsOption = Path(),
    functions: FunctionsOption = None,
    confined: ConfinedOption = False,
    semirings: Annotated[
        list[str] | None,
        typer.Option(
            "--semiring",
            metavar="NAME",
            autocompletion=completing.semirings,
            help=f"One of {', '.join(SEMIRINGS)}. May be repeated.",
        ),
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
    among: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RELATION",
            autocompletion=completing.base_relations,
            help="Tell of base facts of this relation only. May be repeated.",
        ),
    ] = None,
    most: MostOption = MOST,
    as_json: JsonOption = False,
    depth: DepthOption = None,
    max_facts: MaxFactsOption = MAX_FACTS,
    seconds: Annotated[
        float,
        typer.Option(
            "--timeout",
            min=0,
            metavar="SECONDS",
            help="Time for the search, and for each value.",
            rich_help_panel="Bounds",
        ),
    ] = 10.0,
) -> None:
    """Show how a fact comes from base facts: all its derivations, summed up in a semiring.

    polynomial has a term for each derivation, why the sets of base facts that are used together, posbool the smallest of
    these, lineage all base facts that are used. Others compute: tropical the least cost, viterbi the best confidence, counting
    the number of derivations. A value that takes longer than --timeout is left out, and the exit code is 3 then.
    """
    for name in semirings or ():
        if name not in SEMIRINGS:
            raise unknown("semiring", name, SEMIRINGS, "--semiring")
    if annotations and (semirings is None or len(semirings) != 1):
        raise typer.BadParameter("values belong to one semiring: name it with --semiring", param_hint="-a")
    with answering():
        subject = open_subject(program, functions, facts, confined=confined)
        for name in among or ():
            refuse_unknown_base(name, subject.program, "--among")
        asked = asked_argument(fact, subject, most)
        parse = SEMIRINGS[semirings[0]].parse if semirings else str
        given = annotations_argument(annotations or (), subject, parse, "-a")
        answers: dict[Fact, dict[str, str | None]] = {}
        for each in asked.facts:
            graph = graph_of(subject, *each, bounds=bounds_of(depth, max_facts, seconds))
            if graph.cut is not None:
                raise CannotExplain(f"the derivations were cut off at {graph.cut.reason}; raise the bound")
            values: dict[str, str | None] = {}
            for name in semirings or _DEFAULTS:
                found: dict[str, str | None] = {name: None}
                annotate = _narrowed(given, among, name)
                with Progress(err, f"evaluating in {name}", quiet=False), suppress(TimeoutError), time_limit(seconds):
                    found = (
                        {name: ask(graph, each, name, annotate, program=subject.program)}
                        if semirings
                        else _value(graph, each, name, annotate, subject.program)
                    )
                values |= found
            answers[each] = values
    if as_json:
        asked.print_json(how_to_json(each, values) for each, values in answers.items())
    else:
        for each, values in answers.items():
            _print_values(each, values, seconds)
        asked.tell_more()
    if any(None in values.values() for values in answers.values()):
        raise typer.Exit(RUNAWAY)


def _narrowed(given: Callable[[Fact], Any], among: Collection[str] | None, semiring: str) -> Callable[[Fact], Any]:
    """Facts of other relations count as certain: their annotation is one."""
    if not among:
        return given
    return lambda fact: given(fact) if fact.relation in among else SEMIRINGS[semiring].one


def _print_values(fact: Fact, values: Mapping[str, str | None], seconds: float) -> None:
    typer.echo(show_fact(fact))
    width = max(map(len, values))
    late = f"not found in {seconds:g} seconds; raise --timeout, or ask for lineage, which is always found"
    for name, text in values.items():
        typer.echo(f"  {name:<{width}}  {late if text is None else text}")


def _value(
    graph: DerivationGraph, asked: Fact, name: str, annotate: Callable[[Fact], Any], program: Program
) -> dict[str, str | None]:
    """The value in a semiring; the first terms of a series where a polynomial has no end."""
    try:
        return {name: ask(graph, asked, name, annotate, program=program)}
    except NotInThisSemiring:
        first = ask(graph, asked, "series", annotate, program=program)
        return {"series": f"{first} + …" if first != "0" else "without end, and no term is short enough to be shown"}
