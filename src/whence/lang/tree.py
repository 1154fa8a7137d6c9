"""The tree of a program as written: what the parser makes and the printer prints.

Nodes are immutable and compare by content; spans (offsets into the preprocessed text) do not take part in comparison,
so a tree parsed from printed text equals the tree that was printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, NamedTuple

from whence.lang.tables import Table


class Span(NamedTuple):
    """A half-open range of offsets into the preprocessed text."""

    start: int
    end: int


NOWHERE = Span(0, 0)


def _span() -> Span:
    return field(default=NOWHERE, compare=False, repr=False)


def _spans() -> tuple[Span, ...]:
    return field(default=(), compare=False, repr=False)


# -- terms ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`_`: a value that does not matter; every occurrence is distinct."""

    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric literal. `suffix` is "" (an integer that fits any numeric type), "u" (unsigned) or "." (float)."""

    value: int | float
    suffix: str = ""
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class String:
    value: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Bool:
    """`true` or `false` as a value; where a literal is wanted they are a `Truth`."""

    value: bool
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Nil:
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Call:
    """A functor applied to terms; operators are calls named by their symbol (`+`, `band`, unary `-` has one argument).

    `registered` marks the spelling `@name(…)`, which can only mean a registered Python function.
    """

    name: str
    args: tuple[Term, ...]
    registered: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Bracket:
    """`[a, b]` (a record or a list, by its type) or, with `rest`, the list `[a, b | rest]`."""

    items: tuple[Term, ...]
    rest: Term | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Branch:
    """`$Name(args)`: a branch of an algebraic data type, or a function term if no type declares the name."""

    name: str
    args: tuple[Term, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Cast:
    """`as(term, type)`."""

    term: Term
    type: TypeRef
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`op target : { body }`; `count` has no target."""

    op: str
    target: Term | None
    body: Formula
    span: Span = _span()


Term = Variable | Wildcard | Number | String | Bool | Nil | Call | Bracket | Branch | Cast | Aggregate

# -- formulas ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Atom:
    """`relation(args)`; `location` is the position of the argument marked `@`, if any."""

    relation: str
    args: tuple[Term, ...]
    location: int | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Constraint:
    """A comparison; `op` is one of `= != < <= > >= match contains`."""

    op: str
    left: Term
    right: Term
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Truth:
    value: bool
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Not:
    item: Formula
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class And:
    items: tuple[Formula, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Or:
    items: tuple[Formula, ...]
    span: Span = _span()


Formula = Atom | Constraint | Truth | Not | And | Or

# -- types ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TypeRef:
    """A type or component by name, with its arguments: `symbol`, `list<number>`, `Graph<Node>`."""

    name: str
    args: tuple[TypeRef, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column; `located` marks the one written `@name`."""

    name: str
    type: TypeRef
    located: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class SubtypeOf:
    base: TypeRef


@dataclass(frozen=True, slots=True)
class UnionOf:
    """`A | B`; with one member, an alias."""

    members: tuple[TypeRef, ...]


@dataclass(frozen=True, slots=True)
class RecordOf:
    fields: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class BranchDecl:
    name: str
    fields: tuple[Attribute, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class BranchesOf:
    branches: tuple[BranchDecl, ...]


TypeBody = SubtypeOf | UnionOf | RecordOf | BranchesOf

# -- statements -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TypeDecl:
    name: str
    body: TypeBody
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class RelationDecl:
    """`.decl a, b(attributes) qualifiers choice-domain …`; `choices` holds the key columns of each domain.

    `helper` says what a row of it is, if it is a part of a SQL query that the user did not name. `table` is what SQL says of
    rows, which has no words in this language; the last column of a `tagged` relation is the way by which a row was derived
    (UNION ALL), and so many of the last columns are `hidden`.
    """

    names: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    qualifiers: tuple[str, ...] = ()
    choices: tuple[tuple[str, ...], ...] = ()
    span: Span = _span()
    helper: str = ""
    table: Table | None = None
    tagged: bool = False
    hidden: int = 0


@dataclass(frozen=True, slots=True)
class FunctorDecl:
    """`.functor name(types): type`, bound to a registered Python function of that name."""

    name: str
    params: tuple[TypeRef, ...]
    result: TypeRef
    stateful: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Rule:
    """`name: heads :- body.`; a fact has no body."""

    heads: tuple[Atom, ...]
    body: Formula | None = None
    name: str | None = None
    plan: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Subsumption:
    """`dominated <= dominating :- body.`: the first tuple goes where the body holds and the second is present."""

    dominated: Atom
    dominating: Atom
    body: Formula | None
    name: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Directive:
    """`.input`, `.output`, `.printsize`, `.limitsize`, `.event` or `.slow`: relations and parameters, and where each is."""

    kind: str
    relations: tuple[str, ...]
    params: tuple[tuple[str, str], ...] = ()
    span: Span = _span()
    relation_spans: tuple[Span, ...] = _spans()
    param_spans: tuple[Span, ...] = _spans()


@dataclass(frozen=True, slots=True)
class Window:
    """`.window R(time=30)` or `.window R(rows=4, by=carid)`: what a base relation remembers."""

    relation: str
    time: float | None = None
    rows: int | None = None
    by: tuple[str, ...] = ()
    span: Span = _span()
    relation_span: Span = _span()


@dataclass(frozen=True, slots=True)
class Lifetime:
    """`.lifetime R 30`: a tuple of the base relation expires that long after it was last inserted."""

    relation: str
    duration: float
    span: Span = _span()
    relation_span: Span = _span()


@dataclass(frozen=True, slots=True)
class Pragma:
    key: str
    value: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Component:
    name: str
    params: tuple[str, ...]
    bases: tuple[TypeRef, ...]
    statements: tuple[Statement, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Init:
    """`.init name = Component<args>`."""

    name: str
    component: TypeRef
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Override:
    relation: str
    span: Span = _span()


Statement = (
    TypeDecl
    | RelationDecl
    | FunctorDecl
    | Rule
    | Subsumption
    | Directive
    | Window
    | Lifetime
    | Pragma
    | Component
    | Init
    | Override
)


@dataclass(frozen=True, slots=True)
class Module:
    """A whole file, after preprocessing."""

    statements: tuple[Statement, ...]


Node = Term | Formula | TypeRef | Attribute | TypeBody | BranchDecl | Statement | Module


def walk(node: Any) -> Iterator[object]:
    """The node and everything below it, top down, left to right."""
    pending: list[Any] = [node]
    while pending:
        node = pending.pop()
        if type(node) is tuple:
            pending.extend(node[::-1])
            continue
        parts = parts_of(type(node))
        if parts is not None:
            yield node
            pending.extend([getattr(node, name) for name in reversed(parts)])


# The types of fields, as they are annotated, that hold no nodes.
_LEAVES = frozenset("Span Kind Value None str bool int float".split())


def _parts_of(node_type: type) -> tuple[str, ...] | None:
    """The names of the fields that may hold nodes; None for what is not a node."""
    if not is_dataclass(node_type):
        return None
    return tuple(part.name for part in fields(node_type) if not _LEAVES.issuperset(str(part.type).split(" | ")))


parts_of: Callable[[type], tuple[str, ...] | None] = cache(_parts_of)
