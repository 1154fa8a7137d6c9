"""The compiled loop that goes through the rounds of a stratum with groups of numbers: rows come, and values change by them.

A row that would better its group waits, whether it is present yet or not. When no other rows come that anything follows from, the
best of those that wait are let in. So a value is final when a group gets it as long as values get no better from row to row, as
in Dijkstra's algorithm. If they do, a group gets a better value later, and the old one is taken away with what followed from it.

A round:

1. What followed from values that went is taken away (`cascade`).
2. Rows that were lost and still have derivations are queued. A group that is left without a value has its best present row wait.
3. Groups whose values went, because a better row was let in, get new ones: rows of the output, which are present at once.
4. Queued rows become present, unless they better a group: then they wait. Nothing but a row that waited betters a group, so of
   the rows of a group without a value, if there are any, one waits.
5. If no row came that plans begin with, the best that wait are let in. A group without a value gets one at once, with the next
   rank; one that has a worse value loses that in the next round.
6. Plans derive rows from those that came.

The loop comes back when nothing is left, when it has done enough for others to have a say, and where something has to grow;
called again, it goes on there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from whence.backends.local import cascade, kernels, machine
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
from whence.backends.local.cascade import (
    ARITY,
    BLOCKS,
    CODE,
    CODE_SIZE,
    DEPTHS,
    DRIVER,
    HEAD,
    HEADS,
    KEYS,
    KEYS_SIZE,
    PAIRS,
    RANKS,
    REGISTERS,
    STATE,
    STATE_SIZE,
    with_room,
)
from whence.backends.local.cascade import MET as LOSS_MET
from whence.backends.local.cascade import NUMBER as LOSS_NUMBER
from whence.backends.local.cascade import STATUS as LOSS_STATUS
from whence.backends.local.hashing import BLOCK as LOOK_UPS
from whence.backends.local.hashing import COLUMNS, LINES, row_word, shape_of
from whence.backends.local.heap import heap_with_room, pop, push
from whence.backends.local.kernels import COUNT, FLAGS, LISTED, RANK, ROWS, WELL, row_end
from whence.backends.local.links import link_waiting
from whence.backends.local.machine import BLOCK, DEPTH, DONE, IS_FULL, NEXT, RESUME
from whence.backends.local.machine import STATUS as MACHINE_STATUS
from whence.backends.local.memory import called, compiled, halves_at, kernel, words_at
from whence.backends.local.rounds import NO_LINES, NO_LINKS
from whence.engine.protocol import BATCH, HIDDEN, QUEUED, SUSPENDED

change_flags, claim_rows = called(kernels.change_flags, "none"), called(kernels.claim_rows, "int")
enumerate_heads, spread_loss = called(machine.enumerate_heads, "int"), called(cascade.spread_loss, "rows")

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
OFFERING, BETWEEN_ROUNDS, LOSING, REVIEWING, GIVING, CHOOSING, LETTING_IN, AT_PLAN, IN_PLAN, CLAIMING = range(10)
_ANY = np.int64(1 << 40)
_ABSENT = np.int64(SUSPENDED | HIDDEN)
_UNRANKED = -1
_ROW = 0xFFFFFFFF


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
    push(heap, told[WAITING], order_of(group, tables, row), (number << 32) | row)
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
def links_all(groups: Any, joined: Any, tables: Any, indexes: Any, told: Any) -> bool:
    """The same for all that taking away asks."""
    for each in range(groups.shape[0]):
        if not links_rows(group_at(groups, each), tables, indexes, told):
            return False
    return links_joined(joined, tables, indexes, told)


@compiled
def links_joined(joined: Any, tables: Any, indexes: Any, told: Any) -> bool:
    """The same for tables that plans join with."""
    for each in range(len(joined)):
        if not link_waiting(tables[joined[each]], indexes, joined[each]):
            told[STATUS], told[TABLE] = NO_LINKS, joined[each]
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
def give_value(group: Any, tables: Any, row: int, key: Any, values: Any, unranked: Any, listed: Any, rank: int) -> int:
    """The group with a key, which has no value, gets that of a row. Returns the row that holds it, or -1 if there is no room."""
    output, table = tables[group[OUTPUT_OF]], words_at(tables[group[OUTPUT_OF]])
    source = words_at(tables[group[ROWS_OF]])
    for at in range(group[KEY_COUNT]):
        values[group[KEYS_AT + group[KEY_COUNT] + at]] = key[at]
    values[group[OUTPUT_VALUE_AT]] = row_word(halves_at(source[LINES]), shape_of(source), row, group[VALUE_AT])
    line = carray(words_at(values.ctypes.data), (1, table[COLUMNS]))
    table[LISTED] = 0
    if claim_rows(output, line, unranked, np.int64(0), listed) == 0:
        return -1
    come(output, np.int64(listed[0]), rank)
    return np.int64(listed[0])  # type: ignore[return-value]


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


@kernel(
    "lines lines words lines words lines rows words rows words words rows words words words lines words int words words"
)
def settle_rounds(
    taking: Any,
    adding: Any,
    tables: Any,
    indexes: Any,
    joined: Any,
    groups: Any,
    queue: Any,
    queue_ends: Any,
    made: Any,
    begins: Any,
    ends: Any,
    lost: Any,
    marks: Any,
    lost_begins: Any,
    lost_ends: Any,
    heap: Any,
    entered: Any,
    buffer: int,
    told: Any,
    loss_told: Any,
) -> Any:
    """`queue`, `made` and `lost` have a line for each table. In `queue` are the rows of the next round, in `made` those that
    became present, those of this round from `begins` on, and in `lost` those that were lost: from `marks` on they are still to
    be looked at, from `lost_begins` on their consequences are still there. `heap` are the rows that wait, by group, `entered`
    those let in whose groups had a worse value. `indexes` are those of all tables, each behind its table's number; `joined` are
    the numbers of tables that plans join with. The plans stand twice: as they see rows `taking` away and `adding`. Returns the
    arrays that may have grown.
    """
    relations, none, batched = len(tables), np.int64(0), np.int64(BATCH)
    most_keys, most_columns = np.int64(1), np.int64(1)
    for each in range(groups.shape[0]):
        most_keys = max(most_keys, groups[each, KEY_COUNT])
        most_columns = max(most_columns, words_at(tables[groups[each, OUTPUT_OF]])[COLUMNS])
    keys, found = np.empty(most_keys * LOOK_UPS, dtype=np.int64), np.empty(LOOK_UPS, dtype=np.int64)
    results, waits = np.empty(LOOK_UPS, dtype=np.int64), np.empty(LOOK_UPS, dtype=np.int64)
    values, listed = np.empty(most_columns, dtype=np.int64), np.empty(1, dtype=np.int32)
    unranked = np.full(1, _UNRANKED, dtype=np.int32)
    told[STATUS] = DONE
    while True:
        if told[POINT] == OFFERING:
            heap = heap_with_room(heap, told[WAITING], told[LET_IN])
            for at in range(told[LET_IN]):
                number, row = entered[at] >> 32, entered[at] & _ROW
                group = group_at(groups, number)
                if standing(group, tables, row, keys)[0] <= BETTER:
                    have_wait(heap, told, group, number, tables, row)
            told[LET_IN] = 0
            told[POINT] = BETWEEN_ROUNDS
        if told[POINT] == BETWEEN_ROUNDS:
            pending, rows = told[LET_IN] + told[WAITING], np.int64(0)
            for each in range(relations):
                pending += queue_ends[each] + lost_ends[each] - marks[each]
                rows += words_at(tables[each])[ROWS]
                begins[each] = ends[each]
            if pending == 0:
                break
            told[IS_ENOUGH] = (
                told[ROUNDS] >= told[MOST_ROUNDS] or rows >= told[MOST_ROWS] or told[MET] >= told[MOST_MET]
            )
            told[POINT] = LOSING
        if told[POINT] == LOSING:
            left = loss_told[LOSS_STATUS] != DONE
            for each in range(relations):
                left = left or lost_begins[each] < lost_ends[each]
            if left:
                if not links_all(groups, joined, tables, indexes, told):
                    break
                loss_told[LOSS_MET] = 0
                lost = spread_loss(
                    taking, tables, groups, lost, lost_begins, lost_ends, buffer, _ANY, np.int64(1), loss_told
                )
                told[MET] += loss_told[LOSS_MET]
                if loss_told[LOSS_STATUS] != DONE:
                    told[STATUS], told[NUMBER] = STOPPED_TAKING, loss_told[LOSS_NUMBER]
                    break
            told[POINT] = REVIEWING
        if told[POINT] == REVIEWING:
            for each in range(relations):
                left_over = lost_ends[each] - marks[each]
                if left_over == 0:
                    continue
                for number in range(groups.shape[0]):
                    if groups[number, OUTPUT_OF] == each and not links_rows(
                        group_at(groups, number), tables, indexes, told
                    ):
                        return queue, made, lost, heap, entered
                queue = with_room(queue, queue_ends, each, left_over)
                heap = heap_with_room(heap, told[WAITING], left_over * groups.shape[0])
                queue_ends[each] += review(
                    each,
                    groups,
                    tables,
                    lost[each, marks[each] : lost_ends[each]],
                    queue[each, queue_ends[each] :],
                    heap,
                    told,
                    keys,
                )
                marks[each] = lost_ends[each]
            if told[IS_ENOUGH]:
                told[POINT] = BETWEEN_ROUNDS
                break
            told[ROUNDS] += 1
            told[RANK_REACHED] += 1
            told[GIVEN], told[POINT] = 0, GIVING
        if told[POINT] == GIVING:
            heap = heap_with_room(heap, told[WAITING], told[LET_IN])
            while told[GIVEN] < told[LET_IN]:
                number, row = entered[told[GIVEN]] >> 32, entered[told[GIVEN]] & _ROW
                group = group_at(groups, number)
                output = group[OUTPUT_OF]
                result, _ = standing(group, tables, row, keys)
                if result == ALONE:
                    flags, _ = state_of(tables[group[ROWS_OF]], row)
                    if flags & SUSPENDED:
                        # It was lost with what followed from values that went.
                        if not links_rows(group, tables, indexes, told):
                            return queue, made, lost, heap, entered
                        have_best_wait(heap, told, group, number, tables, keys)
                    else:
                        holder = give_value(group, tables, row, keys, values, unranked, listed, told[RANK_REACHED])
                        if holder < 0:
                            told[STATUS], told[TABLE] = NO_LINES, output
                            return queue, made, lost, heap, entered
                        made = with_room(made, ends, output, 1)
                        made[output, ends[output]] = holder
                        ends[output] += 1
                        if not link_waiting(tables[output], indexes, output):
                            # It is there, and will be found when this is done again.
                            told[STATUS], told[TABLE] = NO_LINKS, output
                            return queue, made, lost, heap, entered
                elif result == BETTER:
                    have_wait(heap, told, group, number, tables, row)
                told[GIVEN] += 1
            told[LET_IN] = 0
            told[POINT] = CHOOSING
        if told[POINT] == CHOOSING:
            for each in range(relations):
                if queue_ends[each]:
                    made = with_room(made, ends, each, queue_ends[each])
                    lost = with_room(lost, lost_ends, each, queue_ends[each])
                    heap = heap_with_room(heap, told[WAITING], queue_ends[each] * groups.shape[0])
                    came, went = choose(
                        each,
                        groups,
                        tables,
                        queue[each, : queue_ends[each]],
                        made[each, ends[each] :],
                        lost[each, lost_ends[each] :],
                        heap,
                        told,
                        keys,
                        found,
                        results,
                        waits,
                    )
                    ends[each] += came
                    lost_ends[each] += went
                    lost_begins[each] = marks[each] = lost_ends[each]
                    queue_ends[each] = 0
            told[TAKEN] = told[HAS_GIVEN] = 0
            told[POINT] = LETTING_IN
            for number in range(adding.shape[0]):
                driver = adding[number, DRIVER]
                if begins[driver] < ends[driver]:
                    told[RELATION], told[NUMBER], told[POINT] = 0, 0, AT_PLAN
        if told[POINT] == LETTING_IN:
            while told[WAITING] > 0:
                order, word = heap[0, 0], heap[0, 1]
                if told[TAKEN] and order != told[ORDER]:
                    break
                number, row = word >> 32, word & _ROW
                group = group_at(groups, number)
                each, output = group[ROWS_OF], group[OUTPUT_OF]
                flags, count = state_of(tables[each], row)
                result, holder = standing(group, tables, row, keys)
                if flags & SUSPENDED and (not flags & QUEUED or count == 0):
                    # Lost while it waited. If its group has no value still, another of its rows may wait instead.
                    if result == ALONE and not links_rows(group, tables, indexes, told):
                        return queue, made, lost, heap, entered
                    pop(heap, told[WAITING])
                    told[WAITING] -= 1
                    if result == ALONE:
                        have_best_wait(heap, told, group, number, tables, keys)
                    if flags & QUEUED:
                        # Before those that still have consequences.
                        lost = with_room(lost, lost_ends, each, 1)
                        lost[each, lost_ends[each]] = lost[each, lost_begins[each]]
                        drop_queued(tables[each], row, lost[each], lost_begins[each], told)
                        lost_begins[each] += 1
                        lost_ends[each] += 1
                    continue
                if flags & SUSPENDED:
                    come(tables[each], row, told[RANK_REACHED])
                    made = with_room(made, ends, each, 1)
                    made[each, ends[each]] = row
                    ends[each] += 1
                if result <= BETTER:
                    told[TAKEN], told[ORDER] = 1, order
                if result == ALONE:
                    holder = give_value(group, tables, row, keys, values, unranked, listed, told[RANK_REACHED] + 1)
                    if holder < 0:
                        told[STATUS], told[TABLE] = NO_LINES, output
                        return queue, made, lost, heap, entered
                    told[HAS_GIVEN] = 1
                    made = with_room(made, ends, output, 1)
                    made[output, ends[output]] = holder
                    ends[output] += 1
                    if not link_waiting(tables[output], indexes, output):
                        told[STATUS], told[TABLE] = NO_LINKS, output
                        return queue, made, lost, heap, entered
                elif result == BETTER:
                    suspend_group(group, tables, holder)
                    lost = with_room(lost, lost_ends, output, 1)
                    lost[output, lost_ends[output]] = holder
                    lost_ends[output] += 1
                    if told[LET_IN] == len(entered):
                        larger = np.empty(2 * len(entered), dtype=np.int64)
                        for at in range(len(entered)):
                            larger[at] = entered[at]
                        entered = larger
                    entered[told[LET_IN]] = word
                    told[LET_IN] += 1
                pop(heap, told[WAITING])
                told[WAITING] -= 1
            told[RANK_REACHED] += told[HAS_GIVEN]
            told[RELATION], told[NUMBER], told[POINT] = 0, 0, AT_PLAN
        while told[RELATION] < relations:
            relation = told[RELATION]
            while told[NUMBER] < adding.shape[0] and begins[relation] < ends[relation]:
                plan = adding[told[NUMBER]]
                if plan[DRIVER] != relation:
                    told[NUMBER] += 1
                    continue
                head = plan[HEAD]
                state = carray(words_at(plan[STATE]), (plan[STATE_SIZE],))
                heads = carray(words_at(plan[HEADS]), (buffer, plan[ARITY]))
                ranks = carray(halves_at(plan[RANKS]), (buffer,))
                if told[POINT] == AT_PLAN:
                    if not links_joined(joined, tables, indexes, told):
                        return queue, made, lost, heap, entered
                    state[NEXT] = state[DEPTH] = state[RESUME] = 0
                    told[POINT] = IN_PLAN
                if told[POINT] == IN_PLAN:
                    code = carray(words_at(plan[CODE]), (plan[CODE_SIZE],))
                    blocks = carray(words_at(plan[BLOCKS]), (plan[DEPTHS], plan[REGISTERS], BLOCK))
                    scratch = carray(words_at(plan[KEYS]), (plan[KEYS_SIZE],))
                    pairs = carray(words_at(plan[PAIRS]), (2, BLOCK))
                    batch = made[relation, begins[relation] : ends[relation]]
                    told[FOUND] = enumerate_heads(code, batch, blocks, scratch, pairs, state, heads, ranks)
                    told[MET] += told[FOUND]
                    told[CLAIMED], told[POINT] = 0, CLAIMING
                count = told[FOUND]
                queue = with_room(queue, queue_ends, head, count)
                table = words_at(tables[head])
                table[LISTED] = 0
                told[CLAIMED] = claim_rows(
                    tables[head], heads[:count], ranks[:count], told[CLAIMED], queue[head, queue_ends[head] :]
                )
                queue_ends[head] += table[LISTED]
                if table[LISTED]:
                    told[LAST] = told[NUMBER]
                if told[CLAIMED] < count:
                    told[STATUS], told[TABLE] = NO_LINES, head
                    return queue, made, lost, heap, entered
                told[POINT] = IN_PLAN
                if state[MACHINE_STATUS] == DONE:
                    told[POINT] = AT_PLAN
                    told[NUMBER] += 1
                elif state[MACHINE_STATUS] != IS_FULL:
                    told[STATUS] = state[MACHINE_STATUS]
                    return queue, made, lost, heap, entered
            change_flags(tables[relation], made[relation, begins[relation] : ends[relation]], none, batched)
            told[RELATION] += 1
            told[NUMBER] = 0
        told[POINT] = BETWEEN_ROUNDS
    return queue, made, lost, heap, entered
