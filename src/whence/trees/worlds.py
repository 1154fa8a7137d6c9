"""Incomplete and probabilistic trees: annotations are formulas over variables, and each valuation of these makes a world.

The answer of a query, annotated in the same way, has exactly the worlds that the query gives on the worlds of its documents.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cache
from itertools import product
from math import prod
from typing import Any, TypeVar

from biodivine_aeon import Bdd

from whence.semiring import NotInThisSemiring, Polynomial, PosBool, Semiring
from whence.semiring.bdd import FormulaDiagrams
from whence.semiring.homomorphisms import specialize
from whence.semiring.witnesses import Witnesses
from whence.trees.render import Show
from whence.trees.values import Forest, Tree, convert

W = TypeVar("W")
MOST_WORLDS = 1 << 16


def variables_of(forest: Forest[Any]) -> list[Hashable]:
    """The variables of annotations that are polynomials or sets of witnesses, in the order of their names."""
    found: set[Hashable] = set()
    waiting = [forest]
    while waiting:
        for tree, value in waiting.pop().items():
            if isinstance(value, Polynomial):
                found.update(name for bag, _ in value.terms for name, _ in bag)
            else:
                found.update(name for witness in value for name in witness)
            waiting.append(tree.children)
    return sorted(found, key=str)


def valuation(semiring: Semiring[Any], values: Mapping[Hashable, W], target: Semiring[W]) -> Callable[[Any], W]:
    """What annotations are when variables have values: the homomorphism that these determine."""
    if not isinstance(semiring, PosBool):
        return specialize(target, values.__getitem__)
    if not target.properties.lattice:
        raise target.refusal("tells more than posbool knows; annotate with polynomials")
    return lambda witnesses: target.sum([target.product([values[name] for name in each]) for each in witnesses])


def worlds(
    forest: Forest[Any],
    semiring: Semiring[Any],
    choices: Mapping[Hashable, Mapping[W, float]],
    target: Semiring[W],
) -> dict[Forest[W], float]:
    """The distinct worlds of a forest with their probabilities, most likely first.

    `choices` has, for each variable, the values that it may have and how likely each is, independently of the others.
    Raises NotInThisSemiring if there are too many valuations to look at.
    """
    names = variables_of(forest)
    many = prod(len(choices[name]) for name in names)
    if many > MOST_WORLDS:
        raise NotInThisSemiring(
            f"{len(names)} variables have {many:,} valuations, more than the {MOST_WORLDS:,} that are looked at\n"
            "  hint: ask for the probabilities of nodes, or of one tree, which need no worlds"
        )
    found: dict[Forest[W], float] = {}
    for picked in product(*(choices[name].items() for name in names)):
        values = {name: value for name, (value, _) in zip(names, picked, strict=True)}
        world = convert(forest, valuation(semiring, values, target), target)
        found[world] = found.get(world, 0.0) + prod(chance for _, chance in picked)
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


class Likelihood:
    """Probabilities in a forest annotated in posbool, without listing worlds. Variables are independent; `odds` say how likely
    they are true, and those that are not named are certain."""

    def __init__(self, forest: Forest[Witnesses], odds: Mapping[Hashable, float]) -> None:
        names = variables_of(forest)
        self.forest = forest
        self.odds = {name: odds.get(name, 1.0) for name in names}
        self.diagrams: FormulaDiagrams[Hashable] = FormulaDiagrams(names)

    def of_formula(self, value: Bdd) -> float:
        return self.diagrams.probability(value, self.odds)

    def formula(self, witnesses: Witnesses) -> Bdd:
        every = [self.diagrams.product([self.diagrams.literal(name) for name in each]) for each in witnesses]
        return self.diagrams.sum(every)

    @property
    def of_node(self) -> Show:
        """How likely a node is there, and with it all nodes around it; nothing for those that are certain."""

        def show(value: Witnesses, around: tuple[Witnesses, ...]) -> str:
            if value == PosBool.one:
                return ""
            whole = self.diagrams.product([self.formula(each) for each in (*around, value)])
            return f"{self.of_formula(whole):.6g}"

        return show

    def of_tree(self, wanted: Tree[bool]) -> float:
        """How likely exactly this tree is a member."""

        @cache
        def same(tree: Tree[Witnesses], other: Tree[bool]) -> Bdd:
            """When a tree becomes another: each child is one of the other's, and each of those is there."""
            if tree.label != other.label:
                return self.diagrams.zero
            found = self.diagrams.one
            for child, value in tree.children.items():
                fits = self.diagrams.sum([same(child, each) for each in other.children])
                found = found.l_and(self.formula(value).l_imp(fits))
            for each in other.children:
                found = found.l_and(among(tree.children, each))
            return found

        def among(members: Forest[Witnesses], other: Tree[bool]) -> Bdd:
            ways = [self.formula(value).l_and(same(member, other)) for member, value in members.items()]
            return self.diagrams.sum(ways)

        return self.of_formula(among(self.forest, wanted))


def coin_flips(odds: Mapping[Hashable, float]) -> dict[Hashable, dict[bool, float]]:
    """Variables that are true with some probability, as choices."""
    return {name: {True: chance, False: 1 - chance} for name, chance in odds.items()}
