"""A state in parts: each part holds all that its facts come from, so that only the parts asked about are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.plan.partition import Partitioning, part_of
from whence.provenance.derivations import LiveDerivations, Ranks
from whence.provenance.derive import Deriver
from whence.provenance.graph import Derivation, Fact
from whence.provenance.matching import FactPattern
from whence.session import Ranking, Session


class PartedDerivations(LiveDerivations):
    """`base_of` gives the base tuples of a part. A part becomes a session when the first fact of it is asked about."""

    def __init__(self, how: Partitioning, parts: int, base_of: Callable[[int], Mapping[str, Iterable[Tuple]]]) -> None:
        self.how = how
        self.parts = parts
        self._base_of = base_of
        self._bases: dict[int, Mapping[str, Iterable[Tuple]]] = {}
        self._derivers: dict[int, Deriver] = {}

    @property
    def program(self) -> Program:
        return self.how.program

    @property
    def ranks(self) -> Ranks:
        return _RanksOfParts(self)

    def holds(self, fact: Fact) -> bool:
        return self.at(fact).holds(fact)

    def is_base(self, fact: Fact) -> bool:
        return self.at(fact).is_base(fact)

    def derivations(self, fact: Fact) -> Iterator[Derivation]:
        return self.at(fact).derivations(fact)

    def base_facts(self, relation: str) -> Iterator[Fact]:
        parts = range(self.parts) if relation in self.how.columns else (next(iter(self._bases), 0),)
        return (Fact(relation, row) for part in parts for row in self._base(part).get(relation, ()))

    def session_of(self, fact: Fact) -> Session:
        return self.at(fact).session

    def matching(self, pattern: FactPattern) -> Iterator[Fact]:
        """All parts are evaluated for it, unless the value that a part is found by is known."""
        column = self.how.columns.get(pattern.relation)
        parts: Iterable[int] = range(self.parts)
        if column is None:
            parts = (next(iter(self._derivers), 0),)
        elif column in pattern.known:
            parts = (part_of(pattern.known[column], self.parts),)
        return (fact for part in parts for fact in self._in(part).matching(pattern))

    def at(self, fact: Fact) -> Deriver:
        """Who answers for a fact: the part that it belongs to, or the one asked first if all of them have it."""
        part = self.how.part(fact.relation, fact.tuple, self.parts)
        return self._in(next(iter(self._derivers), 0) if part is None else part)

    def _in(self, part: int) -> Deriver:
        if part not in self._derivers:
            program = self.how.program_of(part, self.parts)
            self._derivers[part] = Deriver(Session(program, facts=self._base(part)))
        return self._derivers[part]

    def _base(self, part: int) -> Mapping[str, Iterable[Tuple]]:
        if part not in self._bases:
            self._bases[part] = self._base_of(part)
        return self._bases[part]


class _RanksOfParts:
    """A fact ranks in its part, above everything that it follows from there."""

    def __init__(self, parted: PartedDerivations) -> None:
        self._parted = parted

    def ranking(self, fact: Fact) -> Ranking:
        return self._parted.at(fact).state.ranking(fact)

    def rank(self, fact: Fact) -> int:
        return self._parted.at(fact).state.rank(fact)
