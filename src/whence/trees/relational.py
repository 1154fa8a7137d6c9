"""Relations as trees, and positive relational algebra as queries of them: the annotations are the same.

A relation is a tree with its name as the label, a child `t` for each tuple, with the tuple's annotation, and in it a child for
each attribute, with the value inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from whence.semiring import Semiring
from whence.semiring.algebra import V
from whence.trees.values import Forest, KSets, Tree

DATABASE, TUPLE, RESULT = "D", "t", "Q"
Rows = Mapping[tuple[str, ...], V]


@dataclass(frozen=True)
class Table:
    name: str


@dataclass(frozen=True)
class Union:
    left: Algebra
    right: Algebra


@dataclass(frozen=True)
class Project:
    of: Algebra
    attributes: tuple[str, ...]


@dataclass(frozen=True)
class Select:
    """The tuples in which an attribute has the value of another, or, with `is_value`, this value."""

    of: Algebra
    attribute: str
    other: str
    is_value: bool = False


@dataclass(frozen=True)
class Product:
    """The attributes of both sides are distinct."""

    left: Algebra
    right: Algebra


@dataclass(frozen=True)
class Rename:
    of: Algebra
    attribute: str
    to: str


Algebra = Table | Union | Project | Select | Product | Rename


def algebra_query(algebra: Algebra, document: str = "d") -> str:
    """The text of a query for an expression, on the tree that `encode_relations` makes of a database.

    >>> algebra_query(Project(Table("R"), ("A",)))
    'element Q { (for $t1 in $d/R/* return element t { $t1/A }) }'
    """
    return f"element {RESULT} {{ {_Translation(document).tuples(algebra)} }}"


class _Translation:
    def __init__(self, document: str) -> None:
        self.document = document
        self.variables = 0

    def fresh(self) -> str:
        self.variables += 1
        return f"$t{self.variables}"

    def tuples(self, algebra: Algebra) -> str:
        return f"({self._tuples(algebra)})" if not isinstance(algebra, Table) else self._tuples(algebra)

    def _tuples(self, algebra: Algebra) -> str:
        match algebra:
            case Table(name):
                return f"${self.document}/{name}/*"
            case Union(left, right):
                return f"{self.tuples(left)}, {self.tuples(right)}"
            case Product(left, right):
                row, beside = self.fresh(), self.fresh()
                both = f"for {row} in {self.tuples(left)}, {beside} in {self.tuples(right)}"
                return f"{both} return element {TUPLE} {{ {row}/*, {beside}/* }}"
            case Project(of, attributes):
                row = self.fresh()
                kept = ", ".join(f"{row}/{each}" for each in attributes) or "()"
                return f"for {row} in {self.tuples(of)} return element {TUPLE} {{ {kept} }}"
            case Select(of, attribute, other, is_value):
                row = self.fresh()
                compared = f'"{other}"' if is_value else f"{row}/{other}"
                return f"for {row} in {self.tuples(of)} where {row}/{attribute} = {compared} return {row}"
            case Rename(of, attribute, to):
                row, each = self.fresh(), self.fresh()
                renamed = f"if (name({each}) = {attribute}) then element {to} {{ {each}/* }} else {each}"
                inside = f"for {each} in {row}/* return {renamed}"
                return f"for {row} in {self.tuples(of)} return element {TUPLE} {{ {inside} }}"
        raise AssertionError(algebra)


def encode_relations(relations: Mapping[str, tuple[Sequence[str], Rows[V]]], semiring: Semiring[V]) -> Forest[V]:
    """A database as a document. Each relation has attributes, and tuples with their annotations."""
    sets = KSets(semiring)

    def tuple_tree(attributes: Sequence[str], row: tuple[str, ...]) -> Tree[V]:
        cells = zip(attributes, row, strict=True)
        return Tree(TUPLE, sets.of((Tree(name, sets.single(sets.leaf(value))), semiring.one) for name, value in cells))

    tables = (
        Tree(name, sets.of((tuple_tree(attributes, row), value) for row, value in rows.items()))
        for name, (attributes, rows) in relations.items()
    )
    return sets.single(Tree(DATABASE, sets.of((table, semiring.one) for table in tables)))


def decode_relation(tree: Tree[V], attributes: Sequence[str]) -> dict[tuple[str, ...], V]:
    """The tuples of a relation that is a tree, by attributes."""
    found = {}
    for row, value in tree.children.items():
        cells = {cell.label: next(iter(cell.children)).label for cell in row.children}
        found[tuple(cells[name] for name in attributes)] = value
    return found
