"""The compiled loops on groups whose value is the least or the greatest of numbers.

`index` is the index of the relation that holds the groups, the output, on its keys: a group has at most one present row there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whence.backends.local.hashing import COLUMNS, LINES, WIDTH, find_line, hash_at, row_word, shape_of
from whence.backends.local.kernels import FLAGS, RANK, row_end
from whence.backends.local.links import ARENA, BEGIN, LENGTH, TABLE
from whence.backends.local.memory import compiled, halves_at, kernel, words_at

# How a row compares with the value of its group; it is alone if the group has none.
ALONE, BETTER, EQUAL, WORSE = range(4)
# What `regroup` is told of an aggregate, in this order.
FORBID, ABSENT, VALUE, OUTPUT_VALUE, IS_LEAST, BY_RANK = range(6)


@compiled
def group_row(index: Any, words: Any, key: int, absent: int) -> int:
    """The row of the group with a key, or -1 if it has none without the flags `absent`."""
    columns = index[COLUMNS]
    line = find_line(index, words, key, hash_at(words, key, columns, 2))
    if line >= 0:
        base, arena, table = (line + 1) * index[WIDTH], halves_at(index[ARENA]), words_at(index[TABLE])
        blocks, lines, shape = halves_at(index[LINES]), halves_at(table[LINES]), shape_of(table)
        begin = np.int64(blocks[base - BEGIN])
        for offset in range(begin, begin + blocks[base - LENGTH]):
            row = np.int64(arena[offset])
            if not lines[row_end(shape, row) - FLAGS] & absent:
                return row  # type: ignore[return-value]
    return -1


@kernel("int ids words int int int int int lines ids")
def compare_rows(
    address: int,
    ids: Any,
    key_columns: Any,
    column: int,
    index_address: int,
    output_value: int,
    absent: int,
    is_least: int,
    keys: Any,
    results: Any,
) -> None:
    """The keys of rows, and how the value of each, in `column`, compares with that of its group."""
    table, index = words_at(address), words_at(index_address)
    lines, shape = halves_at(table[LINES]), shape_of(table)
    output = words_at(index[TABLE])
    found, found_shape = halves_at(output[LINES]), shape_of(output)
    words, columns = halves_at(keys.ctypes.data), len(key_columns)
    for at in range(len(ids)):
        one = np.int64(ids[at])
        for key in range(columns):
            keys[at, key] = row_word(lines, shape, one, key_columns[key])
        row = group_row(index, words, 2 * columns * at, absent)
        results[at] = ALONE
        if row >= 0:
            value = row_word(lines, shape, one, column)
            best = row_word(found, found_shape, row, output_value)
            results[at] = EQUAL if value == best else BETTER if (value < best) == (is_least == 1) else WORSE


@compiled
def write_group(lines: Any, at: int, keys: Any, key: int, output_keys: Any, output_value: int, value: int) -> None:
    for column in range(len(output_keys)):
        lines[at, output_keys[column]] = keys[key, column]
    lines[at, output_value] = value


@kernel("int int lines words words lines lines words")
def regroup(
    rows_address: int,
    index_address: int,
    keys: Any,
    told: Any,
    output_keys: Any,
    outdated: Any,
    missing: Any,
    counts: Any,
) -> None:
    """Aggregates groups again: rows of the output that are not what they aggregate to, and those that are and are not there.

    If it goes by rank, only rows of a lower rank than the group's own are in a group. `counts` says how many there are of both.
    """
    rows, index = words_at(rows_address), words_at(index_address)
    table, output = words_at(rows[TABLE]), words_at(index[TABLE])
    lines, shape = halves_at(table[LINES]), shape_of(table)
    found, found_shape = halves_at(output[LINES]), shape_of(output)
    blocks, arena, columns = halves_at(rows[LINES]), halves_at(rows[ARENA]), rows[COLUMNS]
    words = halves_at(keys.ctypes.data)
    old, new = 0, 0
    for at in range(keys.shape[0]):
        key = 2 * columns * at
        there = group_row(index, words, key, told[ABSENT])
        if told[BY_RANK] and there < 0:
            continue
        line = find_line(rows, words, key, hash_at(words, key, columns, 2))
        is_defined, best = False, np.int64(0)
        if line >= 0:
            base = (line + 1) * rows[WIDTH]
            begin = np.int64(blocks[base - BEGIN])
            for offset in range(begin, begin + blocks[base - LENGTH]):
                row = np.int64(arena[offset])
                end = row_end(shape, row)
                if lines[end - FLAGS] & told[FORBID]:
                    continue
                if told[BY_RANK] and lines[end - RANK] >= found[row_end(found_shape, there) - RANK]:
                    continue
                value = row_word(lines, shape, row, told[VALUE])
                if not is_defined or (value < best if told[IS_LEAST] else value > best):
                    is_defined, best = True, value
        if there >= 0:
            value = row_word(found, found_shape, there, told[OUTPUT_VALUE])
            if is_defined and value == best:
                continue
            write_group(outdated, old, keys, at, output_keys, told[OUTPUT_VALUE], value)
            old += 1
        if is_defined:
            write_group(missing, new, keys, at, output_keys, told[OUTPUT_VALUE], best)
            new += 1
    counts[0], counts[1] = old, new
