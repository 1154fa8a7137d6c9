"""Running delta plans in this process: a batch is a list of columns, one for each slot."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TypeVar

import numpy as np

from whence.backends.local import adapting, parallel
from whence.backends.local.arrays import Ids, Lines, distinct, without
from whence.backends.local.batch import UNRANKED, Batch, TracedBatch
from whence.backends.local.cells import ITEM, NO_ITEM, RECORD
from whence.backends.local.functors import apply_function, apply_functor, compare
from whence.backends.local.groups import LocalGroups
from whence.backends.local.instructions import Assembled
from whence.backends.local.shared import Shared
from whence.backends.local.spreading import Spreading, Watching, describe
from whence.backends.local.table import Table
from whence.backends.local.words import Words, is_number
from whence.engine.guard import Guard
from whence.engine.protocol import (
    ADDED,
    BATCH,
    EXTERNAL,
    GONE,
    HIDDEN,
    QUEUED,
    SUSPENDED,
    Enough,
    Forbid,
    Gain,
    Reconsider,
    Spread,
    Trace,
    Watch,
)
from whence.lang.calls import FunctionError, checked_call
from whence.lang.functors import solutions_of_range
from whence.lang.program import Program
from whence.lang.sizes import TooLarge
from whence.lang.types import Kind, ListKind, Tuple, Value
from whence.limits import Limits, makes_too_large
from whence.plan.extract_aggregates import AggregateSpec
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
from whence.reasoning.costs import Observed
from whence.reference import EvaluationWarning

# Changed rows are taken through a plan in portions whose intermediate results stay in the cache.
PORTION = 1 << 14
B = TypeVar("B", bound=Batch)
_NO_IDS: Ids = np.empty(0, dtype=np.int32)
# So many pairs a join may make at once.
PAIRS = 1 << 20


class LocalBackend:
    """Tables in memory for the relations of one program. `shared` is what it has in common with others."""

    def __init__(self, program: Program, shared: Shared | None = None) -> None:
        self.kinds: dict[str, list[Kind]] = {}
        self.tables: dict[str, Table] = {}
        self.shared = shared or Shared()
        self.dictionary = self.shared.dictionary
        self.dictionary.holders.add(self)
        # Rows of an epoch under way, which may have to be taken back.
        self.pinned: Sequence[Mapping[str, Lines]] = ()
        self.watch: Watch = Guard(program, Limits())
        self.assembled: dict[tuple[DeltaPlan, int], Assembled | None] = {}
        self.spreadings: dict[tuple[DeltaPlan, ...], Spreading | None] = {}
        self.enumerated = 0
        self.warned: set[tuple[str, str]] = set()
        self.extend(program)

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
        return np.full(len(keys), UNRANKED, dtype=np.int32)

    def tuples(self) -> int:
        return sum(len(table) for table in self.tables.values())

    def sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for name, table in self.tables.items():
            shown = name.partition("!")[0]
            sizes[shown] = sizes.get(shown, 0) + len(table)
        return sizes

    def numbers(self, ids: Ids) -> list[int]:
        return ids.tolist()  # type: ignore[no-any-return]

    def numbered(self, numbers: Sequence[int]) -> Ids:
        return np.array(numbers, dtype=np.int32)

    def claim(self, relation: str, keys: Lines) -> Ids:
        """The numbers of rows, which are made present if they are not there."""
        table = self.tables[relation]
        found = table.find(keys)
        if (found < 0).any():
            missing = np.ascontiguousarray(keys[found < 0])
            made = table.add_supports(missing, self.unranked(missing))
            table.change_flags(made, off=SUSPENDED | QUEUED | HIDDEN | BATCH)
            found = table.find(keys)
        return found

    # -- programs that change

    def extend(self, program: Program) -> None:
        """Makes room for the relations of another program, beside those that are there."""
        self.program = program
        self.functions = program.functions
        self.dictionary.learn(program.types)
        for name, relation in program.relations.items():
            self.kinds[name] = [each.kind for each in relation.fields]
            if name not in self.tables:
                self.tables[name] = Table(relation.arity)
        self._forget_assembled()

    def forget(self, relations: Iterable[str]) -> None:
        for name in relations:
            del self.kinds[name], self.tables[name]
        self._forget_assembled()

    def _forget_assembled(self) -> None:
        """Instructions hold addresses of tables."""
        self.assembled.clear()
        self.spreadings.clear()

    # -- words

    def cells_changed(self) -> None:
        self._forget_assembled()

    def held_words(self) -> Iterator[tuple[Kind, Words]]:
        for name, kinds in self.kinds.items():
            for pinned in self.pinned:
                if name in pinned:
                    yield from ((kind, pinned[name][:, at]) for at, kind in enumerate(kinds) if not is_number(kind))
            table = self.tables[name]
            ids = table.ids()
            for at, kind in enumerate(kinds):
                if not is_number(kind):
                    yield kind, table.column(ids, at)

    def scratch(self) -> LocalBackend:
        """Empty tables for the same program, in which values are the same words."""
        other = LocalBackend(self.program, self.shared)
        other.warned, other.watch = self.warned, self.watch
        return other

    def rows(self, relation: str, *, having: int = 0, without: int = 0) -> Lines:
        table = self.tables[relation]
        return table.keys(table.with_flags(table.ids(without), on=having))

    def take_over(self, relation: str, other: LocalBackend) -> tuple[Ids, Ids]:
        """Puts the table of another backend into the place of this one's, and flags what came and what went.

        Rows that went stay in it, like those of any epoch, and it is known which of them came from outside.
        """
        self.enumerated += other.enumerated
        other.enumerated = 0
        before, outside, after = self.rows(relation), self.rows(relation, having=EXTERNAL), other.tables[relation]
        kept = after.find(before)
        after.change_flags(kept[kept >= 0], off=ADDED)
        added = after.with_flags(after.ids(), on=ADDED)
        went = np.ascontiguousarray(before[kept < 0])
        gone = after.add_supports(went, self.unranked(went))
        after.change_flags(gone, on=GONE, off=ADDED | SUSPENDED | QUEUED | HIDDEN)
        after.change_flags(after.find(outside), on=EXTERNAL)
        self.tables[relation] = after
        return added, gone

    # -- aggregates

    def groups(self, spec: AggregateSpec) -> LocalGroups:
        return LocalGroups(spec, self.program, self.tables, self.dictionary)

    def distinct(self, ids: Ids) -> Ids:
        return distinct(ids)

    def without(self, ids: Ids, others: Ids) -> Ids:
        return without(ids, others)

    def renumbered(self, ids: Ids, moved: Ids) -> Ids:
        return moved[ids]

    # -- adapting views

    def observe(self, relation: str) -> Observed:
        return adapting.observed(self.tables[relation], self.kinds[relation])

    def repeated(self, keys: Lines, used: Sequence[tuple[str, Ids]], times: int) -> Lines:
        """Each line as often as the rows that it used have derivations, all of them multiplied."""
        return adapting.repeated(keys, [self.tables[name].counts(ids) for name, ids in used], times)

    def net(self, relation: str, gone: Sequence[Lines], come: Sequence[Lines]) -> tuple[Lines, Lines]:
        return adapting.net(self.tables[relation], gone, come, len(self.kinds[relation]))

    # -- plans

    def run(self, plan: DeltaPlan, ids: Ids | None, forbid: Forbid) -> Iterator[tuple[Lines, Ids]]:
        """The heads of the derivations that a plan finds from changed rows, and the highest rank each of them uses."""
        self.watch.at = plan.rule
        if ids is None or plan.scan is None:
            return self._run_from_nothing(plan, forbid)
        assembled = self._assembled(plan, 0)
        if assembled is None:
            return self._run_on_values(plan, plan.scan, ids, forbid)
        if assembled.instructions.makes or not parallel.is_worthwhile(len(ids)):
            return self._run_on_words(plan, assembled, ids, forbid)
        other = self._assembled(plan, 1)
        assert other is not None
        return self._run_by_halves((assembled, other), ids, forbid)

    def trace(self, plan: DeltaPlan, ids: Ids | None, forbid: Forbid) -> Iterator[Trace[Ids, Lines]]:
        """The derivations that a plan finds from changed rows, or from none if it begins with none, and what they used."""
        if ids is None or plan.scan is None:
            for heads, batch in self._complete(plan, TracedBatch(plan.slots, 1), forbid):
                yield Trace(heads, batch.rows, batch.absent)
            return
        for start in range(0, len(ids), PORTION):
            first = TracedBatch(plan.slots, 0)
            self._scan(plan, plan.scan, ids[start : start + PORTION], first)
            for heads, batch in self._complete(plan, first, forbid):
                yield Trace(heads, batch.rows, batch.absent)

    def spread_loss(
        self, plans: Sequence[tuple[DeltaPlan, Forbid]], lost: Mapping[str, Sequence[Ids]], *, is_counted: bool
    ) -> Spread[Ids] | None:
        spreading = self._spreading(plans, tuple(lost))
        if spreading is None:
            return None
        spreading.start([forbid for _, forbid in plans])
        batches = [self.concatenate(each) for each in lost.values()]
        spread, met = spreading.spread_loss(batches, Watching(self.watch, self._sized), is_counted=is_counted)
        self.enumerated += met
        return spread

    def spread_gain(
        self,
        plans: Sequence[tuple[DeltaPlan, Forbid]],
        queued: Mapping[str, Sequence[Ids]],
        rank: int,
        enough: Enough,
        reconsider: Reconsider[Ids],
    ) -> Gain[Ids] | None:
        spreading = self._spreading(plans, tuple(queued))
        if spreading is None:
            return None
        batches, watching = [self.concatenate(each) for each in queued.values()], Watching(self.watch, self._sized)
        if (portions := spreading.portions(batches)) is not None:
            spreading.start([forbid for _, forbid in plans])
            twin = partial(self._twin, spreading, [forbid for _, forbid in plans])
            gain, met = spreading.spread_portions(portions, rank, enough, watching, reconsider=reconsider, twin=twin)
        elif spreading.is_left(batches, self.enumerated):
            return None
        else:
            spreading.start([forbid for _, forbid in plans])
            gain, met = spreading.spread_gain(batches, rank, enough, watching)
        self.enumerated += met
        return gain

    def _twin(self, spreading: Spreading, forbid: Sequence[Forbid], tables: Sequence[Table]) -> Spreading:
        """The same on other tables, for another thread."""
        others = self.tables | dict(zip(spreading.relations, tables, strict=True))
        instructions, scratch = self.shared.assembler.instructions, self.shared.buffers[1]

        def assemble(plan: DeltaPlan) -> Assembled | None:
            found = instructions(plan)
            return None if found is None else found.on(others, scratch)

        described = describe(spreading.plans, spreading.relations, others, assemble)
        assert described is not None
        twin = Spreading(spreading.relations, tables, spreading.plans, described)
        twin.start(forbid)
        return twin

    def _spreading(self, plans: Sequence[tuple[DeltaPlan, Forbid]], relations: tuple[str, ...]) -> Spreading | None:
        key = tuple(plan for plan, _ in plans)
        if key not in self.spreadings:
            found = describe(key, relations, self.tables, lambda plan: self._assembled(plan, 0))
            tables = [self.tables[name] for name in relations]
            self.spreadings[key] = None if found is None else Spreading(relations, tables, key, found)
        return self.spreadings[key]

    def _run_from_nothing(self, plan: DeltaPlan, forbid: Forbid) -> Iterator[tuple[Lines, Ids]]:
        for heads, batch in self._complete(plan, Batch(plan.slots, 1), forbid):
            yield heads, batch.ranks

    def _run_on_values(self, plan: DeltaPlan, scan: Scan, ids: Ids, forbid: Forbid) -> Iterator[tuple[Lines, Ids]]:
        for start in range(0, len(ids), PORTION):
            first = Batch(plan.slots, 0)
            self._scan(plan, scan, ids[start : start + PORTION], first)
            for heads, batch in self._complete(plan, first, forbid):
                yield heads, batch.ranks

    def _run_on_words(
        self, plan: DeltaPlan, assembled: Assembled, ids: Ids, forbid: Forbid
    ) -> Iterator[tuple[Lines, Ids]]:
        assembled.start(forbid)
        while not assembled.is_last:
            with self._sized(plan):
                heads, ranks = assembled.next_heads(ids)
            if count := len(heads):
                self.enumerated += count
                yield heads, ranks
            if not assembled.is_last:
                self.watch.look()

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
            self.watch.look()
            parts = [(assembled, part) for assembled, part in parts if not assembled.is_last]

    def _assembled(self, plan: DeltaPlan, thread: int) -> Assembled | None:
        """The plan's instructions for one of two threads, or None if it needs values."""
        key = (plan, thread)
        if key not in self.assembled:
            found = self.shared.assembler.instructions(plan)
            scratch = self.shared.buffers[thread]
            self.assembled[key] = None if found is None else found.on(self.tables, scratch)
        return self.assembled[key]

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
