"""How an event walks: rules fire at its place with the slow tuples of that moment, and what they make is the next event.

`Walker.fire` is one step, which nodes of a network take by themselves; `Walker.run` is the whole run in one go, and the
definition of what happened that every store has to give back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from whence.events.program import EventProgram, EventRule
from whence.lang.functors import Undefined
from whence.lang.program import Atom, Literal
from whence.lang.types import Tuple, Value
from whence.provenance.graph import Derivation, Fact
from whence.provenance.proofs import Proof
from whence.reference.solve import Solver
from whence.reference.tables import Table

HOPS = 1_000


@dataclass(frozen=True, slots=True)
class Firing:
    """One rule that fired: `slow` are the tuples it looked up, in the order of its body."""

    rule: str
    head: Fact
    event: Fact
    slow: tuple[Fact, ...]


class EndlessRun(ValueError):
    """A run that met the hop limit, with the places that it went round."""

    def __init__(self, event: Fact, places: list[Value], hops: int) -> None:
        self.event = event
        self.loop = _loop(places)
        way = " -> ".join(str(place) for place in self.loop)
        super().__init__(f"the event was still on its way after {hops} hops; it went round: {way}")


class SlowTable(Table):
    """A slow relation as it is now."""

    def remove(self, row: Tuple) -> bool:
        if row not in self.rows:
            return False
        self.rows.remove(row)
        for columns, index in self._indexes.items():
            index[tuple([row[column] for column in columns])].remove(row)
        return True


class _Passing(Table):
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

    def run(
        self, event: Fact, *, hops: int = HOPS, on_firing: Callable[[Firing], object] | None = None
    ) -> Iterator[tuple[Fact, Proof]]:
        """Every output of an event, with its tree, as it comes. Raises EndlessRun."""
        pending = deque([(event, Proof(event), 0)])
        while pending:
            fact, proof, height = pending.popleft()
            if height > hops:
                raise EndlessRun(event, [self.events.place(*each) for each in _spine(proof)], hops)
            for firing in self.fire(fact):
                if on_firing is not None:
                    on_firing(firing)
                made = grow(proof, firing)
                if firing.head.relation in self.events.outputs:
                    yield firing.head, made
                if firing.head.relation in self.events.by_event:
                    pending.append((firing.head, made, height + 1))


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
