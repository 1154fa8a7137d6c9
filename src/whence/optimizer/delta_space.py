"""The orders in which a delta plan can join the atoms of a body, one at a time: what they cost, by what the tables hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from whence.lang.order import Candidate
from whence.lang.program import Var
from whence.optimizer import cost
from whence.optimizer.estimates import MOST_MEMBERS, sum_within
from whence.optimizer.query import bits_of, places_of
from whence.optimizer.space import Alternative, Node, Touch, all_nodes, least_of

CHANGED = 1000  # rows: few enough matches for one of them are a fraction of a row

LookUp = Callable[[str, int], float]  # the distinct values in a column of a relation


class DeltaSpace:
    """A node is the set of atoms joined so far; an alternative is which of them came last. Numbers are for `CHANGED` rows."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.candidates = tuple(candidates)
        self.root: Node = ((1 << len(candidates)) - 1, 0)
        self.factors: dict[int, int] = {}
        self._alternatives: dict[Node, tuple[Alternative, ...]] = {}

    def take_in(self, rows: Callable[[str], float], distinct: LookUp) -> list[Touch]:
        """Estimates by what tables hold now. Gives what that changes."""
        found = factors_of(self.candidates, rows, distinct)
        before, self.factors = self.factors, found
        return [
            Touch(bits, log, rows=True)
            for bits in sorted(before.keys() | found.keys())
            if (log := found.get(bits, 0) - before.get(bits, 0))
        ]

    def alternatives(self, node: Node) -> Sequence[Alternative]:
        found = self._alternatives.get(node)
        if found is None:
            found = tuple(
                Alternative(at, "join", "look up", (node[0] & ~(1 << place), 0) if node[0] != 1 << place else None)
                for at, place in enumerate(places_of(node[0]))
            )
            self._alternatives[node] = found
        return found

    def rows(self, expression: int) -> float:
        return CHANGED * float(2.0 ** (min(sum_within(self.factors, expression), 900 * cost.LOG_ONE) / cost.LOG_ONE))

    def local(self, node: Node, alternative: Alternative) -> int:  # noqa: ARG002 - the node says nothing more
        return cost.scaled(cost.PROBE * (CHANGED if alternative.left is None else self.rows(alternative.left[0])), 0)

    def least(self, node: Node, alternatives: Sequence[Alternative]) -> tuple[int, Alternative]:
        return least_of(self, node, alternatives)

    def own(self, node: Node) -> int:
        return cost.scaled(cost.ROW * self.rows(node[0]), 0)

    def floor(self, node: Node) -> int:
        return self.own(node)

    def floor_of_leaves(self, node: Node, without: int = 0) -> int:  # noqa: ARG002 - no leaf costs anything for certain
        return 0

    def nodes(self) -> list[Node]:
        return all_nodes(self)

    def cost_of(self, order: Sequence[int]) -> int:
        """What it takes to join the atoms at these places, one after the other."""
        total, joined = 0, 0
        for place in order:
            total += cost.scaled(cost.PROBE * (self.rows(joined) if joined else CHANGED), 0)
            joined |= 1 << place
            total += self.own((joined, 0))
        return total


def factors_of(candidates: Sequence[Candidate], rows: Callable[[str], float], distinct: LookUp) -> dict[int, int]:
    """What is known of rows, by the atoms, as bits, that it is known of: as for queries, but that some columns have a value."""
    found: dict[int, int] = {}
    variables: dict[
        str, dict[int, float]
    ] = {}  # of those without a value: where they are, and how many values there are
    for at, (atom, bound) in enumerate(candidates):
        log = cost.to_log(rows(atom.relation))
        for column, term in enumerate(atom.args):
            if column in bound:
                log -= cost.to_log(max(1.0, distinct(atom.relation, column)))
            elif isinstance(term, Var):
                variables.setdefault(term.name, {})[at] = max(1.0, distinct(atom.relation, column))
        found[1 << at] = log
    for places in variables.values():
        for bits, log in _equal(places).items():
            found[bits] = found.get(bits, 0) + log
    return found


def _equal(places: dict[int, float]) -> dict[int, int]:
    """What it means that atoms have a variable in common, by the atoms that are there: the one with the fewest values is joined
    with each of the others. So each set of them has, as its fact, what the facts of its parts leave."""
    ordered = sorted(places, key=lambda at: (places[at], at))
    found: dict[int, int] = {}
    for size in range(2, min(len(ordered), MOST_MEMBERS) + 1):
        for chosen in combinations(ordered, size):
            bits = bits_of(chosen)
            found[bits] = -sum(cost.to_log(places[at]) for at in chosen[1:]) - sum_within(found, bits)
    return found
