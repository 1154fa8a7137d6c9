"""Heaps in compiled loops, against `heapq`."""

from __future__ import annotations

import heapq
import random
from typing import Any

import numpy as np
from numba import njit

from whence.backends.local import heap as loops

heap_with_room, push, pop = (each.in_numba for each in (loops.heap_with_room, loops.push, loops.pop))


@njit  # type: ignore[untyped-decorator]
def follow(steps: Any, taken: Any) -> int:
    """Puts an order in for each step, or takes the first out where the step is below zero; returns how many were taken."""
    heap, size, end = np.empty((1, 2), dtype=np.int64), np.int64(0), 0
    for at in range(len(steps)):
        if steps[at] >= 0:
            heap = heap_with_room(heap, size, np.int64(1))
            push(heap, size, steps[at], np.int64(at))
            size += 1
        else:
            taken[end] = heap[0]
            end += 1
            pop(heap, size)
            size -= 1
    return end


def test_the_best_come_first_and_each_comes_once() -> None:
    rng = random.Random(8)
    for most in (1, 5, 1000):
        for _ in range(30):
            steps: list[int] = []
            held = 0
            while len(steps) < 400 or held:
                is_put = held == 0 or (len(steps) < 400 and rng.random() < 0.6)
                steps.append(rng.randrange(most) if is_put else -1)
                held += 1 if is_put else -1
            taken = np.empty((len(steps), 2), dtype=np.int64)
            count = follow(np.array(steps, dtype=np.int64), taken)
            heap: list[int] = []
            expected = []
            for step in steps:
                if step >= 0:
                    heapq.heappush(heap, step)
                else:
                    expected.append(heapq.heappop(heap))
            assert taken[:count, 0].tolist() == expected
            words = taken[:count, 1].tolist()
            assert sorted(words) == [at for at, step in enumerate(steps) if step >= 0]
            assert all(steps[word] == order for order, word in taken[:count].tolist())
