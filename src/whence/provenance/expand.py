"""Derivation graphs, within bounds."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from whence.provenance.derivations import Derivations, NotThere, nothing_derives
from whence.provenance.derive import derivations_of
from whence.provenance.graph import Cut, Derivation, DerivationGraph, Fact
from whence.provenance.show import shown
from whence.session import Session


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far to look for derivations. What is beyond is left out, and the graph says so."""

    depth: int | None = None
    facts: int | None = 100_000
    seconds: float | None = None


def derivation_graph(
    subject: Session | Derivations,
    facts: Iterable[Fact],
    bounds: Bounds = Bounds(),  # noqa: B008 - immutable
) -> DerivationGraph:
    """Everything that the facts can be derived from. Raises NotThere for a fact that does not hold.

    >>> from whence import Session, load
    >>> session = Session(load("p(x) :- e(x). p(x) :- f(x). .decl e(x:number) .input e .decl f(x:number) .input f"),
    ...                   facts={"e": [(1,)], "f": [(1,)]})
    >>> [firing.rule for firing in derivation_graph(session, [Fact("p", (1,))]).derivations[Fact("p", (1,))]]
    ['p#1', 'p#2']
    """
    source = derivations_of(subject)
    roots = tuple(facts)
    for fact in roots:
        if not source.holds(fact):
            raise NotThere(fact)
    search = _Search(source, bounds)
    search.run(roots)
    return DerivationGraph(roots, search.derivations, frozenset(search.base), search.cut)


class _Search:
    """Breadth first, so that a bound leaves out what is farthest away."""

    def __init__(self, source: Derivations, bounds: Bounds) -> None:
        self.source = source
        self.bounds = bounds
        self.until = None if bounds.seconds is None else time.monotonic() + bounds.seconds
        self.derivations: dict[Fact, tuple[Derivation, ...]] = {}
        self.base: set[Fact] = set()
        self.cut: Cut | None = None

    def run(self, roots: tuple[Fact, ...]) -> None:
        level, depth = dict.fromkeys(roots), 0
        while level:
            following: dict[Fact, None] = {}
            for at, fact in enumerate(level):
                reason = self._bound_met(depth)
                if reason:
                    left = [each for each in list(level)[at:] if not self._is_leaf(each)]
                    left += [each for each in following if each not in level and not self._is_leaf(each)]
                    self.cut = Cut(reason, frozenset(left)) if left else None
                    return
                self._expand(fact)
                used = (each for firing in self.derivations[fact] for each in firing.premises)
                following.update((each, None) for each in used if each not in self.derivations)
            level = {fact: None for fact in following if fact not in self.derivations}
            depth += 1

    def _bound_met(self, depth: int) -> str:
        bounds = self.bounds
        if bounds.depth is not None and depth >= bounds.depth:
            return f"depth {bounds.depth}"
        if bounds.facts is not None and len(self.derivations) >= bounds.facts:
            return f"{bounds.facts:,} facts"
        if self.until is not None and time.monotonic() > self.until:
            return f"{bounds.seconds:g} s"
        return ""

    def _is_leaf(self, fact: Fact) -> bool:
        """Whether there is nothing behind the fact; it is noted if it is a base fact."""
        if self.source.is_base(fact):
            self.base.add(fact)
        return nothing_derives(self.source.program, fact.relation)

    def _expand(self, fact: Fact) -> None:
        if self.source.is_base(fact):
            self.base.add(fact)
        # In an order that does not depend on how whoever is asked came by them.
        self.derivations[fact] = tuple(sorted(self.source.derivations(fact), key=_place))


def _place(firing: Derivation) -> tuple[str, str, str]:
    return firing.rule, shown(firing.body), shown(firing.premises)
