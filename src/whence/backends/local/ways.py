"""Rows of a recursion through UNION ALL, followed back along the ways by which they were derived: does one go round?

A row that comes from an equal row, however many steps before, comes from it by the same steps again, and so without end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from whence.lang.types import AdtKind, Tuple
from whence.lang.ways import Parent, joined_columns, parents_of

if TYPE_CHECKING:
    from whence.backends.local.backend import LocalBackend

_STARTS = 2000
_LEAST_STEPS = 20_000
_Place = tuple[str, int]  # a relation, and a row of it


class _Rows:
    """The rows of one relation, by the words of their ways: those of one way differ in other columns."""

    def __init__(self, backend: LocalBackend, name: str) -> None:
        table = backend.table(name)
        self.kinds = backend.kinds[name]
        self.lines = table.keys(table.ids())
        ways = np.ascontiguousarray(self.lines[:, -1])
        self.cells = backend.dictionary.cells_of(self.kinds[-1])
        self.opened = self.cells.open(ways)
        self.sizes = self.cells.sizes(ways)
        self.of_way: dict[int, list[int]] = {}
        for at, way in enumerate(ways.tolist()):
            self.of_way.setdefault(way, []).append(at)


class Ways:
    """Those of relations that depend on each other, as they are now."""

    def __init__(self, backend: LocalBackend, names: Sequence[str]) -> None:
        self._backend = backend
        tagged = [name for name in names if isinstance(backend.kinds[name][-1], AdtKind)]
        self._rows = {name: _Rows(backend, name) for name in tagged}
        self._parents = parents_of(backend.program, tagged)

    def round_trip(self, *, joined: bool) -> list[tuple[str, Tuple]]:
        """Rows, without their ways, each derived from the one before, the last equal to the first; or none.

        Or equal only in the columns that are `joined` with others.
        """
        columns = {
            name: joined_columns(self._backend.program, name) if joined else list(range(len(rows.kinds) - 1))
            for name, rows in self._rows.items()
        }
        for name, rows in self._rows.items():
            steps = _LEAST_STEPS + len(rows.lines) // 10
            # The longest ways have been longest under way; where they are short and many, some of many go round.
            for at in np.argsort(-rows.sizes, kind="stable")[:_STARTS].tolist():
                for choose in (max, min):
                    path, found = self._back((name, at), columns, choose)
                    if found:
                        return [self._shown(*place) for place in reversed(path)]
                    steps -= len(path)
                if steps < 0:
                    break
        return []

    def _back(
        self, place: _Place, columns: Mapping[str, Sequence[int]], choose: Callable[..., _Place]
    ) -> tuple[list[_Place], bool]:
        """The part of a row's way between two rows that are equal in these columns, last first; or all of it, if none are."""
        met: dict[object, int] = {}
        path: list[_Place] = []
        following: _Place | None = place
        while following is not None:
            name, at = following
            path.append(following)
            key = name, tuple(self._rows[name].lines[at, columns[name]].tolist())
            if key in met:
                return path[met[key] :], True
            met[key] = len(path) - 1
            before = self._before(following)
            following = choose(before, key=self._size) if before else None
        return path, False

    def _size(self, place: _Place) -> int:
        return int(self._rows[place[0]].sizes[place[1]])

    def _before(self, place: _Place) -> list[_Place]:
        """The rows of the recursion that a row was derived from, as far as that is sure."""
        name, at = place
        rows = self._rows[name]
        branch, *parts = rows.opened[at].tolist()
        row = rows.lines[at].tolist()
        found: list[_Place] = []
        for parent in self._parents.get((name, rows.cells.names[branch]), ()):
            words = [None if each is None else (parts if each.in_way else row)[each.at] for each in parent.columns]
            likely = self._with(parent, words)
            if len(likely) == 1:
                found.append((parent.relation, likely[0]))
        return found

    def _with(self, parent: Parent, words: Sequence[int | None]) -> list[int]:
        rows = self._rows[parent.relation]
        known = [(at, word) for at, word in enumerate(words) if word is not None]
        way = words[-1]
        assert way is not None
        return [each for each in rows.of_way.get(way, ()) if all(rows.lines[each, at] == word for at, word in known)]

    def _shown(self, name: str, at: int) -> tuple[str, Tuple]:
        rows = self._rows[name]
        (row,) = self._backend.dictionary.decode_rows(rows.lines[at : at + 1, :-1], rows.kinds[:-1])
        return name, row
