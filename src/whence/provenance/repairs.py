"""The smallest changes of base facts that make a fact true.

A search over sets of changes, the smallest first. In the state that a set leads to, `Causes` names single changes such that
every repair from there on has one of them; each of them extends the set. So every smallest repair is met, however deep the
negations are that it has to get around, and every set is tried out: nothing is suggested that was not seen to work.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from whence.constraints import Broken
from whence.lang.types import Value
from whence.provenance.causes import Causes, referred_to
from whence.provenance.copies import Rows
from whence.provenance.graph import Fact
from whence.provenance.show import show_fact
from whence.provenance.suppose import Change, Supposition, show_change

_LOOKING = 0.2  # of the time may go into what to try next


class Repair(NamedTuple):
    """Base facts to insert and to delete, as a whole known to make the fact true, and no part of them enough."""

    insertions: tuple[Fact, ...]
    deletions: tuple[Fact, ...]

    def __len__(self) -> int:
        return len(self.insertions) + len(self.deletions)


@dataclass(frozen=True, slots=True)
class Effort:
    """How far to look for repairs: changes in one of them, sets of changes tried out, seconds."""

    changes: int = 4
    trials: int = 2_000
    seconds: float = 5.0


class Repairs(NamedTuple):
    """What was found, and why the search did not go on; empty if it was complete."""

    found: tuple[Repair, ...]
    bound: str


def find_repairs(
    supposition: Supposition, fact: Fact, number: int, effort: Effort, among: Collection[str] | None = None
) -> Repairs:
    """The smallest repairs, smallest first, no more than `number`; of equally large ones those that invent least come first.

    With `among`, they change facts of these relations only.
    """
    deadline = time.monotonic() + effort.seconds
    causes = Causes(supposition.deriver, fact, effort.seconds * _LOOKING)
    found: list[frozenset[Change]] = []
    met: set[frozenset[Change]] = set()
    # What a set leads to is dear to look into, so all sets of a size are tried before any of them is extended.
    pending: list[tuple[int, bool, int, str, frozenset[Change]]] = [(0, True, 0, "", frozenset())]
    bound = ""
    while pending and len(found) < number:
        size, is_tried, invented, text, changes = heapq.heappop(pending)
        if any(smaller <= changes for smaller in found):
            continue
        if time.monotonic() > deadline:
            bound = f"{effort.seconds:g} s"
            break
        if supposition.trials >= effort.trials:
            bound = f"{effort.trials:,} sets of changes"
            break
        if not is_tried:
            if not supposition.brings(fact, changes):
                heapq.heappush(pending, (size, True, invented, text, changes))
                continue
            is_new = not any(_is_like(changes, other, causes.fillings.made_up) for other in found)
            if is_new and _is_smallest(supposition, fact, changes):
                found.append(changes)
            continue
        if size == effort.changes:
            bound = bound or f"{effort.changes} change{'s' * (effort.changes != 1)}"
            continue
        if (broken := supposition.refused(changes)) is not None:
            following = _making_room(supposition, causes, broken)
        else:
            with supposition.suppose(changes):
                following = causes.changes()
        taken = {each.fact for each in changes}
        for each, more in following.items():
            if among is not None and supposition.rows.of(each.fact).relation not in among:
                continue
            extended = changes | {each}
            if each.fact not in taken and extended not in met:
                met.add(extended)
                text = " ".join(sorted(map(show_change, extended)))
                heapq.heappush(pending, (size + 1, False, invented + more, text, extended))
    shown = dict.fromkeys(_repair(changes, supposition.rows) for changes in found)
    return Repairs(tuple(shown), "" if len(found) >= number else bound or causes.bound)


def _is_smallest(supposition: Supposition, fact: Fact, changes: frozenset[Change]) -> bool:
    """Whether no part of the changes is enough."""
    parts = (part for size in range(1, len(changes)) for part in combinations(changes, size))
    return not any(supposition.brings(fact, part) for part in parts)


def _is_like(changes: frozenset[Change], other: frozenset[Change], made_up: set[Value]) -> bool:
    """Whether the one differs from the other only in values that are made up."""
    rest = list(other - changes)
    for op, (relation, row) in changes - other:
        for each in rest:
            is_alike = each.op == op and each.fact.relation == relation
            if is_alike and all(one == two or one in made_up for one, two in zip(row, each.fact.tuple, strict=True)):
                rest.remove(each)
                break
        else:
            return False
    return not rest


def _making_room(supposition: Supposition, causes: Causes, broken: Broken) -> dict[Change, int]:
    """What has to change besides: the row that has the key goes, or one that refers to what goes; what is referred to comes.

    What a CHECK refuses, it refuses whatever else changes.
    """
    if broken.reference is not None:
        return causes.insertions(referred_to(broken.row, broken.reference, supposition.session.program))
    taken = broken.referring or (broken.relation, broken.other)
    if taken[1] is None or not supposition.deriver.state.is_external(taken[0], taken[1]):
        return {}
    return {causes.copied("-", Fact(taken[0], taken[1])): 0}


def _repair(changes: frozenset[Change], rows: Rows) -> Repair:
    def chosen(op: str) -> tuple[Fact, ...]:
        return tuple(sorted((rows.of(each.fact) for each in changes if each.op == op), key=show_fact))

    return Repair(chosen("+"), chosen("-"))
