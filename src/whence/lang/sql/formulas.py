"""Small operations on formulas and on words about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from whence.lang import tree
from whence.lang.rewrite import rebuild

T = TypeVar("T")


def conjunction(items: Iterable[tree.Formula]) -> tree.Formula:
    parts: list[tree.Formula] = []
    for item in items:
        parts.extend(item.items if isinstance(item, tree.And) else [item])
    kept = [part for part in parts if not (isinstance(part, tree.Truth) and part.value)]
    if not kept:
        return tree.Truth(value=True)
    return kept[0] if len(kept) == 1 else tree.And(tuple(kept), _around(kept))


def disjunction(items: Iterable[tree.Formula]) -> tree.Formula:
    parts: list[tree.Formula] = []
    for item in items:
        parts.extend(item.items if isinstance(item, tree.Or) else [item])
    parts = [part for part in dict.fromkeys(parts) if not (isinstance(part, tree.Truth) and not part.value)]
    if not parts:
        return tree.Truth(value=False)
    return parts[0] if len(parts) == 1 else tree.Or(tuple(parts), _around(parts))


def conjuncts(formula: tree.Formula) -> list[tree.Formula]:
    return list(formula.items) if isinstance(formula, tree.And) else [formula]


def _around(parts: list[tree.Formula]) -> tree.Span:
    return tree.Span(min(part.span.start for part in parts), max(part.span.end for part in parts))


def equation(formula: tree.Formula) -> tuple[tree.Variable, tree.Variable] | None:
    """The two sides of an equation between variables."""
    if not isinstance(formula, tree.Constraint) or formula.op != "=":
        return None
    left, right = formula.left, formula.right
    return (left, right) if isinstance(left, tree.Variable) and isinstance(right, tree.Variable) else None


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def variables(node: object) -> list[str]:
    """The names of the variables in the node, as often as they occur."""
    return [part.name for part in tree.walk(node) if isinstance(part, tree.Variable)]


def rename(node: T, names: Mapping[str, tree.Variable]) -> T:
    """The node with other variables; each keeps its place in the text."""

    def change(part: object) -> object:
        if isinstance(part, tree.Variable) and part.name in names:
            return tree.Variable(names[part.name].name, part.span)
        return part

    return rebuild(node, change)
