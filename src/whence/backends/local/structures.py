"""Records, branches and lists as words and back, level by level: values may be nested deeper than Python can recurse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whence.backends.local.arrays import Lines
from whence.backends.local.cells import NIL, RECORD, SATURATED, Cells
from whence.lang.deep import FEW, compound
from whence.lang.types import AdtKind, Kind, ListKind, Tuple, Value, Variant, is_plain

if TYPE_CHECKING:
    from whence.backends.local.words import Dictionary, Words


class _Opened(NamedTuple):
    """Values of one kind on their way to words or back. For lists `lines` are the items, and `lengths` says how many of each."""

    kind: Kind
    words: Words
    lines: Lines
    lengths: Words


def encode_structures(dictionary: Dictionary, values: Sequence[Value], kind: Kind, *, is_new: bool) -> Words:
    """Those that are not known yet get words if they may be new, and -1 otherwise."""
    level: dict[Kind, list[Value]] = {kind: list(values)}
    levels: list[list[_Part]] = []
    while level:
        below: dict[Kind, list[Value]] = {}
        levels.append([_Part(each, found, dictionary.cells_of(each), below) for each, found in level.items()])
        level = below
    words: dict[Kind, Words] = {}
    for parts in reversed(levels):
        words = {each.kind: each.intern(dictionary, words, is_new=is_new) for each in parts}
    return words[kind]


def decode_structures(dictionary: Dictionary, words: Words, kind: Kind) -> list[Value]:
    level: dict[Kind, list[Words]] = {kind: [words]}
    levels: list[list[_Opened]] = []
    while level:
        opened = [_open(dictionary, each, np.unique(np.concatenate(found))) for each, found in level.items()]
        levels.append(opened)
        level = {}
        for each in opened:
            for inner, column in _inside(dictionary, each):
                if len(column):
                    level.setdefault(inner, []).append(column)
    known: dict[Kind, dict[int, Value]] = {}
    for opened in reversed(levels):
        for each in opened:
            known.setdefault(each.kind, {}).update(_closed(dictionary, each, known))
    values = known.get(kind, {})
    return [values[word] for word in words.tolist()]


def _open(dictionary: Dictionary, kind: Kind, words: Words) -> _Opened:
    cells = dictionary.cells_of(kind)
    if isinstance(kind, ListKind):
        items, lengths = cells.open_lists(words)
        return _Opened(kind, words, items.reshape(-1, 1), lengths)
    return _Opened(kind, words, cells.open(words), words)


def _inside(dictionary: Dictionary, opened: _Opened) -> Iterable[tuple[Kind, Words]]:
    """The columns of parts that are structures themselves."""
    if isinstance(opened.kind, ListKind):
        if not is_plain(opened.kind.element):
            yield opened.kind.element, opened.lines[:, 0]
        return
    for tag, kinds in enumerate(dictionary.cells_of(opened.kind).parts):
        if not all(map(is_plain, kinds)):
            own = opened.lines[opened.lines[:, 0] == tag]
            for at, each in enumerate(kinds, 1):
                if not is_plain(each):
                    yield each, own[:, at]


def _closed(
    dictionary: Dictionary, opened: _Opened, known: dict[Kind, dict[int, Value]]
) -> Iterable[tuple[int, Value]]:
    """The values of opened cells, by word, given those of their parts."""

    def column(words: Words, kind: Kind) -> list[Value]:
        if is_plain(kind):
            return dictionary.decode_column(words, kind)
        values = known[kind] if len(words) else {}
        return [values[word] for word in words.tolist()]

    if isinstance(opened.kind, ListKind):
        items = column(opened.lines[:, 0], opened.kind.element)
        ends = np.cumsum(opened.lengths).tolist()
        is_flat = is_plain(opened.kind.element)
        for word, end, length in zip(opened.words.tolist(), ends, opened.lengths.tolist(), strict=True):
            made = items[end - length : end]
            yield word, tuple(made) if is_flat and length <= FEW else compound(made)
        return
    cells = dictionary.cells_of(opened.kind)
    for tag, kinds in enumerate(cells.parts):
        chosen = opened.lines[:, 0] == tag
        words = opened.words[chosen].tolist()
        columns = [column(opened.lines[chosen, at], kind) for at, kind in enumerate(kinds, 1)]
        rows: Iterable[Tuple] = zip(*columns, strict=True) if columns else [()] * len(words)
        if len(kinds) > FEW or not all(map(is_plain, kinds)):
            rows = map(compound, rows)
        if isinstance(opened.kind, AdtKind):
            name = cells.names[tag]
            yield from ((word, Variant(name, row)) for word, row in zip(words, rows, strict=True))
        elif tag == RECORD:
            yield from zip(words, rows, strict=True)
        else:
            yield from ((word, None) for word in words)


class _Part:
    """Values of one kind at one depth; what is inside them goes to the lists of `below`."""

    def __init__(self, kind: Kind, values: list[Value], cells: Cells, below: dict[Kind, list[Value]]) -> None:
        self.kind, self.cells, self.count = kind, cells, len(values)
        self.groups: list[tuple[int, NDArray[np.intp], list[tuple[Kind, list[Value], int]]]] = []
        self.lengths: Words = np.empty(0, dtype=np.int64)
        if isinstance(kind, ListKind):
            self.lengths = np.array([len(value) for value in values], dtype=np.int64)  # type: ignore[arg-type]
            items = [item for value in values for item in value]  # type: ignore[union-attr]
            self.items = self._column(items, kind.element, below)
            return
        tagged: dict[int, tuple[list[int], list[Tuple]]] = {}
        for at, value in enumerate(values):
            if isinstance(value, Variant):
                tag, parts = cells.branches[value.branch], value.args
            else:
                tag, parts = (NIL, ()) if value is None else (RECORD, value)  # type: ignore[assignment]
            places, rows = tagged.setdefault(tag, ([], []))
            places.append(at)
            rows.append(parts)
        for tag, (places, rows) in tagged.items():
            columns = [self._column([row[at] for row in rows], each, below) for at, each in enumerate(cells.parts[tag])]
            self.groups.append((tag, np.array(places, dtype=np.intp), columns))

    def _column(self, values: list[Value], kind: Kind, below: dict[Kind, list[Value]]) -> tuple[Kind, list[Value], int]:
        """A column of parts: where in the lists below it begins, if it goes there."""
        if is_plain(kind):
            return kind, values, 0
        listed = below.setdefault(kind, [])
        begin = len(listed)
        listed += values
        return kind, values, begin

    def intern(self, dictionary: Dictionary, below: dict[Kind, Words], *, is_new: bool) -> Words:
        if isinstance(self.kind, ListKind):
            sizes = np.zeros(len(self.items[1]), dtype=np.int64)
            items = self._words(self.items, dictionary, below, sizes, is_new=is_new)
            return self.cells.intern_lists(items, sizes.astype(np.int32), self.lengths, is_new=is_new)
        words = np.empty(self.count, dtype=np.int64)
        for tag, places, columns in self.groups:
            lines: Lines = np.zeros((len(places), self.cells.columns), dtype=np.int64)
            sizes = np.full(len(places), self.cells.base_size(tag), dtype=np.int64)
            lines[:, 0] = tag
            for at, column in enumerate(columns, 1):
                lines[:, at] = self._words(column, dictionary, below, sizes, is_new=is_new)
            halved = np.minimum(sizes, SATURATED).astype(np.int32)
            words[places] = self.cells.intern(lines, halved, is_new=is_new)
        return words

    def _words(
        self,
        column: tuple[Kind, list[Value], int],
        dictionary: Dictionary,
        below: dict[Kind, Words],
        sizes: Words,
        *,
        is_new: bool,
    ) -> Words:
        """The words of a column of parts, whose sizes are added up."""
        kind, values, begin = column
        if is_plain(kind):
            return dictionary.encode_primitives(values, kind, is_new=is_new)
        words = below[kind][begin : begin + len(values)]
        if is_new:
            sizes += dictionary.cells_of(kind).sizes(words)
        return words
