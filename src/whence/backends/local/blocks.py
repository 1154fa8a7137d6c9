"""How many rows share a line of a table: chosen, and chosen again, by what is there.

Where nearly all rows that a line could stand for are there, as in relations over numbers or names that lie close together, a line
of 64 rows takes less memory than 64 lines, one look-up in a table of few slots finds it, and rows that are met one after the
other are close to each other. Where few are there, most of the line is wasted. So a table begins with a line for each row and,
whenever it has doubled, is looked at again. Cost: a look takes a part of what making the rows took.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from whence.backends.local.hashing import (
    BITS,
    CAPACITY,
    COLUMNS,
    EMPTY,
    FILLED,
    FULL,
    LIMIT,
    LINES,
    MASK,
    SLOTS,
    USED,
    find_line,
    hash_key,
    row_word,
    shape_of,
    word_at,
)
from whence.backends.local.kernels import FLAGS, OWN_HALVES, ROWS, row_end, write_key
from whence.backends.local.memory import halves_at, kernel, words_at
from whence.engine.protocol import FREE

BLOCK_BITS = 6
# Tables with fewer rows stay as they are.
SMALL = 1 << 11
# Of the 64 rows of a line, so many have to be there in a table of few lines, of some and of many; under half of it is too few.
# While the lines are in the cache, what is not there costs nothing; later, with 24 of 64, a row takes 43 bytes.
FEW_LINES, SOME_LINES = 1 << 14, 1 << 16
SPARSE, SCATTERED, CLOSE = 2, 8, 24


class UnknownLayout(ValueError):
    """What `WHENCE_TABLES` asks for."""


def asked_for(name: str) -> str:
    """How tables are laid out, for tests: as they choose, a line for each row, blocks, or otherwise whenever they may."""
    if name not in ("", "rows", "blocks", "changing"):
        raise UnknownLayout(f"WHENCE_TABLES is {name!r}; it can be rows, blocks or changing")
    return name


FORCED = asked_for(os.environ.get("WHENCE_TABLES", ""))


def first_bits(arity: int) -> int:
    """Those of an empty table."""
    return BLOCK_BITS if arity and FORCED in ("blocks", "changing") else 0


def may_share() -> bool:
    """Whether tables may be asked to have rows share lines, whatever they would choose."""
    return FORCED != "rows"


def other_bits(address: int, bits: int, rows: int, lines: int, before: int) -> int:
    """The better choice for a table of so many rows in so many lines; `before` it had so many rows when it was looked at."""
    if FORCED:
        return BLOCK_BITS - bits if FORCED == "changing" else bits
    if rows < max(SMALL, 2 * before):
        return bits
    if bits:
        return 0 if 2 * rows < _needed(lines) * lines else bits
    sampled = np.zeros(2, dtype=np.int64)
    sample_blocks(address, BLOCK_BITS, sampled)
    there, blocks = sampled.tolist()
    return BLOCK_BITS if there >= _needed(blocks * rows // max(1, there)) * blocks else 0


def _needed(lines: int) -> int:
    return SPARSE if lines <= FEW_LINES else SCATTERED if lines <= SOME_LINES else CLOSE


@kernel("int int words")
def sample_blocks(address: int, bits: int, out: Any) -> None:
    """How many of a sample of rows there are, and how many lines they would be in if a line had so many bits of rows.

    The sample is made of all rows of some of those lines.
    """
    table = words_at(address)
    lines, shape, columns, own = halves_at(table[LINES]), shape_of(table), table[COLUMNS], table[BITS]
    total = table[USED] << own
    size = np.int64(1 << 15)
    while size < total >> 4:
        size *= 2
    seen = np.zeros(size, dtype=np.int64)
    found, rows = 0, 0
    for row in range(total):
        if lines[row_end(shape, row) - FLAGS] & FREE:
            continue
        hashed = np.uint64(0x2545F4914F6CDD1D)
        for column in range(columns):
            word = row_word(lines, shape, row, column)
            if column == columns - 1:
                word >>= bits
            hashed = (hashed ^ np.uint64(word)) * np.uint64(0x9E3779B97F4A7C15)
            hashed ^= hashed >> np.uint64(29)
        if np.int64(hashed & np.uint64(31)) != 0 and total > (1 << 14):
            continue
        rows += 1
        mark = np.int64(hashed | np.uint64(1))
        slot = np.int64(hashed >> np.uint64(20)) & (size - 1)
        step = 0
        while seen[slot] != 0 and seen[slot] != mark and step < size:
            slot = (slot + 1) & (size - 1)
            step += 1
        if seen[slot] == 0:
            seen[slot] = mark
            found += 1
    out[0], out[1] = rows, found


@kernel("int lines rows ids")
def place_rows(address: int, keys: Any, states: Any, out: Any) -> int:
    """Puts rows that are not there into a table, with what is known of each; `out` are their numbers.

    Those whose number is not below zero are in already. Stops where there is no room; returns the number done.
    """
    table = words_at(address)
    lines, slots = halves_at(table[LINES]), halves_at(table[SLOTS])
    shape, mask, columns, bits = shape_of(table), table[MASK], table[COLUMNS], table[BITS]
    words, low = halves_at(keys.ctypes.data), (np.int64(1) << bits) - 1
    for at in range(keys.shape[0]):
        if out[at] >= 0:
            continue
        if table[FILLED] >= table[LIMIT] or table[USED] >= table[CAPACITY]:
            return at
        key = 2 * columns * at
        hashed = hash_key(words, key, columns, bits)
        line = find_line(table, words, key, hashed)
        if line < 0:
            line = table[USED]
            slot = hashed & mask
            while slots[slot] != EMPTY:
                slot = (slot + 1) & mask
            slots[slot] = np.int32((hashed & (FULL ^ mask)) | line)
            write_key(lines, shape, line, words, key)
            table[USED] += 1
            table[FILLED] += 1
        row = line << bits
        if bits:
            row |= word_at(words, key, columns - 1, 2) & low
        base = row_end(shape, row)
        for half in range(OWN_HALVES):
            lines[base - OWN_HALVES + half] = states[at, half]
        out[at] = row
        table[ROWS] += 1
    return keys.shape[0]


@kernel("int ids rows")
def read_states(address: int, ids: Any, out: Any) -> None:
    """What is known of rows."""
    table = words_at(address)
    lines, shape = halves_at(table[LINES]), shape_of(table)
    for at in range(len(ids)):
        base = row_end(shape, np.int64(ids[at])) - OWN_HALVES
        for half in range(OWN_HALVES):
            out[at, half] = lines[base + half]
