"""The compiled loops on the indexes of a table.

An index maps a key (some columns of the table) to the rows that have it. Its hashed lines are the keys; behind the columns stands
where in `ARENA` the key's block of row numbers begins, how many there are, and for how many there is room. A full block moves
to the arena's end with half as much room again. A row is taken out by moving the last one of its block into its place. It is
looked for in the block as long as none is longer than `SHORT`; from then on `PLACE` is where in its block each row stands, which
takes as much memory as the arena. `ROWS` are in it; of those that the table has waiting for it, `READY` are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whence.backends.local.hashing import (
    BLOCK,
    CAPACITY,
    COLUMNS,
    FILLED,
    FULL,
    LIMIT,
    LINES,
    MASK,
    OWN,
    SLOTS,
    USED,
    WIDTH,
    find_line,
    hash_at,
    hash_block,
    layout_of,
    row_word,
    same_words,
    seek,
    shape_of,
)
from whence.backends.local.kernels import FLAGS, KEEPS_NEW, NEW, NEW_COUNT, row_end
from whence.backends.local.memory import compiled, halves_at, kernel, words_at

ARENA, ARENA_SIZE, ARENA_USED, ARENA_WANTED, PLACE, PLACE_SIZE, LONGEST, ROWS, READY, TABLE, PROJECTION = range(
    OWN, OWN + 11
)
OWN_HALVES = 3
# To find a row in a block of so many takes about as long as to wait for memory.
SHORT = 1 << 12
_AT_ONCE = 16
BEGIN, LENGTH, ROOM = 3, 2, 1  # halves before the line's end


@compiled
def project(index: Any, row: int, key: Any) -> None:
    """A row's key."""
    table = words_at(index[TABLE])
    lines, shape = halves_at(table[LINES]), shape_of(table)
    for column in range(index[COLUMNS]):
        word = row_word(lines, shape, row, index[PROJECTION + column])
        key[2 * column], key[2 * column + 1] = np.int32(word & FULL), np.int32(word >> 32)


@compiled
def claim_key(index: Any, key: Any) -> int:
    """The line of a key, made if there was none. There must be room."""
    lines, slots, mask, width = halves_at(index[LINES]), halves_at(index[SLOTS]), index[MASK], index[WIDTH]
    columns = index[COLUMNS]
    hashed = hash_at(key, 0, columns, 2)
    line, slot = seek(slots, mask, hashed, lines, layout_of(index), key, np.int64(0))
    if line >= 0:
        return line  # type: ignore[no-any-return]
    line = index[USED]
    index[USED] += 1
    index[FILLED] += 1
    slots[slot] = np.int32((hashed & (FULL ^ mask)) | line)
    for half in range(2 * columns):
        lines[line * width + half] = key[half]
    base = (line + 1) * width
    lines[base - BEGIN], lines[base - LENGTH], lines[base - ROOM] = 0, 0, 0
    return line  # type: ignore[no-any-return]


@compiled
def link_row(index: Any, row: int, key: Any) -> bool:
    """Puts a row into the index, if there is room in the arena, for a key, which is used as scratch, and for its place."""
    has_places = index[PLACE_SIZE] > 0
    if index[USED] >= index[CAPACITY] or index[FILLED] >= index[LIMIT] or (has_places and row >= index[PLACE_SIZE]):
        return False
    project(index, row, key)
    base = (claim_key(index, key) + 1) * index[WIDTH]
    lines, arena, place = halves_at(index[LINES]), halves_at(index[ARENA]), halves_at(index[PLACE])
    begin, length, room = np.int64(lines[base - BEGIN]), np.int64(lines[base - LENGTH]), lines[base - ROOM]
    if length == SHORT and not has_places:
        index[LONGEST] = length + 1
        return False
    if length == room:
        larger = length + (length >> 1) + 1
        end = index[ARENA_USED]
        if end + larger > index[ARENA_SIZE]:
            index[ARENA_WANTED] = end + larger
            return False
        for offset in range(length):
            arena[end + offset] = arena[begin + offset]
        begin = end
        lines[base - BEGIN], lines[base - ROOM] = begin, larger
        index[ARENA_USED] = end + larger
    arena[begin + length] = row
    if has_places:
        place[row] = length
    lines[base - LENGTH] = length + 1
    index[ROWS] += 1
    return True


@compiled
def has_gaps(index: Any) -> bool:
    """Whether blocks that moved have left most of the arena unused."""
    return index[ARENA_USED] > 3 * index[ROWS] + 1024  # type: ignore[no-any-return]


@compiled
def ask_ahead(index: Any, rows: Any, start: int, size: int, keys: Any, hashes: Any) -> None:
    """Asks for the memory of the keys that some rows have, at most `BLOCK`."""
    table, columns = words_at(index[TABLE]), index[COLUMNS]
    lines, shape = halves_at(table[LINES]), shape_of(table)
    for at in range(size):
        for column in range(columns):
            keys[columns * at + column] = row_word(lines, shape, np.int64(rows[start + at]), index[PROJECTION + column])
    hash_block(index, halves_at(keys.ctypes.data), np.int64(0), size, hashes)


@kernel("int ids int")
def link_rows(address: int, ids: Any, start: int) -> int:
    """Puts rows into the index. Returns the number done: fewer than all if there is no room."""
    index = words_at(address)
    scratch = np.empty(2 * index[COLUMNS] + 1, dtype=np.int32)
    key = halves_at(scratch.ctypes.data)
    keys, hashes = np.empty(index[COLUMNS] * BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
    for first in range(start, len(ids), BLOCK):
        end = min(first + BLOCK, len(ids))
        ask_ahead(index, ids, first, end - first, keys, hashes)
        for at in range(first, end):
            if not link_row(index, np.int64(ids[at]), key):
                return at
    return len(ids)


@compiled
def link_waiting(address: int, indexes: Any, number: int) -> bool:
    """Puts the rows that wait for it into the indexes of a table, which are those with its number in front.

    False if there is no room, or an index had better be made anew; it is noted how far it came.
    """
    table = words_at(address)
    total, waiting = table[NEW_COUNT], halves_at(table[NEW])
    if not table[KEEPS_NEW]:
        return False
    if total == 0:
        return True
    for each in range(indexes.shape[0]):
        index = words_at(indexes[each, 1])
        if indexes[each, 0] == number and index[READY] < total:
            if has_gaps(index):
                return False
            scratch = np.empty(2 * index[COLUMNS] + 1, dtype=np.int32)
            key = halves_at(scratch.ctypes.data)
            keys, hashes = np.empty(index[COLUMNS] * BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
            while index[READY] < total:
                end = min(index[READY] + BLOCK, total)
                ask_ahead(index, waiting, index[READY], end - index[READY], keys, hashes)
                while index[READY] < end:
                    if not link_row(index, np.int64(waiting[index[READY]]), key):
                        return False
                    index[READY] += 1
    for each in range(indexes.shape[0]):
        if indexes[each, 0] == number:
            words_at(indexes[each, 1])[READY] = 0
    table[NEW_COUNT] = 0
    return True


@kernel("int ids int")
def count_keys(address: int, ids: Any, start: int) -> int:
    """First half of building an index at once: how many rows each key has, and each row's key noted in its place."""
    index = words_at(address)
    width = index[WIDTH]
    lines, place = halves_at(index[LINES]), halves_at(index[PLACE])
    scratch = np.empty(2 * index[COLUMNS] + 1, dtype=np.int32)
    key, line = halves_at(scratch.ctypes.data), np.int64(-1)
    for at in range(start, len(ids)):
        if index[USED] >= index[CAPACITY] or index[FILLED] >= index[LIMIT]:
            return at
        row = np.int64(ids[at])
        project(index, row, key)
        # Facts often come in order: the key is that of the row before.
        if line < 0 or not same_words(lines, line * width, 2, key, 0, index[COLUMNS], 0):
            line = np.int64(claim_key(index, key))
        lines[(line + 1) * width - LENGTH] += 1
        place[row] = line
    return len(ids)


@kernel("int ids")
def fill_blocks(address: int, ids: Any) -> None:
    """Second half: blocks without spare room, one after the other."""
    index = words_at(address)
    width, end = index[WIDTH], 0
    lines, arena, place = halves_at(index[LINES]), halves_at(index[ARENA]), halves_at(index[PLACE])
    for line in range(index[USED]):
        base = (line + 1) * width
        lines[base - BEGIN], lines[base - ROOM] = end, lines[base - LENGTH]
        end += lines[base - LENGTH]
        lines[base - LENGTH] = 0
    index[ARENA_USED], index[ROWS], index[LONGEST] = end, len(ids), 0
    for at in range(len(ids)):
        row = np.int64(ids[at])
        base = (np.int64(place[row]) + 1) * width
        length = lines[base - LENGTH]
        arena[lines[base - BEGIN] + length] = row
        place[row] = length
        lines[base - LENGTH] = length + 1
        index[LONGEST] = max(index[LONGEST], length + 1)


@kernel("int")
def note_places(address: int) -> None:
    """Writes down where each row stands."""
    index = words_at(address)
    lines, arena, place, width = halves_at(index[LINES]), halves_at(index[ARENA]), halves_at(index[PLACE]), index[WIDTH]
    for line in range(index[USED]):
        base = (line + 1) * width
        for offset in range(lines[base - LENGTH]):
            place[arena[lines[base - BEGIN] + offset]] = offset


@compiled
def place_in(arena: Any, begin: int, length: int, row: int) -> int:
    """Where in its block a row stands."""
    wanted, at, end = np.int32(row), begin, begin + length
    while at + _AT_ONCE <= end:
        met = np.int32(0)
        for offset in range(_AT_ONCE):  # all of them in a few instructions
            met |= np.int32(arena[at + offset] == wanted)
        if met:
            break
        at += _AT_ONCE
    while arena[at] != wanted:
        at += 1
    return at - begin


@kernel("int ids")
def unlink_rows(address: int, ids: Any) -> None:
    """Takes rows out of the index."""
    index = words_at(address)
    width, columns = index[WIDTH], index[COLUMNS]
    lines, arena, place = halves_at(index[LINES]), halves_at(index[ARENA]), halves_at(index[PLACE])
    keys, hashes = np.empty(columns * BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
    words = halves_at(keys.ctypes.data)
    for start in range(0, len(ids), BLOCK):
        size = min(BLOCK, len(ids) - start)
        ask_ahead(index, ids, start, size, keys, hashes)
        for at in range(size):
            row = np.int64(ids[start + at])
            base = (find_line(index, words, 2 * columns * at, hashes[at]) + 1) * width
            begin, length = np.int64(lines[base - BEGIN]), np.int64(lines[base - LENGTH])
            last = arena[begin + length - 1]
            lines[base - LENGTH] = length - 1
            if index[PLACE_SIZE] > 0:
                arena[begin + place[row]] = last
                place[last] = place[row]
            else:
                arena[begin + place_in(arena, begin, length, row)] = last
    index[ROWS] -= len(ids)


@kernel("int lines ids ids")
def find_blocks(address: int, keys: Any, first: Any, last: Any) -> int:
    """For each key where its rows are in the arena; and the number of rows under them all."""
    index = words_at(address)
    lines, width, columns, total = halves_at(index[LINES]), index[WIDTH], index[COLUMNS], 0
    words = halves_at(keys.ctypes.data)
    for at in range(keys.shape[0]):
        line = find_line(index, words, 2 * columns * at, hash_at(words, 2 * columns * at, columns, 2))
        first[at] = last[at] = 0
        if line >= 0:
            base = (line + 1) * width
            first[at] = lines[base - BEGIN]
            last[at] = first[at] + lines[base - LENGTH]
            total += lines[base - LENGTH]
    return total


@kernel("int ids ids int ids ids")
def expand_blocks(address: int, first: Any, last: Any, forbid: int, picks: Any, matches: Any) -> int:
    """The pairs (line, row) for blocks found, without rows that have a forbidden flag."""
    index = words_at(address)
    table = words_at(index[TABLE])
    lines, shape, arena, end = halves_at(table[LINES]), shape_of(table), halves_at(index[ARENA]), 0
    for line in range(len(first)):
        for offset in range(first[line], last[line]):
            row = np.int64(arena[offset])
            if forbid and lines[row_end(shape, row) - FLAGS] & forbid:
                continue
            picks[end] = line
            matches[end] = row
            end += 1
    return end
