from __future__ import annotations

from typing import Annotated

import typer

from whence.cli.evaluate import reported_errors, wanted_of
from whence.cli.programs import ConfinedOption, FunctionsOption, ProgramArgument, SimplifyOption, load_program
from whence.lang.program import output_names
from whence.plan import compile_evaluation, compile_plan
from whence.plan.describe import describe_plan
from whence.plan.describe_parts import describe_partitioning
from whence.plan.describe_places import describe_places
from whence.plan.simplify import simplify as without_superfluous


def explain_plan(
    program: ProgramArgument,
    *,
    sensors: Annotated[
        str | None,
        typer.Option(metavar="FIELD", help="Show what the nodes of a field of sensors run instead, as in grid:5x8."),
    ] = None,
    functions: FunctionsOption = None,
    confined: ConfinedOption = False,
    simplify: SimplifyOption = False,
) -> None:
    """Show how a program's views are kept up to date.

    Strata come in the order they are evaluated. For each rule there is one plan for each literal that can change: the joins and
    tests that find what follows, with the indexes they use. $0, $1, … are the values of variables.

    The end tells whether the state of a run can be kept in parts, by which columns, and what parts ship each other; and, where
    arguments marked @ say which node holds a tuple, what each node runs and what is shipped where. With --sensors it is where
    tuples live on a field, where they are stored and look for partners, and by when results are final.
    """
    with reported_errors():
        loaded = load_program(program, functions, confined=confined)
        if sensors is not None:
            from whence.cli.field import explain_sensors, reported_fields  # noqa: PLC0415 - only fields need it

            with reported_fields():
                typer.echo("\n".join(explain_sensors(loaded, sensors)))
            return
        if simplify:
            loaded, left_out = without_superfluous(loaded)
            lines = left_out or ("nothing is superfluous",)
            typer.echo("\n".join([*(f"simplified for sets: {each}" for each in lines), ""]))
        typer.echo(describe_plan(compile_plan(loaded, wanted_of(loaded)), compile_evaluation(loaded)))
        typer.echo("\n".join([*describe_partitioning(loaded, output_names(loaded)), *describe_places(loaded)]))
