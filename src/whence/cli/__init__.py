"""The command line: `whence`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import whence
from whence.cli.lazy import LazyCommand
from whence.cli.mistakes import told_mistakes

EXAMPLES = """
**Examples**

- `whence check path.dl` says what is wrong with a program, with places and hints.
- `whence eval path.dl -F facts -D -` reads facts/\\*.facts, evaluates and prints the results.
- `whence eval views.sql -D out` evaluates views written in SQL and writes out/\\*.csv.
- `whence run path.dl --updates updates.jsonl --follow` keeps the views current and prints what changes.
- `whence why path.dl -F facts 'reach("a", "f")'` shows why a fact holds; `whynot`, `whatif` and others answer more.
- `whence --install-completion` makes the tab key complete commands and options.
"""

PROGRAMS, QUESTIONS = "Programs", "Questions"
COMMANDS = (
    LazyCommand("check", "whence.cli.check:check", "Report everything that is wrong with a program.", PROGRAMS),
    LazyCommand(
        "eval", "whence.cli.evaluate:evaluate", "Evaluate a program: read its inputs, write its outputs.", PROGRAMS
    ),
    LazyCommand(
        "equivalent",
        "whence.cli.equivalent:equivalent",
        "Say whether two queries give the same, whatever the data, in a semiring.",
        PROGRAMS,
    ),
    LazyCommand(
        "reformulate",
        "whence.cli.reformulate:reformulate",
        "Say a query in terms of views, perhaps taking away what they have too much, in the cheapest way found.",
        PROGRAMS,
    ),
    LazyCommand(
        "explain-plan",
        "whence.cli.explain_plan:explain_plan",
        "Show how a program's views are kept up to date.",
        PROGRAMS,
    ),
    LazyCommand(
        "optimize",
        "whence.cli.optimize:optimize",
        "Find the cheapest plan of a query, and find it again when statistics change.",
        PROGRAMS,
    ),
    LazyCommand(
        "run",
        "whence.cli.run:run",
        "Keep the views of a program current under updates, and say what changes.",
        PROGRAMS,
    ),
    LazyCommand(
        "serve",
        "whence.cli.serve:serve",
        "Show the views of a program on a page that stays current, and answer why its rows are there.",
        PROGRAMS,
    ),
    LazyCommand(
        "simulate",
        "whence.cli.simulate:simulate",
        "Run a program on the nodes of a network, and say what keeping its views right costs.",
        PROGRAMS,
    ),
    LazyCommand(
        "state",
        "whence.cli.state:state",
        "Look at the state that a run keeps in a folder, check it, compact it.",
        PROGRAMS,
    ),
    LazyCommand(
        "capture",
        "whence.cli.capture:capture",
        "Make a PostgreSQL database record the changes of tables, so that views can follow them.",
        PROGRAMS,
    ),
    LazyCommand(
        "exchange",
        "whence.cli.exchange:exchange",
        "Share data between peers that half trust each other: publish, import, decide, ask.",
        PROGRAMS,
    ),
    LazyCommand(
        "trees",
        "whence.cli.trees:trees",
        "Query annotated trees, XML and JSON: by clearance, with provenance, incomplete or changing.",
        PROGRAMS,
    ),
    LazyCommand(
        "events",
        "whence.cli.events:events",
        "Run event programs, keep what is needed to say why, and ask.",
        PROGRAMS,
    ),
    LazyCommand(
        "format",
        "whence.cli.format:format",
        "Lay out the rules of programs the same way, whoever wrote them.",
        PROGRAMS,
    ),
    LazyCommand("lsp", "whence.cli.lsp:lsp", "Answer an editor about programs (Language Server Protocol).", PROGRAMS),
    LazyCommand("shell", "whence.cli.shell:shell", "Ask questions, try updates and rules out, at a prompt.", QUESTIONS),
    LazyCommand(
        "why", "whence.cli.why:why", "Show why a fact holds: its smallest proof, down to base facts.", QUESTIONS
    ),
    LazyCommand(
        "how",
        "whence.cli.how:how",
        "Show how a fact comes from base facts: all its derivations, summed up in a semiring.",
        QUESTIONS,
    ),
    LazyCommand(
        "whynot",
        "whence.cli.whynot:whynot",
        "Show why a fact does not hold, and the smallest changes of base facts that would make it hold.",
        QUESTIONS,
    ),
    LazyCommand(
        "whatif",
        "whence.cli.whatif:whatif",
        "Show what would change in the views if base facts went or came.",
        QUESTIONS,
    ),
    LazyCommand(
        "probability",
        "whence.cli.probability:probability",
        "Show how likely a fact is, given independent probabilities of base facts.",
        QUESTIONS,
    ),
    LazyCommand(
        "responsibility",
        "whence.cli.responsibility:responsibility",
        "Show how much each base fact contributes to a fact.",
        QUESTIONS,
    ),
    LazyCommand("warm", "whence.cli.warm:warm", "Compile the engine's loops ahead of their first use.", "Installation"),
)


class _Commands(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands.update((str(each.name), each) for each in COMMANDS)

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        with told_mistakes():
            return super().make_context(info_name, args, parent=parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        with told_mistakes():
            return super().invoke(ctx)


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
