from __future__ import annotations

import typer

from whence.cli.evaluate import reported_errors, wanted_of
from whence.cli.programs import FunctionsOption, ProgramArgument, load_program
from whence.plan import compile_plan
from whence.plan.describe import describe_plan


def explain_plan(program: ProgramArgument, *, functions: FunctionsOption = None) -> None:
    """Show how a program's views are kept up to date.

    Strata come in the order they are evaluated. For each rule there is one plan for each literal that can change: the joins and
    tests that find what follows, with the indexes they use. $0, $1, … are the values of variables.
    """
    with reported_errors():
        loaded = load_program(program, functions)
        typer.echo(describe_plan(compile_plan(loaded, wanted_of(loaded))))
