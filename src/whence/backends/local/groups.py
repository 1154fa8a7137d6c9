"""Aggregating groups of rows: all values of a group at once, as the language defines each aggregate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whence.backends.local.arrays import Ids, Lines, distinct_lines, without
from whence.backends.local.table import Table
from whence.backends.local.words import Dictionary, Words
from whence.lang.aggregates import combine
from whence.lang.calls import FunctionError
from whence.lang.functors import Undefined
from whence.lang.program import Program
from whence.lang.types import NUMBER, SYMBOL, UNSIGNED, Value
from whence.plan.extract_aggregates import AggregateSpec

# So many of the rows that wait come at once at least, and this part of them: fewer would be more rounds, more would be in vain.
FEW, PART = 256, 16


@dataclass
class LocalGroups:
    """The groups of one aggregate: keys are lines of their own."""

    spec: AggregateSpec
    program: Program
    tables: dict[str, Table]
    dictionary: Dictionary

    @property
    def is_of_numbers(self) -> bool:
        return self.spec.op in ("min", "max") and self.spec.value_kind == NUMBER

    def keys_of(self, relation: str, ids: Ids) -> Lines:
        spec = self.spec
        columns = spec.output_keys
        if relation == spec.rows:
            columns = spec.key_columns
        elif relation == spec.context:
            columns = tuple(range(len(columns)))
        return self.merge([self.tables[relation].part(ids, columns)])

    def the_only_key(self) -> Lines:
        return np.zeros((1, 0), dtype=np.int64)

    def merge(self, batches: Sequence[Lines]) -> Lines:
        return distinct_lines(np.concatenate(batches))

    def improved(self, ids: Ids, absent: int) -> Lines:
        keys, picks, values, bests = self._beside_best(ids, absent)
        may_change = np.ones(len(keys), dtype=np.bool_)
        may_change[picks] = values < bests if self.spec.op == "min" else values > bests
        return distinct_lines(keys[may_change])

    def weakened(self, ids: Ids, absent: int) -> Lines:
        keys, picks, values, bests = self._beside_best(ids, absent)
        return distinct_lines(keys[picks[values == bests]])

    def _beside_best(self, ids: Ids, absent: int) -> tuple[Lines, Ids, Words, Words]:
        """The keys of rows; which of them have a row in the output; and the values of both, where that is all it takes."""
        spec, rows, table = self.spec, self.tables[self.spec.rows], self.tables[self.spec.output]
        keys = rows.part(ids, spec.key_columns)
        picks, best = self._rows_of(keys, absent)
        assert spec.value_column is not None
        values = rows.column(ids, spec.value_column)[picks]
        return keys, picks, values, table.column(best, spec.output_value)

    def best_first(self, ids: Ids) -> tuple[Ids, Ids | None]:
        assert self.spec.value_column is not None
        count = max(FEW, len(ids) // PART)
        if len(ids) <= count:
            return ids, None
        values = self.tables[self.spec.rows].column(ids, self.spec.value_column)
        if self.spec.op == "min":
            best = values <= np.partition(values, count)[count]
        else:
            best = values >= np.partition(values, -count)[-count]
        return ids[best], ids[~best]

    def without_rows(self, keys: Lines, absent: int) -> Lines:
        has_row = np.zeros(len(keys), dtype=np.bool_)
        has_row[self._rows_of(keys, absent)[0]] = True
        return keys[~has_row]

    def regroup(self, keys: Lines, forbid: Mapping[str, int], absent: int) -> tuple[Lines, Lines]:
        table = self.tables[self.spec.output]
        _, before = self._rows_of(keys, absent)
        after = self._aggregated(keys, forbid)
        stay = table.find(after, absent)
        return table.keys(without(before, stay)), after[stay < 0]

    def unsupported(self, keys: Lines, forbid: Mapping[str, int], absent: int, recursive: tuple[str, ...]) -> Lines:
        table = self.tables[self.spec.output]
        picks, before = self._rows_of(keys, absent)
        after = self._aggregated(keys[picks], forbid, table.ranks(before), recursive)
        return table.keys(without(before, table.find(after)))

    def _rows_of(self, keys: Lines, absent: int) -> tuple[Ids, Ids]:
        """The output's rows: which of the keys, and the row."""
        table = self.tables[self.spec.output]
        return table.index(self.spec.output_keys).probe(keys, absent)

    def _aggregated(
        self, keys: Lines, forbid: Mapping[str, int], below: Ids | None = None, recursive: tuple[str, ...] = ()
    ) -> Lines:
        """The rows that groups aggregate to; of recursive relations, only rows of a rank below the group's own."""
        spec = self.spec
        if spec.context is not None:
            context = self.tables[spec.context]
            found = context.find(keys, forbid[spec.context])
            asked = np.flatnonzero(found >= 0)
            if below is not None and spec.context in recursive:
                asked = asked[context.ranks(found[asked]) < below[asked]]
            keys = keys[asked]
            below = None if below is None else below[asked]
        rows = self.tables[spec.rows]
        groups, matches = rows.index(spec.key_columns).probe(keys, forbid[spec.rows])
        if below is not None and spec.rows in recursive:
            lower = rows.ranks(matches) < below[groups]
            groups, matches = groups[lower], matches[lower]
        values = None if spec.value_column is None else rows.column(matches, spec.value_column)
        if spec.op == "sum" and spec.recursive and values is not None:
            self._refuse_negative(values)
        words, defined = aggregate_groups(spec, groups, values, len(keys), self.dictionary)
        lines: Lines = np.empty((len(keys), len(spec.output_keys) + 1), dtype=np.int64)
        for at, column in enumerate(spec.output_keys):
            lines[:, column] = keys[:, at]
        lines[:, spec.output_value] = words
        return lines[defined]

    def _refuse_negative(self, values: Words) -> None:
        assert self.spec.value_kind is not None
        if any(value < 0 for value in self.dictionary.decode_column(values, self.spec.value_kind)):  # type: ignore[operator]
            place = self.program.source.place(self.spec.span)
            raise FunctionError(
                f"{place.file.name}:{place.line}: rule {self.spec.rule}: a sum inside recursion met a negative value; "
                "such a sum can fall as the recursion goes on and has no well-defined result"
            )


def aggregate_groups(
    spec: AggregateSpec, groups: Ids, values: Words | None, count: int, dictionary: Dictionary
) -> tuple[Words, NDArray[np.bool_]]:
    """For each of `count` groups its aggregate, and whether it has one. `groups` says which group each value is in, in order."""
    op, value_kind, kind = spec.op, spec.value_kind, spec.kind
    sizes = np.bincount(groups, minlength=count)
    defined = np.ones(count, dtype=np.bool_) if spec.has_empty_groups else sizes > 0
    if values is None or value_kind is None:
        return dictionary.encode_column(sizes.tolist(), kind), defined
    if value_kind == NUMBER and op in ("sum", "min", "max"):
        return _reduce(op, values, sizes), defined
    if value_kind == UNSIGNED and op in ("sum", "min", "max"):
        return _reduce(op, values.view(np.uint64), sizes).view(np.int64), defined
    decoded = dictionary.decode_column(values, value_kind)
    ends = np.cumsum(sizes).tolist()
    placeholder: Value = "" if kind == SYMBOL else 0.0
    results: list[Value] = []
    for group, (end, size) in enumerate(zip(ends, sizes.tolist(), strict=True)):
        try:
            result = combine(op, decoded[end - size : end], kind)
        except Undefined:
            result = None
        defined[group] = result is not None
        results.append(placeholder if result is None else result)
    return dictionary.encode_column(results, kind), defined


def _reduce(op: str, values: NDArray[np.int64] | NDArray[np.uint64], sizes: NDArray[np.intp]) -> Words:
    """Groups are runs of the values; an empty one gives zero."""
    result = np.zeros(len(sizes), dtype=values.dtype)
    filled = np.flatnonzero(sizes)
    if len(filled):
        starts = (np.cumsum(sizes) - sizes)[filled]
        ufunc = {"sum": np.add, "min": np.minimum, "max": np.maximum}[op]
        result[filled] = ufunc.reduceat(values, starts)
    return result  # type: ignore[return-value]
