from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from whence.cli import completing
from whence.cli.programs import ConfinedOption, FunctionsOption
from whence.cli.progress import Progress
from whence.cli.questions import (
    MOST,
    FactArgument,
    FactsOption,
    JsonOption,
    MostOption,
    SubjectArgument,
    answering,
    asked_argument,
    open_subject,
    refuse_unknown_base,
)
from whence.cli.terminal import err, show
from whence.provenance.responsibility import Contribution, contributions
from whence.provenance.show import show_fact
from whence.provenance.to_json import contributions_to_json

_FEW = 20  # facts without a share that are listed


def responsibility(
    program: SubjectArgument,
    fact: FactArgument,
    *,
    facts: FactsOption = Path(),
    functions: FunctionsOption = None,
    confined: ConfinedOption = False,
    among: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RELATION",
            autocompletion=completing.base_relations,
            help="Count only facts of this relation. May be repeated.",
        ),
    ] = None,
    nodes: Annotated[
        int, typer.Option(min=1, metavar="N", help="Nodes of the decision diagram.", rich_help_panel="Bounds")
    ] = 300_000,
    samples: Annotated[
        int, typer.Option(min=1, metavar="N", help="Random orders beyond it.", rich_help_panel="Bounds")
    ] = 2_000,
    seconds: Annotated[
        float,
        typer.Option("--timeout", min=0, metavar="SECONDS", help="Time for random orders.", rich_help_panel="Bounds"),
    ] = 10.0,
    most: MostOption = MOST,
    as_json: JsonOption = False,
) -> None:
    """Show how much each base fact contributes to a fact.

    The responsibility of a base fact is 1 if the fact goes with it, 1/2 if one other fact has to go first, and so on. Its
    Shapley value is its fair share; the shares add up to 1. Beyond --nodes, shares are estimated from --samples random
    orders, with the error that this leaves.
    """
    with answering():
        subject = open_subject(program, functions, facts, confined=confined)
        for name in among or ():
            refuse_unknown_base(name, subject.program, "--among")
        asked = asked_argument(fact, subject, most)
        with Progress(err, "working out shares", quiet=False):
            answers = [
                (each, contributions(subject, *each, among=among, nodes=nodes, samples=samples, seconds=seconds))
                for each in asked.facts
            ]
    if as_json:
        asked.print_json(contributions_to_json(each, found) for each, found in answers)
        return
    for each, found in answers:
        if asked.is_pattern:
            typer.echo(show_fact(each))
        _print_shares(found)
    asked.tell_more()


def _print_shares(found: Sequence[Contribution]) -> None:
    typer.echo("responsibility  Shapley value")
    shares = [each for each in found if each.shapley or each.responsibility]
    rest = found[len(shares) :]
    for each in found if len(rest) <= _FEW else shares:
        first = "" if each.responsibility is None else f"{each.responsibility:.4g}"
        share = f"{each.shapley:.4f}" + (f" ± {each.error:.4f}" if each.error else "")
        typer.echo(f"{first:>14}  {share:<13}  {show_fact(each.fact)}")
    if len(rest) > _FEW:
        typer.echo(f"{'':>14}  {0:<13.4f}  {len(rest):,} other facts")
    if any(each.error for each in found):
        show(
            err,
            "shares are estimated: --samples and --timeout make the error smaller, more --nodes may make them exact",
        )
