"""Random trees, random queries as text, and values of semirings that are small and exact."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import strategies as st
from tests.semiring.values import VALUES

from whence.semiring import Semiring
from whence.trees.values import Forest, KSets, Tree

LABELS = "ab"
labels = st.sampled_from(LABELS)
# By name: the semiring, values of it, and how some of these are written in a query.
WRITTEN = {
    "boolean": ("true", "false"),
    "natural": ("2", "0"),
    "counting": ("2", "3"),
    "integer": ("2", "-1"),
    "tropical": ("1", "inf"),
    "viterbi": ("0.5", "0.25"),
    "fuzzy": ("0.5", "0.25"),
    "access": ("secret", "nobody"),
}


def semirings() -> list[str]:
    return sorted(VALUES)


@st.composite
def forests(draw: st.DrawFn, semiring: Semiring[Any], values: st.SearchStrategy[Any], depth: int = 3) -> Forest[Any]:
    sets = KSets(semiring)

    # Much of what is there should be found: paths that lead nowhere show little.
    annotations = st.one_of(values, st.just(semiring.one))

    def forest(levels: int, least: int) -> Forest[Any]:
        count = draw(st.integers(least, 3)) if levels else 0
        return sets.of((Tree(draw(labels), forest(levels - 1, levels - 2)), draw(annotations)) for _ in range(count))

    return forest(depth, 1)


def queries(semiring: Semiring[Any], documents: str = "ST", size: int = 7) -> st.SearchStrategy[str]:
    """Queries of the documents that give sets, by seed: choices made one by one would end up at the simplest most of the time."""
    return st.integers(0, 2**32).map(lambda seed: _Writer(Random(seed), semiring, documents, size).members((), ()))


class _Writer:
    def __init__(self, random: Random, semiring: Semiring[Any], documents: str, size: int) -> None:
        self.random = random
        self.documents = documents
        self.left = size
        self.written = [f'"{each}"' for each in WRITTEN.get(semiring.name, ())]
        if not self.written and semiring.variable("p") is not None:
            self.written = ["p", "q"]

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def label(self, trees: tuple[str, ...]) -> str:
        if trees and self.random.random() < 0.5:
            return f"name({self.tree(trees)})"
        return self.pick(*LABELS)

    def tree(self, trees: tuple[str, ...]) -> str:
        self.left -= 1
        kind = self.pick("element", "if", *["variable"] * 4 * len(trees)) if self.left > 0 else "last"
        match kind:
            case "if":
                condition = f"{self.label(trees)} = {self.label(trees)}"
                return f"(if ({condition}) then {self.tree(trees)} else {self.tree(trees)})"
            case "element":
                return f"element {self.label(trees)} {{ {self.members(trees, ())} }}"
            case _:
                return f"${trees[-1]}" if trees else f"element {self.pick(*LABELS)} {{ $S }}"

    def step(self) -> str:
        return self.pick("/", "/", "//", "/self::") + self.pick("*", "*", *LABELS)

    def members(self, trees: tuple[str, ...], sets: tuple[str, ...]) -> str:
        self.left -= 1
        if self.left <= 0:
            near = [f"(${each})" for each in trees[-2:]] + [f"${each}" for each in sets]
            return self.pick(*near * 2, *(f"${each}" for each in self.documents))
        new = f"v{len(trees) + len(sets)}"
        kinds = ("step", "step", "step", "for", "for", "for", "where", "where", "tree", "tree", "union", "if", "let")
        match self.pick(*kinds, *(["annot"] if self.written else [])):
            case "step":
                return f"({self.members(trees, sets)}){self.step()}"
            case "for":
                return f"(for ${new} in {self.members(trees, sets)} return {self.members((*trees, new), sets)})"
            case "where":
                source, side = self.members(trees, sets), self.pick(f"${new}", f"name(${new})", f"${new}/*")
                other = self.pick(*(f"${each}" for each in trees), f"${new}/*", *LABELS)
                return f"(for ${new} in {source} where {side} = {other} return {self.members((*trees, new), sets)})"
            case "if":
                condition = f"{self.label(trees)} = {self.label(trees)}"
                return f"(if ({condition}) then {self.members(trees, sets)} else {self.members(trees, sets)})"
            case "let":
                return f"(let ${new} := {self.members(trees, sets)} return {self.members(trees, (*sets, new))})"
            case "tree":
                return f"({self.tree(trees)})"
            case "annot":
                return f"(annot {self.pick(*self.written)} {self.members(trees, sets)})"
            case _:
                return f"({self.members(trees, sets)}, {self.members(trees, sets)})"
