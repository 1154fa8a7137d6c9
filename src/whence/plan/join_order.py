"""Which atom of a body is joined next: something that a plan is given, so that whoever knows the data better can choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Protocol

from whence.lang.order import Candidate


class JoinOrder(Protocol):
    """Picks the next atom while a delta plan is made, step by step; tests come as soon as they can, without being asked for."""

    def __call__(self, candidates: Sequence[Candidate], sizes: Mapping[str, int]) -> int:
        """The place in `candidates` of the one to come next. They are in the order of the body, and there is at least one.

        `sizes` tells how many rows relations have, as far as that is known. Any pick is right; they differ in what it costs.
        """
        ...


def most_bound(candidates: Sequence[Candidate], sizes: Mapping[str, int]) -> int:
    """An atom with all columns bound, which only leaves fewer to join with the others; else the one with most columns bound. Of
    several the one of the smallest relation, and of several such the first.
    """

    def worth(at: int) -> tuple[bool, int, float]:
        atom, bound = candidates[at]
        return len(bound) == len(atom.args), len(bound), -sizes.get(atom.relation, inf)

    return max(range(len(candidates)), key=worth)
