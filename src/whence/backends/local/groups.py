"""Aggregating groups of rows: all values of a group at once, as the language defines each aggregate."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from whence.backends.local import best, gathered, parallel
from whence.backends.local.arrays import Ids, Lines, listed, without
from whence.backends.local.functors import placeholder_of
from whence.backends.local.gathered import GREATEST, LEAST, SUM, Gathered
from whence.backends.local.hashing import distinct_lines
from whence.backends.local.settling import is_of_numbers
from whence.backends.local.table import Table
from whence.backends.local.words import Dictionary, Words
from whence.lang.aggregates import combine
from whence.lang.calls import FunctionError
from whence.lang.program import Program
from whence.lang.types import NUMBER, UNSIGNED, DecimalKind, Value, is_whole
from whence.lang.undefined import Undefined
from whence.plan.extract_aggregates import AggregateSpec
from whence.reference import EvaluationWarning

# So many of the rows that wait come at once at least, and this part of them: fewer would be more rounds, more would be in vain.
FEW, PART = 256, 16


@dataclass
class LocalGroups:
    """The groups of one aggregate: keys are lines of their own."""

    spec: AggregateSpec
    program: Program
    tables: dict[str, Table]
    dictionary: Dictionary
    warned: set[str] = field(default_factory=set)
    # All groups there are, if all rows came to an input in this epoch; it stays as it is until the end.
    gathered: Gathered | None = None

    @property
    def is_of_numbers(self) -> bool:
        return is_of_numbers(self.spec)

    def keys_of(self, relation: str, ids: Ids) -> Lines:
        spec = self.spec
        columns = spec.output_keys
        if relation == spec.rows:
            columns = spec.key_columns
        elif relation == spec.context:
            columns = tuple(range(len(columns)))
        table, ids = self.tables[relation], listed(ids)
        if not parallel.is_worthwhile(len(ids)):
            return distinct_lines(table.part(ids, columns))

        def keys_of(share: Ids) -> Lines:
            return distinct_lines(table.part(share, columns))

        return self.merge(
            parallel.run([partial(keys_of, each) for each in np.array_split(ids, parallel.threads(len(ids)))])
        )

    def keys_of_added(self, relation: str, ids: Ids) -> Lines:
        spec, table = self.spec, self.tables[relation]
        is_all = relation == spec.rows and len(ids) == len(table) >= gathered.MANY
        if not is_all or (how := way_to_gather(spec)) is None:
            return self.keys_of(relation, ids)
        self.gathered = Gathered(table, spec.key_columns, spec.value_column, how)
        return self.gathered.keys

    def the_only_key(self) -> Lines:
        return np.zeros((1, 0), dtype=np.int64)

    def merge(self, batches: Sequence[Lines]) -> Lines:
        filled = [batch for batch in batches if len(batch)] or batches[:1]
        return filled[0] if len(filled) == 1 else distinct_lines(np.concatenate(filled))

    def improved(self, ids: Ids, absent: int) -> Lines:
        keys, results = self._compared(ids, absent)
        return distinct_lines(keys[results <= best.BETTER])

    def weakened(self, ids: Ids, absent: int) -> Lines:
        keys, results = self._compared(ids, absent)
        return distinct_lines(keys[results == best.EQUAL])

    def _compared(self, ids: Ids, absent: int) -> tuple[Lines, Ids]:
        """The keys of rows, and how their values compare with those of their groups."""
        spec, rows = self.spec, self.tables[self.spec.rows]
        keys: Lines = np.empty((len(ids), len(spec.key_columns)), dtype=np.int64)
        results: Ids = np.empty(len(ids), dtype=np.int32)
        best.compare_rows(
            rows.address,
            ids,
            np.array(spec.key_columns, dtype=np.int64),
            spec.value_column,
            self.tables[spec.output].index(spec.output_keys).address,
            spec.output_value,
            absent,
            int(spec.op == "min"),  # a bool would have the loop compiled once more
            keys,
            results,
        )
        return keys, results

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
        if self.gathered is None and self._is_by_numbers:
            return self._regroup(keys, forbid, absent, by_rank=False)
        after = self._aggregated(keys, forbid) if self.gathered is None else self._come_to(self.gathered, keys, forbid)
        table = self.tables[self.spec.output]
        if not len(table):
            return after[:0], after
        _, before = self._rows_of(keys, absent)
        stay = table.find(after, absent)
        return table.keys(without(before, stay)), after[stay < 0]

    def unsupported(self, keys: Lines, forbid: Mapping[str, int], absent: int, recursive: tuple[str, ...]) -> Lines:
        if self._is_by_numbers:
            return self._regroup(keys, forbid, absent, by_rank=self.spec.rows in recursive)[0]
        table = self.tables[self.spec.output]
        picks, before = self._rows_of(keys, absent)
        after = self._aggregated(keys[picks], forbid, table.ranks(before), recursive)
        return table.keys(without(before, table.find(after)))

    @property
    def _is_by_numbers(self) -> bool:
        return self.is_of_numbers and self.spec.context is None

    def _regroup(self, keys: Lines, forbid: Mapping[str, int], absent: int, *, by_rank: bool) -> tuple[Lines, Lines]:
        """Rows of the output that are not what groups aggregate to, and rows that are and are not there."""
        spec, output = self.spec, self.tables[self.spec.output]
        told = (forbid[spec.rows], absent, spec.value_column, spec.output_value, spec.op == "min", by_rank)
        outdated, missing = np.empty((2, len(keys), output.arity), dtype=np.int64)
        counts = np.empty(2, dtype=np.int64)
        best.regroup(
            self.tables[spec.rows].index(spec.key_columns).address,
            output.index(spec.output_keys).address,
            keys,
            np.array(told, dtype=np.int64),
            np.array(spec.output_keys, dtype=np.int64),
            outdated,
            missing,
            counts,
        )
        old, new = counts.tolist()
        return outdated[:old], missing[:new]

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
        groups, matches = _rows_by_group(rows, spec.key_columns, keys, forbid[spec.rows])
        if below is not None and spec.rows in recursive:
            lower = rows.ranks(matches) < below[groups]
            groups, matches = groups[lower], matches[lower]
        values = None if spec.value_column is None else rows.column(matches, spec.value_column)
        if spec.op == "sum" and spec.recursive and values is not None:
            self._refuse_negative(values)
        words, defined, reason = aggregate_groups(spec, groups, values, len(keys), self.dictionary)
        if reason and reason not in self.warned:
            self.warned.add(reason)
            message = f"{self._where}: {reason}; nothing is derived there"
            warnings.warn(message, EvaluationWarning, stacklevel=2)
        return self._lines(keys, words)[defined]

    def _come_to(self, groups: Gathered, keys: Lines, forbid: Mapping[str, int]) -> Lines:
        """The rows that groups aggregate to, from all groups there are."""
        spec = self.spec
        if spec.context is not None:
            keys = keys[self.tables[spec.context].find(keys, forbid[spec.context]) >= 0]
        sizes, values = groups.of(keys)
        lines = self._lines(keys, sizes if spec.op == "count" else values)
        return lines if spec.has_empty_groups else lines[sizes > 0]

    def _lines(self, keys: Lines, values: Words) -> Lines:
        """Rows of the output."""
        spec = self.spec
        lines: Lines = np.empty((len(keys), len(spec.output_keys) + 1), dtype=np.int64)
        for at, column in enumerate(spec.output_keys):
            lines[:, column] = keys[:, at]
        lines[:, spec.output_value] = values
        return lines

    def _refuse_negative(self, values: Words) -> None:
        assert self.spec.value_kind is not None
        if any(value < 0 for value in self.dictionary.decode_column(values, self.spec.value_kind)):  # type: ignore[operator]
            raise FunctionError(
                f"{self._where}: a sum inside recursion met a negative value; "
                "such a sum can fall as the recursion goes on and has no well-defined result"
            )

    @property
    def _where(self) -> str:
        place = self.program.source.place(self.spec.span)
        return f"{place.file.name}:{place.line}: rule {self.spec.rule}"


def way_to_gather(spec: AggregateSpec) -> int | None:
    """How the values of a group are put together one by one, in any order; None if that is not all there is to it."""
    if spec.recursive:
        return None
    if spec.op == "count" and spec.value_column is None:
        return SUM
    if spec.op == "sum" and spec.value_kind in (NUMBER, UNSIGNED):
        return SUM
    if spec.op in ("min", "max") and spec.value_kind is not None and is_whole(spec.value_kind):
        return LEAST if spec.op == "min" else GREATEST
    return None


def _rows_by_group(table: Table, columns: tuple[int, ...], keys: Lines, forbid: int) -> tuple[Ids, Ids]:
    """The rows of groups, one group after the other: which of the keys, and the row."""
    index, threads = table.index(columns), min(len(keys), parallel.threads(len(table)))
    if threads < 2:
        return index.probe(keys, forbid)
    shares = np.array_split(np.arange(len(keys)), threads)
    found = parallel.run([partial(index.probe, keys[share], forbid) for share in shares])
    groups = [picks + share[0] for (picks, _), share in zip(found, shares, strict=True)]
    return np.concatenate(groups, dtype=np.int32), np.concatenate([matches for _, matches in found])


def aggregate_groups(
    spec: AggregateSpec, groups: Ids, values: Words | None, count: int, dictionary: Dictionary
) -> tuple[Words, NDArray[np.bool_], str]:
    """For each of `count` groups its aggregate, whether it has one, and why one that has values has none.

    `groups` says which group each value is in, in order.
    """
    op, value_kind, kind = spec.op, spec.value_kind, spec.kind
    sizes = np.bincount(groups, minlength=count)
    defined = np.ones(count, dtype=np.bool_) if spec.has_empty_groups else sizes > 0
    if values is None or value_kind is None:
        return dictionary.encode_column(sizes.tolist(), kind), defined, ""
    if (value_kind == NUMBER and op == "sum") or (is_whole(value_kind) and op in ("min", "max")):
        return _reduce(op, values, sizes), defined, ""
    if value_kind == UNSIGNED and op in ("sum", "min", "max"):
        return _reduce(op, values.view(np.uint64), sizes).view(np.int64), defined, ""
    if (
        isinstance(kind, DecimalKind)
        and op == "sum"
        and np.abs(values).sum(dtype=np.float64) < 10.0**kind.precision / 2
    ):
        return _reduce(op, values, sizes), defined, ""  # no group comes near too many digits
    ends = np.cumsum(sizes).tolist()
    if isinstance(value_kind, DecimalKind) and op == "mean":
        return _means(values.tolist(), ends, 10**value_kind.scale).view(np.int64), defined, ""
    decoded = dictionary.decode_column(values, value_kind)
    placeholder = placeholder_of(kind)
    results: list[Value] = []
    reason = ""
    for group, (end, size) in enumerate(zip(ends, sizes.tolist(), strict=True)):
        try:
            result = combine(op, decoded[end - size : end], kind)
        except Undefined as why:
            result, reason = None, str(why)
        defined[group] &= result is not None
        results.append(placeholder if result is None else result)
    return dictionary.encode_column(results, kind), defined, reason


def _means(units: list[int], ends: Sequence[int], one: int) -> NDArray[np.float64]:
    """The means of runs of decimals, each rounded once; that of nothing is zero."""
    runs = [units[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return np.array([float(Fraction(sum(run), one * max(1, len(run)))) for run in runs])


def _reduce(op: str, values: NDArray[np.int64] | NDArray[np.uint64], sizes: NDArray[np.intp]) -> Words:
    """Groups are runs of the values; an empty one gives zero."""
    result = np.zeros(len(sizes), dtype=values.dtype)
    filled = np.flatnonzero(sizes)
    if len(filled):
        starts = (np.cumsum(sizes) - sizes)[filled]
        ufunc = {"sum": np.add, "min": np.minimum, "max": np.maximum}[op]
        result[filled] = ufunc.reduceat(values, starts)
    return result  # type: ignore[return-value]
