from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

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
from whence.lang.types import Tuple
from whence.provenance.derive import Deriver
from whence.provenance.graph import Fact
from whence.provenance.show import show_fact, show_value
from whence.provenance.to_json import changes_to_json, ranking_to_json
from whence.provenance.whatif import rank_dependence
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
            "-e", "--except", metavar="FACT", help="A base fact that goes; with _, all that fit. May be repeated."
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
        typer.Option(metavar="RELATION", help="Tell of this relation, instead of all outputs. May be repeated."),
    ] = None,
    most: Annotated[int | None, typer.Option("-n", min=1, metavar="N", help="Only the first N of --rank.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what would change in the views if base facts went or came.

    With --rank, show which base facts the views depend on most.
    """
    if rank and (without or given):
        raise typer.BadParameter("--rank tries every base fact by itself: it goes without -e and -i")
    if not (rank or without or given):
        raise typer.BadParameter("give facts with -e or -i, or ask for --rank")
    if most is not None and not rank:
        raise typer.BadParameter("it is for --rank: the changes are all shown", param_hint="-n")
    with answering():
        session = open_session(program, functions, facts, confined=confined)
        for name in of or ():
            if name not in session.program.relations:
                raise typer.BadParameter(f"there is no relation {name}", param_hint="--of")
        if rank:
            _print_ranking(session, of, most, as_json=as_json)
            return
        deriver = Deriver(session)
        gone = [fact for each in without or () for fact in base_facts_argument(each, deriver, "-e")]
        come = [base_fact_argument(each, session.program, "-i") for each in given or ()]
        changes = ask(session, without=gone, given=come)
        shown = of or output_names(session.program)
        _print_changes([each for each in changes if each.relation in shown], as_json=as_json)


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
    others = _replaced(listed)
    for op, relation, row, _ in listed:
        if op == "+" and (relation, row) in others.values():
            continue
        if op == "-" and (other := others.get((relation, row))) is not None:
            yield f"~ {show_fact(Fact(relation, row))}: {show_value(row[-1])} becomes {show_value(other[1][-1])}"
        else:
            yield f"{op} {show_fact(Fact(relation, row))}"


def _sorted(changes: Iterable[Update]) -> list[Update]:
    return sorted(changes, key=lambda each: (each.op != "-", each.relation, show_fact(Fact(each.relation, each.tuple))))


def _replaced(changes: list[Update]) -> dict[tuple[str, Tuple], tuple[str, Tuple]]:
    """Facts that go while another one comes that differs in the last value only, as a distance or a count does."""
    sides: dict[tuple[str, Tuple], dict[str, list[Tuple]]] = {}
    for op, relation, row, _ in changes:
        if len(row) > 1 and not isinstance(row[-1], str):
            sides.setdefault((relation, row[:-1]), {"+": [], "-": []})[op].append(row)
    return {
        (relation, each["-"][0]): (relation, each["+"][0])
        for (relation, _), each in sides.items()
        if len(each["-"]) == len(each["+"]) == 1
    }


def _print_ranking(session: Session, of: list[str] | None, most: int | None, *, as_json: bool) -> None:
    with Progress(err, "trying", quiet=False) as progress:

        def tell(at: int) -> None:
            progress.text = f"trying base fact {at + 1:,}"

        found = rank_dependence(session, of=of, on_fact=tell)[:most]
    if as_json:
        print_json(ranking_to_json(found))
        return
    width = max((len(f"{each.lost:,}") for each in found), default=0)
    for each in found:
        typer.echo(f"{each.lost:>{width},}  {show_fact(each.fact)}")
