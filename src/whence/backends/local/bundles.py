"""Derivations of rows that share a line, counted together.

Many rules hand the last column of one row on to the head, and look at it nowhere else: the ends of paths, the things that a
variable points to. If both tables keep 64 rows a line, the rows of a line lead to rows that share a line, too, at the same places
in it. So the machine passes them on as a *bundle*: one of the rows, and a word with a bit for each. The line of the heads is
looked up once, and a derivation costs no more than raising a number.

A head of a bundle has, behind its own words, such a row and its bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from whence.backends.local.arrays import Lines
from whence.backends.local.blocks import BLOCK_BITS
from whence.backends.local.hashing import (
    BITS,
    CAPACITY,
    EMPTY,
    FILLED,
    FULL,
    LIMIT,
    LINES,
    MASK,
    SLOTS,
    USED,
    hash_key,
    layout_of,
    seek,
    shape_of,
)
from whence.backends.local.kernels import (
    FLAGS,
    FREE_COUNT,
    FREE_LINES,
    KEEPS_NEW,
    NEW,
    NEW_COUNT,
    NEW_SIZE,
    OWN_HALVES,
    RANK,
    ROWS,
    TOO_WIDE,
    count_derivation,
    row_end,
    write_key,
    write_state,
)
from whence.backends.local.memory import compiled, first_bit, halves_at, kernel, prefetch, words_at
from whence.engine.protocol import FREE
from whence.plan.steps import DeltaPlan, Join, Slot, read_by

# What heads of bundles have behind their words.
OWN_WORDS = 2
# So many heads are under way at once, and so many are worth two threads.
BLOCK, MANY = 16, 1 << 10
# A line has so many rows. Those of a round are brought together if it has one for so many lines.
MOST = 1 << BLOCK_BITS
ROWS_A_LINE = 16


class Source(NamedTuple):
    """Whose rows are passed on in bundles: those that a plan begins with, or those that it joins with last."""

    relation: str
    recursive: bool
    is_joined: bool


@dataclass(frozen=True, slots=True)
class Bundles:
    """Heads of bundles, as they are put into a table. `source` is the address of the one whose rows they are of."""

    heads: Lines
    source: int
    is_recursive: bool

    def __len__(self) -> int:
        """How many derivations they are."""
        return int(np.bitwise_count(self.heads[:, -1].view(np.uint64)).sum())


def find_source(plan: DeltaPlan, arities: dict[str, int]) -> Source | None:
    """If the last word of a head is the last of a row, and that word is looked at nowhere else."""
    if plan.scan is None or not plan.head or not isinstance(plan.head[-1], Slot):
        return None
    number, steps, scan = plan.head[-1].number, plan.steps, plan.scan
    if plan.head.count(plan.head[-1]) > 1 or any(number in read_by(step) for step in steps):
        return None
    last = steps[-1] if steps else None
    if isinstance(last, Join) and (arities[last.relation] - 1, number) in last.binds:
        looked_at = {column for pair in last.same for column in pair}
        found = Source(last.relation, last.recursive, is_joined=True)
    elif (arities[scan.relation] - 1, number) in scan.binds:
        looked_at = {column for pair in scan.same for column in pair} | {column for column, _ in scan.equals}
        found = Source(scan.relation, scan.recursive, is_joined=False)
    else:
        return None
    return None if arities[found.relation] - 1 in looked_at else found


@compiled
def gather_rows(address: int, ids: Any) -> None:
    """Has rows that share a line stand one after the other, if they are many for the lines there are."""
    table = words_at(address)
    bits, count, end = table[BITS], np.int64(0), np.int64(0)
    if bits == 0 or len(ids) < ROWS_A_LINE or len(ids) * ROWS_A_LINE < table[USED]:
        return
    places, lines = np.zeros(table[USED], dtype=np.int64), np.empty(len(ids), dtype=np.int32)
    for at in range(len(ids)):
        row = np.int64(ids[at])
        lines[count] = row >> bits
        count += places[row >> bits] == 0
        places[row >> bits] |= np.int64(1) << (row & ((np.int64(1) << bits) - 1))
    for at in range(count):
        line = np.int64(lines[at])
        rest = places[line]
        while rest != 0:
            ids[end] = (line << bits) | first_bit(rest)
            rest &= rest - 1
            end += 1


@kernel("int int int lines ids int int int ids ids ids words")
def claim_bundles(
    address: int,
    source_address: int,
    is_recursive: int,
    heads: Any,
    ranks: Any,
    start: int,
    thread: int,
    threads: int,
    queue: Any,
    fresh: Any,
    left: Any,
    ends: Any,
) -> int:
    """`claim_rows` for the heads of bundles: `ranks` are the highest that their derivations use besides the source's rows.

    Stops where `queue` has no room for the rows of a line, too. `ends` says how many rows are in `queue`, how many were made and
    how many derivations there were, all of them added to what it said before.

    Several threads can do that at once, each of them for all heads. Each counts for the lines that are its own by their hashes,
    lists the rows that it makes in `fresh`, and leaves heads whose line is not there for later, in `left`; `ends` tells how many.
    """
    table, source = words_at(address), words_at(source_address)
    lines, slots, free, new = (
        halves_at(table[LINES]),
        halves_at(table[SLOTS]),
        halves_at(table[FREE_LINES]),
        halves_at(table[NEW]),
    )
    source_lines, source_shape, shape = halves_at(source[LINES]), shape_of(source), shape_of(table)
    layout, mask = layout_of(table), table[MASK]
    _, step, columns, bits = layout
    words, length, total = halves_at(heads.ctypes.data), 2 * heads.shape[1], heads.shape[0]
    hashes = np.empty(BLOCK, dtype=np.int64)
    listed, made, met, later, at = ends[0], np.int64(0), np.int64(0), ends[3], start
    is_alone = threads == 1
    if is_alone:
        table[TOO_WIDE] = 0
    while at < total:
        if (at - start) % BLOCK == 0:
            size = min(BLOCK, total - at)
            for ahead in range(size):
                hashes[ahead] = hash_key(words, length * (at + ahead), columns, bits)
                prefetch(table[SLOTS] + 4 * (hashes[ahead] & mask))
        if listed + MOST > len(queue):
            break
        key, hashed = length * at, hashes[(at - start) % BLOCK]
        if not is_alone and (hashed * threads) >> 32 != thread:
            at += 1
            continue
        if is_alone:
            if table[FILLED] >= table[LIMIT] or (table[FREE_COUNT] == 0 and table[USED] >= table[CAPACITY]):
                break
            if table[KEEPS_NEW] and table[NEW_COUNT] + MOST > table[NEW_SIZE]:
                break
            if step == 1:
                for column in range(columns):
                    if np.int64(words[key + 2 * column]) >> 31 != np.int64(words[key + 2 * column + 1]):
                        table[TOO_WIDE] = 1
                if table[TOO_WIDE]:
                    break
        line, slot = seek(slots, mask, hashed, lines, layout, words, key)
        if line < 0 and not is_alone:
            left[later] = at
            later += 1
            at += 1
            continue
        if line < 0:
            table[FILLED] += slots[slot] == EMPTY
            if table[FREE_COUNT] > 0:
                table[FREE_COUNT] -= 1
                line = np.int64(free[table[FREE_COUNT]])
            else:
                line = np.int64(table[USED])
                table[USED] += 1
            slots[slot] = np.int32((hashed & (FULL ^ mask)) | line)
            write_key(lines, shape, line, words, key)
        first, rank = line << bits, np.int64(ranks[at])
        base = row_end(shape, first)
        source_base = row_end(source_shape, (heads[at, columns] >> bits) << bits)
        rest = heads[at, columns + 1]
        while rest != 0:
            place = first_bit(rest)
            rest &= rest - 1
            end, used = base + OWN_HALVES * place, rank
            if is_recursive:
                used = max(used, np.int64(source_lines[source_base + OWN_HALVES * place - RANK]))
            met += 1
            if lines[end - FLAGS] & FREE:
                write_state(lines, end)
                queue[listed] = first | place
                listed += 1
                if not is_alone:
                    fresh[made] = first | place
                elif table[KEEPS_NEW]:
                    new[table[NEW_COUNT]] = first | place
                    table[NEW_COUNT] += 1
                made += 1
            else:
                listed += count_derivation(lines, end, used, first | place, queue, listed)
        at += 1
    ends[0], ends[3] = listed, later
    ends[1] += made
    ends[2] += met
    if is_alone:
        table[ROWS] += made
    return at  # type: ignore[no-any-return]
