"""Binary decision diagrams: Boolean functions of numbered variables, equal ones the same node.

Nodes are numbers: 0 is false, 1 is true. A node tests the variable of the lowest number first. Only what questions about
derivations need is here: functions without negation, their probabilities, and a budget of nodes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

FALSE, TRUE = 0, 1
_LEAF = sys.maxsize


class BudgetExceeded(Exception):
    """The diagrams take more nodes than allowed."""


class Diagrams:
    """Nodes that share their parts. `budget` is how many there may be."""

    def __init__(self, budget: int = 1_000_000) -> None:
        self.budget = budget
        self.variables = [_LEAF, _LEAF]
        self.low = [FALSE, TRUE]
        self.high = [FALSE, TRUE]
        self._numbers: dict[tuple[int, int, int], int] = {}
        self._conjunctions: dict[tuple[int, int], int] = {}
        self._disjunctions: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self.variables)

    def variable(self, number: int) -> int:
        return self._node(number, FALSE, TRUE)

    def _node(self, variable: int, low: int, high: int) -> int:
        if low == high:
            return low
        key = (variable, low, high)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.variables)
            if number > self.budget:
                raise BudgetExceeded
            self.variables.append(variable)
            self.low.append(low)
            self.high.append(high)
        return number

    def conjunction(self, one: int, other: int) -> int:
        """
        >>> diagrams = Diagrams()
        >>> diagrams.conjunction(diagrams.variable(0), FALSE)
        0
        """
        if other in (one, TRUE):
            return one
        if one == TRUE:
            return other
        if FALSE in (one, other):
            return FALSE
        key = (one, other) if one < other else (other, one)
        result = self._conjunctions.get(key)
        if result is None:
            result = self._conjunctions[key] = self._split(one, other, conjunction=True)
        return result

    def disjunction(self, one: int, other: int) -> int:
        if other in (one, FALSE):
            return one
        if one == FALSE:
            return other
        if TRUE in (one, other):
            return TRUE
        key = (one, other) if one < other else (other, one)
        result = self._disjunctions.get(key)
        if result is None:
            result = self._disjunctions[key] = self._split(one, other, conjunction=False)
        return result

    def _split(self, one: int, other: int, *, conjunction: bool) -> int:
        first, second = self.variables[one], self.variables[other]
        variable = min(first, second)
        low_one, high_one = (self.low[one], self.high[one]) if first == variable else (one, one)
        low_other, high_other = (self.low[other], self.high[other]) if second == variable else (other, other)
        combine = self.conjunction if conjunction else self.disjunction
        return self._node(variable, combine(low_one, low_other), combine(high_one, high_other))

    def probability(self, node: int, chances: Sequence[float]) -> float:
        """How likely the function is true if variables are, independently, with these chances."""
        known = {FALSE: 0.0, TRUE: 1.0}
        # Parts have lower numbers than what is made of them.
        for each in sorted(self._below(node)):
            chance = chances[self.variables[each]]
            known[each] = (1.0 - chance) * known[self.low[each]] + chance * known[self.high[each]]
        return known[node]

    def size(self, node: int) -> int:
        return len(self._below(node))

    def _below(self, node: int) -> set[int]:
        found: set[int] = set()
        pending = [node]
        while pending:
            each = pending.pop()
            if each > TRUE and each not in found:
                found.add(each)
                pending += (self.low[each], self.high[each])
        return found
