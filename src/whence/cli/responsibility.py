from __future__ import annotations

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
    one_fact_argument,
    open_subject,
    print_json,
)
from whence.cli.terminal import err, show
from whence.provenance.responsibility import contributions
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
        typer.Option(metavar="RELATION", help="Count only facts of this relation. May be repeated."),
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
            if name not in subject.program.base_relations:
                known = ", ".join(subject.program.base_relations)
                raise typer.BadParameter(f"{name} is not a base relation; there are {known}", param_hint="--among")
        asked = one_fact_argument(fact, subject)
        with Progress(err, "working out shares", quiet=False):
            found = contributions(subject, *asked, among=among, nodes=nodes, samples=samples, seconds=seconds)
    if as_json:
        print_json(contributions_to_json(asked, found))
        return
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
