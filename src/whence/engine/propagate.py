"""Propagate-delete: maintenance over stored derivations, one of the baselines.

Every firing of a rule is stored with the rows it uses and the row it makes. A deletion takes away the firings that use a row
that went; a row without firings goes at once, one that still has some is tested: backwards to what it depends on, forwards
again from what is certain there. That test, one for all suspects of a round, is what keeps rows on a cycle from supporting
each other. Strata follow each other, and what a negation asks for is known before it is asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from whence.io.changes import Changes, Update
from whence.lang.order import binds, order_body
from whence.lang.program import Atom, Literal, Negation, Program, Rule
from whence.lang.types import Tuple
from whence.plan.wildcards import name_wildcards
from whence.reference.solve import Environment, Solver
from whence.reference.tables import TupleSet

_Fact = tuple[str, Tuple]


class _Rows(TupleSet):
    """A table that rows can be taken from."""

    def remove(self, row: Tuple) -> None:
        self.rows.discard(row)
        for columns, index in self._indexes.items():
            index[tuple([row[column] for column in columns])].remove(row)


class _Firing:
    __slots__ = ("absent", "body", "head", "key")

    def __init__(
        self, key: tuple[object, ...], head: _Fact, body: tuple[_Fact, ...], absent: tuple[_Fact, ...]
    ) -> None:
        self.key, self.head, self.body, self.absent = key, head, body, absent


class _Trigger:
    """A rule to be searched from one of its literals, whose rows are new (or, of a negation, gone)."""

    def __init__(self, rule: Rule, at: int) -> None:
        literal = rule.body[at]
        self.rule = rule
        self.is_negation = isinstance(literal, Negation)
        atom = literal.atom if isinstance(literal, Negation) else literal
        assert isinstance(atom, Atom)
        # A copy of its own: the solver knows atoms by their identity.
        self.atom = replace(atom)
        rest = [each for other, each in enumerate(rule.body) if other != at or self.is_negation]
        ordered, _ = order_body(rest, set(binds(self.atom)))
        self.steps: tuple[Literal, ...] = (self.atom, *ordered)


class PropagateDelete:
    """Keeps the views of a program without aggregates and choice current. Looks like a session as far as exchange uses one."""

    def __init__(self, program: Program, facts: Mapping[str, Iterable[Tuple]] | None = None) -> None:
        self.program = program
        self.tables: dict[str, _Rows] = {name: _Rows() for name in program.relations}
        self._base = frozenset(program.base_relations)
        self._external: set[_Fact] = set()
        self._firings: dict[tuple[object, ...], _Firing] = {}
        self._making: defaultdict[_Fact, set[_Firing]] = defaultdict(set)
        self._using: defaultdict[_Fact, set[_Firing]] = defaultdict(set)
        self._missing: defaultdict[_Fact, set[_Firing]] = defaultdict(set)
        self._solver = Solver(program, dict(self.tables))
        self._triggers: defaultdict[str, list[_Trigger]] = defaultdict(list)
        self._stratum = {name: at for at, stratum in enumerate(program.strata) for name in stratum.relations}
        for rule in program.rules:
            named = replace(rule, body=name_wildcards(rule.body))
            for at, literal in enumerate(named.body):
                if isinstance(literal, Atom | Negation):
                    trigger = _Trigger(named, at)
                    self._triggers[trigger.atom.relation].append(trigger)
        self.tested = 0  # how many rows took a derivation test
        self.apply([Update("+", name, row) for name, rows in (facts or {}).items() for row in rows])

    def apply(self, updates: Iterable[Update | tuple[str, str, Tuple]]) -> Changes:
        wanted: dict[_Fact, bool] = {}
        for given in updates:
            wanted[given[1], given[2]] = given[0] == "+"
        added: dict[_Fact, None] = {}
        gone: dict[_Fact, None] = {}
        leaving = {fact for fact, put in wanted.items() if not put and fact in self._external}
        coming = {fact for fact, put in wanted.items() if put and fact not in self._external}
        self._external = (self._external - leaving) | coming
        for at in range(len(self.program.strata)):
            lost = self._delete(at, [each for each in leaving if self._stratum[each[0]] == at], gone, added)
            gained = self._insert(at, [each for each in coming if self._stratum[each[0]] == at], gone, added)
            gone |= dict.fromkeys(each for each in lost if each not in gained)
            added |= dict.fromkeys(each for each in gained if each not in lost)
        return Changes(_by_relation(added), _by_relation(gone))

    def trial(self, updates: Iterable[Update | tuple[str, str, Tuple]]) -> Changes:
        """What `apply` would change; nothing is."""
        listed = [Update(*given) for given in updates]
        before = {(each.relation, each.tuple): (each.relation, each.tuple) in self._external for each in listed}
        changes = self.apply(listed)
        self.apply([Update("+" if was else "-", *fact) for fact, was in before.items()])
        return changes

    def relation(self, name: str) -> set[Tuple]:
        return self.tables[name].rows

    def base(self) -> dict[str, set[Tuple]]:
        found: dict[str, set[Tuple]] = {name: set() for name in self._base}
        for name, row in self._external:
            found[name].add(row)
        return found

    # -- deletion

    def _delete(
        self, at: int, leaving: Iterable[_Fact], gone: Iterable[_Fact], added: Iterable[_Fact]
    ) -> dict[_Fact, None]:
        dead: dict[_Fact, None] = {}
        broken = [firing for fact in gone for firing in self._using[fact] if self._is_in(firing, at)]
        broken += [firing for fact in added for firing in self._missing[fact] if self._is_in(firing, at)]
        affected = dict.fromkeys(leaving)
        while True:
            for firing in broken:
                if self._forget(firing):
                    affected[firing.head] = None
            present = [fact for fact in affected if fact[1] in self.tables[fact[0]].rows and fact not in self._external]
            suspects = [fact for fact in present if self._making[fact]]
            kept = self._derivable(suspects, at) if suspects else set()
            dying = [fact for fact in present if fact not in kept]
            if not dying:
                return dead
            for name, row in dying:
                self.tables[name].remove(row)
            dead |= dict.fromkeys(dying)
            broken = [firing for fact in dying for firing in self._using[fact]]
            broken = [firing for firing in broken if self._is_in(firing, at)]
            affected = {}

    def _is_in(self, firing: _Firing, at: int) -> bool:
        return self._stratum[firing.head[0]] == at

    def _forget(self, firing: _Firing) -> bool:
        if self._firings.pop(firing.key, None) is None:
            return False
        self._making[firing.head].discard(firing)
        for fact in firing.body:
            self._using[fact].discard(firing)
        for fact in firing.absent:
            self._missing[fact].discard(firing)
        return True

    def _derivable(self, suspects: Iterable[_Fact], at: int) -> set[_Fact]:
        """Which of them follow from what is outside of the stratum or was put in."""
        reached = dict.fromkeys(suspects)
        waiting = list(reached)
        open_bodies: dict[_Firing, int] = {}
        users: defaultdict[_Fact, list[_Firing]] = defaultdict(list)
        certain: set[_Fact] = set()
        ready: list[_Fact] = []
        while waiting:
            fact = waiting.pop()
            self.tested += 1
            if fact in self._external:
                ready.append(fact)
                continue
            for firing in self._making[fact]:
                inner = {each for each in firing.body if self._stratum[each[0]] == at}
                open_bodies[firing] = len(inner)
                if not inner:
                    ready.append(fact)
                for each in inner:
                    users[each].append(firing)
                    if each not in reached:
                        reached[each] = None
                        waiting.append(each)
        while ready:
            fact = ready.pop()
            if fact in certain:
                continue
            certain.add(fact)
            for firing in users[fact]:
                open_bodies[firing] -= 1
                if not open_bodies[firing]:
                    ready.append(firing.head)
        return certain

    # -- insertion

    def _insert(
        self, at: int, coming: Iterable[_Fact], gone: Iterable[_Fact], added: Iterable[_Fact]
    ) -> dict[_Fact, None]:
        new: dict[_Fact, None] = {}
        delta = [fact for fact in coming if self.tables[fact[0]].add(fact[1])]
        new |= dict.fromkeys(delta)
        first = [(fact, False) for fact in (*added, *delta)] + [(fact, True) for fact in gone]
        while first:
            heads = [head for firing in self._fire(first, at) if (head := self._remember(firing)) is not None]
            grown = [head for head in dict.fromkeys(heads) if self.tables[head[0]].add(head[1])]
            new |= dict.fromkeys(grown)
            first = [(fact, False) for fact in grown]
        return new

    def _fire(self, changed: Iterable[tuple[_Fact, bool]], at: int) -> Iterator[_Firing]:
        rows: defaultdict[tuple[str, bool], list[Tuple]] = defaultdict(list)
        for (name, row), was_gone in changed:
            rows[name, was_gone].append(row)
        for (name, was_gone), listed in rows.items():
            for trigger in self._triggers[name]:
                if trigger.is_negation == was_gone and self._stratum[trigger.rule.head.relation] == at:
                    self._solver.rule, self._solver.new_atom = trigger.rule, trigger.atom
                    self._solver.new = {name: TupleSet(listed)}
                    for environment in self._solver.solutions(trigger.steps, {}):
                        yield self._firing(trigger.rule, environment)

    def _firing(self, rule: Rule, environment: Environment) -> _Firing:
        def fact(atom: Atom) -> _Fact:
            return atom.relation, tuple(self._solver.value(arg, environment) for arg in atom.args)

        body = tuple(fact(each) for each in rule.body if isinstance(each, Atom))
        absent = tuple(fact(each.atom) for each in rule.body if isinstance(each, Negation))
        head = fact(rule.head)
        return _Firing((rule.name, head, body), head, body, absent)

    def _remember(self, firing: _Firing) -> _Fact | None:
        if firing.key in self._firings:
            return None
        self._firings[firing.key] = firing
        self._making[firing.head].add(firing)
        for fact in firing.body:
            self._using[fact].add(firing)
        for fact in firing.absent:
            self._missing[fact].add(firing)
        return firing.head


def _by_relation(facts: Iterable[_Fact]) -> dict[str, list[Tuple]]:
    found: dict[str, list[Tuple]] = {}
    for name, row in facts:
        found.setdefault(name, []).append(row)
    return found
