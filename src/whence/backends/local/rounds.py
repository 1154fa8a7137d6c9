"""The compiled loop that makes rows present, and what follows from them in turn: many small rounds in one call.

It does what `StratumEpoch` does round by round, in the same order: all rows of the round become present with its rank; then, one
relation after the other, the plans that begin with it add derivations, and its rows stop being the batch. It comes back when
nothing is left, when a round is large enough for several threads, when it has done enough for others to have a say, and in the
middle of a round where something has to grow; called again, it goes on there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whence.backends.local import bundles, kernels
from whence.backends.local.bundles import MOST, gather_rows
from whence.backends.local.cascade import with_room
from whence.backends.local.kernels import LISTED
from whence.backends.local.links import link_waiting
from whence.backends.local.machine import DONE, IS_FULL, IS_TOO_LARGE
from whence.backends.local.memory import called, kernel, words_at
from whence.backends.local.plans import (
    DRIVER,
    HEAD,
    IS_RECURSIVE,
    SOURCE,
    heads_of,
    ranks_of,
    run_plan,
    start_plan,
    why_stopped,
)
from whence.engine.protocol import BATCH

activate, change_flags = called(kernels.activate, "int"), called(kernels.change_flags, "none")
claim_rows, claim_bundles = called(kernels.claim_rows, "int"), called(bundles.claim_bundles, "int")

# What is told of a call and to the next: why it came back, where it was (which relation and plan of the round, which of the heads
# that were found), the derivations met and those met before the last round, the rounds and the highest rank so far, which plan
# derived something new last, which table has rows waiting; then how many rounds, new rows and derivations are enough, and how
# many rows or derivations make a round large.
STATUS, POINT, RELATION, NUMBER, FOUND, CLAIMED, MET, MET_BEFORE, ROUNDS, RANK, LAST, TABLE = range(12)
MOST_ROUNDS, MOST_ROWS, MOST_MET, LARGEST, HEAVIEST = range(12, 17)
TOLD = 17
# Besides what the machine stops for: a table has no room for rows, or a table's indexes have none for those that wait.
NO_LINES, NO_LINKS = IS_TOO_LARGE + 1, IS_TOO_LARGE + 2
BETWEEN_ROUNDS, AT_PLAN, IN_PLAN, CLAIMING = range(4)


@kernel("lines words lines rows words words words int words")
def spread_gain(
    plans: Any,
    tables: Any,
    indexes: Any,
    queue: Any,
    begins: Any,
    middles: Any,
    ends: Any,
    buffer: int,
    told: Any,
) -> Any:
    """`queue` has a line for each table. In it, rows up to `begins` are done with, those up to `middles` are the round's, and
    those up to `ends` are the next one's. `indexes` are those of tables joined with, each behind its table's number. Returns the
    queue.
    """
    relations = len(tables)
    # Typed, or Numba compiles what they are passed to once more.
    none, batched, one = np.int64(0), np.int64(BATCH), np.int64(1)
    untold, counted = np.empty(0, dtype=np.int32), np.zeros(4, dtype=np.int64)
    told[STATUS] = DONE
    has_bundles = False
    for number in range(plans.shape[0]):
        has_bundles = has_bundles or plans[number, SOURCE] != 0
    while True:
        if told[POINT] == BETWEEN_ROUNDS:
            largest, made = np.int64(0), np.int64(0)
            for each in range(relations):
                largest = max(largest, ends[each] - middles[each])
                made += ends[each]
            if largest == 0 or largest > told[LARGEST] or told[MET] - told[MET_BEFORE] > told[HEAVIEST]:
                return queue
            if told[ROUNDS] >= told[MOST_ROUNDS] or made >= told[MOST_ROWS] or told[MET] >= told[MOST_MET]:
                return queue
            told[MET_BEFORE] = told[MET]
            told[ROUNDS] += 1
            told[RANK] += 1
            for each in range(relations):
                begins[each], middles[each] = middles[each], ends[each]
                if has_bundles:
                    gather_rows(tables[each], queue[each, begins[each] : middles[each]])
                activate(tables[each], queue[each, begins[each] : middles[each]], told[RANK], batched, untold)
            told[RELATION], told[NUMBER], told[POINT] = 0, 0, AT_PLAN
        relation = told[RELATION]
        while told[NUMBER] < plans.shape[0] and begins[relation] < middles[relation]:
            plan = plans[told[NUMBER]]
            if plan[DRIVER] != relation:
                told[NUMBER] += 1
                continue
            head = plan[HEAD]
            if told[POINT] == AT_PLAN:
                for each in range(indexes.shape[0]):
                    joined = indexes[each, 0]
                    if not link_waiting(tables[joined], indexes, joined):
                        told[STATUS], told[TABLE] = NO_LINKS, joined
                        return queue
                start_plan(plan)
                told[POINT] = IN_PLAN
            if told[POINT] == IN_PLAN:
                told[FOUND] = run_plan(plan, queue[relation, begins[relation] : middles[relation]], buffer)
                told[CLAIMED], told[POINT] = 0, CLAIMING
                if plan[SOURCE] == 0:
                    told[MET] += told[FOUND]
            count = told[FOUND]
            heads, ranks = heads_of(plan, count), ranks_of(plan, count)
            queue = with_room(queue, ends, head, count if plan[SOURCE] == 0 else np.int64(MOST))
            if plan[SOURCE] == 0:
                table = words_at(tables[head])
                table[LISTED] = 0
                told[CLAIMED] = claim_rows(tables[head], heads, ranks, told[CLAIMED], queue[head, ends[head] :])
                listed = table[LISTED]
            else:
                for each in range(len(counted)):
                    counted[each] = 0
                told[CLAIMED] = claim_bundles(
                    tables[head],
                    plan[SOURCE],
                    plan[IS_RECURSIVE],
                    heads,
                    ranks,
                    told[CLAIMED],
                    none,
                    one,
                    queue[head, ends[head] :],
                    untold,
                    untold,
                    counted,
                )
                told[MET] += counted[2]
                listed = counted[0]
            ends[head] += listed
            if listed:
                told[LAST] = told[NUMBER]
            if told[CLAIMED] < count:
                if plan[SOURCE] != 0 and ends[head] + MOST > queue.shape[1]:
                    continue
                told[STATUS] = NO_LINES
                return queue
            told[POINT] = IN_PLAN
            if why_stopped(plan) == DONE:
                told[POINT] = AT_PLAN
                told[NUMBER] += 1
            elif why_stopped(plan) != IS_FULL:
                told[STATUS] = why_stopped(plan)
                return queue
        change_flags(tables[relation], queue[relation, begins[relation] : middles[relation]], none, batched)
        told[RELATION] += 1
        told[NUMBER] = 0
        if told[RELATION] == relations:
            told[POINT] = BETWEEN_ROUNDS
