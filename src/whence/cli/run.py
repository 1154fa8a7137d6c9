from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from enum import StrEnum
from io import BufferedIOBase
from itertools import starmap
from math import ceil
from pathlib import Path
from statistics import median
from threading import Event
from typing import TYPE_CHECKING, Annotated, BinaryIO, NoReturn, cast

import typer
from rich.table import Table

import whence
from whence import reference
from whence.cli.evaluate import read_inputs, reported_errors, shown_warnings, wanted_of
from whence.cli.programs import STDIN, FunctionsOption, ProgramArgument, existing_file, load_program
from whence.cli.progress import Progress
from whence.cli.terminal import err, show_diagnostic
from whence.io import FactError
from whence.io import updates as records
from whence.lang.program import Program, Transfer
from whence.lang.transfers import read_options
from whence.lang.types import Tuple

if TYPE_CHECKING:
    from whence.session import SessionStats

STDOUT = Path("-")
_FACTS_HELP = "Start from the files of .input that are here; without it, inputs start empty."
_REMEMBERED = 100_000  # times of epochs: a run of months must not grow


class Strategy(StrEnum):
    SUPPORT = "support"
    DRED = "dred"
    ABSORPTION = "absorption"
    RECOMPUTE = "recompute"


def run(
    program: ProgramArgument,
    *,
    updates: Annotated[
        Path, typer.Option(metavar="FILE|-", help="JSON lines; - is the standard input.", callback=existing_file)
    ],
    facts: Annotated[
        Path | None,
        typer.Option("-F", "--fact-dir", metavar="DIR", help=_FACTS_HELP, exists=True, file_okay=False),
    ] = None,
    changes: Annotated[Path, typer.Option(metavar="FILE|-", help="Where changes go; - prints them.")] = STDOUT,
    dead_letters: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where bad records go; PROGRAM.dead.jsonl, beside the changes, by default."),
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

    The exit code is 1 if the program, its facts or, with --strict, a record is wrong, 2 if the command is, 3 at a limit.
    """
    stem = "stdin" if program == STDIN else program.stem
    letters = records.DeadLetterFile(dead_letters or changes.with_name(f"{stem}.dead.jsonl"))
    _refuse_clashes({"PROGRAM": program, "--updates": updates}, {"--changes": changes, "--dead-letters": letters.path})
    if follow and updates == STDIN:
        raise typer.BadParameter("the standard input is read until it ends anyway", param_hint="--follow")
    silent = quiet or as_json
    # Nothing moves on the terminal while changes are printed to it.
    still = silent or (changes == STDOUT and sys.stdout.isatty())
    with reported_errors(), shown_warnings(quiet=silent), _quiet_end(), _interrupts() as interrupt:
        loaded = load_program(program, functions)
        if not silent:
            for warning in loaded.warnings:
                show_diagnostic(err, warning, loaded.source)
        with Progress(err, "reading", quiet=still) as progress, _source(updates) as source:
            given = {} if facts is None else read_inputs(_with_present_inputs(loaded, facts), facts, progress)
            progress.text = "evaluating the initial state"
            limits = reference.Limits(max_tuples=max_tuples, timeout=timeout)
            started = time.perf_counter()
            session = whence.Session(loaded, wanted=wanted_of(loaded), strategy=strategy, limits=limits)
            with _sink(changes) as sink:
                views = _Views(session, sink, changes, epoch_size)
                views.start(given, since=started)
                name = "<stdin>" if updates == STDIN else str(updates)
                lines = records.read_lines(source, name, follow=follow, stopped=interrupt.is_set)
                bury = _refusing(name) if strict else letters.add
                for record in records.parse_records(lines, records.Schema.of(loaded), bury):
                    views.take(record)
                    progress.text = f"epoch {views.epoch}, {views.counts['updates']:,} updates"
                views.cut_epoch()
    if not quiet:
        summary = json.dumps(_summary(views, letters)) if as_json else _table(views, letters)
        err.print(summary, soft_wrap=as_json)


@dataclass
class _Views:
    """The epoch under way, and what came of those before."""

    session: whence.Session
    sink: BinaryIO
    path: Path
    epoch_size: int | None
    epoch: int = 0
    pending: list[records.UpdateRecord] = field(default_factory=list)
    now: float | None = None
    was_cut: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)
    times: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    slowest: float = 0.0
    total: float = 0.0

    def __post_init__(self) -> None:
        names = dict.fromkeys(transfer.relation for transfer in self.session.program.transfers_of("output"))
        self.outputs = [self.session.program.relations[name] for name in names]

    def start(self, given: Mapping[str, set[Tuple]], since: float) -> None:
        """Epoch 0: the program's own facts and those given."""
        self.session.apply(("+", name, row) for name, rows in given.items() for row in rows)
        self.total += time.perf_counter() - since
        self._write({}, {each.name: list(self.session.relation(each.name)) for each in self.outputs})

    def take(self, record: records.Applicable | None) -> None:
        match record:
            case records.UpdateRecord():
                self.pending.append(record)
                if len(self.pending) == self.epoch_size:
                    self.cut_epoch()
            case records.Tick(at):
                self.now = at if self.now is None else max(self.now, at)
            case records.Commit():
                # Right after a cut, it speaks of the epoch that was cut.
                if self.pending or self.now is not None or not self.was_cut:
                    self._end_epoch()
                self.was_cut = False
            case None:
                self.cut_epoch()

    def cut_epoch(self) -> None:
        """Ends the epoch without a commit, if there is anything in it."""
        if self.pending or self.now is not None:
            self._end_epoch()
            self.was_cut = True

    def _end_epoch(self) -> None:
        self.epoch += 1
        started = time.perf_counter()
        changes = self.session.apply(starmap(whence.Update, self.pending), now=self.now)
        taken = time.perf_counter() - started
        self.times.append(taken)
        self.slowest = max(self.slowest, taken)
        self.total += taken
        self.counts["updates"] += len(self.pending)
        self.counts["no_ops"] += changes.ignored
        self.pending.clear()
        self.now = None
        self._write(changes.deleted, changes.inserted)

    def _write(self, deleted: Mapping[str, list[Tuple]], inserted: Mapping[str, list[Tuple]]) -> None:
        for each in self.outputs:
            gone, added = len(deleted.get(each.name, ())), len(inserted.get(each.name, ()))
            self.counts.update({"-": gone, "+": added})
            self.sizes[each.name] += added - gone
        lines = records.format_changes(self.epoch, deleted, inserted, self.outputs, self.session.program.types)
        with records.reported_writing(self.path):
            self.sink.writelines(lines)
            self.sink.flush()

    def seconds(self) -> dict[str, float]:
        times = sorted(self.times) or [0.0]
        p99 = times[ceil(len(times) * 0.99) - 1]
        return {"total": self.total, "median": median(times), "p99": p99, "max": self.slowest}


@contextmanager
def _interrupts() -> Iterator[Event]:
    """Set by the first SIGINT or SIGTERM; the second does what it does elsewhere."""
    asked = Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def ask(*_: object) -> None:
        asked.set()
        restore()

    for number in before:
        signal.signal(number, ask)
    try:
        yield asked
    finally:
        restore()


def _refusing(name: str) -> Callable[[records.DeadLetter], None]:
    def refuse(letter: records.DeadLetter) -> NoReturn:
        raise FactError([f"{name}:{letter.line}: {letter.reason}"], hints=["without --strict the run goes on"])

    return refuse


def _refuse_clashes(read: Mapping[str, Path], written: Mapping[str, Path]) -> None:
    if all(path == STDIN for path in read.values()):
        raise typer.BadParameter("PROGRAM comes from the standard input already", param_hint="--updates")
    taken = {path.resolve(): option for option, path in read.items()}
    for option, path in written.items():
        # Devices and pipes may be shared.
        if path != STDOUT and (path.is_file() or not path.exists()):
            other = taken.setdefault(path.resolve(), option)
            if other != option:
                raise typer.BadParameter(f"{path} is the file of {other}", param_hint=option)


def _with_present_inputs(program: Program, folder: Path) -> Program:
    def is_present(transfer: Transfer) -> bool:
        name = read_options(transfer, program.relations[transfer.relation], lambda *_: None).filename
        return name is not None and (folder / name).exists()

    return replace(program, transfers=tuple(each for each in program.transfers_of("input") if is_present(each)))


def _source(path: Path) -> AbstractContextManager[BufferedIOBase]:
    return nullcontext(cast(BufferedIOBase, sys.stdin.buffer)) if path == STDIN else path.open("rb")


def _sink(path: Path) -> AbstractContextManager[BinaryIO]:
    if path == STDOUT:
        return nullcontext(sys.stdout.buffer)
    with records.reported_writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("wb")


@contextmanager
def _quiet_end() -> Iterator[None]:
    """A reader that wants no more changes is no error."""
    try:
        yield
    except BrokenPipeError:
        # What is left in the buffer would fail again when Python flushes it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit from None


def _summary(views: _Views, letters: records.DeadLetterFile) -> dict[str, object]:
    return {
        "epochs": views.epoch,
        "updates": views.counts["updates"],
        "no_ops": views.counts["no_ops"],
        "dead_letters": letters.count,
        "changes": {op: views.counts[op] for op in "+-"},
        "seconds": views.seconds(),
        "tuples": dict(views.sizes),
        "work": views.session.stats(),
    }


def _table(views: _Views, letters: records.DeadLetterFile) -> Table:
    table = Table(show_header=False)
    table.add_row("epochs", f"{views.epoch:,}")
    table.add_row("updates", f"{views.counts['updates']:,}")
    table.add_row("no-ops", f"{views.counts['no_ops']:,}")
    table.add_row("dead letters", f"{letters.count:,} in {letters.path}" if letters.count else "0")
    table.add_row("changes", f"+{views.counts['+']:,} -{views.counts['-']:,}")
    for name, seconds in views.seconds().items():
        table.add_row("time in total" if name == "total" else f"{name} of an epoch", f"{seconds * 1000:,.2f} ms")
    for name, size in views.sizes.items():
        table.add_row(f"tuples of {name}", f"{size:,}")
    work = views.session.stats()
    table.add_row("derivations enumerated", f"{work['derivations']:,}")
    table.add_row("suspended, re-derived", f"{work['suspended']:,}, {work['rederived']:,}")
    table.add_row("time by phase", ", ".join(f"{name} {spent * 1000:,.1f} ms" for name, spent in _longest(work)))
    table.add_row("memory of the views", f"{sum(work['bytes'].values()) / 1e6:,.1f} MB")
    return table


def _longest(work: SessionStats) -> list[tuple[str, float]]:
    return sorted(work["seconds"].items(), key=lambda each: -each[1])[:3]
