from __future__ import annotations

from math import nan
from pathlib import Path
from typing import Annotated

import typer

from whence.cli.programs import ConfinedOption, FunctionsOption
from whence.cli.questions import (
    MOST,
    FactArgument,
    FactsOption,
    JsonOption,
    MostOption,
    SubjectArgument,
    annotations_argument,
    answering,
    asked_argument,
    open_subject,
)
from whence.provenance.graph import Fact
from whence.provenance.probability import Budget, Probability
from whence.provenance.probability import probability as ask
from whence.provenance.show import show_fact
from whence.provenance.to_json import probability_to_json

_BUDGET = Budget()


def probability(
    program: SubjectArgument,
    fact: FactArgument,
    *,
    facts: FactsOption = Path(),
    functions: FunctionsOption = None,
    confined: ConfinedOption = False,
    chances: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            "--probability",
            metavar="WHAT=P",
            help="""Of a fact ('link("a", "b")=0.9'), of all facts of a relation (link=0.9), or from a column (link=@p). May be
            repeated; facts without one are certain.""",
        ),
    ] = None,
    nodes: Annotated[
        int, typer.Option(min=1, metavar="N", help="Nodes of a decision diagram.", rich_help_panel="Bounds")
    ] = _BUDGET.nodes,
    seconds: Annotated[
        float,
        typer.Option("--timeout", min=0, metavar="SECONDS", help="Time for bounds.", rich_help_panel="Bounds"),
    ] = _BUDGET.seconds,
    most: MostOption = MOST,
    as_json: JsonOption = False,
) -> None:
    """Show how likely a fact is, given independent probabilities of base facts.

    The answer is exact while the decision diagrams stay within --nodes. Beyond that, it is a lower and an upper bound.
    """
    with answering():
        subject = open_subject(program, functions, facts, confined=confined)
        asked = asked_argument(fact, subject, most)
        given = annotations_argument(chances or (), subject, _parse, "-p")

        def chance(base: Fact) -> float:
            value = given(base)
            return 1.0 if value is None else value

        answers = [(each, ask(subject, *each, chance, budget=Budget(nodes, seconds))) for each in asked.facts]
    if as_json:
        asked.print_json(probability_to_json(each, answer) for each, answer in answers)
        return
    for each, answer in answers:
        typer.echo(f"{show_fact(each)}  {_text(answer)}")
    asked.tell_more()


def _parse(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not 0 <= value <= 1:
        raise ValueError(f"{text} is not a probability, a number between 0 and 1")
    return value


def _text(answer: Probability) -> str:
    if answer.is_exact:
        return f"{answer.low:.6g}"
    return f"between {answer.low:.6g} and {answer.high:.6g} (bounds; raise --nodes or --timeout for less between them)"
