from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from whence.cli.programs import ConfinedOption, FunctionsOption
from whence.cli.progress import Progress
from whence.cli.questions import (
    FactArgument,
    FactsOption,
    JsonOption,
    SubjectArgument,
    answering,
    fact_argument,
    open_subject,
    print_json,
)
from whence.cli.terminal import err, show
from whence.lang.program import Program
from whence.provenance.graph import Fact
from whence.provenance.repairs import Effort, Repair
from whence.provenance.show import show_fact, show_rules, show_value
from whence.provenance.to_json import whynot_to_json
from whence.provenance.whynot import Attempt, WhyNot
from whence.provenance.whynot import whynot as ask
from whence.session import Session

_EFFORT = Effort()
_COMPARED = 10_000  # texts, with one that no fact has


def whynot(
    program: SubjectArgument,
    fact: FactArgument,
    *,
    facts: FactsOption = Path(),
    functions: FunctionsOption = None,
    confined: ConfinedOption = False,
    repairs: Annotated[
        int, typer.Option("-k", "--repairs", min=0, metavar="N", help="Suggest at most N sets of changes.")
    ] = 3,
    changes: Annotated[
        int, typer.Option(min=1, metavar="N", help="In a set of them.", rich_help_panel="Bounds")
    ] = _EFFORT.changes,
    seconds: Annotated[
        float,
        typer.Option("--timeout", min=0, metavar="SECONDS", help="Look no longer.", rich_help_panel="Bounds"),
    ] = _EFFORT.seconds,
    as_json: JsonOption = False,
) -> None:
    """Show why a fact does not hold, and the smallest changes of base facts that would make it hold.

    For each rule it shows the closest that the rule comes: what is there, what is missing, what is there and must not be.
    Every suggested set of changes has been tried out, and no part of it is enough. Where there is none within the bounds, that is
    said. The exit code is 1 if the fact holds.
    """
    with answering():
        subject = open_subject(program, functions, facts, confined=confined)
        asked = fact_argument(fact, subject.program)
        session = subject.session_of(asked)
        unknown = list(_unknown_texts(session, asked))
        effort = Effort(changes, _EFFORT.trials, seconds)
        with Progress(err, "looking for repairs", quiet=False):
            answer = ask(session, *asked, repairs=repairs, effort=effort)
    if as_json:
        print_json(whynot_to_json(answer))
    else:
        typer.echo("\n".join(told(answer, subject.program, asked_for=repairs)))
    for note in unknown:
        show(err, f"warning: {note}")


def _unknown_texts(session: Session, fact: Fact) -> Iterator[str]:
    """Texts of the question that no fact has, and what may have been meant."""
    numbers = session.backend.dictionary.numbers
    for value in fact.tuple:
        if isinstance(value, str) and value not in numbers:
            known = islice(numbers, _COMPARED)
            near = get_close_matches(value, known, 1)
            yield f"{show_value(value)} is in no fact" + (f"; did you mean {show_value(near[0])}?" if near else "")


def told(answer: WhyNot, program: Program, *, asked_for: int) -> Iterator[str]:
    """The answer, line by line."""
    yield f"{show_fact(answer.fact)} does not hold"
    for winner in answer.beaten_by:
        yield f"  it is derived, but {show_fact(winner)} is kept instead"
    if not answer.attempts and not answer.beaten_by:
        yield "  no rule derives such a fact"
    for attempt in answer.attempts:
        yield f"  {attempt.rule} comes closest with"
        yield from _attempt_lines(attempt)
    for repair in answer.repairs:
        yield f"it would hold with  {_changes(repair)}"
    if asked_for and not answer.repairs:
        searched = f"; the search stopped at {answer.bound}" if answer.bound else ""
        yield f"no changes of base facts that would make it hold were found within the bounds{searched}"
    rules = list(show_rules(program, [attempt.rule for attempt in answer.attempts]))
    if rules:
        yield ""
        yield from rules


def _attempt_lines(attempt: Attempt) -> Iterator[str]:
    yield from (f"    found       {show_fact(each)}" for each in attempt.found)
    yield from (f"    missing     {show_fact(each)}" for each in attempt.missing)
    yield from (f"    in the way  {show_fact(each)}" for each in attempt.present)
    yield from (f"    false       {text}" for text in attempt.failed)


def _changes(repair: Repair) -> str:
    return "  ".join(
        [f"+ {show_fact(each)}" for each in repair.insertions] + [f"- {show_fact(each)}" for each in repair.deletions]
    )
