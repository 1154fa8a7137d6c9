from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import whence
from whence import reference
from whence.cli.evaluate import _read, _reported_errors, _shown_warnings
from whence.cli.programs import STDIN, FunctionsOption, ProgramArgument, load_program
from whence.cli.progress import Progress
from whence.cli.terminal import err, show_diagnostic
from whence.io import updates as records

STDOUT = Path("-")
# Of how many epochs the times are kept, so that a run of months does not grow.
_REMEMBERED = 100_000


class Strategy(StrEnum):
    SUPPORT = "support"
    RECOMPUTE = "recompute"


def run(
    program: ProgramArgument,
    *,
    updates: Annotated[
        Path,
        typer.Option(
            metavar="FILE|-",
            help="The updates, a JSON object a line; - reads the standard input.",
            exists=True,
            dir_okay=False,
            allow_dash=True,
        ),
    ],
    facts: Annotated[
        Path | None,
        typer.Option(
            "-F",
            "--fact-dir",
            metavar="DIR",
            help="Start from the files of .input that are here; without it, inputs start empty.",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    changes: Annotated[Path, typer.Option(metavar="FILE|-", help="Where changes go; - prints them.")] = STDOUT,
    dead_letters: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where records go that cannot be applied, instead of PROGRAM.dead.jsonl beside the changes.",
        ),
    ] = None,
    epoch_size: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="End an epoch after N updates, commit or not.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more where the updates end.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at a record that cannot be applied.")] = False,
    strategy: Annotated[Strategy, typer.Option(help="How views are maintained.")] = Strategy.SUPPORT,
    functions: FunctionsOption = None,
    no_spark: Annotated[  # noqa: ARG001 - it asks for what happens anyway
        bool, typer.Option("--no-spark", help="Run in this process, which for now happens anyway.")
    ] = False,
    max_tuples: Annotated[int, typer.Option(min=1, metavar="N", help="Stop when there are more tuples.")] = 10_000_000,
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Stop an epoch that takes longer.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No warnings, no progress, no summary.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Give the summary as one JSON object.")] = False,
) -> None:
    """Keep the views of a program current under updates, and say what changes.

    {"op": "+", "relation": "link", "tuple": ["a", "b"]} inserts a tuple and "-" deletes it; a "time" may say when.
    {"commit": true} ends an epoch, whose updates are applied at once; {"tick": 12.5} moves the clock. What changes in the
    .output relations is written as {"epoch": 1, "op": "+", "relation": "reach", "tuple": ["a", "b"]}; epoch 0 is the
    state before the first update. The end of the updates and an interrupt end the last epoch.

    The exit code is 1 if the program, its facts or (if --strict) a record is wrong, 2 if the command is, 3 if a limit was
    reached.
    """
    letters = _DeadLetters(dead_letters or _beside(changes, program), _name(updates), strict=strict)
    _refuse_clashes({"PROGRAM": program, "--updates": updates}, {"--changes": changes, "--dead-letters": letters.path})
    if follow and updates == STDIN:
        raise typer.BadParameter("the standard input is read until it ends anyway", param_hint="--follow")
    silent = quiet or as_json
    with _reported_errors(), _shown_warnings(quiet=silent), _quiet_end():
        loaded = load_program(program, functions)
        if not silent:
            for warning in loaded.warnings:
                show_diagnostic(err, warning, loaded.source)
        stop = _Interrupt()
        # Nothing moves on the terminal while changes are printed to it.
        still = silent or (changes == STDOUT and sys.stdout.isatty())
        with Progress(err, "reading", quiet=still) as progress, stop.caught(), _opened(updates) as source:
            given = {} if facts is None else _read(_with_present_inputs(loaded, facts), facts, progress)
            limits = reference.Limits(max_tuples=max_tuples, timeout=timeout)
            with _created(changes) as sink:
                views = _Views(whence.Session(loaded, strategy=strategy, limits=limits), sink, _name(changes))
                views.start(given)
                lines = records.read_lines(source, _name(updates), follow=follow, stopped=lambda: stop.asked)
                for record in _records(lines, loaded, letters):
                    views.take(record, epoch_size)
                    progress.text = f"epoch {views.epoch}, {views.summary.updates:,} updates"
                views.cut_epoch()
    if not quiet:
        _show(views.summary.as_json(letters), as_json=as_json)
