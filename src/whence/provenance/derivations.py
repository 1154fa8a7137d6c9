"""Who can be asked where facts come from.

Every question about why facts hold is asked of something that answers `Derivations`: a live session (`Deriver`), the tables of
recorded derivations (`RecordedDerivations`), a state in parts (`PartedDerivations`). Whoever else keeps derivations, in whatever
form, has only to answer it as well to be asked all of them, and to be drawn and exported like the others.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Protocol

from whence.lang.program import Program
from whence.provenance.graph import Derivation, Fact
from whence.provenance.matching import FactPattern
from whence.provenance.show import show_fact
from whence.session import Ranking, Session


class CannotExplain(ValueError):
    """A question about something that has no derivations to show, with the reason."""


class NotThere(CannotExplain):
    def __init__(self, fact: Fact) -> None:
        super().__init__(f"{show_fact(fact)} does not hold; `whence whynot` says what is missing")


class Ranks(Protocol):
    """What is known of proofs without a search, for facts that hold."""

    def ranking(self, fact: Fact) -> Ranking:
        """What the rank of the fact tells."""
        ...

    def rank(self, fact: Fact) -> int: ...


class Derivations(Protocol):
    """Is it base, is it there, what derives it. What it gives is true of one moment, until the next epoch at least."""

    @property
    @abstractmethod
    def program(self) -> Program:
        """The rules that derivations name."""

    @abstractmethod
    def holds(self, fact: Fact) -> bool:
        """Whether the fact is there. Raises ValueError if there can be no such fact."""

    @abstractmethod
    def is_base(self, fact: Fact) -> bool:
        """Whether the fact was put in from outside or stands in the program."""

    @abstractmethod
    def derivations(self, fact: Fact) -> Iterable[Derivation]:
        """Every firing that makes the fact; facts of the program text have none. Raises CannotExplain where that is not known."""

    @abstractmethod
    def base_facts(self, relation: str) -> Iterable[Fact]:
        """The facts of a base relation that were put in from outside."""

    @property
    def ranks(self) -> Ranks | None:
        """If ranks are known, a proof is found by following them; if not, by a search of the derivation graph."""
        return None


class LiveDerivations(Derivations, Protocol):
    """Derivations of data that can be tried out: what would be if facts came and went."""

    @abstractmethod
    def session_of(self, fact: Fact) -> Session:
        """A session in which the fact holds or not for the same reasons, whatever changes."""

    @abstractmethod
    def matching(self, pattern: FactPattern) -> Iterable[Fact]:
        """The facts that are there and fit the pattern."""


def nothing_derives(program: Program, relation: str) -> bool:
    """Whether facts of the relation are base facts only."""
    declared = program.relations[relation]
    return not declared.equivalence and all(rule.is_fact for rule in program.rules_for(relation))
