from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import Annotated, TextIO

import typer
from rich.table import Table

from whence.cli.evaluate import read_inputs, reported_errors, shown_warnings
from whence.cli.programs import STDIN, ConfinedOption, FunctionsOption, ProgramArgument, load_program
from whence.cli.progress import Progress
from whence.cli.terminal import err, show, show_diagnostic
from whence.io import FactError, write_relation
from whence.io import updates as records
from whence.io.changes import Epoch, Position, Update
from whence.io.confined import refuse_files_outside
from whence.io.updates import reported_writing
from whence.lang.program import Program, Transfer
from whence.lang.types import Tuple
from whence.limits import RunawayError
from whence.network import STRATEGIES, EpochFigures, Network, PlaceError
from whence.network.links import read_wiring
from whence.network.network import undisturbed
from whence.network.picture import Span, as_page, draw_run
from whence.network.places import check_placed
from whence.network.provenance import WITH_PROVENANCE, Selection
from whence.network.strategy import Strategy as ChosenStrategy
from whence.pipeline.epochs import EpochCutter
from whence.plan import UnsuitableStrategy
from whence.plan.localize import place_kind
from whence.runtime import Channel, Delivery, Wiring
from whence.runtime.figures import Traffic
from whence.sensors.translate import Scheme


class Strategy(StrEnum):
    SUPPORT = "support"
    DRED = "dred"
    RELATIVE = "relative"
    ABSORPTION = "absorption"


FIELDS = "Fields of sensors"


class Ship(StrEnum):
    EAGER = "eager"
    BATCHED = "batched"
    LAZY = "lazy"


def simulate(
    program: ProgramArgument,
    *,
    updates: Annotated[
        Path, typer.Option(metavar="FILE|-", help="JSON lines; - is the standard input.", dir_okay=False)
    ],
    strategy: Annotated[Strategy, typer.Option(help="How views are maintained across nodes.")] = Strategy.SUPPORT,
    ship: Annotated[Ship | None, typer.Option(help="When provenance is shipped, for strategies that have it.")] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'R by X, …: min Y, …'", help="Rows of R that none of these needs do not go on, with provenance."
        ),
    ] = None,
    topology: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The links: an edge list or GraphML.", exists=True, dir_okay=False),
    ] = None,
    facts: Annotated[
        Path | None,
        typer.Option("-F", "--fact-dir", metavar="DIR", help="Facts that are there from the start.", exists=True),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-D", "--output-dir", metavar="DIR", help="Where the views of all nodes go.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Another seed is another run.")] = 0,
    processors: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Deal the nodes to N processors; inside one is free.")
    ] = None,
    latency: Annotated[
        float | None,
        typer.Option(min=0, metavar="MS", help="Of every channel, without a topology: 1, or 10 for a hop of a field."),
    ] = None,
    jitter: Annotated[float, typer.Option(min=0, metavar="MS", help="Up to so much more, at random.")] = 0.0,
    loss: Annotated[float, typer.Option(min=0, max=0.99, metavar="P", help="The chance to lose a message.")] = 0.0,
    epoch_size: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="End an epoch after N updates, commit or not.")
    ] = None,
    trace: Annotated[Path | None, typer.Option(metavar="FILE|-", help="Write every message, as it arrives.")] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE.svg|FILE.html", help="Draw traffic and wrong rows over time.")
    ] = None,
    field: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="A field of sensors: grid:5x8, random:60:50:20 (nodes, side, radius) or a file of links.",
            rich_help_panel=FIELDS,
        ),
    ] = None,
    scheme: Annotated[
        Scheme, typer.Option(help="Where tuples are stored and look for partners.", rich_help_panel=FIELDS)
    ] = Scheme.AUTO,
    hashes: Annotated[
        list[str] | None,
        typer.Option("--hash", metavar="R=COLUMNS", help="What decides where R lives.", rich_help_panel=FIELDS),
    ] = None,
    links: Annotated[
        str, typer.Option(metavar="R", help="The relation of who hears whom.", rich_help_panel=FIELDS)
    ] = "link",
    server: Annotated[
        str | None,
        typer.Option(metavar="NODE", help="Where aggregates and --scheme central end.", rich_help_panel=FIELDS),
    ] = None,
    skew: Annotated[
        float, typer.Option(min=0, metavar="MS", help="How far clocks are off.", rich_help_panel=FIELDS)
    ] = 0.0,
    retransmit: Annotated[
        bool, typer.Option("--retransmit", help="Repeat what is lost.", rich_help_panel=FIELDS)
    ] = False,
    collide: Annotated[
        bool, typer.Option("--collide", help="Who is receiving hears nobody else.", rich_help_panel=FIELDS)
    ] = False,
    stages: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="The last stage of recursions that count.", rich_help_panel=FIELDS),
    ] = None,
    several_passes: Annotated[
        bool | None,
        typer.Option(
            "--several-passes/--one-pass", help="Join one atom a walk, or all on one.", rich_help_panel=FIELDS
        ),
    ] = None,
    functions: FunctionsOption = None,
    confined: ConfinedOption = False,
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Stop an epoch that takes longer, in real time.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No warnings, no progress, no table.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as one JSON object.")] = False,
) -> None:
    """Run a program on the nodes of a network, and say what keeping its views right costs.

    The arguments marked @ say which node holds a tuple. Every node keeps its share, derives what follows, and ships what belongs
    elsewhere. Updates are those of whence run; each epoch is run until nothing is under way any more. Without --topology any two
    nodes are one channel apart.

    With --field the program runs on sensors with radios: tuples are stored along one way through the field and look for partners
    along another. Updates with times are sensed then. Rows are tentative at first; --trace tells until when.

    The exit code is 1 if the program, its updates or its places are wrong, 2 if the command is, 3 at the --timeout.
    """
    silent = quiet or as_json
    if picture is not None and picture.suffix not in (".svg", ".html"):
        raise typer.BadParameter("a picture is FILE.svg or FILE.html", param_hint="--picture")
    if topology is not None and latency is not None:
        raise typer.BadParameter("the topology says how long its links take", param_hint="--latency")
    if as_json and trace == STDIN:
        raise typer.BadParameter("--json has the standard output: name a file", param_hint="--trace")
    chosen = _chosen(strategy, select or [])
    with reported_errors(), _reported_places(), shown_warnings(quiet=quiet):
        loaded = load_program(program, functions, confined=confined)
        if confined:
            refuse_files_outside(loaded, facts, output)
        if not silent:
            for warning in loaded.warnings:
                show_diagnostic(err, warning, loaded.source)
        if field is None:
            check_placed(loaded)
        epochs = list(_epochs(updates, loaded, epoch_size))
        if field is not None:
            from whence.cli.field import FieldOptions, run_field  # noqa: PLC0415 - only fields need it

            hop = 10.0 if latency is None else latency
            asked = FieldOptions(
                field, scheme, hashes or (), links, server, hop, jitter, loss, skew, seed, retransmit, collide, stages,
                several_passes,
            )  # fmt: skip
            files = {"facts": facts, "trace": trace, "output": output, "picture": picture}
            run_field(loaded, program, asked, epochs, **files, as_json=as_json, quiet=quiet)
            return
        with Progress(err, "compiling", quiet=silent) as progress, writing(trace) as tracing:
            given = {} if facts is None else read_inputs(present(loaded, facts), facts, progress)
            network = Network(
                loaded,
                strategy=chosen,
                ship=ship,
                processors=processors,
                seed=seed,
                wiring=_wiring(
                    loaded,
                    topology,
                    Channel((1.0 if latency is None else latency) / 1000, jitter=jitter / 1000, loss=loss),
                ),
                on_delivery=None if tracing is None else lambda each: _trace(tracing, network, each),
            )
            first = [Update("+", name, row) for name, rows in given.items() for row in sorted(rows, key=repr)]
            network.expect(update for epoch in [first, *(each.updates for each in epochs)] for update in epoch)
            history = _History(network, progress, tracing, len(epochs), timeout)
            if first or network.begins_alone:
                history.run(Epoch(first), 0)
            for number, epoch in enumerate(epochs, 1):
                history.run(epoch, number)
        if output is not None:
            _write(loaded, network, output)
        if picture is not None:
            _draw(picture, program, strategy, history)
    if as_json:
        typer.echo(json.dumps(history.as_json(strategy)))
    elif not quiet:
        err.print(history.as_table())


def _chosen(strategy: Strategy, select: list[str]) -> ChosenStrategy:
    if not select:
        return STRATEGIES[strategy]
    if strategy not in WITH_PROVENANCE:
        raise typer.BadParameter(
            f"the strategy {strategy} selects nothing: it has no provenance", param_hint="--select"
        )
    try:
        return WITH_PROVENANCE[strategy](selections=[Selection.parse(each) for each in select])
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--select") from None


class _History:
    """The epochs of a run, and what they took."""

    def __init__(
        self, network: Network, progress: Progress, tracing: TextIO | None, epochs: int, timeout: float | None
    ) -> None:
        self.network = network
        self.progress = progress
        self.tracing = tracing
        self.count = epochs
        self.timeout = timeout
        self.figures: list[EpochFigures] = []
        self.spans: list[Span] = []

    def run(self, epoch: Epoch, number: int) -> None:
        begins = self.network.simulation.now
        if self.tracing is not None:
            self.tracing.write(f"epoch {number}: {len(epoch.updates)} updates\n")
        self.network.begin(epoch.updates, epoch.now, number=number)
        events = 0
        started = monotonic()
        with undisturbed():
            while self.network.step():
                events += 1
                if events % 100 == 0:
                    so_far = f"{self.total.messages:,} messages, {self.total.bytes:,} bytes"
                    self.progress.text = f"epoch {number} of {self.count}: {so_far}"
                    if self.timeout is not None and monotonic() - started > self.timeout:
                        raise RunawayError(
                            f"stopped after {self.timeout:g} s in epoch {number}: {so_far}, and nodes go on telling each other\n"
                            "  hint: bound what rules count up (c < 100), or raise --timeout"
                        )
        self.figures.append(self.network.finish())
        self.spans.append(Span(number, begins, self.network.simulation.last_activity, self.network.watched.wrong()))

    @property
    def total(self) -> Traffic:
        return self.network.simulation.figures.total

    def totals(self) -> dict[str, object]:
        data, support = self.network.state_bytes()
        tuples = self.network.tuples()
        return {
            **self.total.as_json(),
            "state_bytes": data + support,
            "support_bytes": support,
            "support_bytes_per_tuple": support / tuples if tuples else 0.0,
            "seconds": sum(each.seconds for each in self.figures),
            "wrong_seconds": sum(each.wrong_seconds for each in self.figures),
            "events": self.network.simulation.events,
        }

    def as_json(self, strategy: str) -> dict[str, object]:
        sent = self.network.simulation.figures.by_node
        return {
            "strategy": strategy,
            "nodes": len(self.network.processes),
            **self.totals(),
            "epochs": [each.as_json() for each in self.figures],
            "by_node": {
                str(place): {**sent.get(place, Traffic()).as_json(), "state_bytes": sum(process.state_bytes())}
                for place, process in self.network.processes.items()
            },
        }

    def rows(self) -> list[tuple[str, str]]:
        totals = self.totals()
        shown = [("nodes", f"{len(self.network.processes):,}"), ("epochs", f"{len(self.figures):,}")]
        shown += [(name.replace("_", " "), _number(value)) for name, value in totals.items()]
        return shown

    def as_table(self) -> Table:
        table = Table(show_header=False)
        for name, value in self.rows():
            table.add_row(name, value)
        return table


def _number(value: object) -> str:
    return f"{value:,.4f}" if isinstance(value, float) else f"{value:,}"


@contextmanager
def _reported_places() -> Iterator[None]:
    try:
        yield
    except PlaceError as error:
        show(err, f"error: {error}")
        if error.hint:
            show(err, f"  hint: {error.hint}")
        raise typer.Exit(1) from None
    except UnsuitableStrategy as error:
        show(err, f"error: {error}")
        raise typer.Exit(1) from None


def _epochs(path: Path, program: Program, size: int | None) -> Iterator[Epoch]:
    """Everything is read before anything is simulated, so that what is wrong is said first."""
    schema = records.Schema.of(program)
    name = "<stdin>" if path == STDIN else str(path)
    try:
        lines = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    except OSError as error:
        raise FactError([f"cannot read {path}: {(error.strerror or str(error)).lower()}"]) from None
    problems = []
    cutter = EpochCutter(Position, size)
    epochs = []
    for number, line in enumerate(lines.split(b"\n"), 1):
        record = records.parse_record(line, number, schema)
        if isinstance(record, records.DeadLetter):
            problems.append(f"{name}:{number}: {record.reason}")
        elif record is not None and (epoch := cutter.take(record)) is not None:
            epochs.append(epoch)
    if problems:
        raise FactError(problems)
    if (last := cutter.cut()) is not None:
        epochs.append(last)
    return iter(epochs)


def _wiring(program: Program, topology: Path | None, channel: Channel) -> Wiring:
    if topology is None:
        return Wiring(channel)
    wiring = read_wiring(topology, place_kind(program))
    return wiring.with_faults(jitter=channel.jitter, loss=channel.loss)


def present(program: Program, folder: Path) -> Program:
    from whence.cli.run import with_present_inputs  # noqa: PLC0415 - brings what a run needs

    return with_present_inputs(program, folder)


def _write(program: Program, network: Network, folder: Path) -> None:
    written: dict[str, Transfer] = {each.relation: each for each in program.transfers_of("output")}
    for name, transfer in written.items():
        rows: set[Tuple] = network.relation(name)
        write_relation(transfer, program.relations[name], program.types, rows, folder)


# -- trace and picture


@contextmanager
def writing(path: Path | None) -> Iterator[TextIO | None]:
    if path is None:
        yield None
    elif path == STDIN:
        yield sys.stdout
    else:
        with reported_writing(path), path.open("w", encoding="utf-8") as file:
            yield file


def _trace(file: TextIO, network: Network, delivery: Delivery) -> None:
    """A line for each thing that is told: when it was sent and arrived, from where to where, and what."""
    front = f"{delivery.sent * 1000:10.3f} {delivery.arrived * 1000:10.3f}  {delivery.sender} -> {delivery.target}  "
    message = delivery.message
    shown = getattr(message, "shown", None)
    lines = [f"{type(message).__name__.lower()}"] if shown is None else list(shown(network.compiled))
    for line in lines:
        file.write(f"{front}{line}\n")


def _draw(path: Path, program: Path, strategy: str, history: _History) -> None:
    title = f"{program.name}, {strategy}, {len(history.network.processes)} nodes"
    svg = draw_run(title, history.network.simulation.figures.moments, history.spans)
    text = svg if path.suffix == ".svg" else as_page(title, svg, history.rows())
    with reported_writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
