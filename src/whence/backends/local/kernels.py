"""The compiled loops on the rows of a table.

A line has the columns of its rows, and for each row four halves with what the engine knows of it: the number of its derivations,
how many of them are well founded, its rank and its flags. Where a line stands for several rows, those that are not there are
flagged as free.

A line none of whose rows is there goes onto a stack of free lines, to be used again. If the table has indexes, new rows are
listed; they are put into the indexes only when one of these is asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whence.backends.local.hashing import (
    BITS,
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
    hash_key,
    layout_of,
    same_words,
    seek,
    shape_of,
    word_at,
)
from whence.backends.local.memory import compiled, halves_at, kernel, prefetch, words_at
from whence.engine.protocol import ADDED, EXTERNAL, FREE, HIDDEN, QUEUED, SUSPENDED

FREE_LINES, FREE_COUNT, ROWS, NEW, NEW_SIZE, NEW_COUNT, KEEPS_NEW, LISTED, TOO_WIDE = range(OWN, OWN + 9)
OWN_WORDS, OWN_HALVES = 9, 4
# What a row has.
COUNT, WELL, RANK, FLAGS = 4, 3, 2, 1  # halves before its end
# A flag of the first row of a line that is on the stack.
UNUSED = 1 << 16


@compiled
def row_end(shape: Any, row: int) -> int:
    """Behind what a line has of a row."""
    width, columns, bits, _, _ = shape
    return (row >> bits) * width + columns + (((row & ((np.int64(1) << bits) - 1)) + 1) << 2)


@compiled
def find_row(table: Any, words: Any, key: int, hashed: int) -> int:
    """The row with the words of a key, or -1."""
    line, bits = find_line(table, words, key, hashed), table[BITS]
    if line < 0 or bits == 0:
        return line
    row = (line << bits) | (word_at(words, key, table[COLUMNS] - 1, 2) & ((np.int64(1) << bits) - 1))
    return -1 if halves_at(table[LINES])[row_end(shape_of(table), row) - FLAGS] & FREE else row


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
def write_key(lines: Any, shape: Any, line: int, words: Any, key: int) -> None:
    """A line for the row of a key; none of its rows is there."""
    width, halves, bits, step, last = shape
    base = line * width
    if step == 1:
        for column in range(last + 1):
            lines[base + column] = words[key + 2 * column]
        if bits:
            lines[base + last] >>= bits
    else:
        for half in range(halves):
            lines[base + half] = words[key + half]
        if bits:
            word = word_at(words, key, last, 2) >> bits
            lines[base + halves - 2], lines[base + halves - 1] = np.int32(word & FULL), np.int32(word >> 32)
    if bits:
        for end in range(base + halves + OWN_HALVES, base + width + 1, OWN_HALVES):
            lines[end - FLAGS] = FREE


@compiled
def write_state(lines: Any, base: int) -> None:
    """A row with one derivation, which is not present yet."""
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
    lines, slots, free, new = (
        halves_at(table[LINES]),
        halves_at(table[SLOTS]),
        halves_at(table[FREE_LINES]),
        halves_at(table[NEW]),
    )
    layout, mask = layout_of(table), table[MASK]
    _, step, columns, bits = layout
    used, free_count, filled, listed = table[USED], table[FREE_COUNT], table[FILLED], table[LISTED]
    shape, low = shape_of(table), (np.int64(1) << bits) - 1
    made, new_count = np.int64(0), table[NEW_COUNT]
    words = halves_at(keys.ctypes.data)
    hashes = np.empty(BLOCK, dtype=np.int64)
    line, total = start, keys.shape[0]
    table[TOO_WIDE] = 0
    while line < total:
        size = min(BLOCK, total - line)
        if filled + size > table[LIMIT] or free_count + table[CAPACITY] - used < size:
            break
        if table[KEEPS_NEW] and new_count + size > table[NEW_SIZE]:
            break
        if step == 1 and not fits_halves(words, line, size, columns):
            table[TOO_WIDE] = 1
            break
        hash_block(table, words, line, size, hashes)
        for at in range(size):
            key = 2 * columns * (line + at)
            hashed = hashes[at]
            found, slot = seek(slots, mask, hashed, lines, layout, words, key)
            if found < 0:
                filled += slots[slot] == EMPTY
                if free_count > 0:
                    free_count -= 1
                    found = np.int64(free[free_count])
                else:
                    found = used
                    used += 1
                slots[slot] = np.int32((hashed & (FULL ^ mask)) | found)
                write_key(lines, shape, found, words, key)
                row = found << bits
                if bits:
                    row |= word_at(words, key, columns - 1, 2) & low
                base = row_end(shape, row)
            else:
                row = found << bits
                if bits:
                    row |= word_at(words, key, columns - 1, 2) & low
                base = row_end(shape, row)
                if bits == 0 or not lines[base - FLAGS] & FREE:
                    listed += count_derivation(lines, base, ranks[line + at], row, queue, listed)
                    continue
            write_state(lines, base)
            made += 1
            queue[listed] = row
            listed += 1
            if table[KEEPS_NEW]:
                new[new_count] = row
                new_count += 1
        line += size
    table[USED], table[FREE_COUNT], table[FILLED], table[LISTED] = used, free_count, filled, listed
    table[NEW_COUNT] = new_count
    table[ROWS] += made
    return line  # type: ignore[no-any-return]


@kernel("int lines int")
def append_rows(address: int, keys: Any, start: int) -> int:
    """Rows with one derivation, which are not there and for which there must be lines, behind the others and in no slots.

    Each has a line for itself. Stops where a key takes more than the columns of the table have; returns the number of keys done.
    """
    table = words_at(address)
    lines, shape, columns = halves_at(table[LINES]), shape_of(table), table[COLUMNS]
    words, line, total = halves_at(keys.ctypes.data), start, keys.shape[0]
    while line < total and (table[STEP] == 2 or fits_halves(words, line, 1, columns)):
        write_key(lines, shape, table[USED], words, 2 * columns * line)
        write_state(lines, row_end(shape, table[USED]))
        table[USED] += 1
        table[ROWS] += 1
        line += 1
    return line


# Several threads can claim rows at once: each takes the keys whose slots begin in its share of the slots, and the lines it makes
# go to where no other makes any. What would cross into the next share is left for later, and so is what finds no room.


@kernel("int lines ids int int int int ids ids ids ids words")
def claim_share(
    address: int,
    keys: Any,
    ranks: Any,
    thread: int,
    threads: int,
    first: int,
    most: int,
    queue: Any,
    fresh: Any,
    taken: Any,
    left: Any,
    ends: Any,
) -> None:
    """`claim_rows` for one share of the slots, with at most so many new lines from `first` on, for which there must be room.

    `fresh` are the rows made, `taken` the slots of the lines made, `left` the keys left for later. `ends` says how many there are
    in `queue`, `taken` and `left`, how many slots were empty before, and how many there are in `fresh`.
    """
    table = words_at(address)
    lines, slots = halves_at(table[LINES]), halves_at(table[SLOTS])
    width, step, columns, mask, bits = table[WIDTH], table[STEP], table[COLUMNS], table[MASK], table[BITS]
    shape, low = shape_of(table), (np.int64(1) << bits) - 1
    words, total = halves_at(keys.ctypes.data), keys.shape[0]
    hashes, own = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
    begin, stop = (mask + 1) * thread // threads, (mask + 1) * (thread + 1) // threads
    listed, made, later, filled, rows = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for start in range(0, total, BLOCK):
        size = 0
        for line in range(start, min(start + BLOCK, total)):
            hashed = hash_key(words, 2 * columns * line, columns, bits)
            if begin <= hashed & mask < stop:
                hashes[size], own[size] = hashed, line
                size += 1
                prefetch(table[SLOTS] + 4 * (hashed & mask))
        for at in range(size):
            word = np.int64(slots[hashes[at] & mask])
            if (word ^ hashes[at]) & (FULL ^ mask) == 0:
                place = 4 * width * (word & mask)
                if bits:
                    place += 4 * OWN_HALVES * (word_at(words, 2 * columns * own[at], columns - 1, 2) & low)
                prefetch(table[LINES] + place)
        for at in range(size):
            key, hashed = 2 * columns * own[at], hashes[at]
            slot, reusable, found = hashed & mask, np.int64(-1), np.int64(-1)
            word = np.int64(slots[slot])
            while word != EMPTY:
                if word == DELETED:
                    reusable = slot
                elif (word ^ hashed) & (FULL ^ mask) == 0 and same_words(
                    lines, (word & mask) * width, step, words, key, columns, bits
                ):
                    found = word & mask
                    break
                slot += 1
                if slot == stop:
                    break
                word = np.int64(slots[slot])
            if found < 0:
                if slot == stop or made == most or (step == 1 and not fits_halves(words, own[at], 1, columns)):
                    left[later] = own[at]
                    later += 1
                    continue
                if reusable >= 0:
                    slot = reusable
                else:
                    filled += 1
                found = first + made
                slots[slot] = np.int32((hashed & (FULL ^ mask)) | found)
                write_key(lines, shape, found, words, key)
                taken[made] = slot
                made += 1
                row = found << bits
                if bits:
                    row |= word_at(words, key, columns - 1, 2) & low
                base = row_end(shape, row)
            else:
                row = found << bits
                if bits:
                    row |= word_at(words, key, columns - 1, 2) & low
                base = row_end(shape, row)
                if bits == 0 or not lines[base - FLAGS] & FREE:
                    listed += count_derivation(lines, base, ranks[own[at]], row, queue, listed)
                    continue
            write_state(lines, base)
            fresh[rows] = row
            rows += 1
            queue[listed] = row
            listed += 1
    ends[0], ends[1], ends[2], ends[3], ends[4] = listed, made, later, filled, rows


@kernel("int int int ids int")
def move_lines(address: int, first: int, down: int, taken: Any, made: int) -> None:
    """Moves the lines that `claim_share` made from `first` on down."""
    table = words_at(address)
    lines, slots, width = halves_at(table[LINES]), halves_at(table[SLOTS]), table[WIDTH]
    for at in range(first * width, (first + made) * width):
        lines[at - down * width] = lines[at]
    for at in range(made):
        slots[taken[at]] -= down


@kernel("int int ids")
def choose_rows(address: int, forbid: int, out: Any) -> int:
    """The rows that are there and have none of the forbidden flags, in order; returns how many there are."""
    table = words_at(address)
    lines, shape, end = halves_at(table[LINES]), shape_of(table), 0
    for row in range(table[USED] << table[BITS]):
        if not lines[row_end(shape, row) - FLAGS] & (forbid | FREE):
            out[end] = row
            end += 1
    return end


@kernel("int int int lines ids")
def find_rows(address: int, forbid: int, having: int, keys: Any, out: Any) -> None:
    """For each key the equal row if it has none of the forbidden flags and all of `having`, else -1."""
    table = words_at(address)
    lines, shape, columns = halves_at(table[LINES]), shape_of(table), table[COLUMNS]
    words = halves_at(keys.ctypes.data)
    hashes = np.empty(BLOCK, dtype=np.int64)
    for start in range(0, keys.shape[0], BLOCK):
        size = min(BLOCK, keys.shape[0] - start)
        hash_block(table, words, start, size, hashes)
        for at in range(size):
            row = find_row(table, words, 2 * columns * (start + at), hashes[at])
            if row >= 0 and lines[row_end(shape, row) - FLAGS] & (forbid | having) != having:
                row = -1
            out[start + at] = row


@kernel("int lines ids ids")
def drop_supports(address: int, keys: Any, ranks: Any, lost: Any) -> int:
    """One derivation less for each key's row, which is there. Rows that lose their last well-founded one are suspended and
    listed.
    """
    table = words_at(address)
    lines, slots, shape = halves_at(table[LINES]), halves_at(table[SLOTS]), shape_of(table)
    layout, mask, columns, bits = layout_of(table), table[MASK], table[COLUMNS], table[BITS]
    words, low = halves_at(keys.ctypes.data), (np.int64(1) << bits) - 1
    hashes = np.empty(BLOCK, dtype=np.int64)
    end = 0
    for start in range(0, keys.shape[0], BLOCK):
        size = min(BLOCK, keys.shape[0] - start)
        hash_block(table, words, start, size, hashes)
        for at in range(size):
            key = 2 * columns * (start + at)
            line, _ = seek(slots, mask, hashes[at], lines, layout, words, key)
            row = line << bits
            if bits:
                row |= word_at(words, key, columns - 1, 2) & low
            base = row_end(shape, row)
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
    lines, shape, columns = halves_at(table[LINES]), shape_of(table), table[COLUMNS]
    words = halves_at(keys.ctypes.data)
    hashes = np.empty(BLOCK, dtype=np.int64)
    end = 0
    for start in range(0, keys.shape[0], BLOCK):
        size = min(BLOCK, keys.shape[0] - start)
        hash_block(table, words, start, size, hashes)
        for at in range(size):
            row = find_row(table, words, 2 * columns * (start + at), hashes[at])
            base = row_end(shape, row)
            if row >= 0 and not lines[base - FLAGS] & (SUSPENDED | EXTERNAL):
                lines[base - FLAGS] |= SUSPENDED
                lost[end] = row
                end += 1
    return end


@kernel("int ids")
def erase_rows(address: int, ids: Any) -> None:
    """Takes rows out of the table; lines that are empty then may be used again. None may be waiting to be linked."""
    table = words_at(address)
    lines, slots, free = halves_at(table[LINES]), halves_at(table[SLOTS]), halves_at(table[FREE_LINES])
    width, step, columns, mask, bits = table[WIDTH], table[STEP], table[COLUMNS], table[MASK], table[BITS]
    shape = shape_of(table)
    for at in range(len(ids)):
        row = np.int64(ids[at])
        lines[row_end(shape, row) - FLAGS] = FREE
        line = row >> bits
        other = line << bits
        while other >> bits == line and lines[row_end(shape, other) - FLAGS] & FREE:
            other += 1
        if other >> bits == line:  # which is there
            continue
        hashed = hash_at(lines, line * width, columns, step)
        slot = hashed & mask
        word = np.int32((hashed & (FULL ^ mask)) | line)
        while slots[slot] != word:
            slot = (slot + 1) & mask
        slots[slot] = DELETED
        if slots[(slot + 1) & mask] == EMPTY:  # no look-up has to go on from here
            while slots[slot] == DELETED:
                slots[slot] = EMPTY
                table[FILLED] -= 1
                slot = (slot - 1) & mask
        lines[row_end(shape, line << bits) - FLAGS] = FREE | UNUSED
        free[table[FREE_COUNT]] = line
        table[FREE_COUNT] += 1
    table[ROWS] -= len(ids)


@kernel("int ids int int ids")
def activate(address: int, ids: Any, rank: int, on: int, added: Any) -> int:
    """Makes rows present, with flags `on`: all the derivations they have are from lower ranks.

    Those that came in this epoch are listed in `added`, if there is room in it; returns how many there are.
    """
    table = words_at(address)
    lines, shape, end, is_told = halves_at(table[LINES]), shape_of(table), 0, len(added) > 0
    for at in range(len(ids)):
        base = row_end(shape, np.int64(ids[at]))
        lines[base - WELL] = lines[base - COUNT]
        lines[base - RANK] = rank
        flags = lines[base - FLAGS]
        lines[base - FLAGS] = (flags & ~(SUSPENDED | QUEUED | HIDDEN)) | on
        if flags & ADDED and is_told:
            added[end] = ids[at]
            end += 1
    return end


@kernel("int ids ids ids ids ids words")
def net_rows(address: int, come: Any, lost: Any, added: Any, before: Any, passing: Any, counts: Any) -> None:
    """What an epoch comes to, see `Table.net`; `counts` says how many there are of each. No row is queued any more: the flag
    tells which have been met.
    """
    table = words_at(address)
    lines, shape = halves_at(table[LINES]), shape_of(table)
    there, kept, passed = 0, 0, 0
    for at in range(len(come)):
        base = row_end(shape, np.int64(come[at]))
        if lines[base - FLAGS] & (ADDED | SUSPENDED | QUEUED) == ADDED:
            lines[base - FLAGS] |= QUEUED
            added[there] = come[at]
            there += 1
    for at in range(there):
        lines[row_end(shape, np.int64(added[at])) - FLAGS] &= ~QUEUED
    for at in range(len(lost)):
        base = row_end(shape, np.int64(lost[at]))
        if lines[base - FLAGS] & QUEUED:
            continue
        lines[base - FLAGS] |= QUEUED
        if lines[base - FLAGS] & (SUSPENDED | ADDED) == SUSPENDED | ADDED:
            passing[passed] = lost[at]
            passed += 1
        else:
            before[kept] = lost[at]
            kept += 1
    for at in range(len(lost)):
        lines[row_end(shape, np.int64(lost[at])) - FLAGS] &= ~QUEUED
    counts[0], counts[1], counts[2] = there, kept, passed


@kernel("int int")
def drop_flags(address: int, off: int) -> None:
    """Takes flags from all rows."""
    table = words_at(address)
    lines, shape = halves_at(table[LINES]), shape_of(table)
    for row in range(table[USED] << table[BITS]):
        lines[row_end(shape, row) - FLAGS] &= ~off


@kernel("int ids int int")
def change_flags(address: int, ids: Any, on: int, off: int) -> None:
    table = words_at(address)
    lines, shape = halves_at(table[LINES]), shape_of(table)
    for at in range(len(ids)):
        base = row_end(shape, np.int64(ids[at]))
        lines[base - FLAGS] = (lines[base - FLAGS] & ~off) | on


@kernel("int ids int int ids")
def choose_flags(address: int, ids: Any, on: int, off: int, out: Any) -> int:
    """Those of the rows that have all flags of `on` and none of `off`."""
    table = words_at(address)
    lines, shape, end = halves_at(table[LINES]), shape_of(table), 0
    for at in range(len(ids)):
        if lines[row_end(shape, np.int64(ids[at])) - FLAGS] & (on | off) == on:
            out[end] = ids[at]
            end += 1
    return end


@kernel("int ids ids")
def queue_derivable(address: int, ids: Any, out: Any) -> int:
    """Those of the rows that are suspended, have a derivation and are not queued yet; they are now."""
    table = words_at(address)
    lines, shape, end = halves_at(table[LINES]), shape_of(table), 0
    for at in range(len(ids)):
        base = row_end(shape, np.int64(ids[at]))
        if lines[base - FLAGS] & (SUSPENDED | QUEUED) == SUSPENDED and lines[base - COUNT] > 0:
            lines[base - FLAGS] |= QUEUED
            out[end] = ids[at]
            end += 1
    return end


@kernel("int ids int ids")
def read_halves(address: int, ids: Any, which: int, out: Any) -> None:
    """One of the halves behind the columns of each row."""
    table = words_at(address)
    lines, shape = halves_at(table[LINES]), shape_of(table)
    for at in range(len(ids)):
        out[at] = lines[row_end(shape, np.int64(ids[at])) - which]
