"""The compiled loop that takes away what followed from rows, and what followed from that: many small batches in one call.

Where there are groups of numbers (`best`), those that the rows of a batch were in have a say after it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whence.backends.local import kernels
from whence.backends.local.best import KEY_COUNT, OUTPUT_OF, ROWS_OF, suspend_groups
from whence.backends.local.hashing import BLOCK
from whence.backends.local.machine import DONE, IS_FULL
from whence.backends.local.memory import called, compiled, kernel, words_at
from whence.backends.local.plans import DRIVER, HEAD, heads_of, ranks_of, run_plan, start_plan, why_stopped
from whence.engine.protocol import BATCH, HIDDEN

change_flags, drop_supports = called(kernels.change_flags, "none"), called(kernels.drop_supports, "int")
suspend_rows = called(kernels.suspend_rows, "int")

# What is told of a call: the derivations met so far; then, if it stopped in the middle of a batch, why, which batch it was (of
# which relation, from where to where in the rows lost) and which plan.
MET, STATUS, RELATION, BEGIN, END, NUMBER = range(6)


@compiled
def with_room(rows: Any, ends: Any, relation: int, more: int) -> Any:
    """Lines of rows, with room for so many more in one of them."""
    if ends[relation] + more <= rows.shape[1]:
        return rows
    larger = np.empty((rows.shape[0], 2 * (ends[relation] + more)), dtype=np.int32)
    for each in range(rows.shape[0]):
        for at in range(ends[each]):  # Numba takes seconds to compile an assignment of slices
            larger[each, at] = rows[each, at]
    return larger


@kernel("lines words lines rows words words int int int words")
def spread_loss(
    plans: Any,
    tables: Any,
    groups: Any,
    lost: Any,
    begins: Any,
    ends: Any,
    buffer: int,
    largest: int,
    is_counted: int,
    told: Any,
) -> Any:
    """Propagates the loss of rows until no more are lost.

    `lost` has a line for each table; in it those from `begins` to `ends` still have consequences. If derivations are not counted,
    whatever follows from lost rows in any way is lost. Stops before a batch that is larger than `largest`, and where a plan stops
    in the middle: called again, it goes on there. The indexes of `groups` know all rows. Returns the rows lost.
    """
    relations = len(tables)
    most_keys = np.int64(1)
    for each in range(groups.shape[0]):
        most_keys = max(most_keys, groups[each, KEY_COUNT])
    keys = np.empty(most_keys * BLOCK, dtype=np.int64)
    found, results = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
    # Typed, or Numba compiles what they are passed to once more for each.
    none, on, hidden = np.int64(0), np.int64(BATCH), np.int64(HIDDEN)
    while True:
        first = 0
        if told[STATUS] != DONE:
            relation, first = told[RELATION], told[NUMBER]
            batch = lost[relation, told[BEGIN] : told[END]].copy()
        else:
            relation = np.int64(0)
            while relation < relations and begins[relation] == ends[relation]:
                relation += 1
            if relation == relations or ends[relation] - begins[relation] > largest:
                break
            batch = lost[relation, begins[relation] : ends[relation]].copy()
            told[RELATION], told[BEGIN], told[END] = relation, begins[relation], ends[relation]
            begins[relation] = ends[relation]
            change_flags(tables[relation], batch, on, none)
        for number in range(first, plans.shape[0]):
            plan = plans[number]
            if plan[DRIVER] != relation:
                continue
            head = plan[HEAD]
            if told[STATUS] == DONE:
                start_plan(plan)
            told[STATUS] = DONE
            while True:
                count = run_plan(plan, batch, buffer)
                heads, ranks = heads_of(plan, count), ranks_of(plan, count)
                told[MET] += count
                lost = with_room(lost, ends, head, count)
                if is_counted:
                    more = drop_supports(tables[head], heads, ranks, lost[head, ends[head] :])
                else:
                    more = suspend_rows(tables[head], heads, lost[head, ends[head] :])
                ends[head] += more
                if why_stopped(plan) == DONE:
                    break
                if why_stopped(plan) != IS_FULL:
                    told[STATUS], told[NUMBER] = why_stopped(plan), number
                    return lost
        change_flags(tables[relation], batch, hidden, on)
        for each in range(groups.shape[0]):
            group = words_at(groups[each].ctypes.data)
            if group[ROWS_OF] == relation:
                output = group[OUTPUT_OF]
                lost = with_room(lost, ends, output, len(batch))
                ends[output] += suspend_groups(group, tables, batch, keys, found, results, lost[output, ends[output] :])
    return lost
