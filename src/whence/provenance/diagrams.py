"""Binary decision diagrams: Boolean functions of numbered variables, equal ones the same node.

Nodes are numbers: 0 is false, 1 is true. A node tests the variable of the lowest number first. Only what questions about
derivations need is here: functions without negation, their probabilities, and a budget of nodes.
"""

from __future__ import annotations

import math
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
        variable = min(self.variables[one], self.variables[other])
        low_one, high_one = self._cofactors(one, variable)
        low_other, high_other = self._cofactors(other, variable)
        combine = self.conjunction if conjunction else self.disjunction
        return self._node(variable, combine(low_one, low_other), combine(high_one, high_other))

    def probability(self, node: int, chances: Sequence[float]) -> float:
        """How likely the function is true if variables are, independently, with these chances."""
        return self._probabilities(self._below(node), chances)[node]

    def _probabilities(self, nodes: Sequence[int], chances: Sequence[float]) -> dict[int, float]:
        known = {FALSE: 0.0, TRUE: 1.0}
        for each in nodes:
            chance = chances[self.variables[each]]
            known[each] = (1.0 - chance) * known[self.low[each]] + chance * known[self.high[each]]
        return known

    def influences(self, node: int, chances: Sequence[float]) -> list[float]:
        """For each variable, how much likelier the function is with it true than with it false."""
        nodes = self._below(node)
        known = self._probabilities(nodes, chances)
        met = dict.fromkeys(nodes, 0.0) | {node: 1.0, FALSE: 0.0, TRUE: 0.0}
        found = [0.0] * len(chances)
        for each in reversed(nodes):
            variable, low, high = self.variables[each], self.low[each], self.high[each]
            found[variable] += met[each] * (known[high] - known[low])
            met[low] += met[each] * (1.0 - chances[variable])
            met[high] += met[each] * chances[variable]
        return found

    def fewest_missing(self, node: int, variable: int) -> int | None:
        """How few other variables have to be false for the function to be true with this one and false without it.

        None if it never depends on the variable.
        """
        best: dict[tuple[int, int], float] = {}

        def fewest(given: int, without: int) -> float:
            if given in (without, FALSE) or without == TRUE:
                return math.inf
            if (given, without) == (TRUE, FALSE):
                return 0
            if (given, without) not in best:
                top = min(self.variables[given], self.variables[without])
                low_given, high_given = self._cofactors(given, top)
                low_without, high_without = self._cofactors(without, top)
                best[given, without] = min(fewest(high_given, high_without), 1 + fewest(low_given, low_without))
            return best[given, without]

        found = fewest(self._restricted(node, variable, True), self._restricted(node, variable, False))
        return None if math.isinf(found) else int(found)

    def _cofactors(self, node: int, variable: int) -> tuple[int, int]:
        return (self.low[node], self.high[node]) if self.variables[node] == variable else (node, node)

    def _restricted(self, node: int, variable: int, value: bool) -> int:
        """The function with a variable set."""
        done = {FALSE: FALSE, TRUE: TRUE}
        for each in self._below(node):
            if self.variables[each] == variable:
                done[each] = done[self.high[each] if value else self.low[each]]
            else:
                done[each] = self._node(self.variables[each], done[self.low[each]], done[self.high[each]])
        return done[node]

    def size(self, node: int) -> int:
        return len(self._below(node))

    def _below(self, node: int) -> list[int]:
        """The nodes of a diagram, parts before what is made of them."""
        found: set[int] = set()
        pending = [node]
        while pending:
            each = pending.pop()
            if each > TRUE and each not in found:
                found.add(each)
                pending += (self.low[each], self.high[each])
        return sorted(found)
