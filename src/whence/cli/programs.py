"""Programs as arguments: a path, or - for the standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from whence.cli.functions import load_functions
from whence.cli.mistakes import no_file
from whence.lang import load, load_file
from whence.lang.diagnostics import Diagnostics
from whence.lang.program import Program
from whence.lang.transfers import check_transfers


def existing_file(path: Path) -> Path:
    # A pipe is as good as a file.
    if path != STDIN and (path.is_dir() or not path.exists()):
        raise no_file(path)
    return path


STDIN = Path("-")
ProgramArgument = Annotated[
    Path,
    typer.Argument(
        metavar="PROGRAM",
        help="A Datalog program (.dl) or a SQL file (.sql); - reads Datalog from the standard input.",
        callback=existing_file,
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

ConfinedOption = Annotated[
    bool,
    typer.Option(
        "--confined",
        help="Refuse a program that names files outside of the folders it is given, for programs you do not trust.",
    ),
]
SimplifyOption = Annotated[
    bool,
    typer.Option("--simplify", help="Leave out rules and joins that make no difference: what others derive already."),
]


def load_program(path: Path, functions: Path | None, *, confined: bool = False) -> Program:
    """Raises ProgramError, also if the program comes on the standard input and reads facts from there too."""
    registered = load_functions(functions)
    from_stdin = path == STDIN
    try:
        if from_stdin:
            text = sys.stdin.buffer.read().decode()
            program = load(text, name="<stdin>", functions=registered, folder=Path(), confined=confined)
        else:
            program = load_file(path, functions=registered, confined=confined)
    except UnicodeDecodeError as error:
        problem = f"{path} is not UTF-8: byte 0x{error.object[error.start]:02x} at offset {error.start}"
        raise typer.BadParameter(problem, param_hint="PROGRAM") from None
    except OSError as error:
        raise typer.BadParameter(f"cannot read {path}: {error.strerror}", param_hint="PROGRAM") from None
    if from_stdin:
        found = check_transfers(program.transfers, program.relations, stdin_reader="the program")
        Diagnostics(program.source, found).raise_if_errors()
    return program
