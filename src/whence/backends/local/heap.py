"""Rows that wait for their turn, the best first, in compiled loops.

A heap is an array with a line for each of them: its order, and a word that says who it is. How many there are stands elsewhere.
Below each there are four, which are next to each other: that is half as far down as with two, and as near in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whence.backends.local.memory import compiled


@compiled
def heap_with_room(heap: Any, size: int, more: int) -> Any:
    if size + more <= heap.shape[0]:
        return heap
    larger = np.empty((2 * (size + more), 2), dtype=np.int64)
    for at in range(size):
        larger[at, 0], larger[at, 1] = heap[at, 0], heap[at, 1]
    return larger


@compiled
def push(heap: Any, size: int, order: int, word: int) -> None:
    """There must be room for it."""
    at = size
    while at > 0:
        above = (at - 1) >> 2
        if heap[above, 0] <= order:
            break
        heap[at, 0], heap[at, 1] = heap[above, 0], heap[above, 1]
        at = above
    heap[at, 0], heap[at, 1] = order, word


@compiled
def pop(heap: Any, size: int) -> None:
    """Takes out the first of so many.

    The best of four moves up until there are none, and the last one goes up from there: it nearly always stays below, and so it
    need not be compared on the way down.
    """
    last, at = size - 1, np.int64(0)
    below: Any
    order, word = heap[last, 0], heap[last, 1]
    while 4 * at + 4 < last:
        first = 4 * at + 1
        one = first + np.int64(heap[first + 1, 0] < heap[first, 0])
        other = first + 2 + np.int64(heap[first + 3, 0] < heap[first + 2, 0])
        below = other if heap[other, 0] < heap[one, 0] else one
        heap[at, 0], heap[at, 1] = heap[below, 0], heap[below, 1]
        at = below
    if 4 * at + 1 < last:
        below = 4 * at + 1
        for beside in range(below + 1, last):
            below = beside if heap[beside, 0] < heap[below, 0] else below
        heap[at, 0], heap[at, 1] = heap[below, 0], heap[below, 1]
        at = below
    push(heap, at, order, word)
