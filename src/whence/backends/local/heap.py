"""Rows that wait for their turn, the best first, in compiled loops.

A heap is an array with a line for each of them: its order, and a word that says who it is. How many there are stands elsewhere.
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
        above = (at - 1) >> 1
        if heap[above, 0] <= order:
            break
        heap[at, 0], heap[at, 1] = heap[above, 0], heap[above, 1]
        at = above
    heap[at, 0], heap[at, 1] = order, word


@compiled
def pop(heap: Any, size: int) -> None:
    """Takes out the first of so many."""
    last, at = size - 1, np.int64(0)
    order, word = heap[last, 0], heap[last, 1]
    while True:
        below = 2 * at + 1
        if below >= last:
            break
        if below + 1 < last and heap[below + 1, 0] < heap[below, 0]:
            below += 1
        if order <= heap[below, 0]:
            break
        heap[at, 0], heap[at, 1] = heap[below, 0], heap[below, 1]
        at = below
    heap[at, 0], heap[at, 1] = order, word
