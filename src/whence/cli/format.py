from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import Annotated

import typer

from whence.cli.mistakes import no_file
from whence.cli.terminal import err, show
from whence.io.updates import reported_writing
from whence.lang.format import format_program

_STDIN = Path("-")


def format(  # noqa: A001 - the command is called so
    programs: Annotated[
        list[Path],
        typer.Argument(metavar="PROGRAM…", help="Datalog programs, or folders of them; - reads one and prints it."),
    ],
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; the exit code is 1 if something would change.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show what would change, and change nothing.")] = False,
) -> None:
    """Lay out the rules of programs the same way, whoever wrote them.

    Only spaces and line breaks change: words and comments stay. A rule is on one line if it fits on 120 columns; if not, or if
    its body begins on a line of its own, each literal has a line. What has comments inside, and what cannot be parsed, stays.
    """
    changed = 0
    for path in _files(programs):
        text = sys.stdin.read() if path == _STDIN else path.read_text(encoding="utf-8")
        formatted = format_program(text)
        changed += formatted != text
        if diff:
            lines = (text.splitlines(keepends=True), formatted.splitlines(keepends=True))
            typer.echo("".join(difflib.unified_diff(*lines, str(path), str(path))), nl=False)
        elif check:
            if formatted != text:
                typer.echo(f"{path} would change")
        elif path == _STDIN:
            typer.echo(formatted, nl=False)
        elif formatted != text:
            with reported_writing(path):
                path.write_text(formatted, encoding="utf-8")
            show(err, f"{path} is laid out anew")
    if changed and (check or diff):
        raise typer.Exit(1)


def _files(given: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in given:
        if path.is_dir():
            found += sorted(path.rglob("*.dl"))
        elif path == _STDIN or path.is_file():
            found.append(path)
        else:
            raise no_file(path, "PROGRAM")
        if path.suffix == ".sql":
            raise typer.BadParameter(f"{path} is SQL: whence format is for rules", param_hint="PROGRAM")
    return found
