from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite, nan
from pathlib import Path
from typing import Annotated

import typer

from whence.cli import completing
from whence.cli.mistakes import unknown
from whence.cli.programs import ConfinedOption, FunctionsOption
from whence.cli.progress import Progress
from whence.cli.questions import (
    FactsOption,
    JsonOption,
    SubjectArgument,
    answering,
    base_fact_argument,
    base_facts_argument,
    open_session,
    print_json,
)
from whence.cli.terminal import counted, err
from whence.io.changes import Update
from whence.lang.program import output_names
from whence.provenance.annotations import Annotations
from whence.provenance.derive import Deriver
from whence.provenance.graph import Fact
from whence.provenance.show import show_fact, show_value
from whence.provenance.to_json import changes_to_json, ranking_to_json
from whence.provenance.whatif import rank_dependence, replacements
from whence.provenance.whatif import whatif as ask
from whence.session import Session


def whatif(
    program: SubjectArgument,
    *,
    facts: FactsOption = Path(),
    functions: FunctionsOption = None,
    confined: ConfinedOption = False,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "-e",
            "--except",
            metavar="FACT",
            autocompletion=completing.facts,
            help="A base fact that goes; with _, all that fit. May be repeated.",
        ),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option("-i", "--insert", metavar="FACT", help="A base fact that comes. May be repeated."),
    ] = None,
    rank: Annotated[
        bool, typer.Option("--rank", help="List base facts by how many facts of the views go with each alone.")
    ] = False,
    of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RELATION",
            autocompletion=completing.relations,
            help="Tell of this relation, instead of all outputs. May be repeated.",
        ),
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            "-w",
            "--weight",
            metavar="WHAT=W",
            help="""What losing a fact of a view costs, for --rank: of a relation (served=2), of a fact, or from a column
            (served=@n). May be repeated; what has no weight costs nothing.""",
        ),
    ] = None,
    most: Annotated[int | None, typer.Option("-n", min=1, metavar="N", help="Only the first N of --rank.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what would change in the views if base facts went or came.

    With --rank, show which base facts the views depend on most; -e says which of them to try.
    """
    if rank and given:
        raise typer.BadParameter("--rank tries base facts that are there, each by itself; leave -i out")
    if weights and not rank:
        raise typer.BadParameter("it is for --rank", param_hint="--weight")
    if not (rank or without or given):
        raise typer.BadParameter("nothing is supposed; give facts with -e or -i, or ask for --rank")
    if most is not None and not rank:
        raise typer.BadParameter("it is for --rank: the changes are all shown", param_hint="-n")
    with answering():
        session = open_session(program, functions, facts, confined=confined)
        for name in of or ():
            if name not in session.program.relations:
                raise unknown("relation", name, session.program.relations, "--of")
        deriver = Deriver(session)
        gone = [fact for each in without or () for fact in base_facts_argument(each, deriver, "-e")]
        if rank:
            costs = _weights(weights, session)
            _print_ranking(session, gone if without else None, of, costs, most, as_json=as_json)
            return
        come = [base_fact_argument(each, session.program, "-i") for each in given or ()]
        changes = ask(session, without=gone, given=come)
        shown = of or output_names(session.program)
        _print_changes([each for each in changes if each.relation in shown], as_json=as_json)


def _weights(specs: list[str] | None, session: Session) -> Annotations[float] | None:
    if not specs:
        return None
    try:
        return Annotations(specs, session.program, _weight, of_views=True)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--weight") from None


def _print_changes(changes: list[Update], *, as_json: bool) -> None:
    if as_json:
        print_json(changes_to_json(_sorted(changes)))
        return
    for line in told(changes):
        typer.echo(line)
    typer.echo(counted(len(changes), "change") if changes else "nothing would change")


def told(changes: Iterable[Update]) -> Iterator[str]:
    """Changes line by line, those of a value in one."""
    listed = _sorted(changes)
    others = replacements(listed)
    for op, relation, row, _ in listed:
        fact = Fact(relation, row)
        if op == "+" and fact in others.values():
            continue
        if op == "-" and (other := others.get(fact)) is not None:
            yield f"~ {show_fact(fact)}: {show_value(row[-1])} becomes {show_value(other.tuple[-1])}"
        else:
            yield f"{op} {show_fact(fact)}"


def _sorted(changes: Iterable[Update]) -> list[Update]:
    return sorted(changes, key=lambda each: (each.op != "-", each.relation, show_fact(Fact(each.relation, each.tuple))))


def _print_ranking(
    session: Session,
    facts: list[Fact] | None,
    of: list[str] | None,
    weights: Annotations[float] | None,
    most: int | None,
    *,
    as_json: bool,
) -> None:
    with Progress(err, "trying", quiet=False) as progress:

        def tell(at: int) -> None:
            progress.text = f"trying base fact {at + 1:,}"

        found = rank_dependence(session, facts, of=of, weight=weights, on_fact=tell)[:most]
    if as_json:
        print_json(ranking_to_json(found))
        return
    costs = [f"{each.cost:,.6g}" for each in found]
    width = max(map(len, [*costs, "cost"]))
    typer.echo((f"{'cost':>{width}}  " if weights is not None else "") + "lost  changed  base fact")
    for each, cost in zip(found, costs, strict=True):
        first = f"{cost:>{width}}  " if weights is not None else ""
        typer.echo(f"{first}{each.lost:>4,}  {each.changed:>7,}  {show_fact(each.fact)}")


def _weight(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not isfinite(value):
        raise ValueError(f"{text} is not a weight, a finite number")
    return value
