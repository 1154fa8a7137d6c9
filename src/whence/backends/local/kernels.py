"""The compiled loops: hashing, looking up, inserting and removing rows, and keeping indexes.

A table is an int64 array of lines. A line is a row's columns followed by two words with what the engine knows of it: the number
of its derivations, how many of them are well founded, its rank and its flags (`small` is the same memory as int32, where these
are the last four of a line). They share a cache line with the row, since memory latency is what a look-up costs; for the same
reason the loops read a block ahead, which lets the loads overlap.

A loop that needs more room than its arrays have stops and says how far it came; the caller grows them and calls again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from whence.engine.protocol import ADDED, BATCH, FREE, HIDDEN, QUEUED, SUSPENDED

EMPTY, DELETED = -1, -2
BLOCK = 32
compiled: Any = njit(cache=True, nogil=True)


@compiled
def hash_of(lines: Any, line: int, width: int) -> int:
    """31 bits, from the high end of a product, where all bits of the input have arrived."""
    hashed = np.uint64(0x2545F4914F6CDD1D)
    for column in range(width):
        hashed = (hashed ^ np.uint64(lines[line, column])) * np.uint64(0x9E3779B97F4A7C15)
        hashed ^= hashed >> np.uint64(32)
    return np.int32(hashed >> np.uint64(33))  # type: ignore[return-value]


@compiled
def hash_lines(keys: Any, out: Any) -> None:
    for line in range(keys.shape[0]):
        out[line] = hash_of(keys, line, keys.shape[1])


@compiled
def find_lines(slots: Any, lines: Any, small: Any, forbid: int, keys: Any, hashes: Any, out: Any) -> int:
    """For each line of `keys`, the equal row if it has none of the forbidden flags, else -1."""
    mask, width, seen = len(slots) - 1, keys.shape[1], 0
    flags = 2 * width + 3
    for line in range(keys.shape[0]):
        if line % BLOCK == 0:
            for ahead in range(line, min(line + BLOCK, keys.shape[0])):
                row = slots[hashes[ahead] & mask]
                if row >= 0:
                    seen += lines[row, 0]
        slot = hashes[line] & mask
        row = slots[slot]
        while row != EMPTY:
            if row >= 0:
                same = True
                for column in range(width):
                    if lines[row, column] != keys[line, column]:
                        same = False
                        break
                if same:
                    break
            slot = (slot + 1) & mask
            row = slots[slot]
        if row >= 0 and small[row, flags] & forbid:
            row = EMPTY
        out[line] = row
    return seen


@compiled
def rehash(slots: Any, lines: Any, small: Any, used: int) -> int:
    """Fills an empty table with the rows that are there."""
    mask, width, seen = len(slots) - 1, lines.shape[1] - 2, 0
    flags = 2 * width + 3
    hashes = np.empty(BLOCK, dtype=np.int32)
    for start in range(0, used, BLOCK):
        count = min(BLOCK, used - start)
        for ahead in range(count):
            hashes[ahead] = hash_of(lines, start + ahead, width)
            seen += slots[hashes[ahead] & mask]
        for ahead in range(count):
            if small[start + ahead, flags] & FREE:
                continue
            slot = hashes[ahead] & mask
            while slots[slot] != EMPTY:
                slot = (slot + 1) & mask
            slots[slot] = start + ahead
    return seen


@compiled
def claim_rows(
    slots: Any, lines: Any, small: Any, free: Any, state: Any,
    keys: Any, hashes: Any, ranks: Any, start: int, made: Any, queue: Any, ends: Any,
) -> int:  # fmt: skip
    """One more derivation for each line of `keys`, from tuples whose highest rank is in `ranks`.

    A row that is present gains well-founded support if the derivation is from lower ranks; one that is not present is queued.
    Rows that were not there are made, and listed. `state` is: lines used, free lines, slots used (deleted ones included);
    `ends` is how far the lists `made` and `queue` go. Returns the number of lines done.
    """
    mask, width, total = len(slots) - 1, keys.shape[1], keys.shape[0]
    count, well, rank, flags = 2 * width, 2 * width + 1, 2 * width + 2, 2 * width + 3
    used, free_lines, filled = state[0], state[1], state[2]
    made_end, queue_end, seen = ends[0], ends[1], ends[2]
    capacity, limit = lines.shape[0], (len(slots) * 5) // 8
    line = start
    while line < total:
        if line % BLOCK == 0:
            for ahead in range(line, min(line + BLOCK, total)):
                row = slots[hashes[ahead] & mask]
                if row >= 0:
                    seen += lines[row, 0]
        if filled >= limit or (used >= capacity and free_lines == 0):
            break
        slot = hashes[line] & mask
        reusable = EMPTY
        row = slots[slot]
        while row != EMPTY:
            if row >= 0:
                same = True
                for column in range(width):
                    if lines[row, column] != keys[line, column]:
                        same = False
                        break
                if same:
                    break
            elif reusable == EMPTY:
                reusable = slot
            slot = (slot + 1) & mask
            row = slots[slot]
        if row == EMPTY:
            if reusable != EMPTY:
                slot = reusable
            else:
                filled += 1
            if free_lines > 0:
                free_lines -= 1
                row = free[free_lines]
            else:
                row = np.int32(used)
                used += 1
            slots[slot] = row
            for column in range(width):
                lines[row, column] = keys[line, column]
            small[row, count], small[row, well], small[row, rank] = 1, 0, 0
            small[row, flags] = SUSPENDED | QUEUED | HIDDEN | ADDED
            made[made_end] = row
            made_end += 1
            queue[queue_end] = row
            queue_end += 1
        else:
            small[row, count] += 1
            if not small[row, flags] & SUSPENDED:
                if ranks[line] < small[row, rank]:
                    small[row, well] += 1
            elif not small[row, flags] & QUEUED:
                small[row, flags] |= QUEUED
                queue[queue_end] = row
                queue_end += 1
        line += 1
    state[0], state[1], state[2] = used, free_lines, filled
    ends[0], ends[1], ends[2] = made_end, queue_end, seen
    return line


@compiled
def drop_supports(small: Any, found: Any, ranks: Any, lost: Any) -> int:
    """One derivation less for each row found. Rows that lose their last well-founded one are suspended and listed."""
    count = small.shape[1] - 4
    well, rank, flags = count + 1, count + 2, count + 3
    end = 0
    for line in range(len(found)):
        row = found[line]
        small[row, count] -= 1
        if not small[row, flags] & SUSPENDED and ranks[line] < small[row, rank]:
            small[row, well] -= 1
            if small[row, well] == 0:
                small[row, flags] |= SUSPENDED
                lost[end] = row
                end += 1
    return end


@compiled
def erase_rows(slots: Any, lines: Any, small: Any, free: Any, state: Any, ids: Any) -> None:
    """Takes rows out of the table; their lines may be used again."""
    mask, width = len(slots) - 1, lines.shape[1] - 2
    for at in range(len(ids)):
        row = ids[at]
        slot = hash_of(lines, row, width) & mask
        while slots[slot] != row:
            slot = (slot + 1) & mask
        slots[slot] = DELETED
        small[row, 2 * width + 3] = FREE
        free[state[1]] = row
        state[1] += 1


@compiled
def activate(small: Any, ids: Any, rank: int) -> None:
    """Makes rows present: all the derivations they have are from lower ranks."""
    count = small.shape[1] - 4
    for at in range(len(ids)):
        row = ids[at]
        small[row, count + 1] = small[row, count]
        small[row, count + 2] = rank
        small[row, count + 3] = (small[row, count + 3] & ~(SUSPENDED | QUEUED | HIDDEN)) | BATCH


@compiled
def change_flags(small: Any, ids: Any, on: int, off: int) -> None:
    flags = small.shape[1] - 1
    for at in range(len(ids)):
        small[ids[at], flags] = (small[ids[at], flags] & ~off) | on


@compiled
def gather(lines: Any, ids: Any, column: int, out: Any) -> None:
    for at in range(len(ids)):
        out[at] = lines[ids[at], column]


# -- indexes ----------------------------------------------------------------------------------------------------------
#
# An index maps a key (some columns) to a block of row numbers in `arena`. A full block moves to the arena's end with twice
# the room. `place` is where in its block each row stands, so that a row is taken out by moving the last one into its place.
# `state` of an index: keys used, arena used.


@compiled
def link_rows(
    key_slots: Any, keys: Any, begin: Any, length: Any, room: Any, arena: Any, place: Any, state: Any,
    wanted: Any, hashes: Any, ids: Any, start: int,
) -> int:  # fmt: skip
    """Puts rows into the index under their keys, `wanted`. Returns the number done: fewer than all if there is no room."""
    mask, width = len(key_slots) - 1, keys.shape[1]
    limit = min(keys.shape[0], (len(key_slots) * 5) // 8)
    for at in range(start, len(ids)):
        slot = hashes[at] & mask
        key = key_slots[slot]
        while key != EMPTY:
            same = True
            for column in range(width):
                if keys[key, column] != wanted[at, column]:
                    same = False
                    break
            if same:
                break
            slot = (slot + 1) & mask
            key = key_slots[slot]
        if key == EMPTY:
            if state[0] >= limit or state[1] >= len(arena):
                return at
            key = np.int32(state[0])
            state[0] += 1
            key_slots[slot] = key
            for column in range(width):
                keys[key, column] = wanted[at, column]
            begin[key], length[key], room[key] = state[1], 0, 1
            state[1] += 1
        elif length[key] == room[key]:
            larger = 2 * room[key]
            if state[1] + larger > len(arena):
                return at
            for offset in range(length[key]):
                arena[state[1] + offset] = arena[begin[key] + offset]
            begin[key], room[key] = state[1], larger
            state[1] += larger
        arena[begin[key] + length[key]] = ids[at]
        place[ids[at]] = length[key]
        length[key] += 1
    return len(ids)


@compiled
def unlink_rows(found: Any, begin: Any, length: Any, arena: Any, place: Any, ids: Any) -> None:
    """Takes rows out of the index, given the keys they are under."""
    for at in range(len(ids)):
        key, row = found[at], ids[at]
        last = arena[begin[key] + length[key] - 1]
        arena[begin[key] + place[row]] = last
        place[last] = place[row]
        length[key] -= 1


@compiled
def rehash_keys(key_slots: Any, keys: Any, used: int) -> None:
    mask = len(key_slots) - 1
    for key in range(used):
        slot = hash_of(keys, key, keys.shape[1]) & mask
        while key_slots[slot] != EMPTY:
            slot = (slot + 1) & mask
        key_slots[slot] = key


@compiled
def find_keys(key_slots: Any, keys: Any, length: Any, wanted: Any, hashes: Any, out: Any) -> int:
    """For each line of `wanted`, its key or -1; and the number of rows under them all."""
    mask, width, total = len(key_slots) - 1, keys.shape[1], 0
    for line in range(wanted.shape[0]):
        slot = hashes[line] & mask
        key = key_slots[slot]
        while key != EMPTY:
            same = True
            for column in range(width):
                if keys[key, column] != wanted[line, column]:
                    same = False
                    break
            if same:
                total += length[key]
                break
            slot = (slot + 1) & mask
            key = key_slots[slot]
        out[line] = key
    return total


@compiled
def expand_keys(
    found: Any, begin: Any, length: Any, arena: Any, small: Any, forbid: int, picks: Any, matches: Any
) -> int:
    """The pairs (line, row) for keys found, without rows that have a forbidden flag."""
    end, flags = 0, small.shape[1] - 1
    for line in range(len(found)):
        key = found[line]
        if key < 0:
            continue
        first = begin[key]
        for offset in range(length[key]):
            row = arena[first + offset]
            if forbid and small[row, flags] & forbid:
                continue
            picks[end] = line
            matches[end] = row
            end += 1
    return end
