"""Derivation graphs: facts, and for each of them the rule firings that make it.

A graph may be cyclic: two facts may each have a derivation from the other. What holds has a proof all the same, since every
fact also has a derivation that does not lead back to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from whence.lang.types import Tuple, Value


class Wildcard(Enum):
    """Stands in an absent fact for a value that did not matter: no tuple matches, whatever is there. REST stands at the end of a
    list for all further items.
    """

    ANY = "_"
    REST = "| _"

    def __repr__(self) -> str:
        return self.value


ANY, REST = Wildcard.ANY, Wildcard.REST


class Fact(NamedTuple):
    """A tuple of a relation: a node of the graph."""

    relation: str
    tuple: Tuple


class Absence(NamedTuple):
    """What a negation found missing. `ANY` stands where any value would have matched."""

    relation: str
    pattern: tuple[Value | Wildcard, ...]


class UnnamedAbsence(Absence):
    """An absence in a relation that no user named: `relation` says in words what is missing."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Aggregated:
    """An aggregate that a firing used: its value, and the facts that contributed to it.

    For `min` and `max` these are the facts of one witness, an assignment that has the value; there is a derivation for each.
    """

    op: str
    value: Value
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Derivation:
    """One firing of one rule. `body` has a fact for each positive atom, in the order of the rule, repeats kept."""

    rule: str
    head: Fact
    body: tuple[Fact, ...]
    absent: tuple[Absence, ...] = ()
    aggregates: tuple[Aggregated, ...] = ()

    @property
    def premises(self) -> tuple[Fact, ...]:
        """Every fact that the firing used: the body, then what aggregates were made of."""
        return (*self.body, *(fact for each in self.aggregates for fact in each.facts))


@dataclass(frozen=True, slots=True)
class Cut:
    """What an expansion left out: facts whose derivations were not looked for, and which bound it met."""

    reason: str
    facts: frozenset[Fact]


@dataclass(frozen=True)
class DerivationGraph:
    """Facts and their derivations, from `roots` down.

    `base` are the facts that were put in from outside (or stand in the program): the leaves, though one may have derivations
    as well. A fact of `cut.facts` has been reached but not expanded; every other fact has all its derivations here.
    """

    roots: tuple[Fact, ...]
    derivations: Mapping[Fact, tuple[Derivation, ...]]
    base: frozenset[Fact]
    cut: Cut | None = field(default=None)

    @property
    def facts(self) -> frozenset[Fact]:
        used = {fact for firings in self.derivations.values() for firing in firings for fact in firing.premises}
        return frozenset(self.roots) | self.base | self.derivations.keys() | used
