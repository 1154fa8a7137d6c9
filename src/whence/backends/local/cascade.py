"""The compiled loop that takes away what followed from rows, and what followed from that: many small batches in one call.

Where there are groups of numbers (`best`), those that the rows of a batch were in have a say after it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from whence.backends.local import kernels, machine
from whence.backends.local.best import KEY_COUNT, OUTPUT_OF, ROWS_OF, suspend_groups
from whence.backends.local.machine import BLOCK, DEPTH, DONE, IS_FULL, NEXT, RESUME
from whence.backends.local.machine import STATUS as MACHINE_STATUS
from whence.backends.local.memory import called, compiled, halves_at, kernel, words_at
from whence.engine.protocol import BATCH, HIDDEN

change_flags, enumerate_heads = called(kernels.change_flags, "none"), called(machine.enumerate_heads, "int")
drop_supports, suspend_rows = called(kernels.drop_supports, "int"), called(kernels.suspend_rows, "int")

# What a plan is told by: the relations it begins with and derives, by number, then the arrays of `Assembled` and their sizes;
# and if its heads are those of bundles, the table whose rows they are of, or 0, and whether that is recursive.
DRIVER, HEAD, CODE, CODE_SIZE, STATE, STATE_SIZE, BLOCKS, DEPTHS = range(8)
REGISTERS, KEYS, KEYS_SIZE, PAIRS, HEADS, ARITY, RANKS, SOURCE, IS_RECURSIVE = range(8, 17)


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
    key = np.empty(most_keys, dtype=np.int64)
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
            code = carray(words_at(plan[CODE]), (plan[CODE_SIZE],))
            state = carray(words_at(plan[STATE]), (plan[STATE_SIZE],))
            blocks = carray(words_at(plan[BLOCKS]), (plan[DEPTHS], plan[REGISTERS], BLOCK))
            keys = carray(words_at(plan[KEYS]), (plan[KEYS_SIZE],))
            pairs = carray(words_at(plan[PAIRS]), (2, BLOCK))
            heads = carray(words_at(plan[HEADS]), (buffer, plan[ARITY]))
            ranks = carray(halves_at(plan[RANKS]), (buffer,))
            if told[STATUS] == DONE:
                state[NEXT] = state[DEPTH] = state[RESUME] = 0
            told[STATUS] = DONE
            while True:
                count = enumerate_heads(code, batch, blocks, keys, pairs, state, heads, ranks)
                told[MET] += count
                lost = with_room(lost, ends, head, count)
                if is_counted:
                    more = drop_supports(tables[head], heads[:count], ranks[:count], lost[head, ends[head] :])
                else:
                    more = suspend_rows(tables[head], heads[:count], lost[head, ends[head] :])
                ends[head] += more
                if state[MACHINE_STATUS] == DONE:
                    break
                if state[MACHINE_STATUS] != IS_FULL:
                    told[STATUS], told[NUMBER] = state[MACHINE_STATUS], number
                    return lost
        change_flags(tables[relation], batch, hidden, on)
        for each in range(groups.shape[0]):
            group = words_at(groups[each].ctypes.data)
            if group[ROWS_OF] == relation:
                output = group[OUTPUT_OF]
                lost = with_room(lost, ends, output, len(batch))
                ends[output] += suspend_groups(group, tables, batch, key, lost[output, ends[output] :])
    return lost
