from __future__ import annotations

import typer

from whence.cli.evaluate import reported_errors, wanted_of
from whence.cli.programs import ConfinedOption, FunctionsOption, ProgramArgument, SimplifyOption, load_program
from whence.lang.program import output_names
from whence.plan import compile_evaluation, compile_plan
from whence.plan.describe import describe_plan
from whence.plan.describe_places import describe_places
from whence.plan.partition import describe_partitioning
from whence.plan.simplify import simplify as without_superfluous


def explain_plan(
    program: ProgramArgument,
    *,
    functions: FunctionsOption = None,
    confined: ConfinedOption = False,
    simplify: SimplifyOption = False,
) -> None:
    """Show how a program's views are kept up to date.

    Strata come in the order they are evaluated. For each rule there is one plan for each literal that can change: the joins and
    tests that find what follows, with the indexes they use. $0, $1, … are the values of variables.

    The end tells whether the state of a run can be kept in parts, and by which columns; and, where arguments marked @ say which
    node holds a tuple, what each node runs and what is shipped where.
    """
    with reported_errors():
        loaded = load_program(program, functions, confined=confined)
        if simplify:
            loaded, left_out = without_superfluous(loaded)
            lines = left_out or ("nothing is superfluous",)
            typer.echo("\n".join([*(f"simplified for sets: {each}" for each in lines), ""]))
        typer.echo(describe_plan(compile_plan(loaded, wanted_of(loaded)), compile_evaluation(loaded)))
        typer.echo("\n".join([*describe_partitioning(loaded, output_names(loaded)), *describe_places(loaded)]))
