"""Join orders that follow the data: those of a session's delta plans, chosen again when tables turn out otherwise.

Between epochs the tables are looked at: when one has become much larger or smaller, and else as often as a hundredth of the time
allows. Where another order would cost much less, all plans are made anew with it. Rows and supports stay, so that no change is
lost or counted twice; an index that a new order needs is made when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2, sqrt
from time import perf_counter

import numpy as np

from whence.backends.local.backend import LocalBackend
from whence.lang.order import Candidate
from whence.lang.program import Atom
from whence.optimizer.best_first import Optimizer
from whence.optimizer.delta_space import DeltaSpace
from whence.reader import Reader

WORTH = 1.5  # how many times less another order has to cost
DRIFT = 2.0  # how many times larger or smaller a table has to be
SHARE = 0.01  # of the time of epochs, for looking at tables that keep their sizes
SAMPLE = 4096  # rows of a table that are looked at
MOST_ATOMS = 10
MOST_SWITCHES = 1000  # that are remembered
UNKNOWN = 1000.0


@dataclass(frozen=True)
class Switch:
    """Another order for the atoms of a body: when, which, what it was to cost, for one changed row, and what had changed most."""

    epoch: int
    before: tuple[str, ...]
    after: tuple[str, ...]
    cost_before: int
    cost_after: int
    why: str

    def __str__(self) -> str:
        ratio = self.cost_before / max(1, self.cost_after)
        orders = f"{', '.join(self.before)} -> {', '.join(self.after)}"
        return f"epoch {self.epoch}: {orders}, {ratio:.1f} times cheaper: {self.why}"


class Observed:
    """How many rows tables have and how many values their columns: as they were when they were last looked at."""

    def __init__(self, backend: LocalBackend | None = None) -> None:
        self._backend = backend
        self._rows: dict[str, float] = {}
        self._distinct: dict[tuple[str, int], float] = {}

    def rows(self, relation: str) -> float:
        if relation not in self._rows:
            self._look_at(relation)
        return max(1.0, self._rows[relation])

    def distinct(self, relation: str, column: int) -> float:
        if relation not in self._rows:
            self._look_at(relation)
        found = self._distinct.get((relation, column))
        return sqrt(self.rows(relation)) if found is None else found

    def suppose(self, relation: str, rows: float) -> None:
        """What is said of a relation that there is no table of yet."""
        if self._backend is None or relation not in self._backend.tables:
            self._rows.setdefault(relation, rows)

    def is_known(self, relation: str) -> bool:
        return relation in self._rows

    def look_again(self) -> None:
        for relation in list(self._rows):
            self._look_at(relation)

    def of(self, atoms: Sequence[Atom]) -> dict[tuple[str, int], float]:
        """What is known that an order of atoms depends on, by relation and column; -1 has the rows."""
        found: dict[tuple[str, int], float] = {}
        for each in atoms:
            found[each.relation, -1] = self.rows(each.relation)
            for column in range(len(each.args)):
                found[each.relation, column] = self.distinct(each.relation, column)
        return found

    def _look_at(self, relation: str) -> None:
        table = None if self._backend is None else self._backend.tables.get(relation)
        if table is None:
            self._rows.setdefault(relation, UNKNOWN)
            return
        ids = table.ids()
        self._rows[relation] = float(len(ids))
        sample = ids if len(ids) <= SAMPLE else ids[np.linspace(0, len(ids) - 1, SAMPLE).astype(np.int64)]
        for column in range(table.arity):
            self._distinct[relation, column] = _distinct(table.column(sample, column), len(ids))


def _distinct(words: np.ndarray[tuple[int, ...], np.dtype[np.int64]], rows: int) -> float:
    """How many values a column has, by a sample: those met once stand for others that were not met (Charikar's estimate)."""
    if not len(words):
        return 1.0
    _, counts = np.unique(words, return_counts=True)
    once = int((counts == 1).sum())
    return len(counts) - once + once * sqrt(rows / len(words))


@dataclass
class _Body:
    """The atoms that are left of a body, in the order that was chosen by what was `known` then."""

    candidates: tuple[Candidate, ...]
    space: DeltaSpace
    optimizer: Optimizer
    order: list[int]
    known: dict[tuple[str, int], float]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.candidates[at].atom.relation for at in self.order)


class ObservedOrder:
    """A join order for plans: the cheapest by what is known of tables, kept until another one is worth a switch."""

    def __init__(self, backend: LocalBackend | None = None) -> None:
        self.observed = Observed(backend)
        self._bodies: dict[tuple[Candidate, ...], _Body] = {}
        self._rest: list[Atom] = []  # what is to follow on the atom that was asked for last

    def __call__(self, candidates: Sequence[Candidate], sizes: Mapping[str, int]) -> int:
        if len(candidates) == 1:
            return 0
        if len(candidates) > MOST_ATOMS:
            return max(range(len(candidates)), key=lambda at: len(candidates[at].bound))
        atoms = [each.atom for each in candidates]
        if len(atoms) != len(self._rest) or any(each not in self._rest for each in atoms):
            body = self._body(tuple(candidates), sizes)
            self._rest = [atoms[at] for at in body.order]
        return atoms.index(self._rest.pop(0))

    def _body(self, candidates: tuple[Candidate, ...], sizes: Mapping[str, int]) -> _Body:
        body = self._bodies.get(candidates)
        if body is None:
            for each in candidates:
                self.observed.suppose(each.atom.relation, float(sizes.get(each.atom.relation, UNKNOWN)))
            space = DeltaSpace(candidates)
            space.take_in(self.observed.rows, self.observed.distinct)
            optimizer = Optimizer(space)
            known = self.observed.of([each.atom for each in candidates])
            body = self._bodies[candidates] = _Body(candidates, space, optimizer, _order(optimizer), known)
        return body

    def look_again(self, epoch: int) -> list[Switch]:
        """Looks at the tables and takes other orders where that is worth it. Gives those; plans are to be made anew then."""
        self._rest = []
        self.observed.look_again()
        return [found for body in self._bodies.values() if (found := self._reconsider(body, epoch)) is not None]

    def _reconsider(self, body: _Body, epoch: int) -> Switch | None:
        touches = body.space.take_in(self.observed.rows, self.observed.distinct)
        if not touches:
            return None
        body.optimizer.update(touches)
        cost = body.space.cost_of(body.order)
        if cost <= WORTH * body.optimizer.cost:
            return None
        before, known = body.names, self.observed.of([each.atom for each in body.candidates])
        why = _largest_change(body.known, known)
        body.order, body.known = _order(body.optimizer), known
        return Switch(epoch, before, body.names, cost, body.optimizer.cost, why)


def _order(optimizer: Optimizer) -> list[int]:
    """The places of atoms, in the order in which the plan joins them."""
    steps = list(optimizer.plan().walk())
    before = [each.node[0] for each in steps[1:]] + [0]
    return [(step.node[0] ^ rest).bit_length() - 1 for step, rest in zip(steps, before, strict=True)][::-1]


def _largest_change(before: Mapping[tuple[str, int], float], after: Mapping[tuple[str, int], float]) -> str:
    relation, column = max(after, key=lambda each: abs(log2(after[each] / before[each])))
    numbers = f"{before[relation, column]:,.0f} -> {after[relation, column]:,.0f}"
    return f"{relation} has {numbers} rows" if column < 0 else f"column {column} of {relation} has {numbers} values"


@dataclass
class AdaptiveOrders:
    """Has the join orders of a session follow its data. `after_epoch`, to be called after each, gives what it switched.

    >>> from whence import Session, Update, load
    >>> session = Session(load(".decl p(x:number, y:number) .input p .output q q(x, z) :- p(x, y), p(y, z)."))
    >>> orders = AdaptiveOrders(session)
    >>> session.apply([Update("+", "p", (1, 2)), Update("+", "p", (2, 3))]).inserted["q"]
    [(1, 3)]
    >>> orders.after_epoch()
    []
    """

    session: Reader
    switches: list[Switch] = field(default_factory=list)
    looks: int = 0

    def __post_init__(self) -> None:
        self.order = ObservedOrder(self.session.backend)
        self._is_planned = False
        self._sizes: dict[str, int] = {}
        self._spent = self._look_takes = 0.0
        if any(map(len, self.session.backend.tables.values())):
            self.look()

    def after_epoch(self) -> list[Switch]:
        """Looks at the tables, if it is time to; then join orders may be others."""
        self._spent += sum(self.session.last_epoch["seconds"].values())
        is_due = not self._is_planned or self._spent * SHARE >= self._look_takes or self._drifted()
        return self.look() if is_due else []

    def _drifted(self) -> bool:
        tables = self.session.backend.tables
        return any(
            not 1 / DRIFT <= (len(tables[name]) + 100) / (size + 100) <= DRIFT
            for name, size in self._sizes.items()
            if name in tables
        )

    def look(self) -> list[Switch]:
        """Looks at the tables, and takes other orders where that is worth it."""
        start = perf_counter()
        found = self.order.look_again(self.session.epoch)
        if not self._is_planned:  # before there were rows, nothing could be known
            self._is_planned = True
            self.session.replan(self.order)
        elif found:
            self.switches = (self.switches + found)[-MOST_SWITCHES:]
            self.session.replan()
        self.looks += 1
        self._sizes = dict(self._sized())
        self._spent, self._look_takes = 0.0, perf_counter() - start
        return found

    def _sized(self) -> Iterator[tuple[str, int]]:
        """The tables that orders depend on: others may grow as they like."""
        for name, table in self.session.backend.tables.items():
            if self.order.observed.is_known(name):
                yield name, len(table)
