"""The compiled loops of sieves: rows that a later test is going to drop are left out of a join.

Lines of a block mostly come in *runs* that agree in what a test asks for besides the value that the join finds. The values that
pass it are the same for all of a run. They are marked once, as bits under a hash, and then each row takes a look at one bit,
which is in the cache, where the test would take a look-up in a table. A bit may be that of another value, so the test is made
nevertheless, of the few rows that are left.

A sieve has levels. The first finds values through the index of the relation that is asked; each of the others goes on from the
values of the one before, through the relation that would be joined with next, to those of which such a row can come at all.

In the code of a sieve stand the number of its area and the column of the rows that the join finds; how many looks the first level
mostly takes, how many are worth it for each row that may be left out, and how many rows the join has looked at while the sieve
was not in use; how many registers make a run, how many levels there are, the registers; for each level the index, the column that
values are in, how many words make a key, and the operands for these, a column standing for the value of the level before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whence.backends.local.hashing import LINES, WIDTH, find_line, hash_at, row_word, shape_of
from whence.backends.local.links import ARENA, BEGIN, LENGTH, TABLE
from whence.backends.local.memory import compiled, halves_at, words_at
from whence.backends.local.operands import COLUMN, CONSTANT

NUMBER, TESTED, COST, WORTH, LOOKED, RUN, LEVELS, REGISTERS = range(8)
INDEX, VALUE, KEY, OPERANDS = range(4)
# The memory of sieves: two lists of values on the way from level to level, and for each an area. In that stand the line behind
# the run that is marked, by how many bits hashes are shifted (0 if nothing is marked), and the marks.
MOST = 1 << 12
UNTIL, SHIFT, MARKS = range(3)
FEWEST_BITS, MOST_BITS = 10, 16
AREAS, AREA = 2 * MOST, MARKS + (1 << MOST_BITS) // 64
# To find a key takes as long as to look at so many rows.
LOOK_UP = 64


@compiled
def area_of(code: Any, sieve: int, memory: int) -> Any:
    return words_at(memory + 8 * (AREAS + AREA * code[sieve + NUMBER]))


@compiled
def place_of(value: int, shift: int) -> int:
    """The bit of a value."""
    return np.int64((np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift))  # type: ignore[return-value]


@compiled
def run_from(code: Any, sieve: int, block: Any, line: int, size: int) -> int:
    """The line behind the run that one begins."""
    end, count = line + 1, code[sieve + RUN]
    while end < size:
        for at in range(sieve + REGISTERS, sieve + REGISTERS + count):
            if block[code[at], end] != block[code[at], line]:
                return end
        end += 1
    return end


@compiled
def mark_run(
    code: Any, sieve: int, block: Any, line: int, size: int, first: Any, last: Any, memory: int, keys: Any
) -> int:
    """Marks the values that pass for the run that a line begins, if that is worth it. Returns how many rows were looked at."""
    lists, area = words_at(memory), area_of(code, sieve, memory)
    end, pairs = run_from(code, sieve, block, line, size), np.int64(0)
    for each in range(line, end):
        pairs += last[each] - first[each]
    area[UNTIL], area[SHIFT] = end, 0
    most: Any = code[sieve + WORTH] * pairs
    if most < code[sieve + COST]:
        return 0
    looks: Any = np.int64(0)
    found: Any = np.int64(1)
    source, target = np.int64(0), np.int64(MOST)
    level = sieve + REGISTERS + code[sieve + RUN]
    for _ in range(code[sieve + LEVELS]):
        index, count = words_at(code[level + INDEX]), code[level + KEY]
        table, width = words_at(index[TABLE]), index[WIDTH]
        lines, shape = halves_at(table[LINES]), shape_of(table)
        hashed, arena, words = halves_at(index[LINES]), halves_at(index[ARENA]), halves_at(keys.ctypes.data)
        made = np.int64(0)
        for each in range(found):
            looks += LOOK_UP
            if looks > most:
                return looks  # type: ignore[no-any-return]
            for at in range(count):
                operand, word = code[level + OPERANDS + 2 * at], code[level + OPERANDS + 2 * at + 1]
                if operand == COLUMN:
                    word = lists[source + each]
                elif operand != CONSTANT:
                    word = block[word, line]
                keys[at] = word
            key = np.int64(find_line(index, words, 0, hash_at(words, 0, count, 2)))
            if key < 0:
                continue
            base = (key + 1) * width
            begin, length = np.int64(hashed[base - BEGIN]), np.int64(hashed[base - LENGTH])
            looks += length
            if looks > most or made + length > MOST:
                return looks  # type: ignore[no-any-return]
            for at in range(length):
                lists[target + made + at] = row_word(lines, shape, np.int64(arena[begin + at]), code[level + VALUE])
            made += length
        source, target, found = target, source, made
        level += OPERANDS + 2 * count
    if found == 0:
        for each in range(line, end):
            first[each] = last[each]
    mark(area, lists, source, found)
    return looks  # type: ignore[no-any-return]


@compiled
def mark(area: Any, values: Any, begin: int, count: int) -> None:
    """Some tens of bits for each value."""
    bits = np.int64(FEWEST_BITS)
    while bits < MOST_BITS and (count << 6) > (np.int64(1) << bits):
        bits += 1
    area[SHIFT] = shift = 64 - bits
    for at in range(MARKS, MARKS + (1 << bits >> 6)):
        area[at] = 0
    for at in range(begin, begin + count):
        place = place_of(values[at], shift)
        area[MARKS + (place >> 6)] |= np.int64(1) << (place & 63)


@compiled
def sift(
    area: Any, lines: Any, shape: Any, column: int, arena: Any, begin: int, stop: int, line: int, pairs: Any, end: int
) -> int:
    """Pairs of a line and those of its rows that are marked, behind `end` others; returns the end of them."""
    picks, rows, shift = pairs[0], pairs[1], area[SHIFT]
    width, _, bits, step, _ = shape
    if bits == 0 and step == 1:
        for place in range(begin, stop):
            row = np.int64(arena[place])
            bit = place_of(np.int64(lines[row * width + column]), shift)
            picks[end], rows[end] = line, row
            end += (area[MARKS + (bit >> 6)] >> (bit & 63)) & 1
        return end
    for place in range(begin, stop):
        row = np.int64(arena[place])
        bit = place_of(row_word(lines, shape, row, column), shift)
        picks[end], rows[end] = line, row
        end += (area[MARKS + (bit >> 6)] >> (bit & 63)) & 1
    return end
