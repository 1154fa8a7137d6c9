"""How an event walks: rules fire at its place with the slow tuples of that moment, and what they make is the next event.

`Walker.fire` is one step, which nodes of a network take by themselves; `Walker.run` is the whole run in one go, and the
definition of what happened that every store has to give back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from whence.events.program import EventProgram, EventRule
from whence.lang.program import Atom, Literal
from whence.lang.types import Tuple, Value
from whence.lang.undefined import Undefined
from whence.provenance.graph import Derivation, Fact
from whence.provenance.proofs import Proof
from whence.reference.solve import Solver
from whence.reference.tables import TupleSet

HOPS = 256
FIRINGS = 100_000  # of one event: one that forks at every hop meets this first


@dataclass(frozen=True, slots=True)
class Firing:
    """One rule that fired: `slow` are the tuples it looked up, in the order of its body."""

    rule: str
    head: Fact
    event: Fact
    slow: tuple[Fact, ...]


class Hop(NamedTuple):
    """A step of a run: what fired, the tree of what it made, and which step made its event, if one did."""

    firing: Firing
    tree: Proof
    parent: int | None


class EndlessRun(ValueError):
    """A run that met the hop limit, with the places that it went round."""

    def __init__(self, event: Fact, places: list[Value]) -> None:
        self.event = event
        self.loop = _loop(places)
        way = " -> ".join(str(place) for place in self.loop)
        super().__init__(f"the event was still on its way after {len(places) - 1} hops; it went round: {way}")

    @classmethod
    def of(cls, tree: Proof, events: EventProgram) -> EndlessRun:
        spine = _spine(tree)
        return cls(spine[0], [events.place(*each) for each in spine])


class SlowTable(TupleSet):
    """A slow relation as it is now."""

    def remove(self, row: Tuple) -> bool:
        if row not in self.rows:
            return False
        self.rows.remove(row)
        for columns, index in self._indexes.items():
            index[tuple([row[column] for column in columns])].remove(row)
        return True


class _Passing(TupleSet):
    """The one event that a rule looks at."""

    def __init__(self, row: Tuple) -> None:
        super().__init__((row,))
        self.row = row

    def lookup(self, columns: tuple[int, ...], key: tuple[Value, ...]) -> Collection[Tuple]:
        return (self.row,) if all(self.row[at] == value for at, value in zip(columns, key, strict=True)) else ()


class Walker:
    """Fires the rules of an event program on its slow relations as they are at the moment."""

    def __init__(self, events: EventProgram, slow: Mapping[str, Iterable[Tuple]] | None = None) -> None:
        self.events = events
        self.slow = {name: SlowTable((slow or {}).get(name, ())) for name in events.slow}
        self._solver = Solver(events.program, dict(self.slow))
        self._checks = {rule.name: _with_own_relations(rule) for rule in events.rules}

    def fire(self, event: Fact) -> list[Firing]:
        """All that the event sets off at its place."""
        self._solver.tables[event.relation] = _Passing(event.tuple)
        found = []
        for rule in self.events.by_event.get(event.relation, ()):
            for head, slow in self._firings(rule, rule.body, rule.slow):
                found.append(Firing(rule.name, head, event, slow))
        return found

    def solver_for(self, event: Fact, rule: EventRule) -> Solver:
        """What tells which literals of a rule the event satisfies."""
        self._solver.tables[event.relation] = _Passing(event.tuple)
        self._solver.rule = rule.rule
        return self._solver

    def again(self, name: str, event: Fact, slow: tuple[Fact, ...]) -> Fact | None:
        """What a rule makes of an event and the slow tuples it used, or None if it does not fire on them."""
        rule, body, atoms = self._checks[name]
        if len(slow) != len(atoms) or event.relation != rule.event.relation:
            return None
        if any(fact.relation != atom.relation for fact, atom in zip(slow, rule.slow, strict=True)):
            return None
        for atom, fact in zip(atoms, slow, strict=True):
            self._solver.tables[atom.relation] = _Passing(fact.tuple)
        self._solver.tables[event.relation] = _Passing(event.tuple)
        return next((head for head, _ in self._firings(rule, body, atoms)), None)

    def _firings(
        self, rule: EventRule, body: tuple[Literal, ...], slow: tuple[Atom, ...]
    ) -> Iterator[tuple[Fact, tuple[Fact, ...]]]:
        solver = self._solver
        solver.rule = rule.rule
        for environment in solver.solutions(body, {}):
            try:
                head = tuple(solver.value(arg, environment) for arg in rule.head.args)
            except Undefined:
                continue
            used = (tuple(solver.value(arg, environment) for arg in atom.args) for atom in slow)
            facts = tuple(Fact(atom.relation, row) for atom, row in zip(rule.slow, used, strict=True))
            yield Fact(rule.head.relation, head), facts

    def run(self, event: Fact, *, hops: int = HOPS) -> list[Hop]:
        """All that an event sets off, step by step, each with the tree that it made. Raises EndlessRun."""
        found: list[Hop] = []
        pending: deque[tuple[Fact, Proof, int | None]] = deque([(event, Proof(event), None)])
        while pending:
            fact, tree, parent = pending.popleft()
            if tree.height > hops or len(found) > FIRINGS:
                raise EndlessRun.of(tree, self.events)
            for firing in self.fire(fact):
                made = grow(tree, firing)
                if firing.head.relation in self.events.by_event:
                    pending.append((firing.head, made, len(found)))
                found.append(Hop(firing, made, parent))
        return found

    def outputs(self, event: Fact, *, hops: int = HOPS) -> list[Proof]:
        """The trees of the outputs of an event."""
        return [hop.tree for hop in self.run(event, hops=hops) if hop.firing.head.relation in self.events.outputs]


def grow(tree: Proof, firing: Firing) -> Proof:
    """The tree of what a rule made, given the tree of its event."""
    leaves = tuple(Proof(fact) for fact in firing.slow)
    made = Derivation(firing.rule, firing.head, (firing.event, *firing.slow))
    return Proof(firing.head, made, (tree, *leaves), tree.height + 1)


def _with_own_relations(rule: EventRule) -> tuple[EventRule, tuple[Literal, ...], tuple[Atom, ...]]:
    """The rule with a relation for each slow atom, so that each can be shown the one tuple it used."""
    own = {id(atom): replace(atom, relation=f"{atom.relation}#{at}") for at, atom in enumerate(rule.slow)}
    return rule, tuple(own.get(id(each), each) for each in rule.body), tuple(own.values())


def _spine(tree: Proof) -> list[Fact]:
    """The events of a tree, the first one first."""
    found = [tree.fact]
    while tree.premises:
        tree = tree.premises[0]
        found.append(tree.fact)
    return found[::-1]


def _loop(places: list[Value]) -> list[Value]:
    """The last round of a walk: from where it was last at its last place, to the end."""
    before = [at for at, place in enumerate(places[:-1]) if place == places[-1]]
    return places[before[-1] :] if before else places[-10:]
