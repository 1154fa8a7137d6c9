from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from whence.cli import completing
from whence.cli.programs import ConfinedOption, FunctionsOption
from whence.cli.progress import Progress
from whence.cli.questions import (
    MOST,
    Asked,
    FactArgument,
    FactsOption,
    JsonOption,
    MostOption,
    SubjectArgument,
    answering,
    open_subject,
    refuse_unknown_base,
)
from whence.cli.terminal import err, show
from whence.lang.program import Program
from whence.provenance.attempts import Attempt
from whence.provenance.derivations import CannotExplain, LiveDerivations
from whence.provenance.derive import Deriver
from whence.provenance.graph import Fact
from whence.provenance.matching import parse_pattern
from whence.provenance.repairs import Effort, Repair
from whence.provenance.show import show_fact, show_rules, show_value
from whence.provenance.to_json import whynot_to_json
from whence.provenance.whynot import WhyNot, closest_absent
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
    among: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RELATION",
            autocompletion=completing.base_relations,
            help="Suggest changes of this relation only. May be repeated.",
        ),
    ] = None,
    most: MostOption = MOST,
    as_json: JsonOption = False,
) -> None:
    """Show why a fact does not hold, and the smallest changes of base facts that would make it hold.

    For each rule it shows the closest that the rule comes: what is there, what is missing, what is there and must not be.
    Every suggested set of changes has been tried out, and no part of it is enough. Where there is none within the bounds, that is
    said. Of the facts that fit a pattern and are not there, it shows those that rules come closest to. The exit code is 1 if the
    fact holds.
    """
    with answering():
        subject = open_subject(program, functions, facts, confined=confined)
        for name in among or ():
            refuse_unknown_base(name, subject.program, "--among")
        asked = _absent(fact, subject, most, seconds)
        answers = []
        unknown: dict[str, None] = {}
        for each in asked.facts:
            session = subject.session_of(each)
            unknown |= dict.fromkeys(_unknown_texts(session, each))
            effort = Effort(changes, _EFFORT.trials, seconds)
            with Progress(err, "looking for repairs", quiet=False):
                answers.append(ask(session, *each, repairs=repairs, among=among, effort=effort))
    if as_json:
        asked.print_json(map(whynot_to_json, answers))
    else:
        texts = ("\n".join(told(answer, subject.program, asked_for=repairs)) for answer in answers)
        typer.echo("\n\n".join(texts))
        if asked.more:
            show(err, f"others that fit {fact} are not there either; these are the closest, and -n shows more of them")
    for note in unknown:
        show(err, f"warning: {note}")


def _absent(text: str, subject: LiveDerivations, most: int, seconds: float) -> Asked:
    """The fact that is asked about, or of all that fit a pattern and are not there those that rules come closest to."""
    try:
        pattern = parse_pattern(text, subject.program)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="FACT") from None
    if isinstance(pattern, Fact):
        return Asked(text, [pattern], 0, is_pattern=False)
    if not isinstance(subject, Deriver):
        raise CannotExplain("a state in parts is asked about one fact: give values for _ and variables")
    with Progress(err, "looking for what is not there", quiet=False):
        found = closest_absent(subject.session, pattern, most, seconds)
    if not found.facts:
        raise CannotExplain(f"all that could fit {text}, with the values that base facts have, is there")
    return Asked(text, found.facts, 0 if found.is_all else 1, is_pattern=True)


def _unknown_texts(session: Session, fact: Fact) -> Iterator[str]:
    """Texts of the question that no fact has, and what may have been meant."""
    numbers = session.backend.dictionary.numbers
    for value in fact.tuple:
        if isinstance(value, str) and value not in numbers:
            known = (text for text in islice(numbers, _COMPARED) if text is not None)
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
