"""Answers that follow their documents: places of a document change, and the answer is brought up to date from these alone.

The rules of a query are kept by a `Session`, which finds the rows of the answer that come and go. Annotations follow along
recorded derivations: an annotation is the sum, over the derivations of its row, of the products of what they use, and is
worked out again where a derivation came or went or something it uses has another annotation. Trees have no cycles: this ends.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count
from typing import Generic, NamedTuple

from whence.io.changes import Changes, Update
from whence.lang.program import Atom, Const, Var
from whence.lang.types import Tuple
from whence.plan.record import Recording
from whence.semiring import Boolean, Semiring
from whence.semiring.algebra import V
from whence.session import Session
from whence.trees.compile import EDGE, INSIDE, MEMBER, compile_query
from whence.trees.core import Query
from whence.trees.nodes import Edit, Nodes
from whence.trees.shred import base_rows
from whence.trees.values import Forest, KSets, Tree

Fact = tuple[str, Tuple]
_TOP = ""  # the parent of the answer's members


class Change(NamedTuple, Generic[V]):
    """A tree in the answer, below the labels of `path`, whose annotation was `before` and is `after`; None is "not there"."""

    path: tuple[str, ...]
    tree: Tree[V]
    before: V | None
    after: V | None


class Maintained(Generic[V]):
    """The answer of a query, kept current while documents change.

    >>> from whence.semiring import Natural
    >>> from whence.trees import load_query, parse_document
    >>> natural = Natural()
    >>> document = parse_document("<a><b>1</b><b>2</b></a>", natural).forest
    >>> kept = Maintained(load_query("$d/b", natural), {"d": document}, natural)
    >>> kept.replace("d", parse_document("<a><b>1</b><b>3</b></a>", natural).forest)
    [Change(path=('b',), tree=2, before=1, after=None), Change(path=('b',), tree=3, before=None, after=1)]
    >>> kept.answer()
    {b[1^1]^1, b[3^1]^1}
    """

    def __init__(self, query: Query, documents: Mapping[str, Forest[V]], semiring: Semiring[V]) -> None:
        self.semiring = semiring
        compiled = compile_query(query)
        given = base_rows(compiled, documents, semiring)
        self.nodes = Nodes(query.documents, given[EDGE], semiring)
        plain = isinstance(semiring, Boolean)
        derived = {head for head, _ in compiled.rules} - compiled.guards
        record = () if plain else sorted(derived)
        self.session = Session(compiled.program, facts=given, wanted=(MEMBER, INSIDE), record=record)
        self._annotations = None if plain else _Annotations(self.session, semiring, given, compiled.guards)
        self._answer: _Answer[V] = _Answer(semiring)
        for relation in (MEMBER, INSIDE):
            for row in self.session.relation(relation):
                value = self._value((relation, row))
                if value is not None:  # derived, but by what adds up to zero, or multiplies to it
                    self._answer.put(_edge(relation, row), value)

    def answer(self) -> Forest[V]:
        return self._answer.children(_TOP)

    def replace(self, name: str, forest: Forest[V]) -> list[Change[V]]:
        """Another version of a document: what is different about it is applied."""
        return self.apply(self.nodes.edits_to(name, forest))

    def apply(self, edits: Iterable[Edit[V]]) -> list[Change[V]]:
        """One epoch: all edits at once. Gives what changes in the answer, outermost trees only."""
        updates: list[Update] = []
        base: dict[Fact, V | None] = {}
        for op, row, value in self.nodes.apply(edits):
            base[EDGE, row] = value
            if op != "=":
                updates.append(Update(op, EDGE, row))
        changes = self.session.apply(updates)
        touched = {
            (relation, row)
            for relation in (MEMBER, INSIDE)
            for rows in (changes.inserted, changes.deleted)
            for row in rows.get(relation, ())
        }
        if self._annotations is not None:
            touched |= {fact for fact in self._annotations.follow(changes, base) if fact[0] in (MEMBER, INSIDE)}
        return self._report(touched)

    def _value(self, fact: Fact) -> V | None:
        if self._annotations is not None:
            return self._annotations.values.get(fact)
        relation, row = fact
        return self.semiring.one if row in self.session.relation(relation) else None

    def _report(self, touched: Iterable[Fact]) -> list[Change[V]]:
        answer = self._answer
        changed = {}
        for relation, row in sorted(touched):
            edge, after = _edge(relation, row), self._value((relation, row))
            before = answer.value(edge)
            if before != after:
                changed[edge] = before, after
        # What lies inside of a tree that comes or goes is not told apart from it.
        whole = {edge[1] for edge, (before, after) in changed.items() if before is None or after is None}
        outermost = {edge: values for edge, values in changed.items() if edge[0] not in whole}
        gone = [answer.change(edge, *values) for edge, values in outermost.items() if values[1] is None]
        for edge, (_, after) in changed.items():
            answer.put(edge, after)
        return gone + [answer.change(edge, *values) for edge, values in outermost.items() if values[1] is not None]


def _edge(relation: str, row: Tuple) -> tuple[str, str, str]:
    parent, node, label = (_TOP, *row) if relation == MEMBER else row
    return str(parent), str(node), str(label)


class _Answer(Generic[V]):
    """The edges of the answer, those of its members from the top."""

    def __init__(self, semiring: Semiring[V]) -> None:
        self.sets = KSets(semiring)
        self.below: dict[str, dict[tuple[str, str], V]] = {}
        self.above: dict[str, dict[tuple[str, str], None]] = {}

    def value(self, edge: tuple[str, str, str]) -> V | None:
        parent, node, label = edge
        return self.below.get(parent, {}).get((node, label))

    def put(self, edge: tuple[str, str, str], value: V | None) -> None:
        parent, node, label = edge
        if value is None:
            del self.below[parent][node, label]
            del self.above[node][parent, label]
        else:
            self.below.setdefault(parent, {})[node, label] = value
            self.above.setdefault(node, {})[parent, label] = None

    def children(self, node: str) -> Forest[V]:
        below = self.below.get(node, {}).items()
        return self.sets.of((Tree(label, self.children(child)), value) for (child, label), value in below)

    def change(self, edge: tuple[str, str, str], before: V | None, after: V | None) -> Change[V]:
        parent, node, label = edge
        return Change(self._path(parent), Tree(label, self.children(node)), before, after)

    def _path(self, node: str) -> tuple[str, ...]:
        """The labels down to a node, one way of several if it is part of several trees."""
        labels: list[str] = []
        while node != _TOP and self.above.get(node):
            node, label = next(iter(self.above[node]))
            labels.insert(0, label)
        return tuple(labels)


Pattern = tuple[
    str, tuple[tuple[int, object], ...]
]  # a relation, and for each column where its value stands, or -1 and it


class _Annotations(Generic[V]):
    """The annotations of all facts that recorded derivations lead to."""

    def __init__(
        self, session: Session, semiring: Semiring[V], base: Mapping[str, Mapping[Tuple, V]], guards: Collection[str]
    ) -> None:
        self.semiring = semiring
        self.values: dict[Fact, V] = {(name, row): value for name, rows in base.items() for row, value in rows.items()}
        self.derivations: dict[Fact, dict[tuple[str, Tuple], list[Fact]]] = {}
        self.users: dict[Fact, dict[Fact, int]] = {}
        strata = [name for stratum in session.program.strata for name in stratum.relations]
        self.stratum = {name: at for at, name in enumerate(strata)}
        self.rules: dict[str, list[tuple[str, Pattern, list[Pattern]]]] = {}
        for name, recording in session.recordings.items():
            atoms = [each for each in recording.rule.body if isinstance(each, Atom) and each.relation not in guards]
            patterns = [_pattern(each, recording) for each in atoms]
            head = _pattern(recording.rule.head, recording)
            self.rules.setdefault(recording.relation, []).append((name, head, patterns))
        dirty = [head for table in self.rules for row in session.relation(table) for head in self._add(table, row)]
        self._work_out(dirty)

    def follow(self, changes: Changes, base: Mapping[Fact, V | None]) -> set[Fact]:
        """The facts whose annotations change with an epoch."""
        dirty: list[Fact] = []
        for table in self.rules:
            dirty += [head for row in changes.deleted.get(table, ()) for head in self._drop(table, row)]
            dirty += [head for row in changes.inserted.get(table, ()) for head in self._add(table, row)]
        for fact, value in base.items():
            if value is None:
                self.values.pop(fact, None)
            else:
                self.values[fact] = value
            dirty += self.users.get(fact, ())
        return self._work_out(dirty)

    def _firings(self, table: str, row: Tuple) -> Iterator[tuple[str, Fact, list[Fact]]]:
        for name, head, premises in self.rules[table]:
            yield name, _instance(head, row), [_instance(each, row) for each in premises]

    def _add(self, table: str, row: Tuple) -> Iterator[Fact]:
        for name, head, premises in self._firings(table, row):
            self.derivations.setdefault(head, {})[name, row] = premises
            for each in premises:
                users = self.users.setdefault(each, {})
                users[head] = users.get(head, 0) + 1
            yield head

    def _drop(self, table: str, row: Tuple) -> Iterator[Fact]:
        for name, head, premises in self._firings(table, row):
            del self.derivations[head][name, row]
            for each in premises:
                users = self.users[each]
                users[head] -= 1
                if not users[head]:
                    del users[head]
            yield head

    def _work_out(self, dirty: Iterable[Fact]) -> set[Fact]:
        """Strata in order, in each what was asked for first. Gives what has another annotation than before."""
        turn = count()
        waiting = [(self.stratum[fact[0]], next(turn), fact) for fact in dict.fromkeys(dirty)]
        heapq.heapify(waiting)
        queued = {fact for _, _, fact in waiting}
        changed = set()
        zero, times, values = self.semiring.zero, self.semiring.times, self.values
        while waiting:
            _, _, fact = heapq.heappop(waiting)
            queued.discard(fact)
            terms = []
            for premises in self.derivations.get(fact, {}).values():
                term = self.semiring.one
                for each in premises:
                    term = times(term, values.get(each, zero))
                terms.append(term)
            value = self.semiring.sum(terms)
            if values.get(fact, zero) == value:
                continue
            changed.add(fact)
            if value == zero:
                del values[fact]
            else:
                values[fact] = value
            for user in self.users.get(fact, ()):
                if user not in queued:
                    queued.add(user)
                    heapq.heappush(waiting, (self.stratum[user[0]], next(turn), user))
        return changed


def _pattern(atom: Atom, recording: Recording) -> Pattern:
    at = {variable.name: number for number, variable in enumerate(recording.variables)}
    columns: list[tuple[int, object]] = []
    for arg in atom.args:
        assert isinstance(arg, Var | Const), "heads of compiled queries hold variables and constants"
        columns.append((at[arg.name], None) if isinstance(arg, Var) else (-1, arg.value))
    return atom.relation, tuple(columns)


def _instance(pattern: Pattern, row: Tuple) -> Fact:
    relation, columns = pattern
    return relation, tuple(row[at] if at >= 0 else value for at, value in columns)  # type: ignore[misc]
