"""The relations of a translation: tables, views, and the helpers that views need.

Names are those of SQL: letters do not differ by case. A helper belongs to a view and is called `view.purpose`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from sqlglot import exp

from whence.lang import tree
from whence.lang.diagnostics import Diagnostic
from whence.lang.sql.constraints import Referring
from whence.lang.tables import Table
from whence.lang.tree import NOWHERE, Span

# Words that a Datalog variable cannot be.
_RESERVED = frozenset(
    "as band bnot bor bshl bshr bshru bxor contains count false land lnot lor lxor match max mean min nil range sum"
    " true".split()
)

# What the rows of a helper are called, by its purpose, where "row" does not say it.
_ROWS = {"some": "value that is not null", "partner": "partner"}


class State(Enum):
    NEW = 0
    OPEN = 1
    DONE = 2


@dataclass(eq=False)
class Relation:
    """`columns` is None until the query that names them has been looked at; `listed` if the text lists them.

    `outer` holds the variables of enclosing queries that a correlated subquery uses, which become its first columns,
    each with the atoms that bind it. The tuples of an `existential` relation are those variables alone. An `inlinable`
    one is not visible to the user: where it restates one atom, that atom takes its place.

    `nullable` says which columns may be null. A relation with `hidden` columns is a bag: they come last, and tell rows
    apart that are equal in the others. Rows of a `tagged` one have a single hidden column, a term made of the branch
    that gave the row and of what tells its rows apart. `keys` are sets of columns, hidden ones included, of which no two
    rows have the same values.

    The relation of a subquery that is used as a value is `partial`: where the value is null it has no row. It has to be
    `single`, with one row at most for each row of the outer query. The last column of a relation that `lists` rows is
    the list of that name (`Listing`). `a_row` is what one row of a helper is called where proofs speak of it; relations
    that users name have their own names for that.

    A table has the constraints `table`. Where its rows may be equal, `counted` is the relation of all its copies, once a
    query has asked for it.
    """

    name: str
    columns: list[str] | None = None
    listed: bool = False
    types: list[str] | None = None
    owner: Relation | None = None
    query: exp.Expr | None = None
    env: Env | None = None
    state: State = State.NEW
    existential: bool = False
    inlinable: bool = False
    outer: dict[str, tuple[tree.Formula, ...]] = field(default_factory=dict)
    span: Span = NOWHERE
    nullable: list[bool] | None = None
    hidden: list[str] = field(default_factory=list)
    tagged: bool = False
    partial: bool = False
    single: bool = False
    lists: str | None = None
    keys: list[frozenset[int]] = field(default_factory=list)
    a_row: str = ""
    table: Table | None = None
    checks: list[exp.Expr] = field(default_factory=list)
    references: list[Referring] = field(default_factory=list)
    counted: Relation | None = None

    @property
    def view(self) -> Relation:
        return self.owner or self

    @property
    def outer_variables(self) -> tuple[tree.Variable, ...]:
        return tuple(tree.Variable(name) for name in self.outer)

    @property
    def own_columns(self) -> list[str]:
        """The columns behind those of outer variables."""
        return [] if self.existential else [*(self.columns or ()), *self.hidden]

    def atom(self, values: Iterable[tree.Term], span: Span = NOWHERE) -> tree.Atom:
        return tree.Atom(self.name, (*self.outer_variables, *values), None, span)


@dataclass(frozen=True)
class Env:
    """What names of tables mean at one place of the text: those of the WITH clauses around it, then the global ones."""

    names: Mapping[str, Relation]
    parent: Env | None = None

    def find(self, name: str) -> Relation | None:
        env: Env | None = self
        while env is not None:
            if name.lower() in env.names:
                return env.names[name.lower()]
            env = env.parent
        return None

    def known(self) -> list[str]:
        env: Env | None = self
        names: dict[str, None] = {}
        while env is not None:
            names.update(dict.fromkeys(env.names))
            env = env.parent
        return list(names)


@dataclass
class Draft:
    """A rule to be: its head is the outer variables of the relation and then `values`, hidden ones included.

    `nullables` are its variables that may be null, `tested` those that could be but for a formula of the body.
    """

    relation: Relation
    values: tuple[tree.Term, ...]
    body: list[tree.Formula]
    span: Span
    nullables: frozenset[str] = frozenset()
    tested: frozenset[str] = frozenset()

    @property
    def head(self) -> tree.Atom:
        return self.relation.atom(() if self.relation.existential else self.values, self.span)


@dataclass
class Listing:
    """Rows collected for a function of ordered rows: the columns `entry` of a relation, as a list of records.

    `kind` is that of the function's result, or None for that of the argument at the place `argument` of an entry, or for
    that of its sum.
    """

    name: str
    rows: Relation
    entry: list[int]
    kind: str | None
    nullable: bool = False
    argument: int = 0
    takes_row: bool = True
    is_sum: bool = False

    @property
    def record(self) -> str:
        """The name of the type of an entry."""
        return f"{self.name}_row"


@dataclass(frozen=True)
class Assumed:
    """What is taken for granted of a relation while its own query is being translated, because that refers to it."""

    nullable: tuple[bool, ...] = ()
    is_bag: bool = False


@dataclass
class Catalog:
    """Everything found and made so far. `assumed` is by name, and holds what an earlier translation found out.

    The columns of relations that are `paired`, the two sides of EXCEPT or INTERSECT, have the same types.
    """

    globals: dict[str, Relation] = field(default_factory=dict)
    relations: list[Relation] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    found: list[Diagnostic] = field(default_factory=list)
    assumed: dict[str, Assumed] = field(default_factory=dict)
    as_sets: bool = False
    recursive: set[str] = field(default_factory=set)
    listings: dict[str, Listing] = field(default_factory=dict)
    made_functions: dict[str, Callable[..., object]] = field(default_factory=dict)
    functors: dict[str, tree.FunctorDecl] = field(default_factory=dict)
    paired: list[tuple[Relation, Relation]] = field(default_factory=list)

    def provide(self, name: str, function: Callable[..., object], params: Iterable[str], result: str) -> None:
        """Makes a Python function one that rules can call."""
        self.functors[name] = tree.FunctorDecl(name, tuple(map(tree.TypeRef, params)), tree.TypeRef(result))
        self.made_functions[name] = function

    def name_for(self, wish: str) -> str:
        return unique(legal(wish, dots=True), {relation.name.lower() for relation in self.relations})

    def add(self, relation: Relation) -> Relation:
        self.relations.append(relation)
        return relation

    def helper(self, relation: Relation, purpose: str, columns: list[str] | None = None) -> Relation:
        view, a_row = relation.view, _ROWS.get(purpose, "row")
        name = self.name_for(f"{view.name}.{purpose}")
        return self.add(Relation(name, columns, owner=view, span=relation.span, a_row=a_row))

    def named(self, relation: Relation, name: str) -> Relation:
        """A helper that the text names."""
        made = self.helper(relation, name)
        made.a_row = ""
        return made


class Names:
    """Variable names that are free in one rule."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def fresh(self, *wishes: str, span: Span = NOWHERE) -> tree.Variable:
        """The first wish that is free, or the last one with a number."""
        legal_wishes = [legal(wish) for wish in wishes]
        name = next((wish for wish in legal_wishes if wish not in self._taken and wish not in _RESERVED), None)
        if name is None:
            name = unique(legal_wishes[-1], self._taken | _RESERVED)
        self._taken.add(name)
        return tree.Variable(name, span)

    def child(self) -> Names:
        return Names(self._taken)


def legal(name: str, *, dots: bool = False) -> str:
    """The name as an identifier."""
    kept = re.sub(r"[^A-Za-z0-9_.]" if dots else r"[^A-Za-z0-9_]", "_", name)
    return kept if re.match(r"[A-Za-z]|_.", kept) else f"x{kept}"


def unique(wish: str, taken: Iterable[str]) -> str:
    """The wish, or else the wish with the first free number, whatever the case of its letters."""
    lower = {name.lower() for name in taken}
    name, number = wish, 2
    while name.lower() in lower:
        name, number = f"{wish}{number}", number + 1
    return name
