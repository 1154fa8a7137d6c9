"""Tables in this process, and running delta plans on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from whence.backends.local import adapting, machine, parallel
from whence.backends.local.arrays import Ids, Lines, distinct, listed, without
from whence.backends.local.batch import UNRANKED
from whence.backends.local.bundles import Bundles, find_source
from whence.backends.local.chaining import Chaining, are_many, begin_chaining
from whence.backends.local.groups import LocalGroups
from whence.backends.local.hashing import BITS
from whence.backends.local.instructions import Assembled, Scratch
from whence.backends.local.on_values import OnValues
from whence.backends.local.settling import Settling, WatchedSettling, is_of_numbers
from whence.backends.local.shared import Shared
from whence.backends.local.spreading import Spreading, Watching, describe
from whence.backends.local.table import Table
from whence.backends.local.walking import Walking, begins_walk
from whence.backends.local.ways import Ways
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
    Watch,
)
from whence.lang.program import Program
from whence.lang.types import Kind, Tuple
from whence.limits import Limits
from whence.plan.extract_aggregates import AggregateSpec
from whence.plan.steps import DeltaPlan

if TYPE_CHECKING:
    from whence.reasoning.costs import Observed

_NO_IDS: Ids = np.empty(0, dtype=np.int32)


class LocalBackend(OnValues):
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
        self.assembled: dict[tuple[DeltaPlan, int, bool], Assembled | None] = {}
        self.spreadings: dict[tuple[DeltaPlan, ...], Spreading | None] = {}
        self.settlings: dict[tuple[DeltaPlan, ...], Settling | None] = {}
        self.enumerated = 0
        self.heads_of_row: dict[DeltaPlan, float] = {}  # that a plan found when it last had many rows to begin with
        self.warned: set[tuple[str, str]] = set()
        self.extend(program)

    def table(self, relation: str) -> Table:
        return self.tables[relation]

    def encode(self, relation: str, rows: Sequence[Tuple]) -> Lines:
        return self.dictionary.encode_rows(rows, self.kinds[relation])

    def decode(self, relation: str, ids: Ids) -> list[Tuple]:
        if not len(ids):
            return []
        return self.dictionary.decode_rows(self.tables[relation].keys(listed(ids)), self.kinds[relation])

    def last(self, relation: str, ids: Ids) -> Tuple:
        return self.decode(relation, listed(ids)[-1:])[0]

    def decode_keys(self, relation: str, keys: Lines) -> list[Tuple]:
        return self.dictionary.decode_rows(keys, self.kinds[relation])

    def existing(self, ids: Ids) -> Ids:
        """Without the -1 that stand for rows not found."""
        return ids[ids >= 0]

    def have_flag(self, relation: str, keys: Lines, flag: int) -> list[bool]:
        return (self.tables[relation].find(keys, having=flag) >= 0).tolist()  # type: ignore[no-any-return]

    def concatenate(self, batches: Sequence[Ids]) -> Ids:
        if len(batches) == 1:
            return batches[0]
        return np.concatenate([listed(batch) for batch in batches]) if batches else _NO_IDS

    def unranked(self, keys: Lines) -> Ids:
        return np.full(len(keys), UNRANKED, dtype=np.int32)

    def tuples(self) -> int:
        return sum(len(table) for table in self.tables.values())

    def round_trip(self, relations: Sequence[str], *, joined: bool) -> list[tuple[str, Tuple]]:
        return Ways(self, relations).round_trip(joined=joined)

    def sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for name, table in self.tables.items():
            shown = name.partition("!")[0]
            sizes[shown] = sizes.get(shown, 0) + len(table)
        return sizes

    def numbers(self, ids: Ids) -> list[int]:
        return listed(ids).tolist()  # type: ignore[no-any-return]

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
        self.settlings.clear()

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
        return moved[listed(ids)]

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
        ids = listed(ids)
        assembled = self._assembled(plan, 0)
        if assembled is None:
            return self._run_on_values(plan, plan.scan, ids, forbid)
        if assembled.instructions.makes or self._threads(plan, ids) == 1:
            return self._run_on_words(plan, assembled, ids, forbid)
        return self._run_in_threads(plan, ids, forbid, in_bundles=False)

    def _threads(self, plan: DeltaPlan, ids: Ids) -> int:
        """How many had better share what a plan does from these rows, each of which leads to as many heads as they did before."""
        most = len(ids) // machine.BLOCK  # the machine takes so many rows at once
        if most < 2:
            return 1
        return min(most, parallel.threads(int(len(ids) * max(1, self.heads_of_row.get(plan, 1)))))

    def run_adding(self, plan: DeltaPlan, ids: Ids, forbid: Forbid) -> Iterator[tuple[Any, Ids]]:
        """Heads as lines, or as `Bundles`."""
        assembled = self._assembled(plan, 0, in_bundles=True)
        is_shared = self.tables[plan.rule.head.relation].fields[BITS]
        if assembled is None or assembled.source is None or not (is_shared and assembled.source.fields[BITS]):
            return self.run(plan, ids, forbid)
        return self._run_in_bundles(assembled, plan, np.sort(ids), forbid)

    def _run_in_bundles(
        self, assembled: Assembled, plan: DeltaPlan, ids: Ids, forbid: Forbid
    ) -> Iterator[tuple[Bundles, Ids]]:
        self.watch.at = plan.rule
        source = assembled.instructions.source
        assert source is not None
        address = self.tables[source.relation].address
        if self._threads(plan, ids) > 1:
            found = self._run_in_threads(plan, ids, forbid, in_bundles=True)
        else:
            found = self._run_on_words(plan, assembled, ids, forbid)
        for heads, ranks in found:
            bundles = Bundles(heads, address, source.recursive)
            self.enumerated += len(bundles) - len(heads)
            yield bundles, ranks

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
        if (walking := self._walking(spreading, plans, batches, enough)) is not None:
            self.watch.keep_sample()
            walking.follow(rank)
            self.enumerated += walking.met
            made = {name: self.tables[name].unlisted(rank + walking.rounds) for name in queued}
            return Gain(made, {}, walking.rounds, spreading.plans[-1])
        if (portions := spreading.portions(batches)) is not None:
            seen = [forbid for _, forbid in plans]
            twin = partial(self._twin, spreading, seen)
            gain, met = spreading.spread_portions(
                portions, seen, rank, enough, watching, reconsider=reconsider, twin=twin
            )
        elif (chaining := self._chaining(spreading, plans, batches, enough, reconsider)) is not None:
            chaining.follow(rank, enough)
            self.enumerated += chaining.met
            deriving = None if chaining.last < 0 else spreading.plans[chaining.last]
            return Gain(*chaining.leave(reconsider), chaining.rounds, deriving)
        elif spreading.is_left(batches, self.enumerated):
            return None
        else:
            spreading.start([forbid for _, forbid in plans], in_bundles=True)
            gain, met = spreading.spread_gain(batches, rank, enough, watching)
        self.enumerated += met
        added = {name: self.tables[name].with_flags(ids, on=ADDED) for name, ids in gain.done.items()}
        return gain._replace(done=added)

    def _walking(
        self, spreading: Spreading, plans: Sequence[tuple[DeltaPlan, Forbid]], queued: Sequence[Ids], enough: Enough
    ) -> Walking | None:
        """If rounds that begin with these rows are a walk that is worth its while."""
        if spreading.walk is None or enough != Enough.everything():
            return None
        rows, tables = dict(zip(spreading.relations, queued, strict=True)), self.tables
        if not begins_walk(spreading.walk, rows, tables):
            return None
        seen = dict(plans)

        def assemble(plan: DeltaPlan, driver: Table) -> Assembled:
            found = self.shared.assembler.instructions(plan)
            assert found is not None
            assert plan.scan is not None
            assembled = found.on(tables | {plan.scan.relation: driver}, self.shared.buffer(0))
            assembled.start(seen[plan])
            return assembled

        return Walking(spreading.walk, spreading.plans, tables, assemble, self.watch.look)

    def _chaining(
        self,
        spreading: Spreading,
        plans: Sequence[tuple[DeltaPlan, Forbid]],
        queued: Sequence[Ids],
        enough: Enough,
        reconsider: Reconsider[Ids],
    ) -> Chaining | None:
        """If rounds that begin with these rows are ones of chains, and worth their while."""
        if spreading.chains is None or min(enough) <= 0:
            return None
        new, rows = sum(map(len, queued)), sum(map(len, spreading.tables))
        if not are_many(new, rows) or not spreading.asks_for_chains(new, rows):
            return None
        chains = [(plan, chain, forbid) for (plan, forbid), chain in zip(plans, spreading.chains, strict=True)]
        found = begin_chaining(
            spreading.relations, self.tables, chains, queued, look=self.watch.look, reconsider=reconsider
        )
        spreading.not_chained = (new, rows) if found is None else (0, 0)
        return found

    def _twin(self, spreading: Spreading, forbid: Sequence[Forbid], tables: Sequence[Table], thread: int) -> Spreading:
        """The same on other tables, for another thread."""
        others = self.tables | dict(zip(spreading.relations, tables, strict=True))
        instructions, scratch = self.shared.assembler.instructions, self.shared.buffer(thread)

        def assemble(plan: DeltaPlan) -> Assembled | None:
            found = instructions(plan)
            return None if found is None else found.on(others, scratch)

        bundle = partial(self._bundled, others, scratch)
        described = describe(spreading.plans, spreading.relations, others, assemble, bundle)
        assert described is not None
        twin = Spreading(spreading.relations, tables, spreading.plans, described)
        twin.start(forbid, in_bundles=True)
        return twin

    def _bundled(self, tables: Mapping[str, Table], scratch: Scratch, plan: DeltaPlan) -> Assembled | None:
        source = find_source(plan, {name: table.arity for name, table in tables.items()})
        return None if source is None else self.shared.assembler.bundles(plan, source).on(tables, scratch)

    def _spreading(self, plans: Sequence[tuple[DeltaPlan, Forbid]], relations: tuple[str, ...]) -> Spreading | None:
        key = tuple(plan for plan, _ in plans)
        if key not in self.spreadings:
            bundle = partial(self._assembled, thread=0, in_bundles=True)
            found = describe(key, relations, self.tables, lambda plan: self._assembled(plan, 0), bundle)
            tables = [self.tables[name] for name in relations]
            self.spreadings[key] = None if found is None else Spreading(relations, tables, key, found)
        return self.spreadings[key]

    def best_rounds(
        self, plans: Sequence[DeltaPlan], relations: Sequence[str], specs: Sequence[AggregateSpec]
    ) -> WatchedSettling | None:
        key = tuple(plans)
        if key not in self.settlings:
            self.settlings[key] = self._settling(key, specs, relations) if key else None
        found = self.settlings[key]
        return None if found is None else WatchedSettling(found, Watching(self.watch, self._sized), self._count)

    def _settling(
        self, plans: Sequence[DeltaPlan], specs: Sequence[AggregateSpec], relations: Sequence[str]
    ) -> Settling | None:
        if not all(is_of_numbers(spec) and spec.context is None and spec.rows in relations for spec in specs):
            return None
        instructions, scratch = self.shared.assembler.instructions, self.shared.buffer(0)

        def assemble(plan: DeltaPlan) -> Assembled | None:
            found = instructions(plan)
            return None if found is None else found.on(self.tables, scratch)

        # Taking away and adding see different rows.
        taking, adding = (describe(plans, relations, self.tables, assemble, lambda _: None) for _ in range(2))
        if taking is None or adding is None:
            return None
        return Settling(relations, [self.tables[name] for name in relations], plans, taking, adding, specs)

    def _count(self, met: int) -> None:
        self.enumerated += met

    def _run_on_words(
        self, plan: DeltaPlan, assembled: Assembled, ids: Ids, forbid: Forbid
    ) -> Iterator[tuple[Lines, Ids]]:
        assembled.start(forbid, len(ids))
        found = 0
        while True:
            heads, ranks = assembled.next_heads(ids)
            if count := len(heads):
                self.enumerated += count
                found += count
                yield heads, ranks
            if assembled.is_last:
                self._note_heads(plan, ids, found)
                return
            with self._sized(plan):
                assembled.make_room()
            self.watch.look()

    def _run_in_threads(
        self, plan: DeltaPlan, ids: Ids, forbid: Forbid, *, in_bundles: bool
    ) -> Iterator[tuple[Lines, Ids]]:
        """A share of the rows in each of several threads."""
        parts: list[tuple[Assembled, Ids]] = []
        found = 0
        for thread, share in enumerate(np.array_split(ids, self._threads(plan, ids))):
            assembled = self._assembled(plan, thread, in_bundles=in_bundles)
            assert assembled is not None
            assembled.start(forbid, len(ids))
            parts.append((assembled, share))
        while parts:
            for heads, ranks in parallel.run([partial(assembled.next_heads, part) for assembled, part in parts]):
                self.enumerated += len(heads)
                found += len(heads)
                yield heads, ranks
            self.watch.look()
            parts = [(assembled, part) for assembled, part in parts if not assembled.is_last]
        self._note_heads(plan, ids, found)

    def _note_heads(self, plan: DeltaPlan, ids: Ids, heads: int) -> None:
        if len(ids) >= machine.BLOCK:
            self.heads_of_row[plan] = heads / len(ids)

    def _assembled(self, plan: DeltaPlan, thread: int, *, in_bundles: bool = False) -> Assembled | None:
        """The plan's instructions for one of the threads, or None if it needs values, or passes on no bundles."""
        key = (plan, thread, in_bundles)
        if key not in self.assembled:
            found = self.shared.assembler.instructions(plan)
            if found is not None and in_bundles:
                source = find_source(plan, {name: table.arity for name, table in self.tables.items()})
                is_none = source is None or found.makes
                found = None if is_none or source is None else self.shared.assembler.bundles(plan, source)
            scratch = self.shared.buffer(thread)
            self.assembled[key] = None if found is None else found.on(self.tables, scratch)
        return self.assembled[key]
