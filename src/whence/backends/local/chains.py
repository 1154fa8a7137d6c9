"""The compiled loop that takes a round of chains: rules whose bodies are paths from the first column of the head to the last.

Relations are *grids* then: for each value of the first column, a bit for each value of the last. What a value leads to along a
path is found step by step, with the number of ways to each value; the last step adds whole words of bits, each as often as there
are ways. Sums of words are kept as *planes*: a word of planes has the lowest bits of 64 sums, the next one the bits above them.
So 64 derivations are counted by a few operations, and the rows they are of are touched once for each round.

Steps read grids *packed*, as lists of the words that are not empty: where values have few others, nearly all are. What a value of
the first column leads to is written into its own lines only, so threads take such values in turn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whence.backends.local.blocks import BLOCK_BITS
from whence.backends.local.hashing import CAPACITY, LINES, USED, shape_of
from whence.backends.local.kernels import (
    COUNT,
    FLAGS,
    OWN_HALVES,
    ROWS,
    count_derivation,
    row_end,
    write_key,
    write_state,
)
from whence.backends.local.memory import compiled, fetch_add, first_bit, halves_at, kernel, prefetch, words_at
from whence.engine.protocol import FREE

# What is told: the rank of the round; whose turn it is, as the node behind those of the relations before its own, or -1 if the
# next one is to be taken; after how many words to come back; then the derivations met, and how many rows are queued.
RANK, TURN, FUEL, MET, LISTED = range(5)
TOLD = 5
# What a plan tells: the relation it derives, how many steps it has, and the packed grid of each.
DERIVED, LENGTH, STEPS = range(3)
# As many as the bits of a count.
PLANES = 32
# The packed grids of each relation of the recursion: of the rows that are present, those that were so before the round, and those
# that came with it. Those of other relations stand behind them.
NOW, BEFORE, CAME = range(3)
PARTS = 3


@kernel("lines lines int int words lines lines rows lines")
def pack(
    present: Any,
    following: Any,
    first: int,
    parts: int,
    bits: Any,
    leading: Any,
    begins: Any,
    places: Any,
    words: Any,
) -> None:
    """Packs the grids of a relation, as `parts` of those from the first on, for a round in which the rows of `following` come to
    those that are present. Lists of a node begin where `begins` says; `leading` are the nodes that have one, as bits.

    `bits` is for each node the place of its own bit in a row.
    """
    ends = np.zeros(PARTS, dtype=np.int64)
    for part in range(parts):
        for at in range(leading.shape[1]):
            leading[first + part, at] = 0
    for node in range(present.shape[0]):
        for part in range(parts):
            begins[first + part, node] = ends[part]
        for at in range(present.shape[1]):
            before, came = present[node, at], following[node, at]
            now = before | came
            if now == 0:
                continue
            present[node, at], following[node, at] = now, 0
            places[first + NOW, ends[NOW]], words[first + NOW, ends[NOW]] = at, now
            ends[NOW] += 1
            if parts == 1:
                continue
            if before != 0:
                places[first + BEFORE, ends[BEFORE]], words[first + BEFORE, ends[BEFORE]] = at, before
                ends[BEFORE] += 1
            if came != 0:
                places[first + CAME, ends[CAME]], words[first + CAME, ends[CAME]] = at, came
                ends[CAME] += 1
        for part in range(parts):
            begins[first + part, node + 1] = ends[part]
            if ends[part] > begins[first + part, node]:
                leading[first + part, bits[node] >> BLOCK_BITS] |= np.int64(1) << (bits[node] & 63)


@compiled
def add_word(word: int, at: int, times: int, planes: Any, ends: Any) -> None:
    """Adds the bits of a word to the sums, so many times. `ends` says how many planes of each word are in use."""
    lowest = np.int64(0)
    while times != 0:
        if times & 1:
            plane, carry = lowest, word
            while carry != 0:
                before = planes[at, plane]
                planes[at, plane] = before ^ carry
                carry &= before
                plane += 1
            ends[at] = max(ends[at], plane)
        times >>= 1
        lowest += 1


@compiled
def follow_steps(
    plan: Any,
    node: int,
    leading: Any,
    begins: Any,
    places: Any,
    words: Any,
    nodes_at: Any,
    ways: Any,
    met: Any,
    planes: Any,
    ends: Any,
) -> int:
    """Adds what a plan derives for a value of the first column. Returns how many words it looked at.

    `ways` and `met` are scratch: for two steps in turn, the number of ways to each node, and the nodes that there are ways to.
    """
    here, count, work = np.int64(0), np.int64(1), np.int64(0)
    ways[0, node], met[0, 0] = 1, node
    for step in range(plan[LENGTH] - 1):
        grid, following = plan[STEPS + step], plan[STEPS + step + 1]
        there, found = 1 - here, np.int64(0)
        for at in range(count):
            one = np.int64(met[here, at])
            times = ways[here, one]
            ways[here, one] = 0
            work += begins[grid, one + 1] - begins[grid, one]
            for place in range(begins[grid, one], begins[grid, one + 1]):
                word = np.int64(places[grid, place])
                rest = words[grid, place] & leading[following, word]
                while rest != 0:
                    other = np.int64(nodes_at[(word << BLOCK_BITS) | first_bit(rest)])
                    rest &= rest - 1
                    if ways[there, other] == 0:
                        met[there, found] = other
                        found += 1
                    ways[there, other] += times
        here, count = there, found
    last = plan[STEPS + plan[LENGTH] - 1]
    for at in range(count):
        one = np.int64(met[here, at])
        work += begins[last, one + 1] - begins[last, one]
        for place in range(begins[last, one], begins[last, one + 1]):
            add_word(words[last, place], np.int64(places[last, place]), ways[here, one], planes, ends)
        ways[here, one] = 0
    return work  # type: ignore[return-value]


@kernel("words words int words lines lines lines rows lines ids words words blocks rows ids words")
def follow_chains(
    told: Any,
    turns: Any,
    threads: int,
    addresses: Any,
    plans: Any,
    leading: Any,
    begins: Any,
    places: Any,
    words: Any,
    nodes_at: Any,
    values: Any,
    highs: Any,
    next_grids: Any,
    lines_of: Any,
    queue: Any,
    queued: Any,
) -> None:
    """A thread's part of a round, one node of a relation after the other, until it has done enough or something has no room.

    `turns` has whose turn it is next, for all threads. `values` are those of nodes, `nodes_at` the node of each bit, `highs` the
    values of words of bits without their last bits. `lines_of` has for each relation and node the line of each word, or -1.
    `queued` is where the queue ends after each relation that the thread had nodes of.
    """
    count, size = len(values), next_grids.shape[2]
    ways, met = np.zeros((2, count), dtype=np.int64), np.empty((2, count), dtype=np.int32)
    planes, ends = np.zeros((size, PLANES + 1), dtype=np.int64), np.zeros(size, dtype=np.int64)
    key = np.zeros(2, dtype=np.int64)
    key_words, fuel = halves_at(key.ctypes.data), told[FUEL]
    while True:
        if told[TURN] < 0:
            told[TURN] = fetch_add(turns.ctypes.data, 1)
        head, node = told[TURN] // count, told[TURN] % count
        if head >= len(addresses):
            return
        table = words_at(addresses[head])
        # Each of the others may be about to take lines, too.
        has_lines = table[CAPACITY] - table[USED] >= threads * size
        if fuel <= 0 or not has_lines or len(queue) - told[LISTED] < size << BLOCK_BITS:
            return
        work = np.int64(0)
        for number in range(plans.shape[0]):
            if plans[number, DERIVED] == head:
                work += follow_steps(
                    plans[number], node, leading, begins, places, words, nodes_at, ways, met, planes, ends
                )
        fuel -= size + work
        lines, shape, listed, made = halves_at(table[LINES]), shape_of(table), told[LISTED], np.int64(0)
        for at in range(size if work else 0):
            if ends[at] == 0:
                continue
            line, rest = np.int64(lines_of[head * count + node, at]), np.int64(0)
            if line < 0:
                line = fetch_add(addresses[head] + 8 * USED, 1)
                lines_of[head * count + node, at] = line
                key[0], key[1] = values[node], highs[at] << BLOCK_BITS
                write_key(lines, shape, line, key_words, 0)
            for plane in range(ends[at]):
                rest |= planes[at, plane]
            asked = rest
            while asked != 0:
                prefetch(table[LINES] + 4 * (row_end(shape, (line << BLOCK_BITS) | first_bit(asked)) - OWN_HALVES))
                asked &= asked - 1
            while rest != 0:
                place, total = first_bit(rest), np.int64(0)
                rest &= rest - 1
                for plane in range(ends[at]):
                    total |= ((planes[at, plane] >> place) & 1) << plane
                row, before = (line << BLOCK_BITS) | place, listed
                base = row_end(shape, row)
                if lines[base - FLAGS] & FREE:
                    write_state(lines, base)
                    made += 1
                    queue[listed] = row
                    listed += 1
                else:
                    listed += count_derivation(lines, base, told[RANK], row, queue, listed)
                lines[base - COUNT] += total - 1
                next_grids[head, node, at] |= (listed - before) << place
                told[MET] += total
            for plane in range(ends[at]):
                planes[at, plane] = 0
            ends[at] = 0
        fetch_add(addresses[head] + 8 * ROWS, made)
        told[LISTED] = queued[head] = listed
        told[TURN] = -1
