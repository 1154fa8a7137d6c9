"""Programs that do not end: only the reference may say so.

What is under test gets limits that are looser than the reference's by a wide margin. If it stops all the same, the reference
has to have stopped as well; if it does not, what is under test derived too much, or went round too often.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from hypothesis import assume

from whence import Program, Update
from whence.lang.types import Tuple
from whence.limits import Limits, RunawayError
from whence.reference import evaluate

LIMITS = Limits(max_rounds=200, max_tuples=20_000)
LOOSE = Limits(max_rounds=1_000, max_tuples=100_000)


def ends(program: Program, facts: Mapping[str, Iterable[Tuple]]) -> bool:
    """Whether the reference comes to an end within its limits."""
    try:
        evaluate(program, facts, limits=LIMITS)
    except RunawayError:
        return False
    return True


@contextmanager
def excused(program: Program, facts: Mapping[str, Iterable[Tuple]]) -> Iterator[None]:
    """What may run away only if the reference does on the same facts; the example is thrown away then."""
    try:
        yield
    except RunawayError:
        if ends(program, facts):
            raise
        assume(False)


def follow(base: dict[str, set[Tuple]], updates: Iterable[Update]) -> None:
    """Base facts after one more epoch."""
    for op, relation, row, *_ in updates:
        rows = base.setdefault(relation, set())
        (rows.add if op == "+" else rows.discard)(row)
