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
    FULL,
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
from whence.backends.local.memory import compiled, halves_at, kernel, prefetch, words_at
from whence.engine.protocol import ADDED, BATCH, EXTERNAL, FREE, HIDDEN, QUEUED, SUSPENDED

FREE_LINES, FREE_COUNT, FREE_TOP, LINKED, LISTED, TOO_WIDE = range(OWN, OWN + 6)
OWN_WORDS, OWN_HALVES = 6, 4
# What a row has behind its columns.
COUNT, WELL, RANK, FLAGS = 4, 3, 2, 1  # halves before the line's end


@compiled
def fits_halves(keys: Any, start: int, size: int, columns: int) -> bool:
    for at in range(start * columns, (start + size) * columns):
        if np.int64(keys[2 * at]) >> 31 != np.int64(keys[2 * at + 1]):
            return False
    return True


@compiled
def count_derivation(lines: Any, base: int, rank: int, row: int, queue: Any, listed: int) -> int:
    """One more derivation for a row, which ends at `base`. Returns whether the row was put into the queue for it."""
    lines[base - COUNT] += 1
    flags = lines[base - FLAGS]
    if not flags & SUSPENDED:
        if rank < lines[base - RANK]:
            lines[base - WELL] += 1
    elif not flags & QUEUED:
        lines[base - FLAGS] = flags | QUEUED
        queue[listed] = row
        return 1
    return 0


@compiled
def write_row(lines: Any, row: int, width: int, step: int, words: Any, key: int, columns: int) -> None:
    """A row with one derivation, which is not present yet."""
    if step == 1:
        for column in range(columns):
            lines[row * width + column] = words[key + 2 * column]
    else:
        for half in range(2 * columns):
            lines[row * width + half] = words[key + half]
    base = (row + 1) * width
    lines[base - COUNT], lines[base - WELL], lines[base - RANK] = 1, 0, 0
    lines[base - FLAGS] = SUSPENDED | QUEUED | HIDDEN | ADDED


@kernel("int lines ids int ids")
def claim_rows(address: int, keys: Any, ranks: Any, start: int, queue: Any) -> int:
    """One more derivation for each key, from rows whose highest rank is in `ranks`.

    A row that is present gains well-founded support if the derivation is from lower ranks; one that is not present is queued,
    and so are the rows made here. Stops where there is no room, or where a key takes more than the columns of the table have;
    returns the number of keys done.
    """
    table = words_at(address)
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
                elif (word ^ hashed) & (FULL ^ mask) == 0 and same_words(
                    lines, (word & mask) * width, step, words, key, columns
                ):
                    row = word & mask
                    break
                slot = (slot + 1) & mask
                word = np.int64(slots[slot])
            if row >= 0:
                listed += count_derivation(lines, (row + 1) * width, ranks[line + at], row, queue, listed)
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
            slots[slot] = np.int32((hashed & (FULL ^ mask)) | row)
            write_row(lines, row, width, step, words, key, columns)
            queue[listed] = row
            listed += 1
        line += size
    table[USED], table[FREE_COUNT], table[FILLED], table[LISTED] = used, free_count, filled, listed
    return line  # type: ignore[no-any-return]


@kernel("int lines int")
def append_rows(address: int, keys: Any, start: int) -> int:
    """Rows with one derivation, which are not there and for which there must be lines, behind the others and in no slots.

    Stops where a key takes more than the columns of the table have; returns the number of keys done.
    """
    table = words_at(address)
    lines, width, step, columns = halves_at(table[LINES]), table[WIDTH], table[STEP], table[COLUMNS]
    words, line, total = halves_at(keys.ctypes.data), start, keys.shape[0]
    while line < total and (step == 2 or fits_halves(words, line, 1, columns)):
        write_row(lines, table[USED], width, step, words, 2 * columns * line, columns)
        table[USED] += 1
        line += 1
    return line


# Two threads can claim rows at once: each takes the keys whose slots begin in its half of the slots, and the rows it makes go to
# lines of its own. What would cross into the other half is left for later, and so is what is too wide.


@kernel("int lines ids int int ids ids ids words")
def claim_half(
    address: int, keys: Any, ranks: Any, upper: int, first: int, queue: Any, taken: Any, left: Any, ends: Any
) -> None:
    """`claim_rows` for one half of the slots, with new rows from line `first` on, for which there must be room.

    `taken` are the slots of the rows made, `left` the keys left for later. `ends` says how many there are in `queue`, `taken` and
    `left`, and how many slots were empty before.
    """
    table = words_at(address)
    lines, slots = halves_at(table[LINES]), halves_at(table[SLOTS])
    width, step, columns, mask = table[WIDTH], table[STEP], table[COLUMNS], table[MASK]
    words, total = halves_at(keys.ctypes.data), keys.shape[0]
    hashes, own = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
    half = (mask + 1) >> 1
    stop = half * (upper + 1)
    listed, made, later, filled = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for start in range(0, total, BLOCK):
        size = 0
        for line in range(start, min(start + BLOCK, total)):
            hashed = hash_at(words, 2 * columns * line, columns, 2)
            if ((hashed & mask) >= half) == upper:
                hashes[size], own[size] = hashed, line
                size += 1
                prefetch(table[SLOTS] + 4 * (hashed & mask))
        for at in range(size):
            word = np.int64(slots[hashes[at] & mask])
            if (word ^ hashes[at]) & (FULL ^ mask) == 0:
                prefetch(table[LINES] + 4 * width * (word & mask))
        for at in range(size):
            key, hashed = 2 * columns * own[at], hashes[at]
            slot, reusable, row = hashed & mask, np.int64(-1), np.int64(-1)
            word = np.int64(slots[slot])
            while word != EMPTY:
                if word == DELETED:
                    reusable = slot
                elif (word ^ hashed) & (FULL ^ mask) == 0 and same_words(
                    lines, (word & mask) * width, step, words, key, columns
                ):
                    row = word & mask
                    break
                slot += 1
                if slot == stop:
                    break
                word = np.int64(slots[slot])
            if row >= 0:
                listed += count_derivation(lines, (row + 1) * width, ranks[own[at]], row, queue, listed)
            elif slot == stop or (step == 1 and not fits_halves(words, own[at], 1, columns)):
                left[later] = own[at]
                later += 1
            else:
                if reusable >= 0:
                    slot = reusable
                else:
                    filled += 1
                row = first + made
                slots[slot] = np.int32((hashed & (FULL ^ mask)) | row)
                write_row(lines, row, width, step, words, key, columns)
                taken[made] = slot
                made += 1
                queue[listed] = row
                listed += 1
    ends[0], ends[1], ends[2], ends[3] = listed, made, later, filled


@kernel("int int int ids int ids int")
def move_rows(address: int, first: int, down: int, taken: Any, made: int, queue: Any, listed: int) -> None:
    """Moves the rows that `claim_half` made from line `first` on down by some lines."""
    table = words_at(address)
    lines, slots, width = halves_at(table[LINES]), halves_at(table[SLOTS]), table[WIDTH]
    for at in range(first * width, (first + made) * width):
        lines[at - down * width] = lines[at]
    for at in range(made):
        slots[taken[at]] -= down
    for at in range(listed):
        if queue[at] >= first:
            queue[at] -= down


@kernel("int int lines ids")
def find_rows(address: int, forbid: int, keys: Any, out: Any) -> None:
    """For each key the equal row if it has none of the forbidden flags, else -1."""
    table = words_at(address)
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


@kernel("int lines ids ids")
def drop_supports(address: int, keys: Any, ranks: Any, lost: Any) -> int:
    """One derivation less for each key's row. Rows that lose their last well-founded one are suspended and listed."""
    table = words_at(address)
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


@kernel("int lines ids")
def suspend_rows(address: int, keys: Any, lost: Any) -> int:
    """Suspends and lists each key's row, unless it is suspended already or was put in from outside."""
    table = words_at(address)
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
            if row >= 0 and not lines[base - FLAGS] & (SUSPENDED | EXTERNAL):
                lines[base - FLAGS] |= SUSPENDED
                lost[end] = row
                end += 1
    return end


@kernel("int ids")
def erase_rows(address: int, ids: Any) -> None:
    """Takes rows out of the table; their lines may be used again. None may be waiting to be linked."""
    table = words_at(address)
    lines, slots, free = halves_at(table[LINES]), halves_at(table[SLOTS]), halves_at(table[FREE_LINES])
    width, step, columns, mask = table[WIDTH], table[STEP], table[COLUMNS], table[MASK]
    for at in range(len(ids)):
        row = np.int64(ids[at])
        hashed = hash_at(lines, row * width, columns, step)
        slot = hashed & mask
        word = np.int32((hashed & (FULL ^ mask)) | row)
        while slots[slot] != word:
            slot = (slot + 1) & mask
        slots[slot] = DELETED
        lines[(row + 1) * width - FLAGS] = FREE
        free[table[FREE_COUNT]] = row
        table[FREE_COUNT] += 1
    table[FREE_TOP] = table[FREE_COUNT]


@kernel("int ids int")
def activate(address: int, ids: Any, rank: int) -> None:
    """Makes rows present: all the derivations they have are from lower ranks."""
    table = words_at(address)
    lines, width = halves_at(table[LINES]), table[WIDTH]
    for at in range(len(ids)):
        base = (np.int64(ids[at]) + 1) * width
        lines[base - WELL] = lines[base - COUNT]
        lines[base - RANK] = rank
        lines[base - FLAGS] = (lines[base - FLAGS] & ~(SUSPENDED | QUEUED | HIDDEN)) | BATCH


@kernel("int ids int int")
def change_flags(address: int, ids: Any, on: int, off: int) -> None:
    table = words_at(address)
    lines, width = halves_at(table[LINES]), table[WIDTH]
    for at in range(len(ids)):
        base = (np.int64(ids[at]) + 1) * width
        lines[base - FLAGS] = (lines[base - FLAGS] & ~off) | on


@kernel("int ids int int ids")
def choose_flags(address: int, ids: Any, on: int, off: int, out: Any) -> int:
    """Those of the rows that have all flags of `on` and none of `off`."""
    table = words_at(address)
    lines, width, end = halves_at(table[LINES]), table[WIDTH], 0
    for at in range(len(ids)):
        if lines[(np.int64(ids[at]) + 1) * width - FLAGS] & (on | off) == on:
            out[end] = ids[at]
            end += 1
    return end


@kernel("int ids int ids")
def read_halves(address: int, ids: Any, which: int, out: Any) -> None:
    """One of the halves behind the columns of each row."""
    table = words_at(address)
    lines, width = halves_at(table[LINES]), table[WIDTH]
    for at in range(len(ids)):
        out[at] = lines[(np.int64(ids[at]) + 1) * width - which]
