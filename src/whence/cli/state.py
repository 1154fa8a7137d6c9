"""`whence state`: look at the state of a run, check it, compact it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from whence import reference, session
from whence.cli.evaluate import reported_errors, shown_warnings
from whence.cli.functions import load_functions
from whence.cli.programs import FunctionsOption
from whence.cli.progress import Progress
from whence.cli.terminal import err, out, show
from whence.pipeline.lock import locked_for_reading
from whence.pipeline.options import RETAIN
from whence.pipeline.parts.open import open_state, read_state
from whence.pipeline.verify import verify as problems_of

state = typer.Typer(help="Look at the state that a run keeps in a folder, check it, compact it.", no_args_is_help=True)

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No warnings, no progress.")]
Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="The folder of --state.", exists=True, file_okay=False, show_default=False)
]


@state.command("ls")
def list_state(
    folder: Folder,
    *,
    functions: FunctionsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say what a state holds: epochs, snapshots, the log, the sizes of the views. The run may go on meanwhile."""
    with reported_errors():
        store = read_state(folder, load_functions(functions))
        found = {
            "program": store.manifest.name,
            "epochs": {"oldest": store.oldest_epoch, "last": store.last_epoch},
            "snapshots": [
                {"epoch": each.epoch, "base_tuples": each.tuples, "clock": each.clock}
                for each in store.manifest.snapshots
            ],
            "log": {"segments": len(store.segments), "bytes": _size(folder / "log")},
            "bytes": _size(folder),
            "parts": store.manifest.parts,
            "tuples": store.sizes(),
        }
    if as_json:
        typer.echo(json.dumps(found))
        return
    table = Table(show_header=False)
    table.add_row("program", store.manifest.name)
    table.add_row("epochs", f"{store.oldest_epoch} to {store.last_epoch}")
    if store.parts is not None:
        by = (f"{name}.{store.program.relations[name].fields[at].name}" for name, at in store.manifest.columns.items())
        table.add_row("parts", f"{store.parts}, by {', '.join(by)}")
    for each in store.manifest.snapshots:
        table.add_row(f"snapshot of epoch {each.epoch}", f"{each.tuples:,} base tuples")
    table.add_row("log", f"{len(store.segments):,} segments")
    for name, size in store.sizes().items():
        table.add_row(f"tuples of {name}", f"{size:,}")
    out.print(table)


@state.command("verify")
def verify_state(
    folder: Folder,
    *,
    functions: FunctionsOption = None,
    by_reference: Annotated[
        bool, typer.Option("--reference", help="Recompute with the reference evaluator, which is slow.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Check every file, add up the changes, recompute the views from the base tuples, and compare.

    The exit code is 1 if anything differs. The state must not be in use. Nothing is written: a read-only copy will do.
    """
    with (
        reported_errors(),
        shown_warnings(quiet=quiet),
        Progress(err, "verifying", quiet=quiet),
        locked_for_reading(folder),
    ):
        store = read_state(folder, load_functions(functions))
        problems = list(problems_of(store, reference.evaluate if by_reference else session.evaluate))
    for problem in problems:
        show(out, problem)
    if problems:
        raise typer.Exit(1)
    show(out, f"ok: epochs {store.oldest_epoch} to {store.last_epoch}, {', '.join(store.outputs)}")


@state.command("compact")
def compact_state(
    folder: Folder,
    *,
    functions: FunctionsOption = None,
    retain: Annotated[int, typer.Option(min=0, metavar="N", help="Keep the views of the last N epochs.")] = RETAIN,
    quiet: Quiet = False,
) -> None:
    """Snapshot the last epoch, merge the log and forget what is not retained. The state must not be in use."""
    with reported_errors(), shown_warnings(quiet=quiet), Progress(err, "compacting", quiet=quiet):
        before = _size(folder)
        store = open_state(folder, read_state(folder, load_functions(functions)).program)
        try:
            store.compact(retain)
        finally:
            store.close()
    show(out, f"epochs {store.oldest_epoch} to {store.last_epoch}; {before:,} bytes before, {_size(folder):,} now")


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
