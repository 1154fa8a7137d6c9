"""What procedural optimizers keep from one run to the next."""

from __future__ import annotations

from enum import StrEnum

from whence.optimizer.space import Node, Touch

NEAR = 4  # how many times the best a near-viable alternative may cost


class Memo(StrEnum):
    """`best`: of each node its cost and best alternative. `all`: the alternatives with their costs too. `near`: of these
    the ones that came near the best; the others are worked out again when they are needed."""

    BEST = "best"
    ALL = "all"
    NEAR = "near"


def reaching(touches: list[Touch], expression: int) -> list[Touch]:
    """The changes that can be felt at an expression."""
    return [each for each in touches if each.expression & ~expression == 0]


def only_own(touches: list[Touch], node: Node) -> bool:
    """Whether all that changes at a node is what its alternatives cost alike: how many rows they hand on.

    Where something is wanted of the result, an alternative may read the same expression without that, and all its rows.
    """
    expression, wanted = node
    if wanted or not expression & (expression - 1):
        return False
    return all(each.rows and each.expression == expression for each in touches)
