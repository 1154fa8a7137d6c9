"""A checked program: what every evaluator runs.

Components are expanded, several heads and disjunctions are split into rules of their own, aggregates stand as literals of
their own, every term knows its kind, and every rule's body is in an order in which it can be evaluated from left to right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf

from whence.html import shown_block, shown_table, shown_text, shown_title
from whence.lang.diagnostics import Diagnostic
from whence.lang.source import Source
from whence.lang.tables import Table
from whence.lang.tree import NOWHERE, Module, Span, walk
from whence.lang.types import Field, Kind, Types, Value

# -- terms ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Var:
    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Anything:
    """A value that does not matter. Only in atoms."""

    kind: Kind


@dataclass(frozen=True, slots=True)
class Const:
    value: Value
    kind: Kind


@dataclass(frozen=True, slots=True)
class Apply:
    """A functor applied to terms. `functor` names an entry of `lang.functors` or a registered function.

    Without `takes_nil` it has no value where an argument is nil.
    """

    functor: str
    args: tuple[Term, ...]
    kind: Kind
    takes_nil: bool = False


@dataclass(frozen=True, slots=True)
class Make:
    """A record, a branch (`branch` set) or a list of known length: builds a value, or takes one apart when matched."""

    args: tuple[Term, ...]
    kind: Kind
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class Cons:
    """`[items | rest]`."""

    items: tuple[Term, ...]
    rest: Term
    kind: Kind


Term = Var | Anything | Const | Apply | Make | Cons

# -- literals ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Atom:
    relation: str
    args: tuple[Term, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Negation:
    """No tuple of the relation matches; its variables are all bound before it."""

    atom: Atom
    span: Span


@dataclass(frozen=True, slots=True)
class Comparison:
    """`=`, `!=`, `<`, `<=`, `>`, `>=`, `match`, `contains`, `!match` or `!contains`.

    An `=` with unbound variables on one side matches that side's pattern against the other's value.
    """

    op: str
    left: Term
    right: Term
    span: Span


@dataclass(frozen=True, slots=True)
class Generator:
    """`target = range(args)`: a literal with several solutions."""

    target: Term
    args: tuple[Term, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Aggregation:
    """`target = op value : { bodies }`.

    The aggregate runs over the distinct assignments to `locals` that satisfy one of the bodies, given the variables in
    `outer`, which are bound before it.
    """

    target: Term
    op: str
    value: Term | None
    bodies: tuple[tuple[Literal, ...], ...]
    locals: tuple[str, ...]
    outer: tuple[str, ...]
    span: Span


Literal = Atom | Negation | Comparison | Generator | Aggregation

_SHOWN = 4_000  # characters of the source, in a notebook
_COUNTERS = frozenset({"autoinc", "recursive_iteration_cnt"})


def counter_in(node: object) -> str | None:
    """A functor whose value depends on how rules are evaluated, if the rule or term has one."""
    found = (part.functor for part in walk(node) if isinstance(part, Apply) and part.functor in _COUNTERS)
    return next(found, None)


# -- the program ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rule:
    """`name` is the user's or made up."""

    name: str
    head: Atom
    body: tuple[Literal, ...]
    span: Span

    @property
    def is_fact(self) -> bool:
        return not self.body

    @property
    def is_query(self) -> bool:
        """Whether it is of a query in SQL, which is its one place; other rules have a head that stands somewhere in them."""
        return self.head.span == self.span


@dataclass(frozen=True, slots=True)
class Subsumption:
    """`dominated` leaves its relation where the body, which holds both atoms, is satisfied by two distinct tuples."""

    name: str
    dominated: Atom
    dominating: Atom
    body: tuple[Literal, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Window:
    """What a base relation remembers: `time` units, or `rows` rows per value of the columns `by`."""

    time: float | None = None
    rows: int | None = None
    by: tuple[int, ...] = ()


@dataclass(frozen=True)
class Relation:
    """`location` is the column that places a tuple, and `everywhere` says that every node holds all of them; `choices` are sets
    of key columns of which each value occurs once.

    `on_demand` says that only the tuples need to be derived that others ask for (Souffle's magic sets). `role` is what `.event`
    or `.slow` says of the relation in an event program, `table` what SQL says of the rows of a table. A `helper` is part of a
    query that no user named: this is what one of its rows is called. The last column of a `tagged` relation is a term that only
    tells by which way a row was derived: no rule looks into it. So many of the last columns are `hidden`: they tell equal rows of
    a query apart, and nobody wrote them.
    """

    name: str
    fields: tuple[Field, ...]
    span: Span
    location: int | None = None
    everywhere: bool = False
    equivalence: bool = False
    choices: tuple[tuple[int, ...], ...] = ()
    window: Window | None = None
    lifetime: float | None = None
    limit: int | None = None
    on_demand: bool = False
    role: OneOf["event", "slow"] | None = None
    helper: str = ""
    window_span: Span = NOWHERE
    lifetime_span: Span = NOWHERE
    table: Table | None = None
    tagged: bool = False
    hidden: int = 0

    @property
    def arity(self) -> int:
        return len(self.fields)

    @property
    def signature(self) -> str:
        return f"{self.name}({', '.join(f'{each.name}:{each.type}' for each in self.fields)})"


@dataclass(frozen=True, slots=True)
class Stratum:
    """Relations that depend on each other, and how to evaluate them once the strata before are complete.

    `monotone` marks recursion through aggregates, which converges in the order of their values. `stages` names the stage
    column of each relation of a locally stratified (XY) stratum; a stage is then evaluated group by group, as in `groups`.
    """

    relations: tuple[str, ...]
    recursive: bool = False
    monotone: bool = False
    stages: Mapping[str, int] = field(default_factory=dict)
    groups: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Transfer:
    """An `.input`, `.output` or `.printsize` directive for one relation."""

    kind: str
    relation: str
    params: Mapping[str, str]
    span: Span
    param_spans: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Program:
    """`strata` come in evaluation order and hold every relation once; `functions` are the registered Python functions.

    `written` are the values that stand in the rules, in the order of writing, if a choice has to know them. `module` is the
    tree that the program was made from, and `dropped` names the rules of it, with their places, that have been
    taken out since: what rules are added to and dropped from.
    """

    source: Source = field(repr=False)
    types: Types
    relations: Mapping[str, Relation]
    rules: tuple[Rule, ...]
    subsumptions: tuple[Subsumption, ...]
    strata: tuple[Stratum, ...]
    transfers: tuple[Transfer, ...]
    functions: Mapping[str, Callable[..., object]] = field(default_factory=dict, repr=False)
    warnings: tuple[Diagnostic, ...] = field(default=(), repr=False)
    module: Module = field(default=Module(()), repr=False, compare=False)
    dropped: frozenset[tuple[str, Span]] = frozenset()
    written: tuple[Value, ...] = ()

    def _repr_html_(self) -> str:
        derived = {rule.head.relation for rule in self.rules if not rule.is_fact}
        rows = [
            (
                f"{name}({', '.join(f'{each.name}:{each.type}' for each in relation.fields)})",
                "view" if name in derived else "base",
            )
            for name, relation in self.relations.items()
        ]
        return shown_block(
            shown_title(f"{len(self.relations):,} relations, {sum(not rule.is_fact for rule in self.rules):,} rules"),
            shown_table(("relation", ""), rows),
            shown_text(self.source.text.strip()[:_SHOWN]),
        )

    def rules_for(self, relation: str) -> Iterator[Rule]:
        return (rule for rule in self.rules if rule.head.relation == relation)

    def transfers_of(self, kind: str) -> Iterator[Transfer]:
        return (transfer for transfer in self.transfers if transfer.kind == kind)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The relations that are written or counted."""
        shown = {transfer.relation for transfer in self.transfers if transfer.kind != "input"}
        return tuple(name for name in self.relations if name in shown)

    @property
    def base_relations(self) -> tuple[str, ...]:
        """Relations fed from outside: those with `.input`, `.event` or `.slow`, and those that no rule derives."""
        derived = {rule.head.relation for rule in self.rules if not rule.is_fact}
        fed = {transfer.relation for transfer in self.transfers_of("input")}
        fed |= {name for name, relation in self.relations.items() if relation.role}
        return tuple(name for name in self.relations if name in fed or name not in derived)


def output_names(program: Program) -> tuple[str, ...]:
    """The relations that users look at: those with `.output`, or every derived one if there are none."""
    named = tuple(dict.fromkeys(each.relation for each in program.transfers_of("output")))
    base = set(program.base_relations)
    return named or tuple(name for name in program.relations if name not in base)


def lasting(program: Program) -> Program:
    """The program without windows and lifetimes."""
    relations = {name: replace(relation, window=None, lifetime=None) for name, relation in program.relations.items()}
    return replace(program, relations=relations)
