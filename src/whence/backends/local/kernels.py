"""The compiled loops on the rows of a table.

The line of a row is its columns and four halves with what the engine knows of it: the number of its derivations, how many of them
are well founded, its rank and its flags.

A line that is given up goes onto a stack of free lines, to be used again. Lines in use are put into the table's indexes only when
one of these is asked for; the lines that wait for it are those from `LINKED` on, and those that were taken from the stack since,
which still stand there between `FREE_COUNT` and `FREE_TOP`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whence.backends.local.hashing import (
    BLOCK,
    CAPACITY,
    COLUMNS,
    DELETED,
    EMPTY,
    FILLED,
    LIMIT,
    LINES,
    MASK,
    OWN,
    SLOTS,
    STEP,
    USED,
    WIDTH,
    find_line,
    hash_at,
    hash_block,
    same_words,
)
from whence.backends.local.memory import compiled, halves_at
from whence.engine.protocol import ADDED, BATCH, FREE, HIDDEN, QUEUED, SUSPENDED

FREE_LINES, FREE_COUNT, FREE_TOP, LINKED, LISTED, TOO_WIDE = range(OWN, OWN + 6)
OWN_WORDS, OWN_HALVES = 6, 4
# What a row has behind its columns.
COUNT, WELL, RANK, FLAGS = 4, 3, 2, 1  # halves before the line's end
_FULL = 0xFFFFFFFF


@compiled
def fits_halves(keys: Any, start: int, size: int, columns: int) -> bool:
    for at in range(start * columns, (start + size) * columns):
        if np.int64(keys[2 * at]) >> 31 != np.int64(keys[2 * at + 1]):
            return False
    return True


@compiled
def claim_rows(table: Any, keys: Any, ranks: Any, start: int, queue: Any) -> int:
    """One more derivation for each key, from rows whose highest rank is in `ranks`.

    A row that is present gains well-founded support if the derivation is from lower ranks; one that is not present is queued,
    and so are the rows made here. Stops where there is no room, or where a key takes more than the columns of the table have;
    returns the number of keys done.
    """
    lines, slots, free = halves_at(table[LINES]), halves_at(table[SLOTS]), halves_at(table[FREE_LINES])
    width, step, columns, mask = table[WIDTH], table[STEP], table[COLUMNS], table[MASK]
    used, free_count, filled, listed = table[USED], table[FREE_COUNT], table[FILLED], table[LISTED]
    words = halves_at(keys.ctypes.data)
    hashes = np.empty(BLOCK, dtype=np.int64)
    line, total = start, keys.shape[0]
    table[TOO_WIDE] = 0
    while line < total:
        size = min(BLOCK, total - line)
        if filled + size > table[LIMIT] or free_count + table[CAPACITY] - used < size:
            break
        if step == 1 and not fits_halves(words, line, size, columns):
            table[TOO_WIDE] = 1
            break
        hash_block(table, words, line, size, hashes)
        for at in range(size):
            key = 2 * columns * (line + at)
            hashed = hashes[at]
            slot, reusable = hashed & mask, np.int64(-1)
            word, row = np.int64(slots[slot]), np.int64(-1)
            while word != EMPTY:
                if word == DELETED:
                    reusable = slot
                elif (word ^ hashed) & (_FULL ^ mask) == 0 and same_words(
                    lines, (word & mask) * width, step, words, key, columns
                ):
                    row = word & mask
                    break
                slot = (slot + 1) & mask
                word = np.int64(slots[slot])
            if row >= 0:
                base = (row + 1) * width
                lines[base - COUNT] += 1
                flags = lines[base - FLAGS]
                if not flags & SUSPENDED:
                    if ranks[line + at] < lines[base - RANK]:
                        lines[base - WELL] += 1
                elif not flags & QUEUED:
                    lines[base - FLAGS] = flags | QUEUED
                    queue[listed] = row
                    listed += 1
                continue
            if reusable >= 0:
                slot = reusable
            else:
                filled += 1
            if free_count > 0:
                free_count -= 1
                row = np.int64(free[free_count])
            else:
                row = used
                used += 1
            slots[slot] = np.int32((hashed & (_FULL ^ mask)) | row)
            for half in range(columns):
                if step == 1:
                    lines[row * width + half] = words[key + 2 * half]
                else:
                    lines[row * width + 2 * half] = words[key + 2 * half]
                    lines[row * width + 2 * half + 1] = words[key + 2 * half + 1]
            base = (row + 1) * width
            lines[base - COUNT], lines[base - WELL], lines[base - RANK] = 1, 0, 0
            lines[base - FLAGS] = SUSPENDED | QUEUED | HIDDEN | ADDED
            queue[listed] = row
            listed += 1
        line += size
    table[USED], table[FREE_COUNT], table[FILLED], table[LISTED] = used, free_count, filled, listed
    return line  # type: ignore[no-any-return]


@compiled
def find_rows(table: Any, forbid: int, keys: Any, out: Any) -> None:
    """For each key the equal row if it has none of the forbidden flags, else -1."""
    lines, width, columns = halves_at(table[LINES]), table[WIDTH], table[COLUMNS]
    words = halves_at(keys.ctypes.data)
    hashes = np.empty(BLOCK, dtype=np.int64)
    for start in range(0, keys.shape[0], BLOCK):
        size = min(BLOCK, keys.shape[0] - start)
        hash_block(table, words, start, size, hashes)
        for at in range(size):
            row = find_line(table, words, 2 * columns * (start + at), hashes[at])
            if row >= 0 and lines[(row + 1) * width - FLAGS] & forbid:
                row = -1
            out[start + at] = row


@compiled
def drop_supports(table: Any, keys: Any, ranks: Any, lost: Any) -> int:
    """One derivation less for each key's row. Rows that lose their last well-founded one are suspended and listed."""
    lines, width, columns = halves_at(table[LINES]), table[WIDTH], table[COLUMNS]
    words = halves_at(keys.ctypes.data)
    hashes = np.empty(BLOCK, dtype=np.int64)
    end = 0
    for start in range(0, keys.shape[0], BLOCK):
        size = min(BLOCK, keys.shape[0] - start)
        hash_block(table, words, start, size, hashes)
        for at in range(size):
            row = find_line(table, words, 2 * columns * (start + at), hashes[at])
            base = (row + 1) * width
            lines[base - COUNT] -= 1
            if not lines[base - FLAGS] & SUSPENDED and ranks[start + at] < lines[base - RANK]:
                lines[base - WELL] -= 1
                if lines[base - WELL] == 0:
                    lines[base - FLAGS] |= SUSPENDED
                    lost[end] = row
                    end += 1
    return end


@compiled
def erase_rows(table: Any, ids: Any) -> None:
    """Takes rows out of the table; their lines may be used again. None may be waiting to be linked."""
    lines, slots, free = halves_at(table[LINES]), halves_at(table[SLOTS]), halves_at(table[FREE_LINES])
    width, step, columns, mask = table[WIDTH], table[STEP], table[COLUMNS], table[MASK]
    for at in range(len(ids)):
        row = np.int64(ids[at])
        hashed = hash_at(lines, row * width, columns, step)
        slot = hashed & mask
        word = np.int32((hashed & (_FULL ^ mask)) | row)
        while slots[slot] != word:
            slot = (slot + 1) & mask
        slots[slot] = DELETED
        lines[(row + 1) * width - FLAGS] = FREE
        free[table[FREE_COUNT]] = row
        table[FREE_COUNT] += 1
    table[FREE_TOP] = table[FREE_COUNT]


@compiled
def activate(table: Any, ids: Any, rank: int) -> None:
    """Makes rows present: all the derivations they have are from lower ranks."""
    lines, width = halves_at(table[LINES]), table[WIDTH]
    for at in range(len(ids)):
        base = (np.int64(ids[at]) + 1) * width
        lines[base - WELL] = lines[base - COUNT]
        lines[base - RANK] = rank
        lines[base - FLAGS] = (lines[base - FLAGS] & ~(SUSPENDED | QUEUED | HIDDEN)) | BATCH


@compiled
def change_flags(table: Any, ids: Any, on: int, off: int) -> None:
    lines, width = halves_at(table[LINES]), table[WIDTH]
    for at in range(len(ids)):
        base = (np.int64(ids[at]) + 1) * width
        lines[base - FLAGS] = (lines[base - FLAGS] & ~off) | on


@compiled
def choose_flags(table: Any, ids: Any, on: int, off: int, out: Any) -> int:
    """Those of the rows that have all flags of `on` and none of `off`."""
    lines, width, end = halves_at(table[LINES]), table[WIDTH], 0
    for at in range(len(ids)):
        if lines[(np.int64(ids[at]) + 1) * width - FLAGS] & (on | off) == on:
            out[end] = ids[at]
            end += 1
    return end


@compiled
def read_halves(table: Any, ids: Any, which: int, out: Any) -> None:
    """One of the halves behind the columns of each row."""
    lines, width = halves_at(table[LINES]), table[WIDTH]
    for at in range(len(ids)):
        out[at] = lines[(np.int64(ids[at]) + 1) * width - which]
