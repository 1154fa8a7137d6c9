"""`whence simulate --field`: programs on fields of sensors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TextIO

import typer
from rich.table import Table

from whence.cli.evaluate import read_inputs
from whence.cli.progress import Progress
from whence.cli.simulate import present, writing
from whence.cli.terminal import err, show
from whence.io import write_relation
from whence.io.changes import Epoch, Update
from whence.io.updates import reported_writing
from whence.lang.program import Program, output_names
from whence.lang.types import Tuple
from whence.runtime import Channel
from whence.runtime.sketches import standard_error
from whence.sensors import Choices, FieldError, NotForSensors, Scheme, SensorNetwork, translate
from whence.sensors.describe import describe_sensors
from whence.sensors.network import HOP
from whence.sensors.picture import draw_field, draw_page
from whence.sensors.specs import read_field
from whence.sensors.timing import find_timing


@dataclass(frozen=True)
class FieldOptions:
    """What the command line says of a field. Times are in milliseconds."""

    field: str
    scheme: Scheme = Scheme.AUTO
    hashes: Sequence[str] = ()
    links: str = "link"
    server: str | None = None
    latency: float = 10.0
    jitter: float = 0.0
    loss: float = 0.0
    skew: float = 0.0
    seed: int = 0
    retransmit: bool = False
    collide: bool = False
    stages: int | None = None
    several_passes: bool | None = None


@contextmanager
def reported_fields() -> Iterator[None]:
    """What no field can do, as text instead of a traceback."""
    try:
        yield
    except (NotForSensors, FieldError) as error:
        show(err, f"error: {error}")
        if error.hint:
            show(err, f"  hint: {error.hint}")
        raise typer.Exit(1) from None
    except ValueError as error:
        show(err, f"error: {error}")
        raise typer.Exit(1) from None


def explain_sensors(program: Program, spec: str) -> list[str]:
    """What the nodes of a field would run, for hops of 10 ms and clocks that agree."""
    made = translate(program, read_field(spec, program))
    return describe_sensors(made, find_timing(made, HOP.latency, 0.0))


def run_field(
    program: Program,
    path: Path,
    options: FieldOptions,
    epochs: Sequence[Epoch],
    *,
    facts: Path | None,
    trace: Path | None,
    output: Path | None,
    picture: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """The command: runs, writes, draws and says what it took."""
    with (
        reported_fields(),
        Progress(err, "laying out the field", quiet=quiet or as_json) as progress,
        writing(trace) as tracing,
    ):
        given = {} if facts is None else read_inputs(present(program, facts), facts, progress)
        network = _simulate(program, options, epochs, given, tracing=tracing, progress=progress)
    if output is not None:
        _write(network, output)
    if picture is not None:
        _draw(network, picture, path)
    _show(network, as_json=as_json, quiet=quiet)


def _simulate(
    program: Program,
    options: FieldOptions,
    epochs: Sequence[Epoch],
    facts: Mapping[str, set[Tuple]],
    *,
    tracing: TextIO | None,
    progress: Progress,
) -> SensorNetwork:
    """Runs the updates: those with times when they say, others epoch by epoch, each until nothing is under way any more."""
    place = read_field(options.field, program)
    network = SensorNetwork(
        program,
        place,
        choices=_choices(options, place.nodes),
        channel=Channel(
            options.latency / 1000,
            bandwidth=_BANDWIDTH if options.collide else None,
            jitter=options.jitter / 1000,
            loss=options.loss,
        ),
        skew=options.skew / 1000,
        seed=options.seed,
        reliable=options.retransmit,
        collide=options.collide,
        stage_limit=options.stages,
    )
    updates = [update for epoch in epochs for update in epoch.updates]
    for update in updates:
        network.check(update)
    named = {update.relation for update in updates if update.op == "+"} | facts.keys()
    if network.sensor_program.links not in named:
        network.feed(network.link_updates())
    network.feed(Update("+", name, row) for name, rows in facts.items() for row in sorted(rows, key=repr))
    if updates and all(update.time is not None for update in updates):
        network.feed(updates)
        _run(network, progress)
    else:
        _run(network, progress)
        for epoch in epochs:
            network.feed(update._replace(time=None) for update in epoch.updates)
            _run(network, progress)
    if tracing is not None:
        _trace(network, tracing)
    return network


_BANDWIDTH = 250_000 / 8  # bytes a second


def _run(network: SensorNetwork, progress: Progress) -> None:
    while network.simulation.step():
        if network.simulation.events % 1000 == 0:
            progress.text = f"{network.simulation.now:.2f} s: {network.messages:,} messages"


def _choices(options: FieldOptions, nodes: Sequence[object]) -> Choices:
    homes = {}
    for each in options.hashes:
        name, equals, columns = each.partition("=")
        if not equals or not columns:
            raise NotForSensors(f"{each} does not say what to hash by", "write RELATION=COLUMN,COLUMN")
        homes[name] = tuple(column.strip() for column in columns.split(","))
    server = (
        None
        if options.server is None
        else next((node for node in nodes if str(node) == options.server), options.server)
    )
    return Choices(
        scheme=options.scheme,
        homes=homes,
        links=options.links,
        server=server,  # type: ignore[arg-type]
        several_passes=options.several_passes,
    )


def _trace(network: SensorNetwork, file: TextIO) -> None:
    """Every row that came or went at its home, with when it is final."""
    base = set(network.program.base_relations)
    for each in network.moments:
        if each.relation in network.program.relations and each.relation != network.sensor_program.links:
            row = ", ".join(map(str, each.row))
            until = "" if each.relation in base else f"  tentative until {_until(each.final)}"
            file.write(
                f"{each.time:10.3f}  {each.node}  {'+' if each.is_there else '-'}{each.relation}({row}){until}\n"
            )


def _until(final: float) -> str:
    return "the field is at rest" if final == inf else f"{final:.3f}"


# -- figures


def _figures(network: SensorNetwork) -> dict[str, object]:
    """What the run took and how right it is."""
    traffic = network.messages_by_node()
    hottest = max(traffic, key=lambda node: traffic[node])
    energy = network.energy()
    compared = network.compare()
    seconds = network.simulation.last_activity
    stored = network.stored()
    return {
        "nodes": len(network.field.places),
        **network.simulation.figures.total.as_json(),
        "hottest_node": str(hottest),
        "hottest_messages": traffic[hottest],
        "most_stored": max(stored.values()),
        "joules": energy.total,
        "hottest_joules": energy.hottest[1],
        "lifetime_days": energy.lifetime(1 / max(seconds, 1.0)) / 86_400,
        "seconds": seconds,
        "final_seconds": max([seconds, *(each.final for each in network.moments if each.final < inf)]),
        "right": compared.right,
        "missed": compared.missed,
        "false": compared.false,
        **_errors(network),
        "late": network.late,
        "beyond_stages": len(network.rows_beyond()),
    }


def _errors(network: SensorNetwork) -> dict[str, object]:
    """Of counts and sums by sketches: how far off they may be, as a share, and how far those of this run are."""
    sketches = network.sensor_program.sketches
    if not sketches:
        return {}
    errors = [each.error for each in network.estimates()]
    return {
        "standard_error": max(standard_error(registers) for registers in sketches.values()),
        "estimates": len(errors),
        "largest_error": max(errors, default=0.0),
    }


def _rows(network: SensorNetwork) -> list[tuple[str, str]]:
    return [(name.replace("_", " "), _number(value)) for name, value in _figures(network).items()]


def _number(value: object) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"


def _show(network: SensorNetwork, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        schemes = {plan.rule.name: str(plan.scheme) for plan in network.sensor_program.plans}
        by_node = {str(node): count for node, count in network.messages_by_node().items()}
        typer.echo(json.dumps({**_figures(network), "schemes": schemes, "by_node": by_node}))
    elif not quiet:
        table = Table(show_header=False)
        for name, value in _rows(network):
            table.add_row(name, value)
        err.print(table)
    beyond = network.rows_beyond()
    if beyond and not quiet:
        name, row = beyond[0]
        show(
            err,
            f"warning: {len(beyond)} rows are above the limit of {network.stage_limit} stages, {name}{row} among them",
        )
        show(err, "  hint: raise --stages, or bound the recursion in the program")


def _write(network: SensorNetwork, folder: Path) -> None:
    for transfer in network.program.transfers_of("output"):
        name = transfer.relation
        write_relation(transfer, network.program.relations[name], network.program.types, network.relation(name), folder)


def _draw(network: SensorNetwork, path: Path, program: Path) -> None:
    title = f"{program.stem}, {len(network.field.places)} nodes"
    relations = [*output_names(network.program), *network.program.base_relations]
    shown = list(dict.fromkeys(relations))
    text = (
        draw_field(network, title, shown) if path.suffix == ".svg" else draw_page(network, title, shown, _rows(network))
    )
    with reported_writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
