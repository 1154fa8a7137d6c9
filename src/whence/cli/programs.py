"""Programs as arguments: a path, or - for the standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from whence.cli.functions import load_functions
from whence.io import check_transfers
from whence.lang import ProgramError, load, load_file
from whence.lang.program import Program

ProgramArgument = Annotated[
    Path,
    typer.Argument(
        metavar="PROGRAM",
        help="A Datalog program (.dl) or a SQL file (.sql); - reads Datalog from the standard input.",
        exists=True,
        dir_okay=False,
        allow_dash=True,
    ),
]
FunctionsOption = Annotated[
    Path | None,
    typer.Option(
        "--functions",
        metavar="FILE.py",
        help="Python functions that the program may call as functors.",
        exists=True,
        dir_okay=False,
    ),
]


def load_program(path: Path, functions: Path | None) -> Program:
    """Raises ProgramError, also for directives that ask for what fact files cannot do."""
    registered = load_functions(functions)
    from_stdin = path == Path("-")
    try:
        if from_stdin:
            text = sys.stdin.buffer.read().decode()
            program = load(text, name="<stdin>", functions=registered, folder=Path())
        else:
            program = load_file(path, functions=registered)
    except UnicodeDecodeError as error:
        problem = f"{path} is not UTF-8: byte 0x{error.object[error.start]:02x} at offset {error.start}"
        raise typer.BadParameter(problem, param_hint="PROGRAM") from None
    problems = check_transfers(program, stdin_taken=from_stdin)
    if problems:
        raise ProgramError(program.source, (*problems, *program.warnings))
    return program
