"""A node under support counting, one support a sender.

A tuple lives at its home. What other nodes derive they tell the home: not each derivation but one *support*, with the lowest rank
among the sender's derivations. The home keeps one entry a sender and gives the tuple a rank above the lowest entry's. A sender
counts its own derivations by rank, and tells the home when the first comes, when the lowest that it told of is gone and a
higher one is left, and when none is left.

- *Taking away.* A tuple that no entry ranks below any more is suspended: it leaves the tables, and derivations from it go. What
  would have to be told of as new is held back.
- *Putting back*, when taking away has come to rest everywhere: suspended tuples with entries come back, above the lowest of
  them; what was held back is told; insertions come in.

While tuples are taken away none comes, and while they are put back none goes, except values that a better one replaced. At rest
every tuple that is there ranks above what supports it, so by induction over ranks it follows from base tuples; and every tuple
that somebody derives is there. That is what a fresh evaluation gives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whence.lang.types import Tuple, Value
from whence.network.codec import Shipment, Told, state_bytes
from whence.network.compiled import EVERYWHERE, LOCAL
from whence.network.groups import Groups
from whence.network.ranks import BASE_RANK, above
from whence.network.triggers import Found, Indexes, Present, key_of
from whence.runtime.termination import Phase
from whence.runtime.varints import varint

if TYPE_CHECKING:
    from whence.network.strategy import Shipped, Surroundings

BASE = None  # the sender of what comes from outside
PROGRAM = "program!"  # the sender of the facts that the program states
_OWN = "own!"  # the sender of what a node derives for its copy of a relation that is everywhere
_NOTHING = object()


@dataclass(slots=True)
class Home:
    """What the home of a tuple knows of it: the lowest rank that each sender told, and its own rank while it is there."""

    entries: dict[Hashable, int]
    rank: int = -1
    is_present: bool = False


@dataclass(slots=True)
class Offer:
    """The derivations of a tuple by one sender, by rank, and what it told the home; None if nothing is told."""

    told: int | None
    counts: dict[int, int]


class SupportNode:
    """The state of one node, and what it does in the phases of an epoch. It knows nothing of channels or time."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.compiled = compiled = around.compiled
        self.codec = around.codec
        self.place = around.place
        tables = len(compiled.numbering.tables)
        self.present: Present = [{} for _ in range(tables)]
        self.indexes: Indexes = [{} for _ in compiled.numbering.indexes]
        self.homes: list[dict[Tuple, Home]] = [{} for _ in compiled.home]
        self.offers: list[dict[Tuple, int | Offer]] = [{} for _ in compiled.home]
        self.groups = Groups(compiled, self.present, self._derive)
        self.pending: list[dict[Tuple, bool]] = [{} for _ in range(tables)]  # what mirrors have not seen yet
        self.suspended: list[dict[tuple[int, Tuple], None]] = [{} for _ in compiled.levels]
        self.held: list[dict[tuple[int, Tuple], None]] = [{} for _ in compiled.levels]
        self.coming: list[dict[tuple[int, Tuple], bool]] = [{} for _ in compiled.levels]  # from outside
        self.given: list[list[tuple[int, Tuple]]] = [[] for _ in compiled.levels]  # stated by the program
        self.spread: dict[tuple[int, Tuple], None] = {}  # from outside, told to everybody
        # Senders whose words hold no more, by level: they lost what they knew.
        self.forgotten: list[dict[Hashable, None]] = [{} for _ in compiled.levels]
        self.queue: deque[tuple[int, Tuple, bool, int]] = deque()
        # Tuples whose derivations have changed: those that live elsewhere and those that live here.
        self.dirty: dict[tuple[int, Tuple], None] = {}
        self.own: dict[tuple[int, Tuple], None] = {}
        self.phase: Phase = (0, compiled.alone_before, 0)
        self.is_taking = True
        self.suspensions = 0
        self._plan_tables()
        self._begin()

    def _plan_tables(self) -> None:
        self.indexed: list[list[tuple[int, Callable[[Tuple], Value]]]] = [[] for _ in self.present]
        for (table, columns), number in self.compiled.numbering.indexes.items():
            self.indexed[table].append((number, key_of(columns)))

    def _begin(self) -> None:
        """What is there before the first update: the node's own name, facts that live here, and what needs no row."""
        compiled = self.compiled
        stated = [*compiled.facts, *([] if compiled.here is None else [(compiled.here, (self.place,))])]
        for table, row in stated:
            home = compiled.home[table]
            if home == EVERYWHERE or (home >= 0 and row[home] == self.place):
                self.given[compiled.level_of[table]].append((table, row))
        found: Found = []
        for trigger, head in compiled.statics:
            trigger(self.present, self.indexes, (), 0, found)
            for row, rank in found:
                self._derive(head, row, rank, is_new=True)
            found.clear()
        for table, row in (*self.dirty, *self.own):
            self.held[compiled.level_of[table]][table, row] = None
        self.dirty.clear()
        self.own.clear()

    # -- from outside

    def from_outside(self, table: int, row: Tuple, *, is_there: bool) -> None:
        """An update, to be looked at in the phases of its level."""
        self.coming[self.compiled.level_of[table]][table, row] = is_there

    def prepare(self, epoch: int) -> None:
        """An epoch begins: what needs nobody else is completed."""
        for alone in range(self.compiled.alone_before):
            self._complete(alone)
        self.phase = (epoch, self.compiled.alone_before, -1)

    def advance(self, phase: Phase) -> None:
        """Goes through all phases up to one that has begun, telling others what it finds."""
        epoch, level, _ = phase
        if epoch > self.phase[0]:
            self.phase = (epoch, self.compiled.alone_before, -1)
        while self.phase < phase:
            _, now, turn = self.phase
            self.phase = (epoch, now + 1, 0) if now < level and turn >= 1 else (epoch, now, turn + 1)
            self._run(self.phase[1], is_taking=self.phase[2] == 0)

    def settle(self) -> None:
        """Completes the levels that give nothing to others."""
        levels = len(self.compiled.levels)
        for alone in range(levels - self.compiled.alone_after, levels):
            self._complete(alone)

    def _complete(self, level: int) -> None:
        self._run(level, is_taking=True)
        self._run(level, is_taking=False)
        while self.suspended[level]:
            self._run(level, is_taking=False)

    def wish(self) -> Phase | None:
        """The next phase in which there is something to do."""
        epoch, level, turn = self.phase
        if turn == 0 and (self.suspended[level] or self.held[level] or self.coming[level] or self.given[level]):
            return (epoch, level, 1)
        if turn > 0 and self.suspended[level]:
            return (epoch, level, turn + 1)
        for later in self.compiled.together:
            waiting = (self.coming, self.given, self.held, self.suspended, self.forgotten)
            if later > level and (any(each[later] for each in waiting) or self._has_news(later)):
                return (epoch, later, 0)
        return None

    def _has_news(self, level: int) -> bool:
        return any(self.pending[mirror.table] for mirror in self.compiled.levels[level].mirrors)

    def may_take(self) -> bool:
        """Whether what waits for the first level that nodes complete together may take anything away."""
        first = self.compiled.together.start
        return (
            any(not there for waiting in self.coming for there in waiting.values())
            or bool(self.suspended[first] or self.forgotten[first])
            or any(
                not there or mirror.may_take
                for mirror in self.compiled.levels[first].mirrors
                for there in self.pending[mirror.table].values()
            )
        )

    def detects(self, phase: Phase) -> bool:
        """Whether others have to know when a phase is over: there may be another one."""
        _, level, turn = phase
        return turn == 0 or level < self.compiled.together.stop - 1 or self.compiled.levels[level].converges

    # -- phases

    def _run(self, level: int, *, is_taking: bool) -> None:
        self.is_taking = is_taking
        if is_taking:
            for mirror in self.compiled.levels[level].mirrors:
                self._catch_up(mirror.table)
            self._take_back(level)
        for (table, row), is_there in list(self.coming[level].items()):
            if is_there is not is_taking:
                del self.coming[level][table, row]
                self._update(table, row, is_there=is_there)
        if not is_taking:
            given, self.given[level] = self.given[level], []
            for table, row in given:
                self._hear(PROGRAM, table, row, BASE_RANK)
            held, self.held[level] = self.held[level], {}
            for table, row in held:
                self._mark(table, row)
            self._put_back(level)
        self.work()

    def _update(self, table: int, row: Tuple, *, is_there: bool) -> None:
        if self.compiled.home[table] == EVERYWHERE:
            if ((table, row) in self.spread) is not is_there:
                self._derive(table, row, BASE_RANK, is_new=is_there)
                if is_there:
                    self.spread[table, row] = None
                else:
                    del self.spread[table, row]
        else:
            self._hear(BASE, table, row, BASE_RANK if is_there else None)

    def _catch_up(self, table: int) -> None:
        """A mirror sees what has become of its relation: what went first."""
        news, self.pending[table] = self.pending[table], {}
        for is_there in (False, True):
            for row, there in news.items():
                if there is is_there:
                    self._apply(table, row, there, 0)

    def _put_back(self, level: int) -> None:
        waiting, self.suspended[level] = self.suspended[level], {}
        for table, row in waiting:
            home = self.homes[table].get(row)
            if home is not None and not home.is_present and home.entries:
                self._appear(table, row, home)

    def receive(self, sender: Hashable, message: Shipped) -> None:
        assert isinstance(message, Shipment)
        self._hear_all(sender, message.items)

    def on_timer(self, name: Hashable) -> None:
        raise AssertionError(name)

    def _hear_all(self, sender: Hashable, items: Iterable[Told]) -> None:
        for table, row, rank in items:
            self._hear(sender, table, row, rank)
        self.work()

    def work(self) -> None:
        """Until nothing follows any more here; then others are told."""
        queue = self.queue
        while True:
            if queue:
                self._apply(*queue.popleft())
            elif self.groups.touched:
                self.groups.settle()
            elif self.own:
                self._tell_oneself()
            else:
                break
        self._tell_others()

    # -- a tuple at home

    def _hear(self, sender: Hashable, table: int, row: Tuple, rank: int | None) -> None:
        """What a sender says of a tuple: the lowest rank of its derivations, or that it has none."""
        homes = self.homes[table]
        home = homes.get(row)
        if home is None:
            if rank is not None:
                homes[row] = home = Home({sender: rank})
                self._appear(table, row, home)
            return
        if rank is None:
            if home.entries.pop(sender, None) is None:
                return
        else:
            home.entries[sender] = rank
        if not home.is_present:
            if not home.entries:
                del homes[row]
                self.suspended[self.compiled.level_of[table]].pop((table, row), None)
        elif self._is_lost(home, rank):
            home.is_present = False
            self.suspensions += 1
            self.queue.append((table, row, False, home.rank))
            if home.entries:
                self.suspended[self.compiled.level_of[table]][table, row] = None
            else:
                del homes[row]

    def _is_lost(self, home: Home, _rank: int | None) -> bool:
        return not home.entries or min(home.entries.values()) >= home.rank

    def _appear(self, table: int, row: Tuple, home: Home) -> None:
        home.rank = self._above(min(home.entries.values()), row)
        home.is_present = True
        self.queue.append((table, row, True, home.rank))

    def _above(self, rank: int, row: Tuple) -> int:
        return above(rank, row)

    # -- a row comes or goes

    def _apply(self, table: int, row: Tuple, is_there: bool, rank: int) -> None:
        """What follows from it, and its place in the tables."""
        present, compiled = self.present[table], self.compiled
        found: Found = []
        if is_there:
            for trigger, head in compiled.waning[table]:
                trigger(self.present, self.indexes, row, 0, found)
                self._derive_all(head, found, is_new=False)
            present[row] = rank
            for number, key in self.indexed[table]:
                self.indexes[number].setdefault(key(row), {})[row] = None
            for trigger, head in compiled.coming[table]:
                trigger(self.present, self.indexes, row, rank, found)
                self._derive_all(head, found, is_new=True)
        else:
            for trigger, head in compiled.coming[table]:
                trigger(self.present, self.indexes, row, rank, found)
                self._derive_all(head, found, is_new=False)
            del present[row]
            for number, key in self.indexed[table]:
                value = key(row)
                bucket = self.indexes[number][value]
                del bucket[row]
                if not bucket:
                    del self.indexes[number][value]
            for trigger, head in compiled.waning[table]:
                trigger(self.present, self.indexes, row, 0, found)
                self._derive_all(head, found, is_new=True)
        self.groups.change(table, row, rank, is_there=is_there)
        if table < len(compiled.home):
            for mirror in compiled.mirrors[table]:
                news = self.pending[mirror]
                if row in news:
                    del news[row]
                else:
                    news[row] = is_there
            self.around.changed(table, row, is_there)

    def _derive_all(self, head: int, found: Found, *, is_new: bool) -> None:
        for row, rank in found:
            self._derive(head, row, rank, is_new=is_new)
        found.clear()

    # -- what is derived here

    def _derive(self, table: int, row: Tuple, rank: int, *, is_new: bool) -> None:
        offers = self.offers[table]
        offer = offers.get(row)
        if is_new:
            if offer is None:
                offers[row] = Offer(None, {rank: 1})
                self._mark(table, row)
                return
            if type(offer) is int:
                offers[row] = offer = Offer(offer, {offer: 1})
            assert isinstance(offer, Offer)
            offer.counts[rank] = offer.counts.get(rank, 0) + 1
            if offer.told is None:
                self._mark(table, row)
            return
        if type(offer) is int:
            offers[row] = offer = Offer(offer, {offer: 1})
        assert isinstance(offer, Offer)
        left = offer.counts[rank] - 1
        if left:
            offer.counts[rank] = left
        else:
            del offer.counts[rank]
        self._mark(table, row)

    def _mark(self, table: int, row: Tuple) -> None:
        home = self.compiled.home[table]
        is_own = home == LOCAL or (home >= 0 and row[home] == self.place)
        (self.own if is_own else self.dirty)[table, row] = None

    def _tell_oneself(self) -> None:
        """Tells of tuples that live here."""
        own, self.own = self.own, {}
        aliases = self.compiled.aliases
        for table, row in own:
            said = self._news(table, row)
            if said is _NOTHING:
                continue
            assert said is None or isinstance(said, int)
            shown = aliases.get(table)
            if shown is None:
                self._hear(self.place, table, row, said)
            else:
                self._hear(_OWN, shown, row, said)

    def _tell_others(self) -> None:
        if not self.dirty:
            return
        dirty, self.dirty = self.dirty, {}
        items: dict[Value, list[Told]] = {}
        to_all: list[Told] = []
        for table, row in dirty:
            said = self._news(table, row)
            if said is _NOTHING:
                continue
            assert said is None or isinstance(said, int)
            told = (table, row, said)
            home = self.compiled.home[table]
            if home == EVERYWHERE:
                to_all.append(told)
            else:
                items.setdefault(row[home], []).append(told)
        if to_all:
            for node in self.around.nodes():
                if node != self.place:
                    items.setdefault(node, []).extend(to_all)
        for target, listed in items.items():
            self.around.tell(target, Shipment(self.phase, listed, self.codec))
        if to_all:
            self._hear_all(self.place, to_all)

    def _news(self, table: int, row: Tuple) -> object:
        """What the home of a tuple has to be told: a rank, None if nothing derives it any more, or nothing."""
        offer = self.offers[table].get(row)
        if type(offer) is not Offer:
            return _NOTHING
        lowest = min(offer.counts, default=None)
        if offer.told is None:
            if lowest is None:
                del self.offers[table][row]
                return _NOTHING
            if self.is_taking:
                self.held[self.compiled.level_of[table]][table, row] = None
                return _NOTHING
        elif not self._is_worse(offer, lowest):
            self._simplify(table, row, offer)
            return _NOTHING
        offer.told = said = self._said(lowest)
        if lowest is None:
            del self.offers[table][row]
        elif said is None:
            self.held[self.compiled.level_of[table]][table, row] = None
        else:
            self._simplify(table, row, offer)
        return said

    def _is_worse(self, offer: Offer, lowest: int | None) -> bool:
        assert offer.told is not None
        return lowest is None or lowest > offer.told

    def _said(self, lowest: int | None) -> int | None:
        return lowest

    def _simplify(self, table: int, row: Tuple, offer: Offer) -> None:
        """One derivation that was told of, which most have, is kept as its rank."""
        if len(offer.counts) == 1 and offer.counts.get(offer.told) == 1:  # type: ignore[arg-type]
            self.offers[table][row] = offer.told  # type: ignore[assignment]

    # -- what there is

    def rows(self, relation: str) -> Iterable[Tuple]:
        return self.present[self.compiled.tables[relation]].keys()

    def forget(self, sender: Value) -> None:
        """A node has lost what it knew: nothing that it said holds, and it has to be told everything again."""
        for level in self.compiled.together:
            self.forgotten[level][sender] = None

    def _take_back(self, level: int) -> None:
        """What nodes that have lost what they knew said, and what they were told, in the tables of a level."""
        senders, self.forgotten[level] = self.forgotten[level], {}
        if not senders:
            return
        for table in self.compiled.levels[level].relations:
            for row, known in list(self.homes[table].items()):
                for sender in [sender for sender in known.entries if sender in senders]:
                    self._hear(sender, table, row, None)
            home = self.compiled.home[table]
            gone: list[Told] = []
            for row, offer in list(self.offers[table].items()):
                if home == EVERYWHERE or (home >= 0 and row[home] in senders):
                    known_as, counts = (offer, {offer: 1}) if isinstance(offer, int) else (offer.told, offer.counts)
                    self.offers[table][row] = Offer(None, counts)
                    self.held[level][table, row] = None
                    if home == EVERYWHERE and known_as is not None:
                        gone.append((table, row, None))
            # What everybody knows may be gone in the same phase, and then nobody would be told: it goes now, and comes back.
            for node in self.around.nodes() if gone else ():
                if node != self.place:
                    self.around.tell(node, Shipment(self.phase, gone, self.codec))
            for told in gone:
                self._hear(self.place, *told)

    def state_bytes(self) -> tuple[int, int]:
        """The bytes of the tuples that it holds, and of what it keeps to know that they are still derivable."""
        shown = {table: self.present[table] for table in range(len(self.compiled.home))}
        data = state_bytes(self.codec, shown)
        kept = 0
        for homes in self.homes:
            for home in homes.values():
                kept += len(varint(home.rank)) + sum(1 + len(varint(rank)) for rank in home.entries.values())
        for offers in self.offers:
            for offer in offers.values():
                ranks: Mapping[int, int] = {offer: 1} if isinstance(offer, int) else offer.counts
                kept += sum(len(varint(rank)) + len(varint(count)) for rank, count in ranks.items())
        return data, kept
