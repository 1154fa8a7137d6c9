"""The command line: `whence`."""

from __future__ import annotations

from typing import Annotated

import typer

import whence
from whence.cli.check import check
from whence.cli.evaluate import evaluate
from whence.cli.explain_plan import explain_plan
from whence.cli.how import how
from whence.cli.probability import probability
from whence.cli.responsibility import responsibility
from whence.cli.run import run
from whence.cli.whatif import whatif
from whence.cli.why import why
from whence.cli.whynot import whynot

EXAMPLES = """
**Examples**

- `whence check path.dl` says what is wrong with a program, with places and hints.
- `whence eval path.dl -F facts -D -` reads facts/\\*.facts, evaluates and prints the results.
- `whence eval views.sql -D out` evaluates views written in SQL and writes out/\\*.csv.
- `whence run path.dl --updates updates.jsonl --follow` keeps the views current and prints what changes.
- `whence why path.dl -F facts 'reach("a", "f")'` shows why a fact holds; `whynot`, `whatif` and others answer more.
- `whence --install-completion` makes the tab key complete commands and options.
"""

app = typer.Typer(
    name="whence",
    help="Evaluate recursive views, written in Datalog (Souffle's dialect) or SQL.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.command("check", rich_help_panel="Programs")(check)
app.command("eval", rich_help_panel="Programs")(evaluate)
app.command("explain-plan", rich_help_panel="Programs")(explain_plan)
app.command("run", rich_help_panel="Programs")(run)
app.command("why", rich_help_panel="Questions")(why)
app.command("how", rich_help_panel="Questions")(how)
app.command("whynot", rich_help_panel="Questions")(whynot)
app.command("whatif", rich_help_panel="Questions")(whatif)
app.command("probability", rich_help_panel="Questions")(probability)
app.command("responsibility", rich_help_panel="Questions")(responsibility)


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
