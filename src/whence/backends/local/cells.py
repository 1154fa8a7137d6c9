"""Records, branches and lists as words: each is made once, so that equal words are equal values.

A value is a *cell*: a line with the number of its constructor and the words of its parts, found by value. Its word is the number
of the line. A list is the empty list, or a cell of its first item and the rest, so that lists share their ends and a longer list
costs one cell. Behind its columns a cell has its size, which is how many parts it is made of if none were shared, and
its flags: the lines of cells that no row holds any more are used again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whence.backends.local import hashing
from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.hashing import (
    CAPACITY,
    COLUMNS,
    EMPTY,
    FILLED,
    FULL,
    LIMIT,
    LINES,
    MASK,
    OWN,
    SLOTS,
    USED,
    WIDTH,
    Halves,
    HashedLines,
    find_line,
    hash_at,
    word_at,
)
from whence.backends.local.memory import Growing, address_of, compiled, halves_at, kernel, words_at
from whence.engine.protocol import FREE
from whence.lang.sizes import LARGEST_STRUCTURE, refuse_structure
from whence.lang.types import AdtKind, Kind, ListKind, RecordKind, Types

Words = NDArray[np.int64]

FREE_LINES, FREE_COUNT = OWN, OWN + 1
SIZE, FLAGS = 2, 1  # halves before the line's end
OWN_WORDS = OWN_HALVES = 2
SATURATED = 1 << 30
# Constructors. Those of a data type are numbered as its branches are met.
NIL, RECORD = 0, 1
NO_ITEM, ITEM = 0, 1


@compiled
def has_room(table: Any, more: int) -> bool:
    return table[FILLED] + more <= table[LIMIT] and table[FREE_COUNT] + table[CAPACITY] - table[USED] >= more  # type: ignore[no-any-return]


@compiled
def add_cell(table: Any, words: Any, key: int, hashed: int, size: int) -> int:
    """A cell that is not there, for which there must be room."""
    lines, slots, mask = halves_at(table[LINES]), halves_at(table[SLOTS]), table[MASK]
    slot = hashed & mask
    while slots[slot] != EMPTY:
        slot = (slot + 1) & mask
    if table[FREE_COUNT] > 0:
        table[FREE_COUNT] -= 1
        row = np.int64(halves_at(table[FREE_LINES])[table[FREE_COUNT]])
    else:
        row = table[USED]
        table[USED] += 1
    table[FILLED] += 1
    slots[slot] = np.int32((hashed & (FULL ^ mask)) | row)
    base = row * table[WIDTH]
    for half in range(2 * table[COLUMNS]):
        lines[base + half] = words[key + half]
    lines[base + table[WIDTH] - SIZE] = size
    lines[base + table[WIDTH] - FLAGS] = 0
    return row  # type: ignore[return-value]


@compiled
def size_at(table: Any, row: int) -> int:
    return np.int64(halves_at(table[LINES])[(row + 1) * table[WIDTH] - SIZE])  # type: ignore[return-value]


@kernel("int lines ids int words")
def make_cells(address: int, keys: Any, sizes: Any, is_new: int, out: Any) -> None:
    """The cells with these words: made, for which there must be room, or -1 where there is none."""
    table = words_at(address)
    words, columns = halves_at(keys.ctypes.data), table[COLUMNS]
    for at in range(keys.shape[0]):
        key = 2 * columns * at
        hashed = hash_at(words, key, columns, 2)
        row = find_line(table, words, key, hashed)
        if row < 0 and is_new:
            row = add_cell(table, words, key, hashed, np.int64(sizes[at]))
        out[at] = row


@kernel("int words ids words int words")
def make_lists(address: int, items: Any, sizes: Any, lengths: Any, is_new: int, out: Any) -> None:
    """The lists whose items follow each other in `items`: made, for which there must be room, or -1 where there is none."""
    table = words_at(address)
    columns = table[COLUMNS]
    key = np.zeros(columns, dtype=np.int64)
    words = halves_at(key.ctypes.data)
    end = np.int64(0)
    for at in range(len(lengths)):
        start = end
        end += lengths[at]
        size = np.int64(1)
        key[0], key[1], key[2] = NO_ITEM, 0, 0
        hashed = hash_at(words, 0, columns, 2)
        row = find_line(table, words, 0, hashed)
        if row < 0 and is_new:
            row = add_cell(table, words, 0, hashed, size)
        for item in range(end - 1, start - 1, -1):
            size = min(size + 1 + sizes[item], np.int64(SATURATED))
            key[0], key[1], key[2] = ITEM, items[item], row
            hashed = hash_at(words, 0, columns, 2)
            row = find_line(table, words, 0, hashed)
            if row < 0 and is_new:
                row = add_cell(table, words, 0, hashed, size)
        out[at] = row


@kernel("int words words")
def measure_lists(address: int, lists: Any, lengths: Any) -> int:
    """How many items lists have, and all of them together."""
    table = words_at(address)
    lines, width, total = halves_at(table[LINES]), table[WIDTH], 0
    for at in range(len(lists)):
        row, length = lists[at], 0
        while word_at(lines, row * width, 0, 2) == ITEM:
            row = word_at(lines, row * width, 2, 2)
            length += 1
        lengths[at] = length
        total += length
    return total


@kernel("int words words")
def read_lists(address: int, lists: Any, items: Any) -> None:
    """The items of lists, one list after the other."""
    table = words_at(address)
    lines, width, end = halves_at(table[LINES]), table[WIDTH], 0
    for at in range(len(lists)):
        row = lists[at]
        while word_at(lines, row * width, 0, 2) == ITEM:
            items[end] = word_at(lines, row * width, 1, 2)
            row = word_at(lines, row * width, 2, 2)
            end += 1


# What a part of a constructor is, for those who mark: a number, a symbol, or from here on a cell of the kind with this number.
A_NUMBER, A_SYMBOL, A_CELL = range(3)


@kernel("words int lines lines words")
def mark_cells(words: Any, kind: int, kinds: Any, parts: Any, symbols: Any) -> None:
    """Marks cells of one kind and all that is inside them.

    A line of `kinds` is the address of a kind's cells, that of its marks, and where its constructors begin in `parts`.
    """
    size = 1024
    stack = np.empty((size, 2), dtype=np.int64)
    for at in range(len(words)):
        stack[0, 0], stack[0, 1], top = kind, words[at], 1
        while top:
            top -= 1
            of, row = stack[top, 0], stack[top, 1]
            marks = halves_at(kinds[of, 1])
            if marks[row]:
                continue
            marks[row] = 1
            table = words_at(kinds[of, 0])
            lines, base = halves_at(table[LINES]), row * table[WIDTH]
            constructor = kinds[of, 2] + word_at(lines, base, 0, 2)
            if top + parts.shape[1] > size:
                larger = np.empty((2 * size + parts.shape[1], 2), dtype=np.int64)
                for each in range(top):
                    larger[each, 0], larger[each, 1] = stack[each, 0], stack[each, 1]
                stack, size = larger, len(larger)
            for column in range(1, table[COLUMNS]):
                part = parts[constructor, column]
                if part == A_SYMBOL:
                    symbols[word_at(lines, base, column, 2)] = 1
                elif part >= A_CELL:
                    stack[top, 0], stack[top, 1] = part - A_CELL, word_at(lines, base, column, 2)
                    top += 1


class Cells:
    """The values of one kind."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.parts: list[tuple[Kind, ...]] = []  # by constructor
        self.branches: dict[str, int] = {}
        self.names: list[str] = []
        self.rows = HashedLines(1, 2, OWN_HALVES, OWN_WORDS)
        self.free = Growing(0, 1)

    @property
    def address(self) -> int:
        return self.rows.address

    @property
    def columns(self) -> int:
        return self.rows.columns

    def __len__(self) -> int:
        return int(self.rows.handle[USED] - self.rows.handle[FREE_COUNT])

    @property
    def used(self) -> int:
        """Lines in use or free: words are below this."""
        return int(self.rows.handle[USED])

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.free.array.nbytes

    def learn(self, types: Types) -> bool:
        """Takes the constructors from a program's types; whether cells have become wider for them."""
        match self.kind:
            case ListKind(element):
                parts = [(), (element, self.kind)]
            case RecordKind(name):
                parts = [(), tuple(each.kind for each in types.records[name])]
            case AdtKind(name):
                for branch in types.adts.get(name, {}):
                    if branch not in self.branches:
                        self.branches[branch] = len(self.names)
                        self.names.append(branch)
                known = types.adts.get(name, {})
                parts = [
                    tuple(each.kind for each in known[branch]) if branch in known else self.parts[tag]
                    for branch, tag in self.branches.items()
                ]
            case _:
                raise AssertionError(self.kind)
        for before, after in zip(self.parts, parts, strict=False):
            if before != after and len(self):
                raise ValueError(f"there are values of {self.kind} already: what it is made of stays as it is")
        self.parts = parts
        columns = 1 + max((len(each) for each in parts), default=0)
        if columns <= self.columns:
            return False
        self._widen(columns)
        return True

    def width_of(self, columns: int) -> int:
        """How many halves a line with so many columns has."""
        return 2 * columns + OWN_HALVES

    def restore(self, names: Sequence[str], parts: Sequence[tuple[Kind, ...]], lines: Halves) -> None:
        """Takes over the lines of cells that had these constructors. None may have been made yet."""
        self.names, self.parts = [*names], [*parts]
        self.branches = {name: tag for tag, name in enumerate(names)}
        self.rows = HashedLines((lines.shape[1] - OWN_HALVES) // 2, 2, OWN_HALVES, OWN_WORDS)
        self.rows.take_over(lines)
        self._give_up(np.flatnonzero(lines[:, -FLAGS] & FREE).astype(np.int32))
        self._fill_slots()

    def _widen(self, columns: int) -> None:
        """More columns, at the same address: those that cells do not have are zero."""
        old, used = self.rows, int(self.rows.handle[USED])
        rows = HashedLines(columns, 2, OWN_HALVES, OWN_WORDS)
        rows.make_lines(used)
        rows.lines[:used] = 0
        rows.lines[:used, : 2 * old.columns] = old.lines[:used, : 2 * old.columns]
        rows.lines[:used, -OWN_HALVES:] = old.lines[:used, -OWN_HALVES:]
        rows.handle[USED] = used
        rows.handle[OWN:] = old.handle[OWN:]
        old.handle[:] = rows.handle
        rows.handle, rows.address = old.handle, old.address
        self.rows = rows
        self._fill_slots()

    def _fill_slots(self) -> None:
        self.rows.fill_anew(len(self) + hashing.BLOCK, len(self.rows.slots), *self._unwanted())

    def _unwanted(self) -> tuple[int, int]:
        return self.rows.lines.shape[1] - FLAGS, FREE

    def make_room(self, more: int) -> None:
        self.rows.make_room(len(self), *self._unwanted(), more)

    # -- making and reading

    def sizes(self, words: Words) -> Ids:
        sizes: Ids = self.rows.lines[words, -SIZE]
        return sizes

    def intern(self, lines: Lines, sizes: Ids, *, is_new: bool) -> Words:
        """The words of cells, made if they are not there and may be; -1 for those that may not."""
        if is_new:
            self.make_room(len(lines))
        words = np.empty(len(lines), dtype=np.int64)
        make_cells(self.address, lines, sizes, int(is_new), words)
        return words

    def intern_lists(self, items: Words, sizes: Ids, lengths: Words, *, is_new: bool) -> Words:
        if is_new:
            self.make_room(len(items) + 1)
        words = np.empty(len(lengths), dtype=np.int64)
        make_lists(self.address, items, sizes, lengths, int(is_new), words)
        return words

    def base_size(self, tag: int) -> int:
        """What a cell of a constructor counts, without what is inside its parts."""
        return 1 if isinstance(self.kind, ListKind) else 1 + len(self.parts[tag])

    def make(self, tag: int, columns: Sequence[Words], others: Mapping[Kind, Cells]) -> Words:
        """Cells of one constructor, from the columns of their parts. Raises `TooLarge`."""
        count = len(columns[0]) if columns else 1
        lines: Lines = np.zeros((count, self.columns), dtype=np.int64)
        lines[:, 0] = tag
        sizes = np.full(count, self.base_size(tag), dtype=np.int64)
        for at, (column, kind) in enumerate(zip(columns, self.parts[tag], strict=True), 1):
            lines[:, at] = column
            if kind in others:
                sizes += others[kind].sizes(column)
        if count and sizes.max() > LARGEST_STRUCTURE:
            raise refuse_structure()
        return self.intern(lines, sizes.astype(np.int32), is_new=True)

    def open(self, words: Words) -> Lines:
        """The lines of cells: constructor and parts."""
        lines: Lines = np.empty((len(words), self.columns), dtype=np.int64)
        hashing.read_lines(self.address, words.astype(np.int32), lines)
        return lines

    def open_lists(self, words: Words) -> tuple[Words, Words]:
        """The items of lists, one list after the other, and the lengths of the lists."""
        lists = np.ascontiguousarray(words)
        lengths = np.empty(len(lists), dtype=np.int64)
        items = np.empty(measure_lists(self.address, lists, lengths), dtype=np.int64)
        read_lists(self.address, lists, items)
        return items, lengths

    # -- forgetting

    def keep(self, marks: Ids) -> None:
        """Gives up the cells that are not marked."""
        flags = self.rows.lines[: self.used, -FLAGS]
        given_up = np.flatnonzero((marks == 0) & (flags & FREE == 0)).astype(np.int32)
        if len(given_up):
            self.rows.lines[given_up, -FLAGS] |= FREE
            self._give_up(given_up)
            self._fill_slots()

    def _give_up(self, given_up: Ids) -> None:
        """Lines that can be used again."""
        handle = self.rows.handle
        count = int(handle[FREE_COUNT])
        if len(self.free.array) < count + len(given_up):
            self.free.grow(2 * (count + len(given_up)))
            handle[FREE_LINES] = address_of(self.free.array)
        self.free.array[count : count + len(given_up), 0] = given_up
        handle[FREE_COUNT] = count + len(given_up)
