"""A session that is one of several: part of the support of its tuples comes from others.

Several nodes, made of one prepared program (or of programs with the same strata), hold a set of views together. A node derives
what follows from the tuples it has. Where a tuple belongs elsewhere too, it is sent there, as a *support*: "I have this tuple,
and it ranks r". The receiver counts one support for each sender beside its own derivations; a tuple is there as long as one of
all these ranks below it. So cycles through several nodes cannot hold themselves up, and nothing counts to infinity.

**An epoch** is the same sequence of calls at every node:

    node.begin(updates)
    while node.stratum is not None:           # the same one at all nodes
        send(node.take_away())                # again whenever a withdrawal was received, until none is on its way anywhere
        ...                                   # barrier 1
        send(node.put_back())                 # again whenever something was received, or node.is_pending
        ...                                   # barrier 2
        node.close()
    changes = node.finish()

What the steps give are `Support`s, to be handed to `receive` of whichever nodes need them, in order (supports of one sender must
not overtake each other; the same one twice does no harm). Those with rank None are withdrawals.

- *Barrier 1*: no withdrawal is on its way or waits in an inbox of any node. Only then may `put_back` be called at any of them:
  a tuple that was suspended may come back only when all that depended on it is gone.
- `put_back` may withdraw, where a group of an aggregate gets another value. It stops there (`is_pending` is true), and all nodes
  have to get through barrier 1 again, with `take_away` where something was received, before any of them puts back more.
- *Barrier 2*: nothing is on its way, no inbox holds anything for the stratum, and no node `is_pending`.

Insertions need no barrier between nodes: as long as no `put_back` withdraws, each node may put back whenever something comes.
A stratum in which no node `is_pending` at its beginning can be closed at once.

**What may be sent.** A tuple may support one of another relation at the receiver, as long as that relation is of the same stratum
of the program or of a later one: earlier strata are closed. A relation that holds the groups of an aggregate takes no supports
(send a copy that a rule makes), nor does one whose stratum is evaluated anew: `takes_support` tells. Helper relations of the
plan, whose names hold a `!`, are among what the steps give; they need not be sent where their rules run at each node.

A node whose epoch raises is of no use any more: make it anew from its base tuples, and have its senders send again.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from whence.atomic import AtomicTables
from whence.backends.local.arrays import Ids, Lines
from whence.engine.steps import Effect, SteppedEpoch, SupportBatch
from whence.engine.stratum import Ranking
from whence.engine.windows import Windows
from whence.io.changes import Changes, Update
from whence.lang.fit import check_rows, holds_compounds, with_compounds
from whence.lang.types import Tuple
from whence.limits import Limits, OnRound
from whence.prepared import Prepared
from whence.reader import Reader, work_of


class Support(NamedTuple):
    """A sender has this tuple with a rank; None: it has it no longer."""

    relation: str
    tuple: Tuple
    rank: int | None


class Supports(NamedTuple):
    """The same of several tuples."""

    relation: str
    tuples: list[Tuple]
    rank: int | None


class Node(Reader):
    """One of several sessions. The module says how they make an epoch together.

    >>> from whence import Update, load
    >>> from whence.prepared import prepare
    >>> program = prepare(load(".decl link(x:symbol, y:symbol) .input link .decl reach(x:symbol, y:symbol) .output reach"
    ...                        " reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z)."))
    >>> node = Node(program)
    >>> node.begin([Update("+", "link", ("a", "b"))])
    >>> node.receive("elsewhere", [Support("reach", ("z", "a"), 7)])
    >>> while node.stratum is not None:
    ...     _ = node.take_away()
    ...     for support in node.put_back():
    ...         print(support)
    ...     node.close()
    Support(relation='link', tuple=('a', 'b'), rank=1)
    Support(relation='reach', tuple=('z', 'a'), rank=8)
    Support(relation='reach', tuple=('a', 'b'), rank=8)
    Support(relation='reach', tuple=('z', 'b'), rank=9)
    >>> node.finish().inserted["reach"]
    [('z', 'a'), ('a', 'b'), ('z', 'b')]
    """

    def __init__(
        self,
        prepared: Prepared,
        *,
        limits: Limits = Limits(),  # noqa: B008 - immutable
        on_round: OnRound | None = None,
        tells: Collection[str] | None = None,
        windows: Windows | None = None,
    ) -> None:
        """`tells` are the relations whose tuples the steps give, by default all. `windows` are those that it goes on from."""
        if prepared.strategy != "support":
            raise ValueError(f"nodes are maintained by the strategy support, not {prepared.strategy}")
        super().__init__(AtomicTables(prepared, limits=limits, on_round=on_round, windows=windows))
        self._tells = tells
        self._epoch: SteppedEpoch[Ids, Lines, Ids] | None = None
        self._has_failed = False
        self._may_put_back = False
        # The rank that each sender last gave a tuple: as it is counted, and, by stratum, as it is to be.
        self._counted: dict[tuple[str, Tuple], dict[Hashable, int]] = {}
        self._inbox: dict[int, dict[tuple[str, Tuple, Hashable], int | None]] = {}
        self._strata: dict[str, int] = {}
        self._refused: dict[str, str] = {}
        for at, stratum in enumerate(prepared.plan.strata):
            self._strata |= dict.fromkeys(stratum.relations, at)
            if not stratum.native:
                self._refused |= dict.fromkeys(stratum.relations, f"is evaluated anew ({stratum.why_not_native})")
            self._refused |= {spec.output: "holds the groups of an aggregate" for spec in stratum.aggregates}

    def takes_support(self, relation: str) -> bool:
        return relation in self._strata and relation not in self._refused

    # -- what comes

    def receive(self, sender: Hashable, supports: Iterable[Support]) -> None:
        """Takes note of what a sender says; the steps act on it. The tuples are taken as they are, as other nodes made them."""
        for name, row, rank in supports:
            self.receive_all(sender, name, (row,), (rank,))

    def receive_all(
        self, sender: Hashable, relation: str, tuples: Iterable[Tuple], ranks: Iterable[int | None]
    ) -> None:
        """The same for tuples of one relation."""
        at = self._strata.get(relation)
        if at is None:
            raise ValueError(f"there is no relation {relation}")
        if relation in self._refused:
            raise ValueError(f"{relation} takes no support from others: it {self._refused[relation]}")
        if self._epoch is not None and at < self._epoch.at:
            raise ValueError(f"{relation} is of a stratum that is closed: it takes supports again in the next epoch")
        inbox = self._inbox.setdefault(at, {})
        for row, rank in zip(tuples, ranks, strict=True):
            inbox[relation, row, sender] = rank

    def forget(self, sender: Hashable) -> None:
        """Withdraws all that a sender has said. Between epochs, or before the first step of one."""
        for (name, row), ranks in self._counted.items():
            if sender in ranks:
                self._inbox.setdefault(self._strata[name], {})[name, row, sender] = None
        for inbox in self._inbox.values():
            inbox.update({key: None for key in inbox if key[2] == sender})

    # -- an epoch

    def begin(self, updates: Iterable[Update] = (), now: float | None = None) -> None:
        """Begins an epoch with updates of base relations, checked as those of a session are."""
        if self._epoch is not None:
            raise RuntimeError("an epoch is under way")
        listed = list(updates)
        rows: dict[str, list[Tuple]] = {}
        for update in listed:
            if update.relation not in self.prepared.base:
                raise ValueError(f"{update.relation} is not a base relation: only base relations take updates")
            rows.setdefault(update.relation, []).append(update.tuple)
        for name, each in rows.items():
            check_rows(self.program.relations[name], each, self.program.types)
        if any(holds_compounds(self.program.relations[name]) for name in rows):
            listed = [update._replace(tuple=with_compounds(update.tuple)) for update in listed]
        self._before = self._atomic.stats.copy()
        self._epoch = self._atomic.begin_steps(listed, now)

    def begin_from(self, base: Mapping[str, Iterable[Tuple]]) -> None:
        """Begins the first epoch with base tuples that its windows know of, and that were checked before."""
        if self.epoch >= 0 or self._epoch is not None:
            raise RuntimeError("the first epoch has begun")
        self._before = self._atomic.stats.copy()
        self._epoch = self._atomic.begin_first_steps(base)

    @property
    def stratum(self) -> tuple[str, ...] | None:
        """The relations that steps are about; None after the last stratum, when it is time to `finish`."""
        stratum = self._current.stratum
        return None if stratum is None else stratum.plan.relations

    @property
    def is_pending(self) -> bool:
        """Whether there is something to do in this stratum, be it left over or received."""
        return self._current.is_pending or bool(self._inbox.get(self._current.at))

    def take_away(self) -> list[Support]:
        """Takes away what has lost its support, with what followed from it. Gives the withdrawals."""
        return _one_by_one(self.take_away_all())

    def put_back(self) -> list[Support]:
        """Puts back what still has support, adds what is new. Gives supports and, if a group has another value, withdrawals."""
        return _one_by_one(self.put_back_all())

    def take_away_all(self) -> list[Supports]:
        """As `take_away`; what becomes of several tuples at once is told at once."""
        with self._stepping() as epoch:
            self._may_put_back = True
            return self._told(epoch.take_away(self._withdrawn()))

    def put_back_all(self) -> list[Supports]:
        """As `put_back`; what becomes of several tuples at once is told at once."""
        if not self._may_put_back:
            raise RuntimeError("what has lost its support has to be taken away first")
        with self._stepping() as epoch:
            return self._told(epoch.put_back(self._given()))

    def close(self) -> None:
        """Ends a stratum."""
        if self.is_pending:
            raise RuntimeError("the stratum has something left to put back")
        with self._stepping() as epoch:
            self._may_put_back = False
            epoch.close()

    def finish(self) -> Changes:
        """Ends the epoch: the net changes of this node's relations."""
        if self.stratum is not None:
            raise RuntimeError("there are strata left")
        changes = self._atomic.end_steps(self._current)
        self._epoch = None
        self.epoch += 1
        self.last_epoch = work_of(self._atomic.stats.since(self._before))
        return changes

    def ranking(self, relation: str) -> Ranking:  # noqa: ARG002 - the same for all of them
        """Ranks follow from others' too: they say nothing about derivations here."""
        return Ranking.NONE

    @property
    def _current(self) -> SteppedEpoch[Ids, Lines, Ids]:
        if self._has_failed:
            raise RuntimeError(
                "an epoch of this node failed: make it anew from its base tuples and what its senders say"
            )
        if self._epoch is None:
            raise RuntimeError("no epoch is under way: begin one")
        return self._epoch

    @contextmanager
    def _stepping(self) -> Iterator[SteppedEpoch[Ids, Lines, Ids]]:
        epoch = self._current
        try:
            yield epoch
        except BaseException:
            self._has_failed = True
            self._atomic.abandon_steps()
            raise

    def _told(self, effects: Iterable[Effect[Ids]]) -> list[Supports]:
        told = effects if self._tells is None else (each for each in effects if each.relation in self._tells)
        return [Supports(*each) for each in self._atomic.tell_steps(told)]

    # -- supports

    def _withdrawn(self) -> Mapping[str, SupportBatch[Lines, Ids]]:
        """The supports that are counted and are to be no longer, or with another rank."""
        inbox = self._inbox.get(self._current.at, {})
        found: dict[str, list[tuple[Tuple, int]]] = {}
        for (name, row, sender), rank in tuple(inbox.items()):
            ranks = self._counted.get((name, row), {})
            if sender in ranks and ranks[sender] != rank:
                found.setdefault(name, []).append((row, ranks.pop(sender)))
                if not ranks:
                    del self._counted[name, row]
            if rank is None or ranks.get(sender) == rank:
                del inbox[name, row, sender]
        return self._batches(found)

    def _given(self) -> Mapping[str, SupportBatch[Lines, Ids]]:
        """The supports that are to be counted and are not yet. A support that changed waits until the old one is withdrawn."""
        inbox = self._inbox.get(self._current.at, {})
        found: dict[str, list[tuple[Tuple, int]]] = {}
        for (name, row, sender), rank in tuple(inbox.items()):
            counted = self._counted.get((name, row), {}).get(sender)
            if rank is not None and counted is None:
                self._counted.setdefault((name, row), {})[sender] = rank
                found.setdefault(name, []).append((row, rank))
            if counted is None or counted == rank:
                del inbox[name, row, sender]
        return self._batches(found)

    def _batches(self, found: Mapping[str, list[tuple[Tuple, int]]]) -> dict[str, SupportBatch[Lines, Ids]]:
        batches = {}
        for name, listed in found.items():
            keys = self._atomic.encode(name, [row for row, _ in listed])
            ranks = [rank for _, rank in listed]
            batches[name] = SupportBatch(keys, np.array(ranks, dtype=np.int32), max(ranks))
        return batches


def _one_by_one(told: Iterable[Supports]) -> list[Support]:
    return [Support(name, row, rank) for name, rows, rank in told for row in rows]
