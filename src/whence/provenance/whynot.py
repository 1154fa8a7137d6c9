"""Why a fact does not hold: how close each rule comes to deriving it, and the smallest changes of base facts that would."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from whence.lang.tables import taking_updates
from whence.lang.types import Nullable, Tuple, Value, base
from whence.provenance.attempts import STEPS, Attempt, Attempts
from whence.provenance.base import fact_of
from whence.provenance.derivations import CannotExplain
from whence.provenance.derive import Deriver
from whence.provenance.graph import Fact
from whence.provenance.matching import FactPattern
from whence.provenance.repairs import Effort, Repair, Repairs, find_repairs
from whence.provenance.show import show_fact, show_value
from whence.provenance.suppose import Supposition
from whence.provenance.winners import winners
from whence.session import Session


@dataclass(frozen=True)
class WhyNot:
    """`attempts` has the closest assignment of each rule; `beaten_by` the facts that keep a derived fact out of its relation.

    `bound` says what kept the search for repairs from going on; it is empty if there are no more of them.
    """

    fact: Fact
    attempts: tuple[Attempt, ...]
    repairs: tuple[Repair, ...]
    beaten_by: tuple[Fact, ...] = ()
    bound: str = ""


def whynot(
    session: Session,
    relation: str | tuple[str, Tuple],
    row: Tuple | None = None,
    *,
    repairs: int = 3,
    among: Collection[str] | None = None,
    effort: Effort = Effort(),  # noqa: B008 - immutable
) -> WhyNot:
    """What keeps a fact from holding, and the smallest `repairs`, `among` some base relations. Raises CannotExplain if it holds.

    >>> from whence import Session, load
    >>> session = Session(load("reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z)."
    ...                        ".decl link(x:symbol, y:symbol) .input link .output reach"), facts={"link": [("a", "b")]})
    >>> whynot(session, "reach", ("b", "c")).repairs[0].insertions
    (Fact(relation='link', tuple=('b', 'c')),)
    """
    fact = fact_of(session.program, relation, row)
    supposition = Supposition(session)
    deriver = supposition.deriver
    if deriver.holds(fact):
        raise CannotExplain(f"{show_fact(fact)} holds; `whence why` shows the proof")
    beaten_by = tuple(sorted(winners(deriver, fact), key=show_fact))
    attempts = Attempts(deriver).closest(fact)
    found = find_repairs(supposition, fact, repairs, effort, among) if repairs else Repairs((), "")
    return WhyNot(fact, attempts, found.found, beaten_by, found.bound)


class Absent(NamedTuple):
    """Facts that fit a pattern and are not there, those that rules come closest to first. `is_all`: no other was left out."""

    facts: list[Fact]
    is_all: bool


def closest_absent(session: Session, pattern: FactPattern, most: int, seconds: float = 5.0) -> Absent:
    """Values for what is free come from the columns of base facts that have the same type, and from the relation's own.

    Raises CannotExplain if there are none.

    >>> from whence import Session, load
    >>> session = Session(load("reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z)."
    ...                        ".decl link(x:symbol, y:symbol) .input link .output reach"), facts={"link": [("a", "b")]})
    >>> closest_absent(session, FactPattern("reach", {0: "b"}, {}), 1).facts
    [Fact(relation='reach', tuple=('b', 'a'))]
    """
    deadline = time.monotonic() + seconds
    deriver = Deriver(session)
    attempts = Attempts(deriver)
    found: list[tuple[tuple[int, int, int, int, str], Fact]] = []
    none = (0, STEPS, 0, 0, "")  # no rule can make it
    for fact in _candidates(session, pattern):
        if deriver.holds(fact):
            continue
        near = (each for listed in attempts.of(fact).values() for each in listed)
        found.append((min(map(attempts.closeness, near), default=none), fact))
        if time.monotonic() > deadline:
            break
    nearest = sorted(found, key=lambda each: (each[0], show_fact(each[1])))
    is_all = len(found) <= most and time.monotonic() <= deadline
    return Absent([fact for _, fact in nearest[:most]], is_all)


def _candidates(session: Session, pattern: FactPattern) -> Iterator[Fact]:
    fields = session.program.relations[pattern.relation].fields
    free = [at for at in range(len(fields)) if at not in pattern.known and at not in pattern.same]
    choices = [_values(session, pattern.relation, at) for at in free]
    for at, values in zip(free, choices, strict=True):
        if not values:
            raise CannotExplain(f"nothing that is there has a value for {fields[at].name}: give one in its place")
    for chosen in product(*choices):
        row = {**pattern.known, **dict(zip(free, chosen, strict=True))}
        row |= {at: row[first] for at, first in pattern.same.items()}
        yield Fact(pattern.relation, tuple(row[at] for at in range(len(fields))))


def _values(session: Session, relation: str, column: int) -> list[Value]:
    """What base facts have in columns of the same type, in columns of the same name first, and what the relation itself has."""
    field = session.program.relations[relation].fields[column]
    found: dict[Value, None] = {}
    columns = [
        (each.name != field.name, name, at)
        for name in taking_updates(session.program)
        for at, each in enumerate(session.program.relations[name].fields)
        if base(each.kind) == base(field.kind)
    ]
    takes_nil = isinstance(field.kind, Nullable)
    for _, name, at in [*sorted(columns), (True, relation, column)]:
        values = {row[at] for row in session.relation(name)}
        found |= dict.fromkeys(sorted((each for each in values if each is not None or takes_nil), key=show_value))
    return list(found)
