"""Proof trees, smallest first.

The height of a proof is the number of rule firings on its longest branch; a base fact has height 0. Ranks give a proof at once:
each row has a derivation from rows of its stratum that rank lower. Where ranks also bound the height from below, that proof is
the smallest. Elsewhere its height bounds a search of the derivation graph.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import NamedTuple

from whence.engine.stratum import Ranking
from whence.lang.program import Atom, Program
from whence.provenance.derivations import CannotExplain, Derivations, NotThere, Ranks
from whence.provenance.enough import with_enough
from whence.provenance.expand import Bounds, derivation_graph
from whence.provenance.graph import Derivation, DerivationGraph, Fact
from whence.provenance.heights import Cost, smallest_choices
from whence.provenance.show import show_fact, shown


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """A fact, the firing that made it and the proofs of its premises; a base fact has no firing. Parts may be shared."""

    fact: Fact
    firing: Derivation | None = None
    premises: tuple[Proof, ...] = ()
    height: int = 0

    def __iter__(self) -> Iterator[Proof]:
        """Every part once, premises before what they prove."""
        done: set[int] = set()
        stack = [(self, False)]
        while stack:
            proof, ready = stack.pop()
            if ready:
                yield proof
            elif id(proof) not in done:
                done.add(id(proof))
                stack.append((proof, True))
                stack += [(each, False) for each in reversed(proof.premises)]


class Smallest(NamedTuple):
    """The smallest proof that was found, and whether it is known that no other has a smaller height."""

    proof: Proof
    is_certain: bool


def smallest_proof(source: Derivations, fact: Fact, bounds: Bounds = Bounds()) -> Smallest:  # noqa: B008 - immutable
    """Raises CannotExplain (NotThere) for a fact that does not hold, or has no proof from the facts that hold."""
    if not source.holds(fact):
        raise NotThere(fact)
    quick = None
    if source.ranks is not None:
        followed = _Followed(source, source.ranks)
        choices = followed.choose(fact)
        quick = None if choices is None else assemble(fact, choices)
        if quick is not None and quick.height <= followed.least_height(fact):
            return Smallest(quick, True)
    depth = None if quick is None else quick.height
    limit = depth if bounds.depth is None else bounds.depth if depth is None else min(depth, bounds.depth)
    graph = with_enough(derivation_graph(source, [fact], Bounds(limit, bounds.facts, bounds.seconds)), source.program)
    found = smallest_choices(graph)
    # A proof of that height cannot go deeper: cutting there loses nothing.
    is_certain = graph.cut is None or (depth is not None and graph.cut.reason == f"depth {depth}")
    if fact in found and (quick is None or found[fact][0].height <= quick.height):
        return Smallest(assemble(fact, {each: firing for each, (_, firing) in found.items()}), is_certain)
    if quick is None:
        if graph.cut:
            raise CannotExplain(
                f"a proof of {show_fact(fact)} was not found within {graph.cut.reason}; raise the bound"
            )
        raise CannotExplain(
            f"a proof of {show_fact(fact)} from the rows that are there does not exist without going in a circle; a value inside "
            "a recursive aggregate was reached through rows improved on since"
        )
    return Smallest(quick, is_certain)


def proofs(graph: DerivationGraph, fact: Fact, most: int = 1_000_000) -> Iterator[Proof]:
    """The proofs of a fact in which nothing proves itself, smallest height first, after at most that many steps."""
    costs = smallest_choices(graph)
    if fact not in costs:
        return
    serial = count()
    start = _Partial((), _Open(fact, 0, None, None), 0, costs[fact][0].size, 0)
    heap: list[tuple[int, int, int, int, _Partial]] = [
        (costs[fact][0].height, costs[fact][0].size, 0, next(serial), start)
    ]
    for _ in range(most):
        if not heap:
            return
        partial = heapq.heappop(heap)[-1]
        if partial.open is None:
            yield _from_preorder(fact, partial.choices)
            continue
        for extended, height in _extensions(partial, partial.open, graph, costs):
            heapq.heappush(heap, (height, extended.size, -extended.closed, next(serial), extended))


def smallest_proofs(graph: DerivationGraph, fact: Fact, number: int) -> list[Proof]:
    return list(islice(proofs(graph, fact), number))


# -- from ranks


class _Followed:
    """A well-founded derivation for each fact, as ranks tell it."""

    def __init__(self, source: Derivations, ranks: Ranks) -> None:
        self.source = source
        self.ranks = ranks
        self.stratum_of = {name: stratum for stratum in source.program.strata for name in stratum.relations}
        self.floors = least_heights(source.program)

    def choose(self, root: Fact) -> dict[Fact, Derivation | None] | None:
        """A firing for each fact that is needed; None where ranks do not tell."""
        choices: dict[Fact, Derivation | None] = {}
        pending = [root]
        while pending:
            fact = pending.pop()
            if fact in choices:
                continue
            if self.source.is_base(fact):
                choices[fact] = None
                continue
            if self.ranks.ranking(fact) is Ranking.NONE:
                return None
            firing = self._best(fact)
            if firing is None:
                return None
            choices[fact] = firing
            pending += firing.premises
        return choices

    def _best(self, fact: Fact) -> Derivation | None:
        below = self.ranks.rank(fact)
        members = self.stratum_of[fact.relation].relations
        ranked: list[tuple[int, str, str, Derivation]] = []
        for firing in self.source.derivations(fact):
            recursive = [each for each in firing.premises if each.relation in members]
            if all(self.ranks.rank(each) < below for each in recursive):
                bound = max((self.least_height(each) for each in firing.premises), default=0)
                ranked.append((bound, firing.rule, shown(firing.body), firing))
        return min(ranked, key=lambda each: each[:3])[-1] if ranked else None

    def least_height(self, fact: Fact) -> int:
        """No proof of the fact is lower than this."""
        if self.source.is_base(fact):
            return 0
        floor = max(1, self.floors[fact.relation])
        stratum = self.stratum_of[fact.relation]
        # An aggregate inside the recursion may come to its value before or after its witness ranks.
        if self.ranks.ranking(fact) is not Ranking.EXACT or stratum.monotone:
            return floor
        lowest = min(self.floors[name] for name in stratum.relations)
        return max(floor, lowest + self.ranks.rank(fact) - 1)


def least_heights(program: Program) -> dict[str, int]:
    """For each relation, the height that no proof of one of its facts can be below."""
    heights = dict.fromkeys(program.relations, 0)
    open_relations = set(program.base_relations) | {rule.head.relation for rule in program.rules if rule.is_fact}
    for _ in program.relations:  # a shortest chain of rules visits no relation twice
        before = dict(heights)
        for name in program.relations:
            if name not in open_relations:
                bodies = [[each for each in rule.body if isinstance(each, Atom)] for rule in program.rules_for(name)]
                needed = [max((before[atom.relation] for atom in body), default=0) for body in bodies]
                heights[name] = 1 + min(needed, default=0)
        if heights == before:
            break
    return heights


def assemble(root: Fact, choices: Mapping[Fact, Derivation | None]) -> Proof:
    """The proof that uses the chosen firing for each fact. The choices must not go in a circle."""
    done: dict[Fact, Proof] = {}
    stack = [root]
    while stack:
        fact = stack[-1]
        firing = choices[fact]
        premises = () if firing is None else firing.premises
        missing = [each for each in premises if each not in done]
        if missing:
            stack += missing
            continue
        stack.pop()
        if fact not in done:
            parts = tuple(done[each] for each in premises)
            height = 0 if firing is None else 1 + max((part.height for part in parts), default=0)
            done[fact] = Proof(fact, firing, parts, height)
    return done[root]


# -- from a graph


class _Path(NamedTuple):
    """The facts from a place in a proof up to its root."""

    fact: Fact
    above: _Path | None


class _Open(NamedTuple):
    """A fact still to be proved, and the others after it."""

    fact: Fact
    depth: int
    path: _Path | None
    rest: _Open | None


class _Partial(NamedTuple):
    """A proof under way: firings chosen so far in preorder (`choices`, last first), and what is open."""

    choices: tuple[object, ...]
    open: _Open | None
    height: int
    size: int
    closed: int


def _extensions(
    partial: _Partial, place: _Open, graph: DerivationGraph, costs: Mapping[Fact, tuple[Cost, Derivation | None]]
) -> Iterator[tuple[_Partial, int]]:
    """The ways to close the first open place, each with the least height of a whole proof that continues it."""
    fact, depth, path, rest = place
    around = partial.height
    each = rest
    while each is not None:
        around = max(around, each.depth + costs[each.fact][0].height)
        each = each.rest
    size = partial.size - costs[fact][0].size
    if fact in graph.base:
        reached = max(partial.height, depth)
        yield _Partial((None, partial.choices), rest, reached, size + 1, partial.closed + 1), max(around, depth)
    here = _Path(fact, path)
    # Firings that differ only in variables of no fact, as those of a range, make the same proof.
    for firing in dict.fromkeys(graph.derivations.get(fact, ())):
        premises = firing.premises
        if any(premise not in costs or _is_above(premise, here) for premise in premises):
            continue
        following = rest
        for premise in reversed(premises):
            following = _Open(premise, depth + 1, here, following)
        below = 1 + max((costs[premise][0].height for premise in premises), default=0)
        grown = size + 1 + sum(costs[premise][0].size for premise in premises)
        reached = max(partial.height, depth + 1)
        yield (
            _Partial((firing, partial.choices), following, reached, grown, partial.closed + 1),
            max(around, depth + below),
        )


def _is_above(fact: Fact, path: _Path | None) -> bool:
    while path is not None:
        if path.fact == fact:
            return True
        path = path.above
    return False


def _from_preorder(root: Fact, choices: Sequence[object]) -> Proof:
    """The proof whose firings are given in preorder, last first, as nested pairs."""
    built: list[Proof] = []
    facts = _facts_in_preorder(root, choices)
    for fact, firing in reversed(facts):
        needed = 0 if firing is None else len(firing.premises)
        parts = tuple(built.pop() for _ in range(needed))
        height = 0 if firing is None else 1 + max((part.height for part in parts), default=0)
        built.append(Proof(fact, firing, parts, height))
    return built[0]


def _facts_in_preorder(root: Fact, choices: Sequence[object]) -> list[tuple[Fact, Derivation | None]]:
    firings: list[Derivation | None] = []
    while choices:
        firing, choices = choices  # type: ignore[assignment]
        firings.append(firing)  # type: ignore[arg-type]
    listed: list[tuple[Fact, Derivation | None]] = []
    open_facts = [root]
    for each in reversed(firings):
        listed.append((open_facts.pop(), each))
        if each is not None:
            open_facts += reversed(each.premises)
    return listed
