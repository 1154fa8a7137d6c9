"""The compiled loop that takes a round of chains: rules whose bodies are paths from the first column of the head to the last.

Relations are *grids* then: for each value of the first column, a bit for each value of the last. What a value leads to along a
path is found step by step, with the number of ways to each value; the last step adds whole words of bits, each as often as there
are ways. Sums of words are kept as *planes*: a word of planes has the lowest bits of 64 sums, the next one the bits above them.
So 64 derivations are counted by a few operations, and the rows they are of are touched once for each round.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whence.backends.local.blocks import BLOCK_BITS
from whence.backends.local.hashing import CAPACITY, LINES, USED, shape_of
from whence.backends.local.kernels import (
    COUNT,
    FLAGS,
    ROWS,
    count_derivation,
    row_end,
    write_key,
    write_state,
)
from whence.backends.local.memory import compiled, first_bit, halves_at, kernel, words_at
from whence.engine.protocol import FREE

# What is told: the rank of the round, the relation and the node to go on with, after how many words to come back; then the
# derivations met, and how many rows are queued.
RANK, HEAD, NODE, FUEL, MET, LISTED = range(6)
TOLD = 6
# What a plan tells: the relation it derives, how many steps it has, and the grid of each.
DERIVED, LENGTH, STEPS = range(3)
# As many as the bits of a count.
PLANES = 32
# The grids of each relation of the recursion: of the rows that are present, those that were so before the round, those that
# came with it, and those that will come with the next. Those of other relations stand behind them.
NOW, BEFORE, CAME, NEXT = range(4)
PARTS = 4


@compiled
def add_words(row: Any, span: Any, times: int, planes: Any, ends: Any) -> int:
    """Adds the bits of a row to the sums, so many times. `ends` says how many planes of each word are in use."""
    for at in range(span[0], span[1]):
        word = row[at]
        if word == 0:
            continue
        rest, lowest = times, np.int64(0)
        while rest != 0:
            if rest & 1:
                plane, carry = lowest, word
                while carry != 0:
                    before = planes[at, plane]
                    planes[at, plane] = before ^ carry
                    carry &= before
                    plane += 1
                ends[at] = max(ends[at], plane)
            rest >>= 1
            lowest += 1
    return span[1] - span[0]


@compiled
def follow_steps(
    plan: Any,
    node: int,
    grids: Any,
    spans: Any,
    leading: Any,
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
            work += spans[grid, one, 1] - spans[grid, one, 0]
            for word in range(spans[grid, one, 0], spans[grid, one, 1]):
                rest = grids[grid, one, word] & leading[following, word]
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
        work += add_words(grids[last, one], spans[last, one], ways[here, one], planes, ends)
        ways[here, one] = 0
    return work  # type: ignore[return-value]


@kernel("words words lines blocks blocks lines ids words words rows ids words")
def follow_chains(
    told: Any,
    addresses: Any,
    plans: Any,
    grids: Any,
    spans: Any,
    leading: Any,
    nodes_at: Any,
    words: Any,
    highs: Any,
    lines_of: Any,
    queue: Any,
    queued: Any,
) -> None:
    """One round, for one relation and node after the other, until it has done enough or something has no room.

    `words` are the values of nodes, `nodes_at` the node of each bit, `highs` the values of words of bits without their last
    bits. `spans` says which words of a row of a grid are not empty, `leading` which rows of a grid are not, as bits. `lines_of`
    has for each relation and node the line of each word, or -1. `queued` is where the queue ends after each relation.
    """
    count, size = len(words), grids.shape[2]
    ways, met = np.zeros((2, count), dtype=np.int64), np.empty((2, count), dtype=np.int32)
    planes, ends = np.zeros((size, PLANES + 1), dtype=np.int64), np.zeros(size, dtype=np.int64)
    key = np.zeros(2, dtype=np.int64)
    key_words, fuel = halves_at(key.ctypes.data), told[FUEL]
    while told[HEAD] < len(addresses):
        head, node = told[HEAD], told[NODE]
        table = words_at(addresses[head])
        if fuel <= 0 or table[CAPACITY] - table[USED] < size or len(queue) - told[LISTED] < size << BLOCK_BITS:
            return
        fuel -= size
        for number in range(plans.shape[0]):
            if plans[number, DERIVED] == head:
                fuel -= follow_steps(plans[number], node, grids, spans, leading, nodes_at, ways, met, planes, ends)
        lines, shape, listed = halves_at(table[LINES]), shape_of(table), told[LISTED]
        for at in range(size):
            if ends[at] == 0:
                continue
            line, rest = np.int64(lines_of[head * count + node, at]), np.int64(0)
            if line < 0:
                line = table[USED]
                table[USED] += 1
                lines_of[head * count + node, at] = line
                key[0], key[1] = words[node], highs[at] << BLOCK_BITS
                write_key(lines, shape, line, key_words, 0)
            for plane in range(ends[at]):
                rest |= planes[at, plane]
            while rest != 0:
                place, total = first_bit(rest), np.int64(0)
                rest &= rest - 1
                for plane in range(ends[at]):
                    total |= ((planes[at, plane] >> place) & 1) << plane
                row, before = (line << BLOCK_BITS) | place, listed
                base = row_end(shape, row)
                if lines[base - FLAGS] & FREE:
                    write_state(lines, base)
                    table[ROWS] += 1
                    queue[listed] = row
                    listed += 1
                else:
                    listed += count_derivation(lines, base, told[RANK], row, queue, listed)
                lines[base - COUNT] += total - 1
                grids[PARTS * head + NEXT, node, at] |= (listed - before) << place
                told[MET] += total
            for plane in range(ends[at]):
                planes[at, plane] = 0
            ends[at] = 0
        told[LISTED] = listed
        told[NODE] += 1
        if told[NODE] == count:
            queued[head] = listed
            told[NODE] = 0
            told[HEAD] += 1
