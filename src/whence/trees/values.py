"""Unordered trees with annotations: a tree is a label and a K-set of trees, its children.

A K-set maps finitely many elements to values of a semiring other than zero. A tree has an annotation only as a member of one.
Trees and K-sets compare by value, annotations included, so that equal siblings are one member whose annotations are added up.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from whence.semiring import Semiring
from whence.semiring.algebra import V

E = TypeVar("E", bound=Hashable)
W = TypeVar("W")


class KSet(Mapping[E, V], Generic[E, V]):
    """Members with their annotations. Made by `KSets`, which knows the semiring."""

    __slots__ = ("_annotations", "_hash")

    def __init__(self, annotations: dict[E, V]) -> None:
        self._annotations = annotations
        self._hash = hash(frozenset(annotations.items()))

    def __getitem__(self, member: E) -> V:
        return self._annotations[member]

    def __iter__(self) -> Iterator[E]:
        return iter(self._annotations)

    def __len__(self) -> int:
        return len(self._annotations)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KSet):
            return NotImplemented
        return self is other or (self._hash == other._hash and self._annotations == other._annotations)

    def __repr__(self) -> str:
        return "{" + ", ".join(sorted(_show(member, value) for member, value in self.items())) + "}"


class Tree(Generic[V]):
    """A label and the K-set of its children. An atomic value is a label without children."""

    __slots__ = ("_hash", "children", "label")

    def __init__(self, label: str, children: Forest[V]) -> None:
        self.label = label
        self.children = children
        self._hash = hash((label, children))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return self is other or (
            self._hash == other._hash and self.label == other.label and self.children == other.children
        )

    def __repr__(self) -> str:
        inside = ", ".join(sorted(_show(child, value) for child, value in self.children.items()))
        return f"{self.label}[{inside}]" if inside else self.label


Forest = KSet[Tree[V], V]


def _show(member: object, value: object) -> str:
    return f"{member!r}^{value}"


class KSets(Generic[V]):
    """What can be done with K-sets in one semiring: the operations of its semimodules, and big union.

    >>> from whence.semiring import Natural
    >>> sets = KSets(Natural())
    >>> sets.union(sets.single("a"), sets.scale(2, sets.of([("a", 1), ("b", 3)])))
    {'a'^3, 'b'^6}
    """

    def __init__(self, semiring: Semiring[V]) -> None:
        self.semiring = semiring
        self.empty: KSet[Any, V] = KSet({})

    def of(self, pairs: Iterable[tuple[E, V]]) -> KSet[E, V]:
        """Members that come several times are added up; what comes to zero is not there."""
        plus, zero = self.semiring.plus, self.semiring.zero
        found: dict[E, V] = {}
        for member, value in pairs:
            found[member] = plus(found[member], value) if member in found else value
        return KSet({member: value for member, value in found.items() if value != zero})

    def single(self, member: E) -> KSet[E, V]:
        return self.of([(member, self.semiring.one)])

    def union(self, *sets: KSet[E, V]) -> KSet[E, V]:
        return self.of(pair for each in sets for pair in each.items())

    def scale(self, factor: V, members: KSet[E, V]) -> KSet[E, V]:
        return self.of((member, self.semiring.times(factor, value)) for member, value in members.items())

    def big_union(self, members: KSet[E, V], body: Callable[[E], KSet[Any, V]]) -> KSet[Any, V]:
        """The union of what `body` gives for each member, multiplied by the member's annotation."""
        times = self.semiring.times
        return self.of(
            (inner, times(value, within)) for member, value in members.items() for inner, within in body(member).items()
        )

    def leaf(self, label: str) -> Tree[V]:
        return Tree(label, self.empty)


def convert(forest: Forest[V], apply: Callable[[V], W], target: Semiring[W]) -> Forest[W]:
    """The forest with other annotations. With a homomorphism, it makes no difference whether a query comes before or after.

    Trees that only annotations told apart become one member, and what becomes zero is gone with all that is below it.
    """
    sets = KSets(target)

    def converted(members: Forest[V]) -> Forest[W]:
        values = ((tree, apply(value)) for tree, value in members.items())
        return sets.of((Tree(t.label, converted(t.children)), value) for t, value in values if value != target.zero)

    return converted(forest)


def count_nodes(forest: Forest[V]) -> int:
    return sum(1 + count_nodes(tree.children) for tree in forest)


def height(forest: Forest[V]) -> int:
    return max((1 + height(tree.children) for tree in forest), default=0)
