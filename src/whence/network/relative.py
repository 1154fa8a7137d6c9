"""Relative provenance: annotations are derivation edges, from the rows that a derivation uses to the row that it derives.

An edge says that a row follows from others; a variable is an edge from nothing but itself. An annotation of a row has all edges
that somebody knows below it. Nothing is absorbed. When variables die, the edges are walked from those that live: what is not
reached is not derivable any more, and neither is the row if it is among that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from whence.lang.types import Value
from whence.network.annotations import Algebra, Holder, Key, Names, Variable
from whence.network.codec import Reader, Texts
from whence.runtime.varints import varint

# A row that is derived, and what from: a variable, or rows; none for what is always there.
Edge = tuple[Key, Variable | tuple[Key, ...]]
Edges = frozenset[int]  # by the numbers they have in the network


class Relative:
    """Edges, each with a number so that sets of them are small."""

    def __init__(self) -> None:
        self.edges: list[Edge] = []
        self.numbers: dict[Edge, int] = {}
        self.of_variable: dict[Variable, int] = {}

    def announce(self, variable: Variable, key: Key, ends: Sequence[Value]) -> None: ...

    def hold(self, holder: Holder[Edges]) -> None: ...

    def number(self, edge: Edge) -> int:
        found = self.numbers.get(edge)
        if found is None:
            found = self.numbers[edge] = len(self.edges)
            self.edges.append(edge)
            if isinstance(edge[1], Variable):
                self.of_variable[edge[1]] = found
        return found

    def base(self, key: Key, variable: Variable) -> Edges:
        return frozenset((self.number((key, variable)),))

    def always(self, key: Key) -> Edges:
        return frozenset((self.number((key, ())),))

    def join(self, head: Key, used: Iterable[tuple[Key, Edges]]) -> Edges:
        listed = list(used)
        # Whichever row came last, it is the same derivation.
        rows = sorted((key for key, _ in listed), key=lambda key: (key[0], repr(key[1])))
        own = self.number((head, tuple(rows)))
        return frozenset((own,)).union(*(edges for _, edges in listed))

    def plus(self, left: Edges, right: Edges) -> Edges:
        return left | right

    def covers(self, known: Edges, other: Edges) -> bool:
        return other <= known

    def without(self, key: Key, annotation: Edges, dead: Collection[Variable]) -> Edges | None:
        lost = {self.of_variable[each] for each in dead if each in self.of_variable}
        if annotation.isdisjoint(lost):
            return annotation
        left = self._walk(annotation - lost)
        return left if any(self.edges[edge][0] == key for edge in left) else None

    def _walk(self, edges: Edges) -> Edges:
        """The edges whose rows can be derived with these alone."""
        missing: dict[int, int] = {}
        waiting: dict[Key, list[int]] = {}
        ready: list[int] = []
        for edge in edges:
            used = self.edges[edge][1]
            if isinstance(used, Variable) or not used:
                ready.append(edge)
                continue
            rows = set(used)
            missing[edge] = len(rows)
            for row in rows:
                waiting.setdefault(row, []).append(edge)
        derived: set[Key] = set()
        found: set[int] = set()
        while ready:
            edge = ready.pop()
            found.add(edge)
            head = self.edges[edge][0]
            if head in derived:
                continue
            derived.add(head)
            for above in waiting.get(head, ()):
                missing[above] -= 1
                if not missing[above]:
                    ready.append(above)
        return frozenset(found)

    def heard(self, annotation: Edges, teller: Algebra[Edges]) -> Edges:  # noqa: ARG002 - all nodes share it
        return annotation

    def variables(self, annotation: Edges) -> list[Variable]:
        found = (self.edges[edge][1] for edge in annotation)
        return [each for each in found if isinstance(each, Variable)]

    def show(self, annotation: Edges) -> str:
        words = []
        for (_, row), used in sorted((self.edges[edge] for edge in annotation), key=repr):
            if isinstance(used, Variable):
                source = f"{used.home}{used.serial}"
            else:
                source = ", ".join(f"({', '.join(map(str, each))})" for _, each in used)
            words.append(f"({', '.join(map(str, row))}) ← {source or 'true'}")
        return "; ".join(words)

    def book(self, names: Names, texts: Texts) -> EdgeBook:
        return EdgeBook(self, names, texts)

    def state_bytes(self, annotations: Iterable[Edges], names: Names) -> int:
        book = EdgeBook(self, names, {})
        return sum(len(book.write(each)) for each in annotations)

    def shelf(self, names: Names) -> EdgeShelf:
        return EdgeShelf(self, names)


class EdgeBook:
    """How many edges, and each: its number in the book, or 0 and the edge. An edge is its head, then 0 and a variable, or one
    more than the number of rows that it uses, and these. Rows have numbers too."""

    def __init__(self, algebra: Relative, names: Names, texts: Texts) -> None:
        self.algebra = algebra
        self.names = names
        self.texts = texts
        self.edges: dict[int, int] = {}
        self.rows: dict[Key, int] = {}

    def write(self, annotation: Edges) -> bytes:
        out = [varint(len(annotation))]
        for edge in sorted(annotation):
            number = self.edges.get(edge)
            if number is not None:
                out.append(varint(number))
                continue
            self.edges[edge] = len(self.edges) + 1
            head, used = self.algebra.edges[edge]
            out.append(b"\0" + self._row(head))
            if isinstance(used, Variable):
                out.append(b"\0" + self.names.write_place(used.home, self.texts) + varint(used.serial))
            else:
                out.append(varint(len(used) + 1))
                out += [self._row(row) for row in used]
        return b"".join(out)

    def _row(self, key: Key) -> bytes:
        number = self.rows.get(key)
        if number is not None:
            return varint(number)
        self.rows[key] = len(self.rows) + 1
        return b"\0" + self.names.write_row(key, self.texts)


class EdgeShelf:
    def __init__(self, algebra: Relative, names: Names) -> None:
        self.algebra = algebra
        self.names = names
        self.edges: list[int] = []
        self.rows: list[Key] = []

    def read(self, reader: Reader) -> Edges:
        return frozenset(self._edge(reader) for _ in range(reader.number()))

    def _edge(self, reader: Reader) -> int:
        number = reader.number()
        if not number:
            head = self._row(reader)
            count = reader.number()
            used: Variable | tuple[Key, ...]
            if count:
                used = tuple(self._row(reader) for _ in range(count - 1))
            else:
                used = Variable(self.names.read_place(reader), reader.number())
            self.edges.append(self.algebra.number((head, used)))
            number = len(self.edges)
        return self.edges[number - 1]

    def _row(self, reader: Reader) -> Key:
        number = reader.number()
        if not number:
            self.rows.append(self.names.read_row(reader))
            number = len(self.rows)
        return self.rows[number - 1]
