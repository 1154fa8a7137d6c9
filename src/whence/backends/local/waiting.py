"""Rows that wait for their groups, in rounds of a stratum with groups of numbers: having them wait, and letting them in.

What waits stands in a heap, the best first: a word for each, with the number of its group above that of the row. Rows that are
looked at one after the other are looked up together, with their memory asked for ahead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whence.backends.local import kernels
from whence.backends.local.best import (
    ALONE,
    BETTER,
    KEY_COUNT,
    KEYS_AT,
    OUTPUT_INDEX,
    OUTPUT_OF,
    OUTPUT_VALUE_AT,
    ROWS_INDEX,
    ROWS_OF,
    VALUE_AT,
    best_row,
    group_row,
    order_of,
    read_key,
    stand_block,
    standing,
    suspend_group,
)
from whence.backends.local.cascade import with_room
from whence.backends.local.hashing import BLOCK as LOOK_UPS
from whence.backends.local.hashing import COLUMNS, LINES, row_word, shape_of
from whence.backends.local.heap import pop, push
from whence.backends.local.kernels import COUNT, FLAGS, LISTED, RANK, WELL, row_end
from whence.backends.local.links import link_waiting
from whence.backends.local.memory import called, carray, compiled, halves_at, words_at
from whence.backends.local.rounds import NO_LINES, NO_LINKS
from whence.engine.protocol import BATCH, HIDDEN, QUEUED, SUSPENDED

claim_rows = called(kernels.claim_rows, "int")

# What is told of a call and to the next: why it came back and where it was, as in `rounds`; whether it is enough; how many rows
# wait, how many were let in and how many of these have been given to their groups; the order of those let in in this round, how
# many there were and whether a group got a value by it; how many queued rows had lost their derivations; then how many rounds,
# rows in all tables and derivations are enough.
STATUS, POINT, RELATION, NUMBER, FOUND, CLAIMED, MET, ROUNDS, RANK_REACHED, LAST, TABLE = range(11)
IS_ENOUGH, WAITING, LET_IN, GIVEN, ORDER, TAKEN, HAS_GIVEN, DROPPED = range(11, 19)
MOST_ROUNDS, MOST_ROWS, MOST_MET = range(19, 22)
TOLD = 22
# Besides: an index of a group's rows is not there, and a plan stopped that takes away.
NO_INDEX, STOPPED_TAKING = NO_LINKS + 1, NO_LINKS + 2
_ABSENT = np.int64(SUSPENDED | HIDDEN)
# In a word: the row, and above it the number of its group.
ROW, ROW_BITS = 0xFFFFFFFF, 32


@compiled
def group_at(groups: Any, number: int) -> Any:
    return words_at(groups.ctypes.data + 8 * groups.shape[1] * number)


@compiled
def come(address: int, row: int, rank: int) -> None:
    """Makes a row present, as part of the batch."""
    table = words_at(address)
    lines, base = halves_at(table[LINES]), row_end(shape_of(table), row)
    lines[base - WELL] = lines[base - COUNT]
    lines[base - RANK] = rank
    lines[base - FLAGS] = (lines[base - FLAGS] & ~(SUSPENDED | QUEUED | HIDDEN)) | BATCH


@compiled
def state_of(address: int, row: int) -> Any:
    """The flags of a row, and how many derivations it has."""
    table = words_at(address)
    lines, base = halves_at(table[LINES]), row_end(shape_of(table), row)
    return np.int64(lines[base - FLAGS]), np.int64(lines[base - COUNT])


@compiled
def change_row(address: int, row: int, on: int, off: int) -> None:
    table = words_at(address)
    lines, base = halves_at(table[LINES]), row_end(shape_of(table), row)
    lines[base - FLAGS] = (lines[base - FLAGS] & ~off) | on


@compiled
def have_wait(heap: Any, told: Any, group: Any, number: int, tables: Any, row: int) -> None:
    push(heap, told[WAITING], order_of(group, tables, row), (number << ROW_BITS) | row)
    told[WAITING] += 1


@compiled
def have_best_wait(heap: Any, told: Any, group: Any, number: int, tables: Any, key: Any) -> None:
    """The best present row of the group with a key."""
    best = np.int64(best_row(group, tables, key))
    if best >= 0:
        have_wait(heap, told, group, number, tables, best)


@compiled
def drop_queued(address: int, row: int, lost: Any, at: int, told: Any) -> None:
    """A queued row has lost the derivation that it was queued for, as values went: nothing has followed from it yet."""
    change_row(address, row, np.int64(0), np.int64(QUEUED))
    lost[at] = row
    told[DROPPED] += 1


@compiled
def links_rows(group: Any, tables: Any, indexes: Any, told: Any) -> bool:
    """Has the index of a group's rows know them all. If it cannot, it is told why."""
    rows = group[ROWS_OF]
    told[TABLE] = rows
    if group[ROWS_INDEX] == 0:
        told[STATUS] = NO_INDEX
        return False
    if not link_waiting(tables[rows], indexes, rows):
        told[STATUS] = NO_LINKS
        return False
    return True


@compiled
def review(relation: int, groups: Any, tables: Any, rows: Any, queue: Any, heap: Any, told: Any, key: Any) -> int:
    """Step 2 for rows of one relation. Returns how many were queued."""
    end, words = np.int64(0), halves_at(key.ctypes.data)
    for at in range(len(rows)):
        row = np.int64(rows[at])
        flags, count = state_of(tables[relation], row)
        if count > 0 and flags & (SUSPENDED | QUEUED) == SUSPENDED:
            change_row(tables[relation], row, np.int64(QUEUED), np.int64(0))
            queue[end] = row
            end += 1
        for number in range(groups.shape[0]):
            group = group_at(groups, number)
            if group[OUTPUT_OF] == relation:
                read_key(words_at(tables[relation]), group, KEYS_AT + group[KEY_COUNT], row, key, 0)
                if group_row(words_at(group[OUTPUT_INDEX]), words, np.int64(0), _ABSENT) < 0:
                    have_best_wait(heap, told, group, number, tables, key)
    return end  # type: ignore[return-value]


@compiled
def write_value(group: Any, tables: Any, row: int, keys: Any, key: int, values: Any, line: int) -> None:
    """The row of the output, as the line with a number, by which a group with a key has the value of a row."""
    source, begin = words_at(tables[group[ROWS_OF]]), line * words_at(tables[group[OUTPUT_OF]])[COLUMNS]
    for at in range(group[KEY_COUNT]):
        values[begin + group[KEYS_AT + group[KEY_COUNT] + at]] = keys[key + at]
    values[begin + group[OUTPUT_VALUE_AT]] = row_word(halves_at(source[LINES]), shape_of(source), row, group[VALUE_AT])


@compiled
def give_values(group: Any, tables: Any, values: Any, count: int, unranked: Any, listed: Any, rank: int) -> int:
    """So many groups, at most `LOOK_UPS`, get values: the lines of `values`, some of which may be the same.

    Lists the rows that hold them. Returns how many these are, or -1 if there is no room and nothing has happened.
    """
    output, table = tables[group[OUTPUT_OF]], words_at(tables[group[OUTPUT_OF]])
    table[LISTED] = 0
    if (
        claim_rows(output, carray(words_at(values.ctypes.data), (count, table[COLUMNS])), unranked, np.int64(0), listed)
        == 0
    ):
        return -1
    lines, shape = halves_at(table[LINES]), shape_of(table)
    for at in range(table[LISTED]):
        lines[row_end(shape, np.int64(listed[at])) - COUNT] = 1  # groups give each value once
        come(output, np.int64(listed[at]), rank)
    return table[LISTED]


@compiled
def choose(
    relation: int,
    groups: Any,
    tables: Any,
    rows: Any,
    made: Any,
    lost: Any,
    heap: Any,
    told: Any,
    keys: Any,
    found: Any,
    results: Any,
    waits: Any,
) -> Any:
    """Step 4 for rows of one relation. Returns how many came, and how many had lost what they were queued for."""
    came, went = np.int64(0), np.int64(0)
    for start in range(0, len(rows), LOOK_UPS):
        size = min(LOOK_UPS, len(rows) - start)
        for at in range(size):
            waits[at] = 0
        for number in range(groups.shape[0]):
            group = group_at(groups, number)
            if group[ROWS_OF] != relation:
                continue
            stand_block(group, tables, rows, start, size, keys, found, results)
            for at in range(size):
                row = np.int64(rows[start + at])
                flags, count = state_of(tables[relation], row)
                if results[at] <= BETTER and flags & QUEUED and count > 0:
                    have_wait(heap, told, group, number, tables, row)
                    waits[at] = 1
        for at in range(size):
            row = np.int64(rows[start + at])
            flags, count = state_of(tables[relation], row)
            if waits[at] or not flags & QUEUED:  # it was twice in the queue
                continue
            if count > 0:
                come(tables[relation], row, told[RANK_REACHED])
                made[came] = row
                came += 1
            else:
                drop_queued(tables[relation], row, lost, went, told)
                went += 1
    return came, went


@compiled
def take_alike(heap: Any, told: Any, rows: Any) -> Any:
    """Takes out rows that wait, best first, as long as they have the order and the group of the first of them.

    Returns how many these are, and what they have in common.
    """
    size, order, number = np.int64(0), heap[0, 0], heap[0, 1] >> ROW_BITS
    while size < LOOK_UPS and told[WAITING] > 0 and heap[0, 0] == order and heap[0, 1] >> ROW_BITS == number:
        rows[size] = heap[0, 1] & ROW
        pop(heap, told[WAITING])
        told[WAITING] -= 1
        size += 1
    return size, order, number


@compiled
def put_back(heap: Any, told: Any, order: int, number: int, rows: Any, first: int, end: int) -> None:
    """Has rows wait again that were taken out."""
    for at in range(first, end):
        push(heap, told[WAITING], order, (number << ROW_BITS) | np.int64(rows[at]))
        told[WAITING] += 1


@compiled
def let_in(
    groups: Any,
    tables: Any,
    indexes: Any,
    made: Any,
    ends: Any,
    lost: Any,
    lost_begins: Any,
    lost_ends: Any,
    heap: Any,
    entered: Any,
    told: Any,
    keys: Any,
    found: Any,
    results: Any,
    values: Any,
    unranked: Any,
) -> Any:
    """Lets the best in of the rows that wait. Groups without a value get one, with the next rank; those that have a worse one
    lose it, and the row is listed in `entered`. Returns the arrays that may have grown; it is told if something has no room.
    """
    rows, listed, givers = (
        np.empty(LOOK_UPS, dtype=np.int32),
        np.empty(LOOK_UPS, dtype=np.int32),
        np.empty(LOOK_UPS, dtype=np.int32),
    )
    while told[WAITING] > 0 and not (told[TAKEN] and heap[0, 0] != told[ORDER]):
        size, order, number = take_alike(heap, told, rows)
        group = group_at(groups, number)
        each, output, key_count = group[ROWS_OF], group[OUTPUT_OF], group[KEY_COUNT]
        stand_block(group, tables, rows, np.int64(0), size, keys, found, results)
        made = with_room(made, ends, each, size)
        lost = with_room(lost, lost_ends, output, size)
        given, done = np.int64(0), np.int64(0)
        while done < size:
            row, result, holder = np.int64(rows[done]), results[done], np.int64(-1)
            flags, count = state_of(tables[each], row)
            if flags & SUSPENDED and (not flags & QUEUED or count == 0):
                # Lost while it waited. If its group has no value still, another of its rows may wait instead.
                if done > 0:
                    break  # when the others have got theirs
                if result == ALONE:
                    if not links_rows(group, tables, indexes, told):
                        put_back(heap, told, order, number, rows, np.int64(0), size)
                        return made, lost, entered
                    have_best_wait(heap, told, group, number, tables, keys)
                if flags & QUEUED:
                    # Before those that still have consequences.
                    lost = with_room(lost, lost_ends, each, 1)
                    lost[each, lost_ends[each]] = lost[each, lost_begins[each]]
                    drop_queued(tables[each], row, lost[each], lost_begins[each], told)
                    lost_begins[each] += 1
                    lost_ends[each] += 1
                done += 1
                break
            if flags & SUSPENDED:
                come(tables[each], row, told[RANK_REACHED])
                made[each, ends[each]] = row
                ends[each] += 1
            if result == BETTER:  # unless one of its group was so before it
                result, holder = standing(group, tables, row, found)
            if result <= BETTER:
                told[TAKEN], told[ORDER] = 1, order
            if result == ALONE:
                write_value(group, tables, row, keys, done * key_count, values, given)
                givers[given] = row
                given += 1
            elif result == BETTER:
                suspend_group(group, tables, holder)
                lost[output, lost_ends[output]] = holder
                lost_ends[output] += 1
                if told[LET_IN] == len(entered):
                    larger = np.empty(2 * len(entered), dtype=np.int64)
                    for at in range(len(entered)):
                        larger[at] = entered[at]
                    entered = larger
                entered[told[LET_IN]] = (number << ROW_BITS) | row
                told[LET_IN] += 1
            done += 1
        put_back(heap, told, order, number, rows, done, size)
        if given:
            more = np.int64(give_values(group, tables, values, given, unranked, listed, told[RANK_REACHED] + 1))
            if more < 0:
                put_back(heap, told, order, number, givers, np.int64(0), given)
                told[STATUS], told[TABLE] = NO_LINES, output
                break
            told[HAS_GIVEN] = 1
            made = with_room(made, ends, output, more)
            for at in range(more):
                made[output, ends[output] + at] = listed[at]
            ends[output] += more
            if not link_waiting(tables[output], indexes, output):
                told[STATUS], told[TABLE] = NO_LINKS, output
                break
    return made, lost, entered
