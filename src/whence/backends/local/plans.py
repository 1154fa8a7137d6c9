"""Plans as compiled loops are told them: a line of words with all that it takes to run one."""

from __future__ import annotations

from typing import Any

from whence.backends.local import machine
from whence.backends.local.machine import BLOCK, DEPTH, NEXT, RESUME, STATUS
from whence.backends.local.memory import called, carray, compiled, halves_at, words_at

enumerate_heads = called(machine.enumerate_heads, "int")

# The relations that a plan begins with and derives, by number, then the arrays of `Assembled` and their sizes; and if its heads
# are those of bundles, the table whose rows they are of, or 0, and whether that is recursive.
DRIVER, HEAD, CODE, CODE_SIZE, STATE, STATE_SIZE, BLOCKS, DEPTHS = range(8)
REGISTERS, KEYS, KEYS_SIZE, PAIRS, HEADS, ARITY, RANKS, SOURCE, IS_RECURSIVE = range(8, 17)


@compiled
def start_plan(plan: Any) -> None:
    """From the first row of a batch on."""
    state = words_at(plan[STATE])
    state[NEXT] = state[DEPTH] = state[RESUME] = 0


@compiled
def heads_of(plan: Any, count: int) -> Any:
    """The first heads that were found last."""
    return carray(words_at(plan[HEADS]), (count, plan[ARITY]))


@compiled
def ranks_of(plan: Any, count: int) -> Any:
    """The ranks they use."""
    return carray(halves_at(plan[RANKS]), (count,))


@compiled
def run_plan(plan: Any, batch: Any, buffer: int) -> int:
    """How many more heads are found, where there is room for `buffer`."""
    return enumerate_heads(
        carray(words_at(plan[CODE]), (plan[CODE_SIZE],)),
        batch,
        carray(words_at(plan[BLOCKS]), (plan[DEPTHS], plan[REGISTERS], BLOCK)),
        carray(words_at(plan[KEYS]), (plan[KEYS_SIZE],)),
        carray(words_at(plan[PAIRS]), (2, BLOCK)),
        carray(words_at(plan[STATE]), (plan[STATE_SIZE],)),
        heads_of(plan, buffer),
        ranks_of(plan, buffer),
    )


@compiled
def why_stopped(plan: Any) -> int:
    """What the machine said when it ran this plan last."""
    return words_at(plan[STATE])[STATUS]
