"""Delta plans that need values, not words: run column by column. A batch is a list of columns, one for each slot."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

import numpy as np

from whence.backends.local.arrays import Ids, Lines, listed
from whence.backends.local.batch import Batch, TracedBatch
from whence.backends.local.cells import ITEM, NO_ITEM, RECORD
from whence.backends.local.functors import apply_function, apply_functor, compare
from whence.backends.local.table import Table
from whence.backends.local.words import Dictionary, Words
from whence.engine.protocol import Forbid, Trace, Watch
from whence.lang.calls import FunctionError, checked_call
from whence.lang.functors import solutions_of_range
from whence.lang.program import Program
from whence.lang.sizes import TooLarge
from whence.lang.types import Kind, ListKind, Value
from whence.limits import makes_too_large
from whence.plan.steps import (
    Build,
    Check,
    Compare,
    Compute,
    DeltaPlan,
    Generate,
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
# So many pairs a join may make at once.
PAIRS = 1 << 20
B = TypeVar("B", bound=Batch)


class OnValues:
    """What runs such plans on the tables of a program."""

    program: Program
    tables: dict[str, Table]
    dictionary: Dictionary
    functions: Mapping[str, Callable[..., object]]
    watch: Watch
    enumerated: int
    warned: set[tuple[str, str]]

    def trace(self, plan: DeltaPlan, ids: Ids | None, forbid: Forbid) -> Iterator[Trace[Ids, Lines]]:
        """The derivations that a plan finds from changed rows, or from none if it begins with none, and what they used."""
        if ids is None or plan.scan is None:
            for heads, batch in self._complete(plan, TracedBatch(plan.slots, 1), forbid):
                yield Trace(heads, batch.rows, batch.absent)
            return
        ids = listed(ids)
        for start in range(0, len(ids), PORTION):
            first = TracedBatch(plan.slots, 0)
            self._scan(plan, plan.scan, ids[start : start + PORTION], first)
            for heads, batch in self._complete(plan, first, forbid):
                yield Trace(heads, batch.rows, batch.absent)

    def _run_from_nothing(self, plan: DeltaPlan, forbid: Forbid) -> Iterator[tuple[Lines, Ids]]:
        for heads, batch in self._complete(plan, Batch(plan.slots, 1), forbid):
            yield heads, batch.ranks

    def _run_on_values(self, plan: DeltaPlan, scan: Scan, ids: Ids, forbid: Forbid) -> Iterator[tuple[Lines, Ids]]:
        for start in range(0, len(ids), PORTION):
            first = Batch(plan.slots, 0)
            self._scan(plan, scan, ids[start : start + PORTION], first)
            for heads, batch in self._complete(plan, first, forbid):
                yield heads, batch.ranks

    def _complete(self, plan: DeltaPlan, batch: B, forbid: Forbid, done: int = 0) -> Iterator[tuple[Lines, B]]:
        """What becomes of a batch in the steps that are left, and its heads."""
        for at, step in enumerate(plan.steps[done:], done):
            if batch.size == 0:
                return
            if isinstance(step, Generate | Join):
                portions = (
                    self._generate(step, batch) if isinstance(step, Generate) else self._join(step, batch, forbid)
                )
                for portion in portions:
                    self.watch.look()
                    yield from self._complete(plan, portion, forbid, at + 1)
                return
            self._step(plan, step, batch, forbid)
        if batch.size == 0:
            return
        heads: Lines = np.empty((batch.size, len(plan.head)), dtype=np.int64)
        for at, operand in enumerate(plan.head):
            heads[:, at] = self._operand(operand, batch)
        self.enumerated += batch.size
        yield heads, batch

    def _scan(self, plan: DeltaPlan, scan: Scan, ids: Ids, batch: Batch) -> None:
        table = self.tables[scan.relation]
        for column, constant in scan.equals:
            ids = ids[table.column(ids, column) == self.dictionary.encode(constant.value, constant.kind)]
        for one, other in scan.same:
            ids = ids[table.column(ids, one) == table.column(ids, other)]
        batch.resize(len(ids))
        for column, slot in scan.binds:
            batch.columns[slot] = table.column(ids, column)
        batch.note_rows(plan.position, ids)
        if scan.recursive:
            batch.ranks = table.ranks(ids)

    def _step(self, plan: DeltaPlan, step: Step, batch: Batch, forbid: Forbid) -> None:
        match step:
            case Check():
                self._check(step, batch, forbid(step))
            case Compare(op=op, left=left, right=right, kind=kind):
                one, other = self._column(left, batch), self._column(right, batch)
                mask, reason = compare(op, one, other, kind, self.dictionary, watch=self.watch)
                if reason:
                    self._warn(plan, reason)
                if not mask.all():
                    batch.keep(mask)
            case Compute(target=target, functor=functor, args=args, arg_kinds=arg_kinds, kind=kind):
                columns = [self._column(arg, batch) for arg in args]
                with self._sized(plan):
                    if functor in self.functions:
                        function = self._calling(plan, functor, kind)
                        result = apply_function(function, columns, arg_kinds, kind, self.dictionary, watch=self.watch)
                    else:
                        result = apply_functor(functor, columns, arg_kinds, kind, self.dictionary, watch=self.watch)
                batch.columns[target] = result.words
                if result.defined is not None:
                    self._warn(plan, result.reason)
                    batch.keep(result.defined)
            case Build():
                self._build(plan, step, batch)
            case TakeApart():
                self._take_apart(step, batch)

    def _join(self, step: Join, batch: B, forbid: Forbid) -> Iterator[B]:
        """In portions, since a join may have more pairs than fit into memory."""
        table, forbidden = self.tables[step.relation], forbid(step)
        every = None if step.key else table.ids(forbidden)
        keys = self._lines([operand for _, operand in step.key], batch)
        index = table.index(tuple(column for column, _ in step.key)) if step.key else None
        # As many lines at once as can be, if each joins with as many rows as those before did.
        start, size = 0, batch.size if every is None else max(1, PAIRS // max(1, len(every)))
        size = min(size, PORTION)
        while start < batch.size:
            end = min(start + size, batch.size)
            if index is not None:
                picks, matches = index.probe(keys[start:end], forbidden)
                if len(picks) > PAIRS:
                    size = max(1, size // 4)
            else:
                assert every is not None
                picks = np.repeat(np.arange(end - start, dtype=np.int32), len(every))
                matches = np.tile(every, end - start)
            yield self._joined(step, table, batch, picks + np.int32(start), matches)
            start = end

    def _joined(self, step: Join, table: Table, batch: B, picks: Ids, matches: Ids) -> B:
        for one, other in step.same:
            equal = table.column(matches, one) == table.column(matches, other)
            picks, matches = picks[equal], matches[equal]
        portion = batch.copy()
        portion.keep(picks)
        for column, slot in step.binds:
            portion.columns[slot] = table.column(matches, column)
        portion.note_rows(step.position, matches)
        if step.recursive:
            portion.ranks = np.maximum(portion.ranks, table.ranks(matches))
        return portion

    def _check(self, step: Check, batch: Batch, forbid: int) -> None:
        table = self.tables[step.relation]
        keys = self._lines(step.args, batch)
        found = table.find(keys, forbid)
        mask = (found >= 0) if step.present else (found < 0)
        if not mask.all():
            batch.keep(mask)
            found, keys = found[mask], keys[mask]
        if step.present:
            batch.note_rows(step.position, found)
        else:
            batch.note_absent(step.position, keys)
        if step.present and step.recursive:
            batch.ranks = np.maximum(batch.ranks, table.ranks(found))

    def _generate(self, step: Generate, batch: B) -> Iterator[B]:
        """In portions, since a range may be longer than anything that fits into memory."""
        columns = [self.dictionary.decode_column(self._column(arg, batch), step.kind) for arg in step.args]
        picks: list[int] = []
        values: list[Value] = []
        for at, bounds in enumerate(zip(*columns, strict=True)):
            solutions = iter(solutions_of_range(*bounds))
            while found := list(islice(solutions, PORTION)):
                picks += [at] * len(found)
                values += found
                if len(values) >= PORTION:
                    yield self._generated(step, batch, picks, values)
                    picks, values = [], []
        if values:
            yield self._generated(step, batch, picks, values)

    def _generated(self, step: Generate, batch: B, picks: list[int], values: list[Value]) -> B:
        portion = batch.copy()
        portion.keep(np.array(picks, dtype=np.intp))
        portion.columns[step.target] = self.dictionary.encode_column(values, step.kind)
        return portion

    def _build(self, plan: DeltaPlan, step: Build, batch: Batch) -> None:
        parts = [self._column(part, batch) for part in step.parts]
        rest = None if step.rest is None else self._column(step.rest, batch)
        with self._sized(plan):
            batch.columns[step.target] = self.dictionary.build(step.kind, step.branch, parts, rest, batch.size)

    def _take_apart(self, step: TakeApart, batch: Batch) -> None:
        cells, source = self.dictionary.cells_of(step.kind), self._column(step.source, batch)
        if not isinstance(step.kind, ListKind):
            lines = cells.open(source)
            tag = RECORD if step.branch is None else cells.branches[step.branch]
            lines = self._keep_tagged(batch, lines, tag)
            for at, slot in enumerate(step.parts, 1):
                batch.columns[slot] = lines[:, at]
            return
        for slot in step.parts:
            lines = self._keep_tagged(batch, cells.open(source), ITEM)
            batch.columns[slot], source = lines[:, 1], lines[:, 2]
        if step.rest is not None:
            batch.columns[step.rest] = source
        elif not step.open_ended:
            self._keep_tagged(batch, cells.open(source), NO_ITEM)

    def _keep_tagged(self, batch: Batch, lines: Lines, tag: int) -> Lines:
        """Keeps the assignments whose value has a constructor; the lines of their values."""
        fits = lines[:, 0] == tag
        if not fits.all():
            batch.keep(fits)
            lines = lines[fits]
        return lines

    @contextmanager
    def _sized(self, plan: DeltaPlan) -> Iterator[None]:
        """Says which rule it is that makes too large a value."""
        try:
            yield
        except TooLarge as error:
            raise makes_too_large(self.program, plan.rule, error) from None

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
                return checked_call(name, function, args, kind, self.program.types)
            except FunctionError as error:
                raise FunctionError(f"{self._where(plan)}: {error}") from error.__cause__

        return call

    def _where(self, plan: DeltaPlan) -> str:
        place = self.program.source.place(plan.rule.span)
        return f"{place.file.name}:{place.line}: rule {plan.rule.name.partition('!')[0]}"

    def _warn(self, plan: DeltaPlan, reason: str) -> None:
        """Says once for each rule and reason that something it asks for has no value."""
        rule = plan.rule
        if (rule.name, reason) not in self.warned:
            self.warned.add((rule.name, reason))
            warnings.warn(f"{self._where(plan)}: {reason}; nothing is derived there", EvaluationWarning, stacklevel=2)
