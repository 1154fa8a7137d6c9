"""The compiled loop that takes away what followed from rows, and what followed from that: many small batches in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from whence.backends.local.kernels import change_flags, drop_supports, suspend_rows
from whence.backends.local.machine import BLOCK, DEPTH, NEXT, RESUME, enumerate_heads
from whence.backends.local.memory import halves_at, kernel, words_at
from whence.engine.protocol import BATCH, HIDDEN

# What a plan is told by: the relations it begins with and derives, by number, then the arrays of `Assembled` and their sizes.
DRIVER, HEAD, CODE, CODE_SIZE, STATE, STATE_SIZE, BLOCKS, DEPTHS = range(8)
REGISTERS, KEYS, KEYS_SIZE, PAIRS, HEADS, ARITY, RANKS = range(8, 15)


@kernel("lines words ids words int int int words")
def spread_loss(
    plans: Any, tables: Any, ids: Any, counts: Any, buffer: int, largest: int, is_counted: int, work: Any
) -> Any:
    """Propagates the loss of rows, `counts` of each table, one after the other in `ids`, until no more are lost.

    If derivations are not counted, whatever follows from lost rows in any way is lost. Stops before a batch that is larger than
    `largest`. Returns the rows lost, a line for each table, and where in it those begin whose consequences are still there, and
    where they end; `work` is given the number of derivations met.
    """
    relations = len(tables)
    room = 2 * len(ids) + 1024
    lost = np.empty((relations, room), dtype=np.int32)
    begins, ends = np.zeros(relations, dtype=np.int64), np.zeros(relations, dtype=np.int64)
    at = 0
    for relation in range(relations):
        for _ in range(counts[relation]):
            lost[relation, ends[relation]] = ids[at]
            ends[relation] += 1
            at += 1
    met = 0
    # Typed, or Numba compiles what they are passed to once more for each.
    none, on, hidden = np.int64(0), np.int64(BATCH), np.int64(HIDDEN)
    while True:
        relation = 0
        while relation < relations and begins[relation] == ends[relation]:
            relation += 1
        if relation == relations or ends[relation] - begins[relation] > largest:
            break
        batch = lost[relation, begins[relation] : ends[relation]].copy()
        begins[relation] = ends[relation]
        change_flags(tables[relation], batch, on, none)
        for number in range(plans.shape[0]):
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
            state[NEXT] = state[DEPTH] = state[RESUME] = 0
            while True:
                count = enumerate_heads(code, batch, blocks, keys, pairs, state, heads, ranks)
                met += count
                if ends[head] + count > room:
                    room = 2 * (ends[head] + count)
                    larger = np.empty((relations, room), dtype=np.int32)
                    for each in range(relations):
                        larger[each, : ends[each]] = lost[each, : ends[each]]
                    lost = larger
                if is_counted:
                    more = drop_supports(tables[head], heads[:count], ranks[:count], lost[head, ends[head] :])
                else:
                    more = suspend_rows(tables[head], heads[:count], lost[head, ends[head] :])
                ends[head] += more
                if count <= buffer - BLOCK:
                    break
        change_flags(tables[relation], batch, hidden, on)
    work[0] = met
    return lost, begins, ends
