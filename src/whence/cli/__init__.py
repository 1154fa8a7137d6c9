"""The command line: `whence`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import whence
from whence.cli.lazy import LazyCommand

EXAMPLES = """
**Examples**

- `whence check path.dl` says what is wrong with a program, with places and hints.
- `whence eval path.dl -F facts -D -` reads facts/\\*.facts, evaluates and prints the results.
- `whence eval views.sql -D out` evaluates views written in SQL and writes out/\\*.csv.
- `whence run path.dl --updates updates.jsonl --follow` keeps the views current and prints what changes.
- `whence --install-completion` makes the tab key complete commands and options.
"""

PROGRAMS = "Programs"
COMMANDS = (
    LazyCommand("check", "whence.cli.check:check", "Report everything that is wrong with a program.", PROGRAMS),
    LazyCommand(
        "eval", "whence.cli.evaluate:evaluate", "Evaluate a program: read its inputs, write its outputs.", PROGRAMS
    ),
    LazyCommand(
        "explain-plan",
        "whence.cli.explain_plan:explain_plan",
        "Show how a program's views are kept up to date.",
        PROGRAMS,
    ),
    LazyCommand(
        "run",
        "whence.cli.run:run",
        "Keep the views of a program current under updates, and say what changes.",
        PROGRAMS,
    ),
)


class _Commands(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands.update((str(each.name), each) for each in COMMANDS)


app = typer.Typer(
    name="whence",
    cls=_Commands,
    help="Evaluate recursive views, written in Datalog (Souffle's dialect) or SQL.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"whence {whence.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main() -> None:
    app()
