"""Running delta plans in this process: a batch is a list of columns, one for each slot."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from whence.backends.local import parallel
from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.assemble import Assembled, NotOnWords, Scratch, assemble
from whence.backends.local.functors import apply_function, apply_functor, compare
from whence.backends.local.groups import aggregate_groups
from whence.backends.local.table import Table
from whence.backends.local.words import Dictionary, Words
from whence.engine.protocol import GONE, Forbid
from whence.lang.calls import FunctionError, checked_call
from whence.lang.program import Program
from whence.lang.types import AdtKind, Kind, Tuple, Value, Variant
from whence.plan.extract_aggregates import AggregateSpec
from whence.plan.steps import (
    Build,
    Check,
    Compare,
    Compute,
    DeltaPlan,
    Join,
    Operand,
    Scan,
    Slot,
    Step,
    TakeApart,
)
from whence.reference import EvaluationWarning

# Changed rows are taken through a plan in portions whose intermediate results stay in the cache.
PORTION = 1 << 14
_UNRANKED = -1
_NO_IDS: Ids = np.empty(0, dtype=np.int32)


class Batch:
    """Assignments to slots, and the highest rank among the recursive rows used so far."""

    __slots__ = ("columns", "ranks", "size")

    def __init__(self, slots: int, size: int) -> None:
        self.columns: list[Words | None] = [None] * slots
        self.size = size
        self.ranks: Ids = np.full(size, _UNRANKED, dtype=np.int32)

    def keep(self, picks: NDArray[np.int32] | NDArray[np.bool_] | NDArray[np.intp]) -> None:
        """Keeps (or repeats) the assignments picked."""
        self.columns = [None if column is None else column[picks] for column in self.columns]
        self.ranks = self.ranks[picks]
        self.size = len(self.ranks)


class LocalBackend:
    """Tables in memory for the relations of one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.functions = program.functions
        relations = program.relations
        self.kinds = {name: [each.kind for each in relation.fields] for name, relation in relations.items()}
        self.tables = {name: Table(relation.arity) for name, relation in relations.items()}
        self.dictionary = Dictionary()
        self.assembled: dict[tuple[int, int], Assembled | None] = {}
        self.scratch = (Scratch(), Scratch())
        self.enumerated = 0
        self.warned: set[tuple[str, str]] = set()

    def table(self, relation: str) -> Table:
        return self.tables[relation]

    def encode(self, relation: str, rows: Sequence[Tuple]) -> Lines:
        return self.dictionary.encode_rows(rows, self.kinds[relation])

    def decode(self, relation: str, ids: Ids) -> list[Tuple]:
        return self.dictionary.decode_rows(self.tables[relation].keys(ids), self.kinds[relation])

    def decode_keys(self, relation: str, keys: Lines) -> list[Tuple]:
        return self.dictionary.decode_rows(keys, self.kinds[relation])

    def existing(self, ids: Ids) -> Ids:
        """Without the -1 that stand for rows not found."""
        return ids[ids >= 0]

    def have_flag(self, relation: str, keys: Lines, flag: int) -> list[bool]:
        table = self.tables[relation]
        found = table.find(keys)
        there = found >= 0
        there[there] = (table.flags(found[there]) & flag) != 0
        return there.tolist()  # type: ignore[no-any-return]

    def concatenate(self, batches: Sequence[Ids]) -> Ids:
        if len(batches) == 1:
            return batches[0]
        return np.concatenate(batches) if batches else _NO_IDS

    def unranked(self, keys: Lines) -> Ids:
        return np.full(len(keys), _UNRANKED, dtype=np.int32)

    def tuples(self) -> int:
        return sum(len(table) for table in self.tables.values())

    # -- aggregates

    def group_keys(self, spec: AggregateSpec, changed: Mapping[str, tuple[Ids, Ids]], *, first: bool) -> Lines:
        keys = [self.tables[name].keys(ids)[:, : spec.keys] for name, both in changed.items() for ids in both]
        if first and spec.context is None:
            keys.append(np.zeros((1, 0), dtype=np.int64))
        found: Lines = np.concatenate(keys) if keys else np.empty((0, spec.keys), dtype=np.int64)
        if spec.keys == 0:
            return found[:1]
        return np.ascontiguousarray(np.unique(found, axis=0))

    def under_keys(self, relation: str, keys: Lines) -> Ids:
        table = self.tables[relation]
        return table.index(tuple(range(keys.shape[1]))).probe(keys, 0)[1]

    def aggregate(self, spec: AggregateSpec, keys: Lines) -> Lines:
        """The rows of the groups as they are after the epoch, for keys that are asked for."""
        if spec.context is not None:
            keys = keys[self.tables[spec.context].find(keys, GONE) >= 0]
        rows = self.tables[spec.rows]
        groups, matches = rows.index(tuple(range(spec.keys))).probe(keys, GONE)
        values = None if spec.value_kind is None else rows.column(matches, rows.arity - 1)
        words, defined = aggregate_groups(spec, groups, values, len(keys), self.dictionary)
        lines: Lines = np.empty((len(keys), spec.keys + 1), dtype=np.int64)
        lines[:, : spec.keys], lines[:, spec.keys] = keys, words
        return lines[defined]

    def without(self, ids: Ids, others: Ids) -> Ids:
        return ids[~np.isin(ids, others)]

    # -- plans

    def run(self, plan: DeltaPlan, ids: Ids | None, forbid: Forbid) -> Iterator[tuple[Lines, Ids]]:
        """The heads of the derivations that a plan finds from changed rows, and the highest rank each of them uses."""
        if ids is None or plan.scan is None:
            return iter([self._finish(plan, Batch(plan.slots, 1), forbid)])
        assembled = self._assembled(plan, 0)
        if assembled is None:
            return self._run_on_values(plan, plan.scan, ids, forbid)
        if not parallel.is_worthwhile(len(ids)):
            return self._run_on_words(assembled, ids, forbid)
        other = self._assembled(plan, 1)
        assert other is not None
        return self._run_by_halves((assembled, other), ids, forbid)

    def _run_on_values(self, plan: DeltaPlan, scan: Scan, ids: Ids, forbid: Forbid) -> Iterator[tuple[Lines, Ids]]:
        for start in range(0, len(ids), PORTION):
            yield self._finish(plan, self._scan(plan, scan, ids[start : start + PORTION]), forbid)

    def _run_on_words(self, assembled: Assembled, ids: Ids, forbid: Forbid) -> Iterator[tuple[Lines, Ids]]:
        assembled.start(forbid)
        while not assembled.is_last:
            heads, ranks = assembled.next_heads(ids)
            if count := len(heads):
                self.enumerated += count
                yield heads, ranks

    def _run_by_halves(
        self, pair: tuple[Assembled, Assembled], ids: Ids, forbid: Forbid
    ) -> Iterator[tuple[Lines, Ids]]:
        """One half of the rows in another thread."""
        middle = len(ids) // 2
        parts = [(pair[0], ids[:middle]), (pair[1], ids[middle:])]
        for assembled, _ in parts:
            assembled.start(forbid)
        while parts:
            for heads, ranks in parallel.run([partial(assembled.next_heads, part) for assembled, part in parts]):
                self.enumerated += len(heads)
                yield heads, ranks
            parts = [(assembled, part) for assembled, part in parts if not assembled.is_last]

    def _assembled(self, plan: DeltaPlan, thread: int) -> Assembled | None:
        """The plan's instructions for one of two threads, or None if it needs values."""
        key = (id(plan), thread)
        if key not in self.assembled:
            try:
                self.assembled[key] = assemble(
                    plan,
                    self.tables,
                    lambda each: self.dictionary.encode(each.value, each.kind),
                    self.scratch[thread],
                )
            except NotOnWords:
                self.assembled[key] = None
        return self.assembled[key]

    def _finish(self, plan: DeltaPlan, batch: Batch, forbid: Forbid) -> tuple[Lines, Ids]:
        for step in plan.steps:
            if batch.size == 0:
                break
            self._step(plan, step, batch, forbid)
        heads: Lines = np.empty((batch.size, len(plan.head)), dtype=np.int64)
        if batch.size:
            for at, operand in enumerate(plan.head):
                heads[:, at] = self._operand(operand, batch)
        self.enumerated += batch.size
        return heads, batch.ranks

    def _scan(self, plan: DeltaPlan, scan: Scan, ids: Ids) -> Batch:
        table = self.tables[scan.relation]
        for column, constant in scan.equals:
            ids = ids[table.column(ids, column) == self.dictionary.encode(constant.value, constant.kind)]
        for one, other in scan.same:
            ids = ids[table.column(ids, one) == table.column(ids, other)]
        batch = Batch(plan.slots, len(ids))
        for column, slot in scan.binds:
            batch.columns[slot] = table.column(ids, column)
        if scan.recursive:
            batch.ranks = table.ranks(ids)
        return batch

    def _step(self, plan: DeltaPlan, step: Step, batch: Batch, forbid: Forbid) -> None:
        match step:
            case Join():
                self._join(step, batch, forbid(step))
            case Check():
                self._check(step, batch, forbid(step))
            case Compare(op=op, left=left, right=right, kind=kind):
                mask, reason = compare(op, self._column(left, batch), self._column(right, batch), kind, self.dictionary)
                if reason:
                    self._warn(plan, reason)
                if not mask.all():
                    batch.keep(mask)
            case Compute(target=target, functor=functor, args=args, arg_kinds=arg_kinds, kind=kind):
                columns = [self._column(arg, batch) for arg in args]
                if functor in self.functions:
                    result = apply_function(
                        self._calling(plan, functor, kind), columns, arg_kinds, kind, self.dictionary
                    )
                else:
                    result = apply_functor(functor, columns, arg_kinds, kind, self.dictionary)
                batch.columns[target] = result.words
                if result.defined is not None:
                    self._warn(plan, result.reason)
                    batch.keep(result.defined)
            case Build():
                self._build(step, batch)
            case TakeApart():
                self._take_apart(step, batch)

    def _join(self, step: Join, batch: Batch, forbid: int) -> None:
        table = self.tables[step.relation]
        if step.key:
            index = table.index(tuple(column for column, _ in step.key))
            picks, matches = index.probe(self._lines([operand for _, operand in step.key], batch), forbid)
        else:
            every = table.ids(forbid)
            picks = np.repeat(np.arange(batch.size, dtype=np.int32), len(every))
            matches = np.tile(every, batch.size)
        for one, other in step.same:
            equal = table.column(matches, one) == table.column(matches, other)
            picks, matches = picks[equal], matches[equal]
        batch.keep(picks)
        for column, slot in step.binds:
            batch.columns[slot] = table.column(matches, column)
        if step.recursive:
            batch.ranks = np.maximum(batch.ranks, table.ranks(matches))

    def _check(self, step: Check, batch: Batch, forbid: int) -> None:
        table = self.tables[step.relation]
        found = table.find(self._lines(step.args, batch), forbid)
        mask = (found >= 0) if step.present else (found < 0)
        if not mask.all():
            batch.keep(mask)
            found = found[mask]
        if step.present and step.recursive:
            batch.ranks = np.maximum(batch.ranks, table.ranks(found))

    def _build(self, step: Build, batch: Batch) -> None:
        decoded = [
            self.dictionary.decode_column(self._column(part, batch), kind)
            for part, kind in zip(step.parts, step.part_kinds, strict=True)
        ]
        rows: list[tuple[Value, ...]] = list(zip(*decoded, strict=True)) if decoded else [()] * batch.size
        values: list[Value]
        if step.rest is not None:
            tails = self.dictionary.decode_column(self._column(step.rest, batch), step.kind)
            values = [row + tail for row, tail in zip(rows, tails, strict=True)]  # type: ignore[operator]
        elif step.branch is not None:
            values = [Variant(step.branch, row) for row in rows]
        else:
            values = list(rows)
        batch.columns[step.target] = self.dictionary.encode_column(values, step.kind)

    def _take_apart(self, step: TakeApart, batch: Batch) -> None:
        values = self.dictionary.decode_column(self._column(step.source, batch), step.kind)
        width = len(step.parts)
        parts: list[tuple[Value, ...]] = []
        kept: list[int] = []
        for at, value in enumerate(values):
            if isinstance(step.kind, AdtKind):
                fits = isinstance(value, Variant) and value.branch == step.branch
                items = value.args if isinstance(value, Variant) else ()
            else:
                items = value if isinstance(value, tuple) else ()
                fits = isinstance(value, tuple) and (len(items) >= width if step.open_ended else len(items) == width)
            if fits:
                kept.append(at)
                parts.append(items)
        batch.keep(np.array(kept, dtype=np.intp))
        for at, (slot, kind) in enumerate(zip(step.parts, step.part_kinds, strict=True)):
            batch.columns[slot] = self.dictionary.encode_column([items[at] for items in parts], kind)
        if step.rest is not None:
            batch.columns[step.rest] = self.dictionary.encode_column([items[width:] for items in parts], step.kind)

    # -- operands

    def _operand(self, operand: Operand, batch: Batch) -> Words | int:
        if isinstance(operand, Slot):
            column = batch.columns[operand.number]
            assert column is not None
            return column
        return self.dictionary.encode(operand.value, operand.kind)

    def _column(self, operand: Operand, batch: Batch) -> Words:
        value = self._operand(operand, batch)
        return value if isinstance(value, np.ndarray) else np.full(batch.size, value, dtype=np.int64)

    def _lines(self, operands: Sequence[Operand], batch: Batch) -> Lines:
        lines: Lines = np.empty((batch.size, len(operands)), dtype=np.int64)
        for at, operand in enumerate(operands):
            lines[:, at] = self._operand(operand, batch)
        return lines

    def _calling(self, plan: DeltaPlan, name: str, kind: Kind) -> Callable[..., Value]:
        function = self.functions[name]

        def call(*args: Value) -> Value:
            try:
                return checked_call(name, function, args, kind)
            except FunctionError as error:
                raise FunctionError(f"{self._where(plan)}: {error}") from error.__cause__

        return call

    def _where(self, plan: DeltaPlan) -> str:
        place = self.program.source.place(plan.rule.span)
        return f"{place.file.name}:{place.line}: rule {plan.rule.name}"

    def _warn(self, plan: DeltaPlan, reason: str) -> None:
        """Says once for each rule and reason that something it asks for has no value."""
        rule = plan.rule
        if (rule.name, reason) not in self.warned:
            self.warned.add((rule.name, reason))
            warnings.warn(f"{self._where(plan)}: {reason}; nothing is derived there", EvaluationWarning, stacklevel=2)
