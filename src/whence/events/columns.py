"""Many events at once: one event of each class walks, and columns of outputs and of the store are made for all the others.

Every event of a class has the same outputs up to attributes that are carried through, so a column of an output is one value, or a
column of the events, or a functor over them. What is kept of the events is made the same way.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
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
from whence.lang.program import Const, Term, Var
from whence.lang.types import FLOAT, NUMBER, SYMBOL, UNSIGNED, Kind, Tuple, Value
from whence.lang.undefined import Undefined
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
        endless = np.zeros(len(times), dtype=bool)
        shapes: dict[tuple[object, ...], list[tuple[Way, np.ndarray]]] = {}
        for rows in _by_class([columns[key] for key in self.store.keys]):
            example: Tuple = tuple(column[int(rows[0])].as_py() for column in columns)
            try:
                ways = self._ways(example)
            except EndlessRun as error:
                made.letters.append(Letter(self._record(example), str(error), len(rows)))
                endless[rows] = True
                continue
            if not ways:
                reason = first_shortfall(self.store, Fact(self.store.events.event, example))
                made.letters.append(Letter(self._record(example), reason, len(rows)))
            for way in ways:
                shapes.setdefault(_shape(way), []).append((way, rows))
        numbers = np.arange(first, first + len(times))
        made.events.append(
            self._events(columns, times, self._shorts(self.store.events.event, encoded), numbers, ~endless)
        )
        for classes in shapes.values():
            self._outputs(classes, columns, encoded, numbers, made)
        return made

    def _ways(self, example: Tuple) -> list[Way]:
        ways = self.store.ways(example)
        if ways is None:
            raise NotInColumns(self.store.events.event)
        return ways

    def _events(
        self, columns: Sequence[pa.Array], times: pa.Array, shorts: pa.Array, numbers: np.ndarray, kept: np.ndarray
    ) -> pa.Table:
        size = len(numbers)
        arrays = [
            _as_text(columns[self.store.events.place_column(self.store.events.event)]),
            pa.array(numbers),
            _repeated(self.store.events.event, pa.string(), size),
            _rows_as_json(columns),
            shorts,
            times,
            _repeated(self.configuration, pa.int64(), size),
        ]
        found = pa.Table.from_arrays(arrays, schema=LAYOUTS["events"].schema)
        return found if kept.all() else found.filter(pa.array(kept))

    def _outputs(
        self,
        classes: list[tuple[Way, np.ndarray]],
        columns: Sequence[pa.Array],
        encoded: list[list[bytes]],
        numbers: np.ndarray,
        made: Made,
    ) -> None:
        """Outputs of classes whose ways differ in constants only, all at once."""
        rows = np.concatenate([rows for _, rows in classes])
        of = np.repeat(np.arange(len(classes)), [len(rows) for _, rows in classes])
        relation = self.store.events.program.relations[classes[0][0].path.relation]
        values: list[pa.Array] = []
        codes: list[list[bytes]] = []
        for at, each in enumerate(relation.fields):
            terms = [way.path.columns[at] for way, _ in classes]
            match terms[0]:
                case Const():
                    constants = [term.value for term in terms if isinstance(term, Const)]
                    values.append(pa.array(constants, TYPES[each.kind]).take(pa.array(of)))
                    texts = [encode(constant) for constant in constants]
                    codes.append([texts[number] for number in of.tolist()])
                case Var(name=name):
                    source = int(name[1:])
                    values.append(columns[source].take(pa.array(rows)))
                    own = encoded[source]
                    codes.append([own[row] for row in rows.tolist()])
                case _:
                    parts = [
                        self._computed(term, [column.take(pa.array(rows)) for column in columns], each.kind)
                        for term, (_, rows) in zip(terms, classes, strict=True)
                    ]
                    values.append(pa.concat_arrays(parts))
                    codes.append(_encoded(values[-1]))
        runs = pa.array(numbers[rows])
        arrays = [
            _as_text(values[self.store.events.place_column(relation.name)]),
            self._shorts(relation.name, codes),
            pa.array([way.place for way, _ in classes], pa.string()).take(pa.array(of)),
            pa.array([way.step for way, _ in classes], pa.binary(SIZE)).take(pa.array(of)),
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

    def _shorts(self, relation: str, columns: Sequence[list[bytes]]) -> pa.Array:
        """How the ids of tuples begin, from their columns as they are digested."""
        begun = self.ids.version + b"t" + encode(relation) + b"t" + struct.pack(">I", len(columns))
        head = blake2b(begun, digest_size=SIZE)
        found = []
        for parts in zip(*columns, strict=True):
            digest = head.copy()
            digest.update(b"".join(parts))
            found.append(digest.digest()[:SHORT])
        return pa.array(found, pa.binary(SHORT))

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


def _shape(way: Way) -> tuple[object, ...]:
    """What ways have in common that differ in constants only."""
    terms = tuple("constant" if isinstance(term, Const) else term for term in way.path.columns)
    return way.path.relation, terms


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
