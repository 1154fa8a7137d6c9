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

from whence.backends.local import cascade, kernels
from whence.backends.local.best import ALONE, BETTER, KEY_COUNT, OUTPUT_OF, ROWS_OF, standing
from whence.backends.local.cascade import MET as LOSS_MET
from whence.backends.local.cascade import NUMBER as LOSS_NUMBER
from whence.backends.local.cascade import STATUS as LOSS_STATUS
from whence.backends.local.cascade import with_room
from whence.backends.local.hashing import BLOCK as LOOK_UPS
from whence.backends.local.hashing import COLUMNS
from whence.backends.local.heap import heap_with_room
from whence.backends.local.kernels import LISTED, ROWS
from whence.backends.local.links import link_waiting
from whence.backends.local.machine import DONE, IS_FULL
from whence.backends.local.memory import called, compiled, kernel, words_at
from whence.backends.local.plans import DRIVER, HEAD, heads_of, ranks_of, run_plan, start_plan, why_stopped
from whence.backends.local.rounds import NO_LINES, NO_LINKS
from whence.backends.local.waiting import (
    CLAIMED,
    FOUND,
    GIVEN,
    HAS_GIVEN,
    IS_ENOUGH,
    LAST,
    LET_IN,
    MET,
    MOST_MET,
    MOST_ROUNDS,
    MOST_ROWS,
    NUMBER,
    POINT,
    RANK_REACHED,
    RELATION,
    ROUNDS,
    ROW,
    ROW_BITS,
    STATUS,
    STOPPED_TAKING,
    TABLE,
    TAKEN,
    WAITING,
    choose,
    give_values,
    group_at,
    have_best_wait,
    have_wait,
    let_in,
    links_rows,
    review,
    state_of,
    write_value,
)
from whence.engine.protocol import BATCH, SUSPENDED

change_flags, claim_rows = called(kernels.change_flags, "none"), called(kernels.claim_rows, "int")
spread_loss = called(cascade.spread_loss, "rows")

OFFERING, BETWEEN_ROUNDS, LOSING, REVIEWING, GIVING, CHOOSING, LETTING_IN, AT_PLAN, IN_PLAN, CLAIMING = range(10)
_ANY = np.int64(1 << 40)
_UNRANKED = -1


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
    keys, found = np.empty((2, most_keys * LOOK_UPS), dtype=np.int64)
    results, waits = np.empty(LOOK_UPS, dtype=np.int64), np.empty(LOOK_UPS, dtype=np.int64)
    values, listed = np.empty(most_columns * LOOK_UPS, dtype=np.int64), np.empty(LOOK_UPS, dtype=np.int32)
    unranked = np.full(LOOK_UPS, _UNRANKED, dtype=np.int32)
    told[STATUS] = DONE
    while True:
        if told[POINT] == OFFERING:
            heap = heap_with_room(heap, told[WAITING], told[LET_IN])
            for at in range(told[LET_IN]):
                number, row = entered[at] >> ROW_BITS, entered[at] & ROW
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
                number, row = entered[told[GIVEN]] >> ROW_BITS, entered[told[GIVEN]] & ROW
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
                        write_value(group, tables, row, keys, np.int64(0), values, np.int64(0))
                        if give_values(group, tables, values, np.int64(1), unranked, listed, told[RANK_REACHED]) < 0:
                            told[STATUS], told[TABLE] = NO_LINES, output
                            return queue, made, lost, heap, entered
                        made = with_room(made, ends, output, 1)
                        made[output, ends[output]] = listed[0]
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
            made, lost, entered = let_in(
                groups,
                tables,
                indexes,
                made,
                ends,
                lost,
                lost_begins,
                lost_ends,
                heap,
                entered,
                told,
                keys,
                found,
                results,
                values,
                unranked,
            )
            if told[STATUS] != DONE:
                break
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
                if told[POINT] == AT_PLAN:
                    if not links_joined(joined, tables, indexes, told):
                        return queue, made, lost, heap, entered
                    start_plan(plan)
                    told[POINT] = IN_PLAN
                if told[POINT] == IN_PLAN:
                    told[FOUND] = run_plan(plan, made[relation, begins[relation] : ends[relation]], buffer)
                    told[MET] += told[FOUND]
                    told[CLAIMED], told[POINT] = 0, CLAIMING
                count = told[FOUND]
                queue = with_room(queue, queue_ends, head, count)
                table = words_at(tables[head])
                table[LISTED] = 0
                told[CLAIMED] = claim_rows(
                    tables[head],
                    heads_of(plan, count),
                    ranks_of(plan, count),
                    told[CLAIMED],
                    queue[head, queue_ends[head] :],
                )
                queue_ends[head] += table[LISTED]
                if table[LISTED]:
                    told[LAST] = told[NUMBER]
                if told[CLAIMED] < count:
                    told[STATUS], told[TABLE] = NO_LINES, head
                    return queue, made, lost, heap, entered
                told[POINT] = IN_PLAN
                if why_stopped(plan) == DONE:
                    told[POINT] = AT_PLAN
                    told[NUMBER] += 1
                elif why_stopped(plan) != IS_FULL:
                    told[STATUS] = why_stopped(plan)
                    return queue, made, lost, heap, entered
            change_flags(tables[relation], made[relation, begins[relation] : ends[relation]], none, batched)
            told[RELATION] += 1
            told[NUMBER] = 0
        told[POINT] = BETWEEN_ROUNDS
    return queue, made, lost, heap, entered
