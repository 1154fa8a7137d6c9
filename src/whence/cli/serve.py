from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Annotated

import typer

from whence.cli.evaluate import read_inputs, reported_errors, shown_warnings
from whence.cli.functions import load_functions
from whence.cli.programs import FunctionsOption, existing_file, load_program
from whence.cli.progress import Progress
from whence.cli.run import interrupts, opened_state, source_argument, with_present_inputs
from whence.cli.terminal import err, out, show
from whence.engine.profile import Profile
from whence.io import FactError
from whence.io import updates as records
from whence.io.changes import Changes, Epoch, Position, Update
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.pipeline.extras import extra
from whence.pipeline.files import StateError
from whence.pipeline.folder import Store
from whence.pipeline.keeper import ResidentKeeper
from whence.pipeline.options import RETAIN, SNAPSHOT_EVERY, RunOptions
from whence.pipeline.records import Bury
from whence.pipeline.report import EpochReport
from whence.pipeline.sources.named import NamedSource, NamedSources
from whence.profile.file import ProfileFile

with extra("serve"):
    from whence.serve.app import Served
    from whence.serve.assets import missing
    from whence.serve.dashboards import Dashboard, beside, read_dashboard
    from whence.serve.follow import Follower, recall
    from whence.serve.live import LiveViews
    from whence.serve.server import HOST, PORT, Bind, NotSafe, Server

_NAP = 0.2
_WHERE, _WHO = "Where", "Who may look, and do what"


def serve(
    program: Annotated[
        Path,
        typer.Argument(
            metavar="PROGRAM|DIR",
            help="A program (.dl or .sql) to run here, or the folder in which a run keeps its state (whence run --state).",
            callback=lambda path: path if path.is_dir() else existing_file(path),
        ),
    ],
    *,
    updates: Annotated[
        list[NamedSource] | None,
        typer.Option(
            metavar="FILE|DIR|URL|-",
            help="Updates, as for whence run; what is added to a file or folder is waited for. May be repeated.",
            parser=source_argument,
        ),
    ] = None,
    state: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the state here, and go on from it.", file_okay=False)
    ] = None,
    facts: Annotated[
        Path | None,
        typer.Option(
            "-F", "--fact-dir", metavar="DIR", help="Start from the files of .input here.", exists=True, file_okay=False
        ),
    ] = None,
    epoch_size: Annotated[int | None, typer.Option(min=1, metavar="N", help="End an epoch after N updates.")] = None,
    dashboard: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="Widgets to show first; PROGRAM.dashboard.toml, if it is there.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    dead_letters: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where bad records go, too; the page shows them anyway.")
    ] = None,
    functions: FunctionsOption = None,
    host: Annotated[str, typer.Option(help="Where to listen.", rich_help_panel=_WHERE)] = HOST,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 is any that is free.", rich_help_panel=_WHERE)] = PORT,
    host_name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A name by which browsers know the host. May be repeated.", rich_help_panel=_WHERE
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            "--tls-cert", metavar="FILE", exists=True, dir_okay=False, help="For HTTPS.", rich_help_panel=_WHERE
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option("--tls-key", metavar="FILE", exists=True, dir_okay=False, help="Its key.", rich_help_panel=_WHERE),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="The token that viewers need, instead of one that is made up.",
            rich_help_panel=_WHO,
        ),
    ] = None,
    writable: Annotated[
        bool, typer.Option("--writable", help="Viewers may change base facts.", rich_help_panel=_WHO)
    ] = False,
    seconds: Annotated[
        float, typer.Option("--question-timeout", min=0.1, help="Seconds for a question.", rich_help_panel=_WHO)
    ] = 10.0,
    snapshot_every: Annotated[
        int, typer.Option(min=1, metavar="N", help="Snapshot the state after N epochs.")
    ] = SNAPSHOT_EVERY,
    retain: Annotated[int, typer.Option(min=0, metavar="N", help="Keep the views of the last N epochs.")] = RETAIN,
    profiled: Annotated[
        bool, typer.Option("--profile", help="Keep what each rule and literal costs in profile.json, in the state.")
    ] = False,
) -> None:
    """Show the views of a program on a page that stays current, and answer why its rows are there.

    The address is printed, with a token that lets one in. Views are tables that can be searched, filtered and sorted; a click on
    a row asks why. The page stays until it is interrupted, also when the updates have ended.
    """
    try:
        token = "" if token_file is None else token_file.read_text(encoding="utf-8").strip()
        bind = Bind(host, port, token, certificate, key, tuple(f"{name.lower()}" for name in host_name or ()))
    except NotSafe as error:
        raise typer.BadParameter(str(error), param_hint="--host") from None
    if program.is_dir() and (updates or state or facts or writable):
        reason = "the run that keeps this state applies updates: here it is only looked at"
        raise typer.BadParameter(reason, param_hint="PROGRAM|DIR")
    if profiled and state is None:
        raise typer.BadParameter("what rules cost is kept in the folder of --state", param_hint="--profile")
    with reported_errors(), shown_warnings(quiet=False), interrupts() as interrupt, ExitStack() as stack:
        if program.is_dir():
            with Progress(err, "reading the state"):
                follower = Follower(program, load_functions(functions))
            opened = _Opened(follower.live, lambda: follower.follow(interrupt.is_set), dashboard)
        else:
            loaded = load_program(program, functions)
            asked = _Asked(
                loaded, _source(updates or []), state, facts, epoch_size, dead_letters, snapshot_every, retain, profiled
            )
            opened = stack.enter_context(asked.opened(program, dashboard or beside(program), interrupt))
            if writable:
                opened.live.write = opened.write
        with _listening(opened, bind, seconds):
            opened.work()
            while not interrupt.is_set():
                time.sleep(_NAP)


def _source(updates: list[NamedSource]) -> NamedSource | NamedSources | None:
    named = tuple(dict.fromkeys(updates))
    return NamedSources(named) if len(named) > 1 else named[0] if named else None


class _Opened:
    """Views to look at; `work` keeps them current until there is no more to do."""

    def __init__(self, live: LiveViews, work: Callable[[], object], dashboard: Path | None) -> None:
        self.live = live
        self.work = work
        self.dashboard = Dashboard()
        if dashboard is not None:
            self.dashboard = read_dashboard(dashboard, live.relations, live.base)
        self.write: Callable[[Sequence[Update]], EpochReport] | None = None


@contextmanager
def _listening(opened: _Opened, bind: Bind, seconds: float) -> Iterator[None]:
    try:
        server = Server(Served(opened.live, dashboard=opened.dashboard, seconds=seconds), bind)
    except OSError as error:
        raise FactError(
            [f"cannot listen on {bind.host}, port {bind.port}: {error.strerror or error}"],
            hints=["--port 0 takes any that is free"],
        ) from None
    if what := missing():
        show(err, f"warning: {what}")
    opened.live.warm()
    with server:
        out.print(f"serving {opened.live.name} at {server.address}")
        yield


@dataclass(frozen=True)
class _Asked:
    """A program to be run here."""

    program: Program
    updates: NamedSource | NamedSources | None
    state: Path | None
    facts: Path | None
    epoch_size: int | None
    dead_letters: Path | None
    snapshot_every: int
    retain: int
    profiled: bool

    @contextmanager
    def opened(self, path: Path, dashboard: Path | None, interrupt: Event) -> Iterator[_Opened]:
        views: list[LiveViews] = []
        costs = Profile() if self.profiled else None
        told = ProfileFile(self.state, costs) if costs is not None and self.state is not None else None

        def tell(report: EpochReport, changes: Changes) -> None:
            for live in views:
                live.applied(report, changes)
                if told is not None:
                    told.after_epoch(live.session)

        options = RunOptions(snapshot_every=self.snapshot_every, retain=self.retain, on_changes=tell, profile=costs)
        with opened_state(self.state, self.program) as store:
            given: Mapping[str, set[Tuple]] | None = None
            with Progress(err, "evaluating the initial state") as progress:
                if self.facts is not None and (store is None or store.is_new):
                    given = read_inputs(with_present_inputs(self.program, self.facts), self.facts, progress)
                keeper = ResidentKeeper(
                    self.program, options, store=None if store is None else store.whole(), facts=given
                )
            live = LiveViews(keeper.session, epoch=keeper.epoch, lock=keeper.lock, name=path.name)
            views.append(live)
            live.lag = lambda: _behind(self.updates, keeper.source)
            if store is not None and keeper.epoch:
                Thread(target=_recall, args=(live, store), daemon=True).start()
            opened = _Opened(live, lambda: self._take(keeper, live, interrupt.is_set), dashboard)

            def write(updates: Sequence[Update]) -> EpochReport:
                with keeper.lock:
                    return keeper.apply([Epoch(updates, None, keeper.source)])[0]

            opened.write = write
            yield opened
            keeper.close()

    def _take(self, keeper: ResidentKeeper, live: LiveViews, stopped: Callable[[], bool]) -> None:
        if self.updates is None:
            return
        follow = isinstance(self.updates, NamedSources) or not self.updates.comes_once
        source = self.updates.opened(
            self.program, self._burying(live, keeper), size=self.epoch_size, follow=follow, stopped=stopped
        )
        with contextlib.closing(source):
            for epoch in source.epochs(keeper.source):
                keeper.apply([epoch])
        live.end("" if stopped() else f"{self.updates.name} has ended")

    def _burying(self, live: LiveViews, keeper: ResidentKeeper) -> Bury:
        letters = None
        if self.dead_letters is not None:
            letters = records.DeadLetterFile(self.dead_letters, resume=keeper.epoch > 0)

        def bury(letter: records.DeadLetter, place: Position) -> None:
            assert self.updates is not None
            if letters is not None:
                letters.add(letter)
            live.bury(letter.reason, letter.record, f"{self.updates.place_of(place)}:{letter.line}")

        return bury


def _recall(live: LiveViews, store: Store) -> None:
    try:
        recall(live, store.folder, store.program.functions)
    except StateError as error:
        show(err, f"warning: epochs before this run cannot be looked at: {error}")


def _behind(updates: NamedSource | NamedSources | None, place: Position) -> dict[str, int]:
    """How much of a file has not been read."""
    if not isinstance(updates, NamedSource) or updates.path is None or updates.is_feed or not updates.path.is_file():
        return {}
    return {"bytes": max(0, updates.path.stat().st_size - place.get("bytes", 0))}
