"""Many events at once: one event of each class walks, and columns of outputs and of the store are made for all the others.

Every event of a class has the same outputs up to attributes that are carried through, so a column of an output is one value, or a
column of the events, or a functor over them. What is kept of the events is made the same way.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whence.events.digests import SIZE, ChainedIds, encode
from whence.events.shortfall import first_shortfall
from whence.events.store import SHORT, EventStore, Way
from whence.events.tables import LAYOUTS
from whence.events.walk import EndlessRun
from whence.lang.functors import Undefined
from whence.lang.program import Const, Term, Var
from whence.lang.types import FLOAT, NUMBER, SYMBOL, UNSIGNED, Kind, Tuple, Value
from whence.provenance.graph import Fact
from whence.reference.solve import Solver

TYPES: dict[Kind, pa.DataType] = {SYMBOL: pa.string(), NUMBER: pa.int64(), UNSIGNED: pa.int64(), FLOAT: pa.float64()}
_CONTROL = "[\\x00-\\x1f]"


@dataclass(frozen=True)
class Letter:
    """Events that led to nothing, all for the same reason: the first of them, and how many there are."""

    record: str
    reason: str
    events: int


@dataclass
class Made:
    """What a batch of events gave: rows of `events` and `outputs` for the store, and the outputs themselves, by relation."""

    events: list[pa.Table] = field(default_factory=list)
    outputs: list[pa.Table] = field(default_factory=list)
    facts: dict[str, list[pa.Table]] = field(default_factory=dict)
    letters: list[Letter] = field(default_factory=list)
    runs: int = 0


class ColumnRunner:
    """Runs batches of events against the slow tuples of a store, whose steps are written down in the store's tables."""

    def __init__(self, store: EventStore, configuration: int) -> None:
        assert isinstance(store.ids, ChainedIds)
        self.store = store
        self.ids = store.ids
        self.configuration = configuration
        self._solver = Solver(store.events.program, {})
        relation = store.events.program.relations[store.events.event]
        self._kinds = [each.kind for each in relation.fields]
        self._names = [each.name for each in relation.fields]

    def run(self, columns: Sequence[pa.Array], times: pa.Array, first: int) -> Made:
        """The events of a batch, column by column; their runs are numbered from `first` on."""
        made = Made(runs=len(times))
        if not len(times):
            return made
        encoded = [_encoded(column) for column in columns]
        shorts = self._shorts(self.store.events.event, encoded, len(times))
        numbers = np.arange(first, first + len(times))
        for rows in _by_class([columns[key] for key in self.store.keys]):
            taken = [column.take(pa.array(rows)) for column in columns]
            example: Tuple = tuple(column[0].as_py() for column in taken)
            try:
                ways = self._ways(example, taken)
            except EndlessRun as error:
                made.letters.append(Letter(self._record(example), str(error), len(rows)))
                continue
            if not ways:
                reason = first_shortfall(self.store, Fact(self.store.events.event, example))
                made.letters.append(Letter(self._record(example), reason, len(rows)))
            runs = pa.array(numbers[rows])
            events = self._events(taken, times.take(pa.array(rows)), shorts.take(pa.array(rows)), runs)
            made.events.append(events)
            codes = [[each[row] for row in rows] for each in encoded]
            for way in ways:
                self._output(way, taken, codes, runs, made)
        return made

    def _ways(self, example: Tuple, columns: Sequence[pa.Array]) -> list[Way]:  # noqa: ARG002
        ways = self.store.ways(example)
        if ways is None:
            raise NotInColumns(self.store.events.event)
        return ways

    def _events(self, columns: Sequence[pa.Array], times: pa.Array, shorts: pa.Array, runs: pa.Array) -> pa.Table:
        place = _as_text(columns[self.store.events.place_column(self.store.events.event)])
        size = len(runs)
        arrays = [
            place,
            runs,
            _repeated(self.store.events.event, pa.string(), size),
            _rows_as_json(columns),
            shorts,
            times,
            _repeated(self.configuration, pa.int64(), size),
        ]
        return pa.Table.from_arrays(arrays, schema=LAYOUTS["events"].schema)

    def _output(
        self, way: Way, columns: Sequence[pa.Array], encoded: list[list[bytes]], runs: pa.Array, made: Made
    ) -> None:
        size = len(runs)
        relation = self.store.events.program.relations[way.path.relation]
        values: list[pa.Array] = []
        codes: list[list[bytes] | bytes] = []
        for term, each in zip(way.path.columns, relation.fields, strict=True):
            match term:
                case Const(value=value):
                    values.append(_repeated(value, TYPES[each.kind], size))
                    codes.append(encode(value))
                case Var(name=name):
                    at = int(name[1:])
                    values.append(columns[at])
                    codes.append(encoded[at])
                case _:
                    column = self._computed(term, columns, each.kind)
                    values.append(column)
                    codes.append(_encoded(column))
        shorts = self._shorts(relation.name, codes, size)
        place = _as_text(values[self.store.events.place_column(relation.name)])
        arrays = [
            place,
            shorts,
            _repeated(way.place, pa.string(), size),
            _repeated(way.step, pa.binary(SIZE), size),
            runs,
        ]
        made.outputs.append(pa.Table.from_arrays(arrays, schema=LAYOUTS["outputs"].schema))
        named = pa.Table.from_arrays([runs, *values], names=["run", *(each.name for each in relation.fields)])
        made.facts.setdefault(relation.name, []).append(named)

    def _computed(self, term: Term, columns: Sequence[pa.Array], kind: Kind) -> pa.Array:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        try:
            values = [self._solver.value(term, {f"#{at}": value for at, value in enumerate(row)}) for row in rows]
        except Undefined as reason:
            raise AssertionError(f"an attribute without a value is a key: {reason}") from reason
        return pa.array(values, TYPES[kind])

    def _shorts(self, relation: str, columns: Iterable[list[bytes] | bytes], size: int) -> pa.Array:
        """How the ids of tuples begin, from their columns as they are digested."""
        listed = list(columns)
        head = blake2b(
            self.ids.version + b"t" + encode(relation) + b"t" + struct.pack(">I", len(listed)), digest_size=SIZE
        )
        constant, rest = _constant_head(listed)
        head.update(constant)
        found = []
        for parts in zip(*(([each] * size if isinstance(each, bytes) else each) for each in rest), strict=True):
            digest = head.copy()
            digest.update(b"".join(parts))
            found.append(digest.digest()[:SHORT])
        return pa.array(found if rest else [head.digest()[:SHORT]] * size, pa.binary(SHORT))

    def _record(self, example: Tuple) -> str:
        return json.dumps({"relation": self.store.events.event, "tuple": list(example)}, ensure_ascii=False)


class NotInColumns(Exception):
    """Events that can only be run one by one."""

    def __init__(self, event: str) -> None:
        super().__init__(f"a rule takes a value of {event} apart: such events are run one by one")


def _by_class(keys: Sequence[pa.Array]) -> list[np.ndarray]:
    """The rows of each class, in their order."""
    codes = np.zeros(len(keys[0]), dtype=np.int64)
    for key in keys:
        dictionary = key.dictionary_encode()
        codes = codes * max(1, len(dictionary.dictionary)) + dictionary.indices.to_numpy(zero_copy_only=False)
        # Small again, so that many keys cannot overflow.
        codes = np.unique(codes, return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    bounds = np.flatnonzero(np.diff(codes[order])) + 1
    return np.split(order, bounds)


def _encoded(column: pa.Array) -> list[bytes]:
    """Each value as it is digested; values that occur often are encoded once."""
    known: dict[Value, bytes] = {}
    found = []
    for value in column.to_pylist():
        code = known.get(value)
        if code is None:
            code = encode(value)
            if len(known) < 10_000:
                known[value] = code
        found.append(code)
    return found


def _constant_head(columns: list[list[bytes] | bytes]) -> tuple[bytes, list[list[bytes] | bytes]]:
    at = next((at for at, each in enumerate(columns) if not isinstance(each, bytes)), len(columns))
    return b"".join(each for each in columns[:at] if isinstance(each, bytes)), columns[at:]


def _repeated(value: object, kind: pa.DataType, size: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), size)


def _as_text(column: pa.Array) -> pa.Array:
    """As places are written: symbols as they are, other values as JSON."""
    if pa.types.is_string(column.type):
        return column
    return pa.array([json.dumps(value) for value in column.to_pylist()], pa.string())


def _rows_as_json(columns: Sequence[pa.Array]) -> pa.Array:
    """Each row as a JSON list."""
    joined = pc.binary_join_element_wise(*map(_as_json, columns), ", ")
    return pc.binary_join_element_wise("[", joined, "]", "")


def _as_json(column: pa.Array) -> pa.Array:
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    if pa.types.is_string(column.type) and not pc.any(pc.match_substring_regex(column, _CONTROL)).as_py():
        escaped = pc.replace_substring(pc.replace_substring(column, "\\", "\\\\"), '"', '\\"')
        return pc.binary_join_element_wise('"', escaped, '"', "")
    return pa.array([json.dumps(value, ensure_ascii=False) for value in column.to_pylist()], pa.string())
