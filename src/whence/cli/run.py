from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from whence.cli import completing
from whence.cli.evaluate import read_inputs, reported_errors, shown_warnings
from whence.cli.profiling import ProfileOption, ProfileToOption, tell_profile, wanted_profile
from whence.cli.programs import STDIN, ConfinedOption, FunctionsOption, ProgramArgument, load_program
from whence.cli.progress import Progress
from whence.cli.run_output import STDOUT, burying, changes_to, opened, quiet_end, refusing, sink_argument
from whence.cli.run_summary import Totals, as_table
from whence.cli.run_summary import as_json as summed_up
from whence.cli.run_taking import Taking, ToldCosts
from whence.cli.terminal import err, show, show_diagnostic
from whence.cli.upgrade import DefaultOption, DryRunOption, UpgradeOption, bring_over
from whence.engine.profile import Profile, waited
from whence.io import FactError
from whence.io import updates as records
from whence.io.confined import refuse_files_outside
from whence.io.frames import found_beside
from whence.lang.load import nothing_shown
from whence.lang.program import Program, Transfer, output_names
from whence.lang.transfers import read_options
from whence.limits import Limits
from whence.pipeline.extras import MissingExtra
from whence.pipeline.folder import Store
from whence.pipeline.keeper import Keeper, ResidentKeeper
from whence.pipeline.options import RESIDENT_LIMIT, RETAIN, SNAPSHOT_EVERY, Follower, RunOptions
from whence.pipeline.parts.keeping import Keeping
from whence.pipeline.parts.open import open_state
from whence.pipeline.report import EpochReport
from whence.pipeline.sinks.named import FORMS, NamedSink
from whence.pipeline.sources.named import NamedSource, NamedSources
from whence.plan import UnsuitableStrategy
from whence.plan.record import with_derivations
from whence.reader import Reader

if TYPE_CHECKING:
    pass

_FACTS_HELP = "Start from the files of .input that are here; without it, inputs start empty."


def source_argument(text: str) -> NamedSource:
    try:
        return NamedSource(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


class Strategy(StrEnum):
    SUPPORT = "support"
    COUNTING = "counting"
    DRED = "dred"
    ABSORPTION = "absorption"
    RECOMPUTE = "recompute"


def run(
    program: ProgramArgument,
    *,
    updates: Annotated[
        list[NamedSource],
        typer.Option(
            metavar="FILE|DIR|URL|-",
            help="""JSON lines; - is the standard input. Tables (.csv, .parquet, .arrow) with a column op. Or socket://HOST:PORT,
            kafka://HOST:PORT/TOPIC, mqtt://HOST:PORT/TOPIC, postgresql://…, poll+http://HOST/PAGE#relation=R. With --no-spark it
            may be given several times.""",
            parser=source_argument,
        ),
    ],
    state: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the state here, and go on from it.", file_okay=False),
    ] = None,
    upgrade: UpgradeOption = False,
    dry_run: DryRunOption = False,
    default: DefaultOption = None,
    facts: Annotated[
        Path | None,
        typer.Option("-F", "--fact-dir", metavar="DIR", help=_FACTS_HELP, exists=True, file_okay=False),
    ] = None,
    changes: Annotated[Path, typer.Option(metavar="FILE|-", help="Where changes go; - prints them.")] = STDOUT,
    sink: Annotated[
        list[NamedSink] | None,
        typer.Option(
            metavar="KIND:WHERE",
            help=f"Where changes or views go besides: {FORMS}. May be repeated.",
            parser=sink_argument,
        ),
    ] = None,
    dead_letters: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where bad records go; PROGRAM.dead.jsonl, beside the changes, by default."),
    ] = None,
    epoch_size: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="End an epoch after N updates, commit or not.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more where the updates end.")] = False,
    snapshot_every: Annotated[
        int, typer.Option(min=1, metavar="N", help="Snapshot the state after N epochs.")
    ] = SNAPSHOT_EVERY,
    retain: Annotated[int, typer.Option(min=0, metavar="N", help="Keep the views of the last N epochs.")] = RETAIN,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at a record that cannot be applied.")] = False,
    strategy: Annotated[Strategy, typer.Option(help="How views are maintained.")] = Strategy.SUPPORT,
    record: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RELATION",
            autocompletion=completing.relations,
            help="Make the derivations of a relation outputs too, a table for each rule.",
        ),
    ] = None,
    adaptive: Annotated[
        bool,
        typer.Option("--adaptive", help="Have join orders follow the data; explain-plan --live shows them."),
    ] = False,
    functions: FunctionsOption = None,
    confined: ConfinedOption = False,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark's master, such as local[4]; all cores if not given.")
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Keep the state in N parts, in the memory of Spark's workers."),
    ] = None,
    resident_limit: Annotated[
        int, typer.Option(min=0, metavar="N", help="Keep a state of more rows in parts, if it can be.")
    ] = RESIDENT_LIMIT,
    no_spark: Annotated[bool, typer.Option("--no-spark", help="Run in this process, without Spark.")] = False,
    max_tuples: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Stop when there are more tuples; if not given, before memory runs out."),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Stop an epoch that takes longer.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No warnings, no progress, no summary.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Give the summary as one JSON object.")] = False,
    profile: ProfileOption = False,
    profile_to: ProfileToOption = None,
) -> None:
    """Keep the views of a program current under updates, and say what changes.

    {"op": "+", "relation": "link", "tuple": ["a", "b"]} inserts a tuple and "-" deletes it; a "time" may say when.
    {"commit": true} ends an epoch, whose updates are applied at once; {"tick": 12.5} moves the clock. What changes in the
    .output relations is written as {"epoch": 1, "op": "+", "relation": "reach", "tuple": ["a", "b"]}; epoch 0 is the
    state before the first update. The end of the updates and an interrupt end the last epoch.

    The exit code is 1 if the program, its facts or, with --strict, a record is wrong, 2 if the command is, 3 at a limit.
    """
    stem = "stdin" if program == STDIN else program.stem
    letters_path = dead_letters or changes.with_name(f"{stem}.dead.jsonl")
    for each in updates:
        _refuse_clashes(program, each, {"--changes": changes, "--dead-letters": letters_path})
    source = _source(updates, follow=follow, no_spark=no_spark)
    costs = wanted_profile(profile, profile_to)
    _refuse_parts(partitions, state, no_spark=no_spark, profiled=costs is not None)
    silent = quiet or as_json
    # Nothing moves on the terminal while changes are printed to it.
    still = silent or (changes == STDOUT and sys.stdout.isatty())
    with reported_errors(), shown_warnings(quiet=silent), quiet_end(), interrupts() as interrupt:
        loaded = load_program(program, functions, confined=confined)
        if confined:
            refuse_files_outside(loaded, facts, None)
        if not silent:
            # Without .output the changes of every derived relation are written.
            for warning in (*loaded.warnings, *(() if output_names(loaded) else nothing_shown(loaded))):
                show_diagnostic(err, warning, loaded.source)
        if record:
            try:
                loaded = with_derivations(loaded, record)
            except ValueError as error:
                raise typer.BadParameter(str(error), param_hint="--record") from None
        bring_over(state, loaded, upgrade=upgrade, dry_run=dry_run, defaults=default or [], quiet=silent)
        with (
            Progress(err, "reading", quiet=still) as progress,
            opened_state(state, loaded) as store,
            changes_to(changes, loaded, durable=state is not None) as written,
        ):
            is_resumed = store is not None and not store.is_new
            given = None
            if facts is not None and not is_resumed:
                with waited(costs, "reading"):
                    given = read_inputs(with_present_inputs(loaded, facts), facts, progress)
            progress.text = "evaluating the initial state"
            totals = Totals()

            switches: list[str] = []

            told = ToldCosts(costs, state)

            def tell(report: EpochReport) -> None:
                totals.add(report)
                progress.text = str(report)
                switches.extend(report.switches)
                told.after_epoch()

            options = RunOptions(
                wanted=output_names(loaded),
                sinks=[written, *opened(sink or [], loaded)],
                strategy=strategy,
                limits=Limits(max_tuples=max_tuples, timeout=timeout),
                snapshot_every=snapshot_every,
                retain=retain,
                partitions=partitions,
                resident_limit=resident_limit,
                on_epoch=tell,
                on_choice=None if silent else lambda choice: show(err, str(choice)),
                profile=costs,
                follow=_following(state) if adaptive else None,
            )
            keeping = Keeping(loaded, options)
            letters = records.DeadLetterFile(letters_path, resume=is_resumed, repeats=not source.comes_once)
            bury = refusing(source) if strict else burying(source, letters, durable=state is not None)
            take = Taking(loaded, keeping, source, epoch_size, bury, totals, follow, interrupt.is_set, told)
            keeper: Keeper
            try:
                if no_spark:
                    keeper = take.in_process(store, given)
                else:
                    refuse_missing_spark()
                    if not silent:
                        on_master = f" on {master}" if master else ""
                        show(err, f"starting Spark{on_master}; --no-spark would run in this process")
                    progress.text = "starting Spark"
                    keeper = take.on_spark(store, given, master)
            except UnsuitableStrategy as error:
                raise typer.BadParameter(str(error), param_hint="--strategy") from None
        if not quiet:
            _sum_up(totals, keeper, letters, switches, as_json=as_json)
        if costs is not None:
            _tell_costs(costs, keeper, profile_to, title=f"whence run {program}")


def refuse_missing_spark() -> None:
    """Raises MissingExtra, with both ways to go on."""
    if find_spec("pyspark") is None:
        raise MissingExtra(
            "a run goes through Spark, and pyspark is not installed: pip install 'whence[spark]', or run in this process "
            "with --no-spark"
        )


def _refuse_parts(partitions: int | None, state: Path | None, *, no_spark: bool, profiled: bool) -> None:
    if partitions is None:
        return
    if state is None or no_spark:
        reason = "parts are in the memory of Spark's workers" if no_spark else "parts are kept in the folder of --state"
        raise typer.BadParameter(reason, param_hint="--partitions")
    if profiled:
        raise typer.BadParameter("what rules cost is told of a state in one piece", param_hint="--profile")


def _tell_costs(costs: Profile, keeper: Keeper, path: Path | None, *, title: str) -> None:
    if not isinstance(keeper, ResidentKeeper):
        raise FactError(["the state has outgrown one process: what rules cost is told of a state in one piece"])
    tell_profile(costs, keeper.session, path, title=title)


def _sum_up(
    totals: Totals, keeper: Keeper, letters: records.DeadLetterFile, switches: list[str], *, as_json: bool
) -> None:
    if as_json:
        summary = summed_up(totals, keeper, letters) | ({"join_orders": switches} if switches else {})
        err.print(json.dumps(summary), soft_wrap=True)
        return
    err.print(as_table(totals, keeper, letters))
    for each in switches:
        show(err, f"another join order, {each}")


def _source(updates: list[NamedSource], *, follow: bool, no_spark: bool) -> NamedSource | NamedSources:
    source = updates[0] if len(updates) == 1 else NamedSources(tuple(dict.fromkeys(updates)))
    if follow and isinstance(source, NamedSource) and source.comes_once:
        name = "the standard input" if source.name == "<stdin>" else source.name
        raise typer.BadParameter(f"{name} is read until it ends anyway", param_hint="--follow")
    if follow and isinstance(source, NamedSource) and source.is_feed and not source.is_folder:
        raise typer.BadParameter("a table is complete: follow a folder of them", param_hint="--follow")
    if not source.is_lines and not no_spark:
        reason = (
            f"{source.name} is read with --no-spark; on Spark, whence.spark.maintain takes it as a streaming source"
        )
        raise typer.BadParameter(reason, param_hint="--updates")
    return source


def _following(state: Path | None) -> Callable[[Reader], Follower]:
    from whence.optimizer.live import PublishedOrders  # noqa: PLC0415 - few want it

    return PublishedOrders(state)


@contextmanager
def opened_state(state: Path | None, program: Program) -> Iterator[Store | None]:
    store = None if state is None else open_state(state, program)
    try:
        yield store
    finally:
        if store is not None:
            store.close()


@contextmanager
def interrupts() -> Iterator[Event]:
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


def _refuse_clashes(program: Path, updates: NamedSource, written: Mapping[str, Path]) -> None:
    if program == STDIN and updates.name == "<stdin>":
        raise typer.BadParameter("PROGRAM comes from the standard input already", param_hint="--updates")
    read = {"PROGRAM": program} if updates.path is None else {"PROGRAM": program, "--updates": updates.path}
    taken = {path.resolve(): option for option, path in read.items()}
    for option, path in written.items():
        # Devices and pipes may be shared.
        if path != STDOUT and (path.is_file() or not path.exists()):
            other = taken.setdefault(path.resolve(), option)
            if other != option:
                raise typer.BadParameter(f"{path} is the file of {other}", param_hint=option)


def with_present_inputs(program: Program, folder: Path) -> Program:
    def is_present(transfer: Transfer) -> bool:
        name = read_options(transfer, program.relations[transfer.relation], lambda *_: None).filename
        if name is None:
            return False
        return (folder / name).exists() or (not transfer.params and found_beside(folder / name) is not None)

    return replace(program, transfers=tuple(each for each in program.transfers_of("input") if is_present(each)))
