"""The tables of a session, in which an epoch happens whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, cast

import numpy as np

from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.backend import LocalBackend
from whence.backends.local.by_column import Columns, Listed
from whence.backends.local.image import Image, fits, image_of, restore
from whence.engine.guard import Guard
from whence.engine.maintain import Maintainer
from whence.engine.profile import Profile
from whence.engine.stats import Stats
from whence.engine.steps import Effect, SteppedEpoch
from whence.engine.stratum import Delta
from whence.engine.support import SupportStratum
from whence.engine.windows import Windows
from whence.io.changes import Changes, Update
from whence.io.json_text import Json
from whence.io.plain_columns import Coded, PlainColumns, numbered_lines
from whence.lang.tables import bag_tables
from whence.lang.types import Tuple, Value
from whence.limits import Limits, OnRound
from whence.plan.digest import digest_of
from whence.prepared import STRATEGIES, Prepared

if TYPE_CHECKING:
    from whence.engine.adapt import Adaptation

_Rows = dict[str, Lines]


class AtomicTables:
    """The tables and windows of a prepared program, and what keeps them current.

    An epoch that fails halfway leaves half-changed tables behind. It is remembered what it was to take out and put in, and
    before anybody looks again the base tuples of before are evaluated in fresh tables; windows undo their part step by step.
    """

    def __init__(
        self,
        prepared: Prepared,
        *,
        limits: Limits,
        on_round: OnRound | None,
        windows: Windows | None = None,
        profile: Profile | None = None,
    ) -> None:
        self.prepared = prepared
        self.windows = windows or Windows(prepared.program.relations)
        self._is_restored = windows is not None
        self._limits, self._on_round = limits, on_round
        self.profile = profile
        self._backend = LocalBackend(prepared.plan.program, prepared.shared)
        self._maintainer = self._make_maintainer(self._backend, limits)
        self._is_running = False
        self._steps = ExitStack()
        self.adaptations: tuple[Adaptation, ...] = ()  # of the views whose rules the last revision changed
        self._unfinished: tuple[_Rows, _Rows] | None = None  # what an epoch that failed was to take out and put in

    def _make_maintainer(
        self, backend: LocalBackend, limits: Limits, stats: Stats | None = None
    ) -> Maintainer[Ids, Lines, Ids]:
        guard = Guard(self.prepared.program, limits, self._on_round)
        native = STRATEGIES[self.prepared.strategy].native
        return Maintainer(self.prepared.plan, backend, guard, native, stats, profile=self.profile)

    @property
    def stats(self) -> Stats:
        return self._maintainer.stats

    @property
    def backend(self) -> LocalBackend:
        """The tables as they are between epochs. Only epochs change them."""
        self.mend()
        return self._backend

    @property
    def maintainer(self) -> Maintainer[Ids, Lines, Ids]:
        self.mend()
        return self._maintainer

    # -- images

    def image(self) -> Image | None:
        """What the tables hold; None if a stratum knows more than they do."""
        self.mend()
        ranks: list[Json] = []
        for stratum in self._maintainer.strata:
            if not isinstance(stratum, SupportStratum):
                return None
            ranks.append([stratum.rank, stratum.ranked_epochs])
        head, pieces = image_of(self._backend)
        return Image({**head, "plan": self._digest(), "ranks": ranks}, pieces)

    def restore(self, image: Image) -> bool:
        """Takes the place of the first epoch. False, and nothing has happened, if the image is of another plan."""
        if image.head["plan"] != self._digest() or not fits(self._backend, image.head):
            return False
        restore(self._backend, image)
        ranks = cast("list[tuple[int, int]]", image.head["ranks"])
        for stratum, (rank, epochs) in zip(self._maintainer.strata, ranks, strict=True):
            assert isinstance(stratum, SupportStratum)
            stratum.rank, stratum.ranked_epochs = rank, epochs
        self._maintainer.started = True
        return True

    def _digest(self) -> str:
        return f"{self.prepared.strategy} {digest_of(self.prepared.plan)}"

    # -- epochs

    def start(self, facts: Mapping[str, list[Tuple]], columns: Mapping[str, PlainColumns] | None = None) -> None:
        """The first epoch, without a look at what is there before it. Windows that were kept have seen these facts already.

        Facts of other relations, which forget nothing, may come as columns.
        """
        with self.stats.phase("collect"):
            insertions = {name: list(dict.fromkeys(rows)) for name, rows in facts.items()}
            forgotten = [] if self._is_restored else [name for name in insertions if self.windows.forgets(name)]
            passing = [Update("+", name, row) for name in forgotten for row in insertions[name]]
            for name, kept in self.windows.collect(passing, None).items() if passing else ():
                insertions[name] = [row for row, stays in kept.items() if stays]
            encoded = {name: self._backend.encode(name, rows) for name, rows in insertions.items() if rows}
            tables = bag_tables(self.prepared.program)
            for name, each in (columns or {}).items():
                if len(each):
                    encoded |= self._encoded_columns(name, each, tables.get(name))
        self._maintainer.settle(self._maintainer.apply_encoded({}, encoded))

    def _encoded_columns(self, name: str, given: PlainColumns, companion: str | None) -> dict[str, Lines]:
        """Each row once, and those that come again in the companion of the table.

        Where all that happens to rows is that they are put into a table, they stay columns.
        """
        lists = {id(each.values): each.values for each in given.columns if isinstance(each, Coded)}
        words = {key: self._backend.dictionary.number_distinct(texts) for key, texts in lists.items()}
        columns = Columns(
            [Listed(each.places, words[id(each.values)]) if isinstance(each, Coded) else each for each in given.columns]
        )
        if companion is not None:
            lines, again = numbered_lines(columns.lines())
            return {name: lines, companion: again} if len(again) else {name: lines}
        rows = columns.distinct()
        if isinstance(rows, Columns) and not self._maintainer.keeps_base(name):
            rows = rows.lines()
        return {name: rows}  # type: ignore[dict-item] # which tables take for lines, and strata of base relations do not look into

    def apply(self, updates: list[Update], now: float | None, shows: Callable[[str], bool]) -> Changes:
        with self._all_or_nothing():
            with self.stats.phase("collect"):
                removed, inserted = self._collect(updates, now)
            effective = sum(len(keys) for side in (removed, inserted) for keys in side.values())
            changes = self._maintainer.apply_encoded(removed, inserted)
            return self._finish(changes, shows, max(0, len(updates) - effective))

    def trial(self, updates: list[Update], now: float | None) -> Changes:
        """The changes of an epoch that is taken back, windows and clock included."""
        with self._all_or_nothing():
            removed, inserted = self._collect(updates, now)
            changes = self._finish(self._maintainer.apply_encoded(removed, inserted), self.prepared.shows)
            self._maintainer.settle(self._maintainer.apply_encoded(inserted, removed))
            self.windows.undo()
        return changes

    def revise(self, prepared: Prepared) -> Changes:
        """An epoch in which the rules become others."""
        from whence.engine.revise import revise  # noqa: PLC0415 - brings what reasons about rules, and few change them

        with self._all_or_nothing():
            revised = revise(self._maintainer, prepared.plan)
            changes = self._finish(revised.changes, prepared.shows)
        self.adaptations = revised.adaptations
        self.prepared = prepared
        self.windows.extend(prepared.program.relations)
        relations = prepared.plan.program.relations
        self._backend.forget(name for name in tuple(self._backend.tables) if name not in relations)
        return changes

    def _collect(self, updates: Iterable[Update], now: float | None) -> tuple[_Rows, _Rows]:
        """What is to be taken out and is there from outside, and what is to be put in and is not; what expires, too."""
        removed: _Rows = {}
        inserted: _Rows = {}
        for name, rows in self.windows.collect(updates, now).items():
            keys = self._backend.encode(name, list(rows))
            pairs = list(zip(rows.values(), self._maintainer.are_outside(name, keys), strict=True))
            for side, wanted in ((removed, (False, True)), (inserted, (True, False))):
                count = pairs.count(wanted)
                if count == len(pairs):
                    side[name] = keys
                elif count:
                    side[name] = keys[[pair == wanted for pair in pairs]]
        self._unfinished = self._backend.pinned = removed, inserted
        return removed, inserted

    def _finish(self, changes: Mapping[str, Delta[Ids]], shows: Callable[[str], bool], ignored: int = 0) -> Changes:
        """Ends an epoch: its changes as tuples."""
        with self.stats.phase("decode"):
            shown = {name: delta for name, delta in changes.items() if shows(name)}
            inserted = {name: self._backend.decode(name, delta.added) for name, delta in shown.items()}
            deleted = {name: self._backend.decode(name, delta.gone) for name, delta in shown.items()}
        self._maintainer.settle(changes)
        return Changes(
            {name: rows for name, rows in inserted.items() if rows},
            {name: rows for name, rows in deleted.items() if rows},
            ignored,
        )

    # -- in steps

    def begin_steps(self, updates: list[Update], now: float | None) -> SteppedEpoch[Ids, Lines, Ids]:
        """An epoch that others have a say in. It cannot be undone: until `end_steps` nobody can look."""
        self.mend()
        self.windows.begin()
        self._is_running = True
        self._steps.enter_context(self._backend.shared.epoch)
        with self.stats.phase("collect"):
            removed, inserted = self._collect(updates, now)
        return SteppedEpoch(self._maintainer, removed, inserted)

    def begin_first_steps(self, base: Mapping[str, Iterable[Tuple]]) -> SteppedEpoch[Ids, Lines, Ids]:
        """The same for the first epoch, with base tuples that the windows know of."""
        self.windows.begin()
        self._is_running = True
        self._steps.enter_context(self._backend.shared.epoch)
        with self.stats.phase("collect"):
            encoded = {
                name: self._backend.encode(name, listed) for name, rows in base.items() if (listed := list(rows))
            }
        self._backend.pinned = {}, encoded
        return SteppedEpoch(self._maintainer, {}, encoded)

    def encode(self, name: str, rows: list[Tuple]) -> Lines:
        return self._backend.encode(name, rows)

    def tell_steps(self, effects: Iterable[Effect[Ids]]) -> Iterator[tuple[str, list[Tuple], int | None]]:
        """The rows that a step made present, with their rank, or suspended, in the order in which that happened."""
        for name, ids, rank in effects:
            yield name, self._backend.decode(name, ids), rank

    def values_in_steps(self, name: str, ids: Ids, column: int) -> tuple[list[Value], Ids]:
        """The values that rows have in a column, each once, and the place of each row's among them."""
        words, places = np.unique(self._backend.table(name).column(ids, column), return_inverse=True)
        return self._backend.dictionary.decode_column(words, self._backend.kinds[name][column]), places.astype(np.int32)

    def end_steps(self, epoch: SteppedEpoch[Ids, Lines, Ids]) -> Changes:
        changes = self._finish(epoch.changes, self.prepared.shows)
        self._steps.close()
        self._is_running, self._unfinished, self._backend.pinned = False, None, ()
        self._backend.shared.reclaim()
        return changes

    def abandon_steps(self) -> None:
        """An epoch that failed: nobody can look any more, but those who share words may go on."""
        self._steps.close()

    # -- all or nothing

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """An epoch. If it fails, everything is what it was before: the next to look at it has that evaluated again."""
        self.mend()
        self.windows.begin()
        self._unfinished = {}, {}
        with self._running():
            yield
        self._unfinished, self._backend.pinned = None, ()
        self._backend.shared.reclaim()

    @contextmanager
    def _running(self) -> Iterator[None]:
        self._is_running = True
        try:
            with self._backend.shared.epoch:
                yield
        finally:
            self._is_running = False

    def mend(self) -> None:
        """Evaluates the views anew if an epoch failed halfway. That took no limit to reach before, so it takes none now."""
        if self._is_running:
            raise RuntimeError("an epoch is under way: the session can be looked at when it is over")
        if self._unfinished is None:
            return
        removed, inserted = self._unfinished
        base = self._base()
        for name, keys in removed.items():
            base[name].update(self._backend.decode_keys(name, keys))
        for name, keys in inserted.items():
            base[name].difference_update(self._backend.decode_keys(name, keys))
        backend = LocalBackend(self.prepared.plan.program, self.prepared.shared)
        backend.enumerated, backend.warned = self._backend.enumerated, self._backend.warned
        maintainer = self._make_maintainer(backend, Limits(within_memory=False), self._maintainer.stats)
        maintainer.evaluator.solver.counters = self._maintainer.evaluator.solver.counters
        with self._running():
            maintainer.settle(maintainer.apply({}, {name: list(rows) for name, rows in base.items()}))
        maintainer.limit(self._limits)
        self.windows.undo()
        self._backend, self._maintainer, self._unfinished = backend, maintainer, None

    def base(self) -> dict[str, set[Tuple]]:
        """The tuples that were put into base relations from outside."""
        self.mend()
        return self._base()

    def _base(self) -> dict[str, set[Tuple]]:
        names = sorted(self.prepared.base)
        return {name: set(self._backend.decode_keys(name, self._maintainer.outside(name))) for name in names}
