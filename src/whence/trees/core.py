"""A checked query: what both evaluators take. Every variable has a name of its own, every expression its type.

Labels, trees and K-sets of trees are different things here; the checker puts in what a writer may leave out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from whence.lang.source import Source


class Type(IntEnum):
    """A label can stand for the tree without children that has it, and a tree for the set that holds it once."""

    LABEL = 0
    TREE = 1
    SET = 2

    @property
    def text(self) -> str:
        return ("a label", "a tree", "a set of trees")[self]


@dataclass(frozen=True, slots=True)
class Literal:
    text: str


@dataclass(frozen=True, slots=True)
class NameOf:
    tree: Core


@dataclass(frozen=True, slots=True)
class Bound:
    """A variable of `for`, which is a tree, or of `let`, which is anything."""

    name: str


@dataclass(frozen=True, slots=True)
class Given:
    """A document: a set of trees."""

    name: str


@dataclass(frozen=True, slots=True)
class Element:
    label: Core
    body: Core


@dataclass(frozen=True, slots=True)
class Single:
    tree: Core


@dataclass(frozen=True, slots=True)
class Union:
    parts: tuple[Core, ...]


@dataclass(frozen=True, slots=True)
class For:
    variable: str
    source: Core
    body: Core


@dataclass(frozen=True, slots=True)
class Let:
    variable: str
    value: Core
    body: Core


@dataclass(frozen=True, slots=True)
class If:
    """Both sides are labels; the branches have the type of the whole."""

    left: Core
    right: Core
    then: Core
    otherwise: Core


@dataclass(frozen=True, slots=True)
class Annot:
    value: Any
    body: Core


@dataclass(frozen=True, slots=True)
class Step:
    source: Core
    axis: str
    test: str


Core = Literal | NameOf | Bound | Given | Element | Single | Union | For | Let | If | Annot | Step


@dataclass(frozen=True)
class Query:
    """`core` gives a set. `documents` are the variables that nothing binds."""

    core: Core
    documents: tuple[str, ...]
    source: Source = field(repr=False)


def parts_of(core: Core) -> tuple[Core, ...]:
    match core:
        case NameOf(tree) | Single(tree):
            return (tree,)
        case Element(label, body):
            return label, body
        case Union(parts):
            return parts
        case For(_, source, body) | Let(_, source, body):
            return source, body
        case If(left, right, then, otherwise):
            return left, right, then, otherwise
        case Annot(_, body):
            return (body,)
        case Step(source):
            return (source,)
        case _:
            return ()


def free_in(core: Core, values: Mapping[str, Core]) -> Iterator[str]:
    """The variables of `for` around an expression that it mentions, also through `values`, those of `let`."""
    if isinstance(core, Bound):
        if core.name in values:
            yield from free_in(values[core.name], values)
        else:
            yield core.name
    own = core.variable if isinstance(core, For | Let) else None
    for part in parts_of(core):
        yield from (name for name in free_in(part, values) if name != own)
