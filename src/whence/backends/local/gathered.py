"""Groups gathered in one pass over all rows of a relation, for a first evaluation: nobody has to know which rows a group has.

Each thread gathers the groups of its share of the rows; then all go into those of the first. A group is a hashed line: its key,
how many rows it has, and what their values come to. That is the same in whatever order they come, as sums wrap.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whence.backends.local import parallel
from whence.backends.local.arrays import Lines
from whence.backends.local.hashing import (
    BITS,
    BLOCK,
    CAPACITY,
    COLUMNS,
    FILLED,
    FULL,
    LIMIT,
    LINES,
    MASK,
    SLOTS,
    USED,
    WIDTH,
    HashedLines,
    find_line,
    hash_block,
    layout_of,
    row_word,
    seek,
    shape_of,
)
from whence.backends.local.kernels import FLAGS, row_end
from whence.backends.local.memory import compiled, halves_at, kernel, words_at
from whence.backends.local.table import Table
from whence.backends.local.words import Words
from whence.engine.protocol import FREE, GONE

# What the values of a group come to; that of rows without a value is the sum of zeros.
SUM, LEAST, GREATEST = range(3)
# From so many rows on groups are gathered.
MANY = 1 << 12
# So many slots there are at least: few groups seldom meet in them then, and which do is what a processor cannot foresee.
_SLOTS = 1 << 14
# The halves of a group behind its key: the number of its rows, and what their values come to.
_OWN_HALVES = 4


@compiled
def has_room(groups: Any) -> bool:
    """For a block of groups."""
    return groups[FILLED] + BLOCK <= groups[LIMIT] and groups[USED] + BLOCK <= groups[CAPACITY]  # type: ignore[no-any-return]


@compiled
def gather(groups: Any, keys: Any, hashes: Any, size: int, rows: Any, values: Any, how: int) -> None:
    """Rows for the groups with the keys of a block: how many, and what their values come to. There must be room."""
    columns, mask, layout = groups[COLUMNS], groups[MASK], layout_of(groups)
    lines, slots, own = halves_at(groups[LINES]), halves_at(groups[SLOTS]), words_at(groups[LINES])
    words, width, used = halves_at(keys.ctypes.data), groups[WIDTH] >> 1, groups[USED]
    hash_block(groups, words, 0, size, hashes)
    for at in range(size):
        line, slot = seek(slots, mask, hashes[at], lines, layout, words, 2 * columns * at)
        if line < 0:
            line = used
            used += 1
            slots[slot] = np.int32((hashes[at] & (FULL ^ mask)) | line)
            for column in range(columns):
                own[line * width + column] = keys[columns * at + column]
            end = line * width + columns
            own[end], own[end + 1] = rows[at], values[at]
            continue
        end = line * width + columns
        own[end] += rows[at]
        if how == SUM:
            own[end + 1] += values[at]
        elif (values[at] < own[end + 1]) == (how == LEAST):
            own[end + 1] = values[at]
    groups[FILLED] += used - groups[USED]
    groups[USED] = used


@kernel("int int words int int int int")
def gather_share(
    address: int, table_address: int, key_columns: Any, value_column: int, how: int, start: int, stop: int
) -> int:
    """Gathers the groups of rows; without a column for the values these are zeros. Stops where there is no room for more groups;
    returns the row it came to.
    """
    groups, table = words_at(address), words_at(table_address)
    lines, shape, columns = halves_at(table[LINES]), shape_of(table), len(key_columns)
    ids, hashes = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
    keys, values = np.empty(BLOCK * columns, dtype=np.int64), np.zeros(BLOCK, dtype=np.int64)
    one_each = np.ones(BLOCK, dtype=np.int64)
    row = start
    while row < stop and has_room(groups):
        size = 0
        for one in range(row, min(row + BLOCK, stop)):
            if not lines[row_end(shape, one) - FLAGS] & (FREE | GONE):
                ids[size] = one
                size += 1
        for column in range(columns):
            for at in range(size):
                keys[columns * at + column] = row_word(lines, shape, ids[at], key_columns[column])
        if value_column >= 0:
            for at in range(size):
                values[at] = row_word(lines, shape, ids[at], value_column)
        gather(groups, keys, hashes, size, one_each, values, how)
        row = min(row + BLOCK, stop)
    return row


@kernel("int int int int")
def gather_groups(address: int, other_address: int, how: int, start: int) -> int:
    """Gathers groups of others, from one on, in the same way; returns the group it came to."""
    groups, others = words_at(address), words_at(other_address)
    columns, width, total = others[COLUMNS], others[WIDTH] >> 1, others[USED]
    own, hashes = words_at(others[LINES]), np.empty(BLOCK, dtype=np.int64)
    keys, rows, values = np.empty(BLOCK * columns, dtype=np.int64), np.empty_like(hashes), np.empty_like(hashes)
    line = start
    while line < total and has_room(groups):
        size = min(BLOCK, total - line)
        for at in range(size):
            base = (line + at) * width
            for column in range(columns):
                keys[columns * at + column] = own[base + column]
            rows[at], values[at] = own[base + columns], own[base + columns + 1]
        gather(groups, keys, hashes, size, rows, values, how)
        line += size
    return line


@kernel("int lines words words")
def read_groups(address: int, keys: Any, sizes: Any, values: Any) -> None:
    """For each key how many rows its group has and what their values come to, both 0 if there is none."""
    groups, words, columns = words_at(address), halves_at(keys.ctypes.data), keys.shape[1]
    own, hashes = words_at(groups[LINES]), np.empty(BLOCK, dtype=np.int64)
    for start in range(0, keys.shape[0], BLOCK):
        size = min(BLOCK, keys.shape[0] - start)
        hash_block(groups, words, start, size, hashes)
        for at in range(size):
            line = find_line(groups, words, 2 * columns * (start + at), hashes[at])
            end = line * (groups[WIDTH] >> 1) + columns
            sizes[start + at] = own[end] if line >= 0 else 0
            values[start + at] = own[end + 1] if line >= 0 else 0


class Gathered:
    """The groups of all rows that a table has now."""

    def __init__(self, table: Table, key_columns: tuple[int, ...], value_column: int | None, how: int) -> None:
        self.table, self.how = table, how
        self.columns = np.array(key_columns, dtype=np.int64)
        self.value = -1 if value_column is None else value_column
        shares, rows = parallel.threads(len(table)), table.fields[USED] << table.fields[BITS]
        cuts = pairwise([rows * at // shares for at in range(shares + 1)])
        self.groups, *others = parallel.run([partial(self._gather, *cut) for cut in cuts])
        for other in others:
            done = 0
            while (done := gather_groups(self.groups.address, other.address, how, done)) < other.handle[USED]:
                _make_room(self.groups)
        own = self.groups.lines[: self.groups.handle[USED]].view(np.int64)
        self.keys: Lines = np.ascontiguousarray(own[:, : len(key_columns)])

    def _gather(self, start: int, stop: int) -> HashedLines:
        groups = HashedLines(len(self.columns), 2, _OWN_HALVES, 0)
        groups.fill_anew(0, _SLOTS, 0, 0)
        told = (groups.address, self.table.address, self.columns, self.value, self.how)
        while (start := gather_share(*told, start, stop)) < stop:
            _make_room(groups)
        return groups

    def of(self, keys: Lines) -> tuple[NDArray[np.int64], Words]:
        """For each key how many rows its group has, and what their values come to."""
        sizes, values = np.empty((2, len(keys)), dtype=np.int64)
        read_groups(self.groups.address, keys, sizes, values)
        return sizes, values


def _make_room(groups: HashedLines) -> None:
    groups.make_room(int(groups.handle[USED]), 0, 0)
