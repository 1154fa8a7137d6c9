"""Relations of a session as the reference's solver reads them: rows looked up by some of their columns, through indexes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Set

import numpy as np

from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.backend import LocalBackend
from whence.lang.order import binds, is_ready
from whence.lang.program import Aggregation, Atom, Generator, Literal
from whence.lang.types import Tuple, Value
from whence.reference.solve import Environment, is_known
from whence.reference.tables import TupleSet

_PORTION = 4096


class LiveTable(TupleSet):
    """A relation of a session for the reference's solver, which only looks rows up. Indexes are the backend's own."""

    def __init__(self, backend: LocalBackend, relation: str) -> None:
        super().__init__()
        self.backend = backend
        self.name = relation
        self.kinds = backend.kinds[relation]
        self.table = backend.table(relation)
        self.columns = tuple(range(self.table.arity))
        self.numbers: dict[Tuple, int] = {}
        self.added: Set[Tuple] = frozenset()
        self.gone: Set[Tuple] = frozenset()

    def __len__(self) -> int:
        return len(self.table)

    def lookup(self, columns: tuple[int, ...], key: tuple[Value, ...]) -> Collection[Tuple]:
        if len(columns) == self.table.arity:
            return (key,) if self.has(key) else ()
        there = self._there(columns, key)
        if not self.added and not self.gone:
            return there
        supposed = [row for row in self.added if tuple([row[column] for column in columns]) == key]
        return [*(row for row in there if row not in self.gone), *supposed]

    def has(self, row: Tuple) -> bool:
        """Whether the row is there, or would be."""
        return row in self.added or (row not in self.gone and self.row(row) >= 0)

    def some(self, most: int) -> list[Tuple]:
        """Some of the rows."""
        rows = self.backend.decode(self.name, self.table.ids()[:most])
        return [*self.added, *(row for row in rows if row not in self.gone)]

    def _there(self, columns: tuple[int, ...], key: tuple[Value, ...]) -> Collection[Tuple]:
        words = self._words(columns, key)
        if words is None:
            return ()
        if not columns:
            return _AllRows(self.backend, self.name, self.table.ids())
        return self.backend.decode(self.name, self.table.index(columns).probe(words, 0)[1])

    def row(self, row: Tuple) -> int:
        """The row's number, -1 if it is not there, whatever is supposed."""
        number = self.numbers.get(row)
        if number is None:
            words = self._words(self.columns, row)
            number = self.numbers[row] = -1 if words is None else int(self.table.find(words)[0])
        return number

    def _words(self, columns: tuple[int, ...], key: tuple[Value, ...]) -> Lines | None:
        """The key encoded; None if it holds a value that no row holds."""
        words: Lines = np.empty((1, len(columns)), dtype=np.int64)
        dictionary = self.backend.dictionary
        for at, (column, value) in enumerate(zip(columns, key, strict=True)):
            word = dictionary.find(value, self.kinds[column])
            if word is None:
                return None
            words[0, at] = word
        return words


class _AllRows(Collection[Tuple]):
    """The rows of a relation, made as they are asked for: who wants a few of many does not wait for all."""

    def __init__(self, backend: LocalBackend, relation: str, ids: Ids) -> None:
        self._backend, self._relation, self._ids = backend, relation, ids

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[Tuple]:
        for start in range(0, len(self._ids), _PORTION):
            yield from self._backend.decode(self._relation, self._ids[start : start + _PORTION])

    def __contains__(self, row: object) -> bool:
        return row in list(self)


def ordered_for_search(body: Iterable[Literal], bound: Iterable[str], size: Callable[[str], int]) -> Iterator[Literal]:
    """Tests as soon as they can be made, and next the atom that promises the fewest rows; `size` is that of a relation."""
    known: dict[str, Value] = dict.fromkeys(bound)
    waiting = list(body)
    while waiting:
        ready = [literal for literal in waiting if is_ready(literal, known.keys())]
        best = min(ready, key=lambda literal: promise(literal, known, size))
        yield best
        waiting.remove(best)
        known |= dict.fromkeys(binds(best))


def promise(literal: Literal, known: Environment, size: Callable[[str], int]) -> float:
    """What to look at next, with these variables known: the less, the better."""
    if not isinstance(literal, Atom):
        # Searching a range or a group costs more than a test, but less than most relations.
        return 2.0 if isinstance(literal, Aggregation | Generator) else 0.0
    free = sum(not is_known(arg, known) for arg in literal.args)
    return 1.0 if free == 0 else 2.0 + float(size(literal.relation) ** (free / len(literal.args)))
