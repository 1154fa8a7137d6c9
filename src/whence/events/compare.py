"""What differs between two trees: where the ways part, and which slow tuples only one of them used."""

from __future__ import annotations

from dataclasses import dataclass

from whence.events.history import History, Interval
from whence.provenance.graph import Fact
from whence.provenance.proofs import Proof


@dataclass(frozen=True)
class Difference:
    """`shared` steps are alike up to the events themselves; `parting` are the first that are not, None where a tree ended.

    `only` are the slow tuples that one of the trees used and the other did not, with the configurations they were there in.
    """

    shared: int
    parting: tuple[Proof | None, Proof | None]
    only: tuple[tuple[tuple[Fact, tuple[Interval, ...]], ...], tuple[tuple[Fact, tuple[Interval, ...]], ...]]

    @property
    def is_empty(self) -> bool:
        return self.parting == (None, None)


def compare_trees(one: Proof, other: Proof, history: History) -> Difference:
    left, right = steps_of(one), steps_of(other)
    shared = 0
    while shared < min(len(left), len(right)) and _shape(left[shared]) == _shape(right[shared]):
        shared += 1
    parting = tuple(steps[shared] if shared < len(steps) else None for steps in (left, right))
    used = [list(dict.fromkeys(fact for step in steps for fact in slow_of(step))) for steps in (left, right)]
    only = tuple(
        tuple((fact, tuple(history.intervals(fact))) for fact in mine if fact not in others)
        for mine, others in ((used[0], used[1]), (used[1], used[0]))
    )
    return Difference(shared, (parting[0], parting[1]), (only[0], only[1]))


def steps_of(tree: Proof) -> list[Proof]:
    """The steps of a tree, the first one first."""
    found = []
    while tree.premises:
        found.append(tree)
        tree = tree.premises[0]
    return found[::-1]


def slow_of(step: Proof) -> tuple[Fact, ...]:
    return tuple(premise.fact for premise in step.premises[1:])


def event_of(tree: Proof) -> Fact:
    """The event that a tree began with."""
    while tree.premises:
        tree = tree.premises[0]
    return tree.fact


def _shape(step: Proof) -> tuple[object, ...]:
    assert step.firing is not None
    return step.firing.rule, slow_of(step)
