"""Documents whose nodes have names: what can be edited in place, and what differs between two versions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Generic, NamedTuple

from whence.lang.types import Tuple
from whence.semiring import Semiring
from whence.semiring.algebra import V
from whence.trees.syntax import ANY
from whence.trees.values import Forest, KSets, Tree


class Insert(NamedTuple, Generic[V]):
    """A tree more among the children of a node; the name of a document stands for its top."""

    parent: str
    tree: Tree[V]
    annotation: V


class Delete(NamedTuple):
    """A node less, with all that is below it."""

    node: str


class Reannotate(NamedTuple, Generic[V]):
    node: str
    annotation: V


Edit = Insert[V] | Delete | Reannotate[V]
Effect = tuple[str, Tuple, V | None]  # + or - a row, or = for another annotation


class Nodes(Generic[V]):
    """The rows of shredded documents, by node."""

    def __init__(self, documents: Collection[str], rows: Mapping[Tuple, V], semiring: Semiring[V]) -> None:
        self.documents = documents
        self.semiring = semiring
        self.rows: dict[str, Tuple] = {}
        self.annotations: dict[str, V] = {}
        self.children: dict[str, dict[str, None]] = {}
        self.made = 0
        for row, value in rows.items():
            self._add(row, value)

    def find(self, document: str, *labels: str) -> list[str]:
        """The nodes that labels lead to from the top of a document; `*` is any."""
        found = [document]
        for label in labels:
            below = (child for node in found for child in self.children.get(node, ()))
            found = [child for child in below if label in (ANY, self.rows[child][2])]
        return found

    def apply(self, edits: Iterable[Edit[V]]) -> Iterator[Effect[V]]:
        """Raises ValueError for a node that is not there."""
        for edit in edits:
            match edit:
                case Insert(parent, tree, annotation):
                    if parent not in self.documents:
                        self._known(parent)
                    if annotation != self.semiring.zero:
                        yield from self._insert(parent, tree, annotation)
                case Reannotate(node, self.semiring.zero):
                    yield from self._delete(self._known(node))
                case Delete(node):
                    yield from self._delete(self._known(node))
                case Reannotate(node, annotation):
                    self.annotations[self._known(node)] = annotation
                    yield "=", self.rows[node], annotation

    def _known(self, node: str) -> str:
        if node not in self.rows:
            raise ValueError(f"there is no node {node}")
        return node

    def _add(self, row: Tuple, value: V) -> None:
        parent, node = str(row[0]), str(row[1])
        self.rows[node], self.annotations[node] = row, value
        self.children.setdefault(parent, {})[node] = None

    def _insert(self, parent: str, tree: Tree[V], value: V) -> Iterator[Effect[V]]:
        self.made += 1
        row = (parent, f"{parent.partition('.')[0]}.new{self.made}", tree.label)
        self._add(row, value)
        yield "+", row, value
        for child, inner in tree.children.items():
            yield from self._insert(row[1], child, inner)

    def _delete(self, node: str) -> Iterator[Effect[V]]:
        for child in tuple(self.children.get(node, ())):
            yield from self._delete(child)
        row = self.rows.pop(node)
        del self.annotations[node], self.children[str(row[0])][node]
        self.children.pop(node, None)
        yield "-", row, None

    # -- versions

    def edits_to(self, document: str, forest: Forest[V]) -> list[Edit[V]]:
        """What makes a document another: equal trees stay as they are, trees of one label with most in common are edited."""
        trees: dict[str, Tree[V]] = {}
        self._tree_of(document, "", trees)
        edits: list[Edit[V]] = []
        self._edit(document, forest, trees, edits)
        return edits

    def _tree_of(self, node: str, label: str, trees: dict[str, Tree[V]]) -> Tree[V]:
        below = (
            (self._tree_of(child, str(self.rows[child][2]), trees), self.annotations[child])
            for child in self.children.get(node, ())
        )
        trees[node] = Tree(label, KSets(self.semiring).of(below))
        return trees[node]

    def _edit(self, parent: str, forest: Forest[V], trees: Mapping[str, Tree[V]], edits: list[Edit[V]]) -> None:
        waiting = dict(forest.items())
        unmatched = []
        for node in self.children.get(parent, ()):
            value = waiting.pop(trees[node], None)
            if value is None:
                unmatched.append(node)
            elif value != self.annotations[node]:
                edits.append(Reannotate(node, value))
        for tree, value in waiting.items():
            alike = [node for node in unmatched if trees[node].label == tree.label and tree.children]
            if not alike:
                edits.append(Insert(parent, tree, value))
                continue
            nearest = max(alike, key=lambda node: len(trees[node].children.keys() & tree.children.keys()))
            unmatched.remove(nearest)
            if self.annotations[nearest] != value:
                edits.append(Reannotate(nearest, value))
            self._edit(nearest, tree.children, trees, edits)
        edits += [Delete(node) for node in unmatched]
