"""The compiled loops on groups whose value is the least or the greatest of numbers.

`index` is the index of the relation that holds the groups, the output, on its keys: a group has at most one present row there.

Loops that go through rounds are told of an aggregate by a line of words, a `group`: the numbers of the tables of its rows and of
its output, the addresses of their indexes on the keys (that of the rows may not be there yet), whether it is the least, the
columns of the values, the number of keys, and their columns in the rows and in the output.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whence.backends.local.hashing import (
    BLOCK,
    COLUMNS,
    FULL,
    LINES,
    MASK,
    SLOTS,
    WIDTH,
    find_line,
    hash_at,
    layout_of,
    row_word,
    seek,
    shape_of,
)
from whence.backends.local.kernels import COUNT, FLAGS, RANK, WELL, row_end
from whence.backends.local.links import ARENA, BEGIN, LENGTH, TABLE
from whence.backends.local.memory import compiled, halves_at, kernel, prefetch, words_at
from whence.engine.protocol import HIDDEN, SUSPENDED

# How a row compares with the value of its group; it is alone if the group has none.
ALONE, BETTER, EQUAL, WORSE = range(4)
# What `regroup` is told of an aggregate, in this order.
FORBID, ABSENT, VALUE, OUTPUT_VALUE, IS_LEAST, BY_RANK = range(6)
# What a `group` tells.
ROWS_OF, OUTPUT_OF, ROWS_INDEX, OUTPUT_INDEX, LEAST, VALUE_AT, OUTPUT_VALUE_AT, KEY_COUNT, KEYS_AT = range(9)
_ABSENT = np.int64(SUSPENDED | HIDDEN)


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


# -- in rounds


@compiled
def read_key(table: Any, group: Any, first: int, row: int, keys: Any, key: int) -> None:
    """The key of a row, whose columns are listed from `first` on."""
    lines, shape = halves_at(table[LINES]), shape_of(table)
    for at in range(group[KEY_COUNT]):
        keys[key + at] = row_word(lines, shape, row, group[first + at])


@compiled
def compare_with(group: Any, tables: Any, row: int, holder: int) -> int:
    """How a row compares with the row that holds the value of its group."""
    table, output = words_at(tables[group[ROWS_OF]]), words_at(tables[group[OUTPUT_OF]])
    value = row_word(halves_at(table[LINES]), shape_of(table), row, group[VALUE_AT])
    held = row_word(halves_at(output[LINES]), shape_of(output), holder, group[OUTPUT_VALUE_AT])
    if value == held:
        return EQUAL
    return BETTER if (value < held) == (group[LEAST] == 1) else WORSE


@compiled
def standing(group: Any, tables: Any, row: int, key: Any) -> Any:
    """How a row compares with the value of its group, and the row that holds it, or -1. Leaves the group's key in `key`."""
    read_key(words_at(tables[group[ROWS_OF]]), group, KEYS_AT, row, key, 0)
    holder = np.int64(group_row(words_at(group[OUTPUT_INDEX]), halves_at(key.ctypes.data), np.int64(0), _ABSENT))
    if holder < 0:
        return ALONE, holder
    return compare_with(group, tables, row, holder), holder


@compiled
def stand_block(group: Any, tables: Any, rows: Any, first: int, size: int, keys: Any, found: Any, results: Any) -> None:
    """How each of at most `BLOCK` rows compares with the value of its group: look-ups, with their memory asked for ahead.

    `found` are the rows that hold the values, or -1.
    """
    index, table, output = (
        words_at(group[OUTPUT_INDEX]),
        words_at(tables[group[ROWS_OF]]),
        words_at(tables[group[OUTPUT_OF]]),
    )
    columns, mask, width = group[KEY_COUNT], index[MASK], index[WIDTH]
    words, slots, blocks = halves_at(keys.ctypes.data), halves_at(index[SLOTS]), halves_at(index[LINES])
    arena, lines, shape = halves_at(index[ARENA]), halves_at(output[LINES]), shape_of(output)
    layout = layout_of(index)
    source, source_shape, is_least = halves_at(table[LINES]), shape_of(table), group[LEAST] == 1
    for at in range(size):
        row = np.int64(rows[first + at])
        for key in range(columns):
            keys[columns * at + key] = row_word(source, source_shape, row, group[KEYS_AT + key])
        found[at] = hash_at(words, 2 * columns * at, columns, 2)
        prefetch(index[SLOTS] + 4 * (found[at] & mask))
    for at in range(size):
        word = np.int64(slots[found[at] & mask])
        if (word ^ found[at]) & (FULL ^ mask) == 0:
            prefetch(index[LINES] + 4 * width * (word & mask))
    for at in range(size):
        found[at], _ = seek(slots, mask, found[at], blocks, layout, words, 2 * columns * at)
        if found[at] >= 0:
            prefetch(index[ARENA] + 4 * np.int64(blocks[(found[at] + 1) * width - BEGIN]))
    for at in range(size):
        if found[at] >= 0 and blocks[(found[at] + 1) * width - LENGTH] > 0:
            holder = np.int64(arena[np.int64(blocks[(found[at] + 1) * width - BEGIN])])
            prefetch(output[LINES] + 4 * (row_end(shape, holder) - FLAGS))
    for at in range(size):
        results[at] = ALONE
        base, found[at] = (found[at] + 1) * width, -1
        if base == 0:
            continue
        begin = np.int64(blocks[base - BEGIN])
        for offset in range(begin, begin + blocks[base - LENGTH]):
            holder = np.int64(arena[offset])
            if not lines[row_end(shape, holder) - FLAGS] & _ABSENT:
                value = row_word(source, source_shape, np.int64(rows[first + at]), group[VALUE_AT])
                held = row_word(lines, shape, holder, group[OUTPUT_VALUE_AT])
                results[at] = EQUAL if value == held else BETTER if (value < held) == is_least else WORSE
                found[at] = holder
                break


@compiled
def order_of(group: Any, tables: Any, row: int) -> int:
    """A number that is less the better the value of a row is."""
    table = words_at(tables[group[ROWS_OF]])
    value = row_word(halves_at(table[LINES]), shape_of(table), row, group[VALUE_AT])
    return value if group[LEAST] else ~value


@compiled
def best_row(group: Any, tables: Any, key: Any) -> int:
    """The best of the rows that are present in the group with a key, or -1."""
    index, table = words_at(group[ROWS_INDEX]), words_at(tables[group[ROWS_OF]])
    lines, shape, words = halves_at(table[LINES]), shape_of(table), halves_at(key.ctypes.data)
    found, best = np.int64(-1), np.int64(0)
    line = find_line(index, words, np.int64(0), hash_at(words, np.int64(0), index[COLUMNS], 2))
    if line >= 0:
        blocks, arena, base = halves_at(index[LINES]), halves_at(index[ARENA]), (line + 1) * index[WIDTH]
        begin = np.int64(blocks[base - BEGIN])
        for offset in range(begin, begin + blocks[base - LENGTH]):
            row = np.int64(arena[offset])
            if not lines[row_end(shape, row) - FLAGS] & _ABSENT:
                order = order_of(group, tables, row)
                if found < 0 or order < best:
                    found, best = row, order
    return found  # type: ignore[return-value]


@compiled
def is_supported(group: Any, tables: Any, holder: int, words: Any, key: int) -> bool:
    """Whether the value of the group with a key is that of a present row of lower rank than the row that holds it."""
    index, table, output = (
        words_at(group[ROWS_INDEX]),
        words_at(tables[group[ROWS_OF]]),
        words_at(tables[group[OUTPUT_OF]]),
    )
    lines, shape = halves_at(table[LINES]), shape_of(table)
    held, held_shape = halves_at(output[LINES]), shape_of(output)
    rank = held[row_end(held_shape, holder) - RANK]
    value = row_word(held, held_shape, holder, group[OUTPUT_VALUE_AT])
    line = find_line(index, words, key, hash_at(words, key, index[COLUMNS], 2))
    if line >= 0:
        blocks, arena, base = halves_at(index[LINES]), halves_at(index[ARENA]), (line + 1) * index[WIDTH]
        begin = np.int64(blocks[base - BEGIN])
        for offset in range(begin, begin + blocks[base - LENGTH]):
            row = np.int64(arena[offset])
            end = row_end(shape, row)
            if lines[end - FLAGS] & _ABSENT or lines[end - RANK] >= rank:
                continue
            if row_word(lines, shape, row, group[VALUE_AT]) == value:
                return True
    return False


@compiled
def suspend_group(group: Any, tables: Any, holder: int) -> None:
    """A group loses the row that holds its value, which has one derivation."""
    output = words_at(tables[group[OUTPUT_OF]])
    lines, base = halves_at(output[LINES]), row_end(shape_of(output), holder)
    lines[base - COUNT], lines[base - WELL] = 0, 0
    lines[base - FLAGS] |= SUSPENDED


@compiled
def suspend_groups(group: Any, tables: Any, batch: Any, keys: Any, found: Any, results: Any, lost: Any) -> int:
    """Of groups that rows have gone from, suspends and lists the rows that do not follow any more from rows of lower rank."""
    output, columns, end = words_at(tables[group[OUTPUT_OF]]), group[KEY_COUNT], 0
    held, shape, words = halves_at(output[LINES]), shape_of(output), halves_at(keys.ctypes.data)
    for start in range(0, len(batch), BLOCK):
        size = min(BLOCK, len(batch) - start)
        stand_block(group, tables, batch, start, size, keys, found, results)
        for at in range(size):
            holder = found[at]
            if results[at] != EQUAL or held[row_end(shape, holder) - FLAGS] & SUSPENDED:  # by another of the block
                continue
            if not is_supported(group, tables, holder, words, 2 * columns * at):
                suspend_group(group, tables, holder)
                lost[end] = holder
                end += 1
    return end
