"""Aggregates along a tree: every node adds what it has to what its children said, and tells its parent (TAG).

A node keeps the states of groups as its children last said them, so that something that goes is taken out by adding up
again. Only what changed is told, and a node waits for a hop before it does, so that several changes below it go up as
one.

Groups that are *sketched* go over all ways instead: a node tells every neighbour that is nearer to the top, in one
broadcast, and states are such that hearing of the same row twice changes nothing. What is lost on one way comes on
another.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from whence.lang.aggregates import combine
from whence.lang.types import FLOAT, Tuple, Value
from whence.plan.extract_aggregates import AggregateSpec
from whence.runtime.sketches import Sketch
from whence.sensors.messages import Fact, Result, Summary
from whence.sensors.rules import NotForSensors

if TYPE_CHECKING:
    from whence.sensors.node import SensorNode

State = tuple[Value, ...] | None  # of a group without rows: None; if it is estimated, the registers of its sketch
ESTIMATED = ("count", "sum")  # extremes do not mind hearing something twice
Group = tuple[int, State]  # how many rows ask for it, and its state


class Summaries:
    def __init__(self, node: SensorNode) -> None:
        self.node = node
        self.own: dict[
            str, dict[Tuple, list[dict[Tuple, None]]]
        ] = {}  # by aggregate and group: rows, and rows that ask
        self.below: dict[str, dict[Value, dict[Tuple, tuple[int, Group]]]] = {}
        self.said: dict[str, dict[Tuple, Group]] = {}
        self.changed: dict[str, dict[Tuple, None]] = {}
        self.roots: dict[str, float] = {}
        self.count = 0  # of summaries
        self.shown: dict[str, dict[Tuple, Tuple]] = {}  # at the top: the row that a group has

    def begin(self) -> None:
        """Aggregates over everything have a value from the start."""
        for spec in self.node.program.aggregates.values():
            if spec.is_single and spec.has_empty_groups and self._is_top:
                self._mark(spec.output, (), 0.0)

    @property
    def _is_top(self) -> bool:
        return self.node.node == self.node.program.server

    def change(self, fact: Fact) -> None:
        """A tuple whose home this is came or went."""
        for spec in self.node.network.aggregated.get(fact.relation, ()):
            for which, name, columns in (
                (0, spec.rows, spec.key_columns),
                (1, spec.context, tuple(range(len(fact.row)))),
            ):
                if name == fact.relation:
                    key = tuple(fact.row[at] for at in columns)
                    rows = self.own.setdefault(spec.output, {}).setdefault(key, [{}, {}])[which]
                    if fact.died is None:
                        rows[fact.row] = None
                    else:
                        rows.pop(fact.row, None)
                    self._mark(spec.output, key, fact.root)

    def take(self, sender: object, message: Summary) -> None:
        known = self.below.setdefault(message.output, {}).setdefault(sender, {})  # type: ignore[arg-type]
        for key, asking, state in message.groups:
            if key not in known or known[key][0] < message.number:
                known[key] = (message.number, (asking, state))
                self._mark(message.output, key, message.root)

    def _mark(self, output: str, key: Tuple, root: float) -> None:
        waiting = self.changed.setdefault(output, {})
        if not waiting:
            self.node.port.set_timer(self.node.network.timing.hop, ("summaries", output))
        waiting[key] = None
        self.roots[output] = max(self.roots.get(output, root), root)

    def tell(self, output: str) -> None:
        """Tells the parent what changed; at the top, what the groups are."""
        keys, self.changed[output] = self.changed.get(output, {}), {}
        spec = self.node.program.aggregates[output]
        groups = [(key, *self._group(spec, key)) for key in keys]
        if self._is_top:
            for key, asking, state in groups:
                self._show(spec, key, asking, state)
            return
        said = self.said.setdefault(output, {})
        news = tuple(each for each in groups if said.get(each[0]) != each[1:])
        if news:
            said |= {key: (asking, state) for key, asking, state in news}
            self.count += 1
            network, registers = self.node.network, self.node.program.sketches.get(output)
            summary = Summary(output, news, self.roots[output], self.count, is_sketched=registers is not None)
            if registers is None:
                self.node.port.send(network.parents[self.node.node], summary)
            else:
                self.node.port.broadcast(network.inwards[self.node.node], summary)

    def _group(self, spec: AggregateSpec, key: Tuple) -> Group:
        rows, asking = self.own.get(spec.output, {}).get(key, ({}, {}))
        column = spec.value_column
        registers = self.node.program.sketches.get(spec.output)
        if registers is None or spec.op not in ESTIMATED:
            parts = [state_of(spec.op, (None if column is None else row[column] for row in rows))]
        else:
            parts = [sketch_of(spec, rows, registers)]
        count = len(asking)
        for groups in self.below.get(spec.output, {}).values():
            _, (below, state) = groups.get(key, (0, (0, None)))
            # Over several ways the same is heard several times: all that counts is whether somebody asks.
            count = count + below if registers is None else max(count, below)
            parts.append(state)
        return count, merged(spec, parts) if registers is None else merged_once(spec, parts)

    def _show(self, spec: AggregateSpec, key: Tuple, asking: int, state: State) -> None:
        shown = self.shown.setdefault(spec.output, {})
        is_asked = asking > 0 if spec.context is not None else state is not None or spec.is_single
        value = finished(spec, state, is_sketch=spec.output in self.node.program.sketches) if is_asked else None
        row: list[Value] = [None] * (len(key) + 1)
        for at, part in zip(spec.output_keys, key, strict=True):
            row[at] = part
        row[spec.output_value] = value
        new, old = None if value is None else tuple(row), shown.pop(key, None)
        if new is not None:
            shown[key] = new
        if old != new:
            for each, is_addition in ((old, False), (new, True)):
                if each is not None:
                    stamp = self.node.stamp()
                    derivation = (f"{spec.op} of {spec.rows}", ())
                    self.node.tell_home(
                        Result(spec.output, each, derivation, is_addition, stamp, self.roots.get(spec.output, 0.0))
                    )


def state_of(op: str, values: Iterable[Value]) -> State:
    """The state of a group: its count, its sum with the count, or its extreme."""
    listed = list(values)
    if not listed:
        return None
    match op:
        case "count":
            return (len(listed),)
        case "sum" | "mean":  # of floats too the sum is exact, in whatever order they come
            total = sum(Fraction(value) if isinstance(value, float) else value for value in listed)  # type: ignore[misc]
            return (total, len(listed))
        case "min":
            return (min(listed),)  # type: ignore[type-var]
        case _:
            return (max(listed),)  # type: ignore[type-var]


def merged(spec: AggregateSpec, parts: Iterable[State]) -> State:
    known = [part for part in parts if part is not None]
    if not known:
        return None
    if spec.op in ("min", "max"):
        return state_of(spec.op, (part[0] for part in known))
    return tuple(sum(each) for each in zip(*known, strict=True))


def sketch_of(spec: AggregateSpec, rows: Iterable[Tuple], registers: int) -> State:
    """The registers of a sketch of rows, each counted once or with the value that is summed."""
    weights: dict[Hashable, float] = {}
    for row in rows:
        weight = 1.0 if spec.op == "count" or spec.value_column is None else float(row[spec.value_column])  # type: ignore[arg-type]
        if weight < 0:
            raise NotForSensors(
                f"rule {spec.rule}: {spec.rows}({', '.join(map(str, row))}) has a negative value, of which there is no sketch",
                "sum what is not negative, or leave the sketch away",
            )
        if weight:
            weights[row] = weight
    return Sketch.of(weights, registers).least if weights else None


def merged_once(spec: AggregateSpec, parts: Iterable[State]) -> State:
    """The state of what several parts have, some of it in common."""
    known = [part for part in parts if part is not None]
    if not known or spec.op not in ESTIMATED:
        return merged(spec, known)
    return tuple(map(min, *known)) if len(known) > 1 else known[0]


def finished(spec: AggregateSpec, state: State, *, is_sketch: bool = False) -> Value:
    """The value of a group, which for one without rows the language defines."""
    if state is None:
        return combine(spec.op, [], spec.kind)
    if is_sketch and spec.op in ESTIMATED:
        estimate = Sketch(state).estimate  # type: ignore[arg-type]
        return estimate if spec.kind == FLOAT else round(estimate)
    match spec.op:
        case "mean":
            return float(state[0]) / state[1]  # type: ignore[arg-type, operator]
        case "sum" if spec.kind != FLOAT:
            return combine("sum", [state[0]], spec.kind)
        case "sum" | "count":
            return float(state[0]) if spec.kind == FLOAT else state[0]  # type: ignore[arg-type]
        case _:
            return state[0]
