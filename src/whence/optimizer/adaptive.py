"""Join orders that follow the data: those of a session's delta plans, chosen again when tables turn out otherwise.

Between epochs the tables are looked at: when one has become much larger or smaller, and else as often as a fiftieth of the time
allows. Where another order would cost much less, all plans are made anew with it. Rows and supports stay, so that no change is
lost or counted twice; an index that a new order needs is made when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from time import perf_counter

import numpy as np

from whence.backends.local.backend import LocalBackend
from whence.lang.order import Candidate
from whence.optimizer.best_first import Optimizer
from whence.optimizer.delta_space import DeltaSpace
from whence.session import Session

WORTH = 1.5  # how many times less another order has to cost
DRIFT = 2.0  # how many times larger or smaller a table has to be
SHARE = 0.02  # of the time of epochs, for looking at tables that keep their sizes
SAMPLE = 4096  # rows of a table that are looked at
MOST_ATOMS = 10
UNKNOWN = 1000.0


@dataclass(frozen=True)
class Switch:
    """Another order for the atoms of a body: when, which, and what it was to cost, for one changed row."""

    epoch: int
    before: tuple[str, ...]
    after: tuple[str, ...]
    cost_before: int
    cost_after: int

    def __str__(self) -> str:
        ratio = self.cost_before / max(1, self.cost_after)
        return f"epoch {self.epoch}: {', '.join(self.before)} -> {', '.join(self.after)}, {ratio:.1f} times cheaper"


class ObservedOrder:
    """A join order for plans: the cheapest by what is known of tables, kept until another one is worth a switch."""

    def __init__(self) -> None:
        self._rows: dict[str, float] = {}
        self._distinct: dict[tuple[str, int], float] = {}
        self._asked: dict[tuple[Candidate, ...], tuple[DeltaSpace, Optimizer, list[int]]] = {}

    def __call__(self, candidates: Sequence[Candidate], sizes: Mapping[str, int]) -> int:
        if len(candidates) == 1:
            return 0
        for each in candidates:
            self._rows.setdefault(each.atom.relation, float(sizes.get(each.atom.relation, UNKNOWN)))
        if len(candidates) > MOST_ATOMS:
            return max(range(len(candidates)), key=lambda at: len(candidates[at].bound))
        key = tuple(candidates)
        if key not in self._asked:
            space = DeltaSpace(candidates)
            space.take_in(self._rows_of, self._distinct_of)
            optimizer = Optimizer(space)
            self._asked[key] = space, optimizer, _order(optimizer)
        return self._asked[key][2][0]

    def _rows_of(self, relation: str) -> float:
        return max(1.0, self._rows.get(relation, UNKNOWN))

    def _distinct_of(self, relation: str, column: int) -> float:
        found = self._distinct.get((relation, column))
        return max(1.0, sqrt(self._rows_of(relation))) if found is None else found

    def observe(self, backend: LocalBackend, epoch: int) -> list[Switch]:
        """Looks at the tables and takes other orders where that is worth it. Gives those; plans are to be made anew then."""
        columns = {
            (each.atom.relation, column)
            for candidates in self._asked
            for each in candidates
            for column in range(len(each.atom.args))
        }
        for relation in {name for name, _ in columns} & backend.tables.keys():
            table = backend.tables[relation]
            rows = len(table)
            self._rows[relation] = float(rows)
            ids = table.ids()
            sample = ids if len(ids) <= SAMPLE else ids[np.linspace(0, len(ids) - 1, SAMPLE).astype(np.int64)]
            for column in (at for name, at in columns if name == relation):
                self._distinct[relation, column] = _distinct(table.column(sample, column), len(ids))
        return [
            switch
            for candidates, asked in self._asked.items()
            if (switch := self._reconsider(candidates, *asked, epoch=epoch)) is not None
        ]

    def _reconsider(
        self,
        candidates: tuple[Candidate, ...],
        space: DeltaSpace,
        optimizer: Optimizer,
        order: list[int],
        *,
        epoch: int,
    ) -> Switch | None:
        touches = space.take_in(self._rows_of, self._distinct_of)
        if not touches:
            return None
        optimizer.update(touches)
        before = space.cost_of(order)
        if before <= WORTH * optimizer.cost:
            return None
        names = [each.atom.relation for each in candidates]
        was, order[:] = tuple(names[at] for at in order), _order(optimizer)
        return Switch(epoch, was, tuple(names[at] for at in order), before, optimizer.cost)


def _order(optimizer: Optimizer) -> list[int]:
    """The places of atoms, in the order in which the plan joins them."""
    steps = list(optimizer.plan().walk())
    before = [each.node[0] for each in steps[1:]] + [0]
    return [(step.node[0] ^ rest).bit_length() - 1 for step, rest in zip(steps, before, strict=True)][::-1]


def _distinct(words: np.ndarray[tuple[int, ...], np.dtype[np.int64]], rows: int) -> float:
    """How many values a column has, by a sample: those met once stand for others that were not met (Charikar's estimate)."""
    if not len(words):
        return 1.0
    _, counts = np.unique(words, return_counts=True)
    once = int((counts == 1).sum())
    return len(counts) - once + once * sqrt(rows / len(words))


class AdaptiveOrders:
    """Has the join orders of a session follow its data. `after_epoch` is to be called after each epoch.

    >>> from whence import Update, load
    >>> session = Session(load(".decl p(x:number, y:number) .input p .output q q(x, z) :- p(x, y), p(y, z)."))
    >>> orders = AdaptiveOrders(session)
    >>> session.apply([Update("+", "p", (1, 2)), Update("+", "p", (2, 3))]).inserted["q"]
    [(1, 3)]
    >>> orders.after_epoch()
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.switches: list[Switch] = []
        self.order = ObservedOrder()
        session.replan(self.order)
        self.look()

    def after_epoch(self) -> None:
        """Looks at the tables, if it is time to; then join orders may be others."""
        self._spent += sum(self.session.last_epoch["seconds"].values())
        if self._spent * SHARE >= self._look_takes or self._drifted():
            self.look()

    def _drifted(self) -> bool:
        return any(
            not 1 / DRIFT <= (len(table) + 100) / (self._sizes.get(name, 0) + 100) <= DRIFT
            for name, table in self.session.backend.tables.items()
        )

    def look(self) -> None:
        """Looks at the tables, and takes other orders where that is worth it."""
        start = perf_counter()
        backend = self.session.backend
        self._sizes = {name: len(table) for name, table in backend.tables.items()}
        found = self.order.observe(backend, self.session.epoch)
        if found:
            self.switches += found
            self.session.replan()
        self._spent, self._look_takes = 0.0, perf_counter() - start
