"""The types of derived columns, inferred from the drafts of all rules at once, because views may be recursive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from whence.lang import tree
from whence.lang.sql.kinds import (
    INTEGER,
    MOMENTS,
    decimal,
    is_decimal,
    is_number,
    join,
    of_operation,
    scale_of,
    widened,
)
from whence.lang.sql.library import OF_DECIMALS
from whence.lang.sql.relations import Catalog, Draft, Listing, Relation, legal
from whence.lang.types import MOST_DIGITS

_LITERALS = {"": INTEGER, "u": "unsigned", ".": "float"}
RESULTS: Mapping[str, str] = {
    **dict.fromkeys(("to_number", "strlen", "date_part", "days_between", "micros_between", "compare"), "number"),
    **dict.fromkeys(("year", "month", "day", "hour", "minute", "second"), "number"),
    "to_unsigned": "unsigned",
    "to_float": "float",
    **dict.fromkeys(("to_string", "to_text", "cat", "substr"), "symbol"),
    "to_bool": "bool",
    **dict.fromkeys(("to_date", "make_date"), "date"),
    "to_timestamp": "timestamp",
}


@dataclass
class ColumnTypes:
    """`columns` holds the types of each relation's columns as far as they are known.

    They are told without saying whether there may be nulls; `nullables` are the variables of each relation's rules that may.
    """

    columns: dict[str, list[str | None]]
    functors: Mapping[str, tree.FunctorDecl]
    nullables: Mapping[str, frozenset[str]] = field(default_factory=dict)
    listings: Mapping[str, Listing] = field(default_factory=dict)

    def known(self, relation: str) -> list[str] | None:
        types = self.columns.get(relation, [None])
        return None if None in types else [each for each in types if each is not None]

    def variables(self, draft: Draft) -> dict[str, str | None]:
        """The types of a rule's variables: what binds them first decides, atoms before equations, and negated ones last."""
        env: dict[str, str | None] = {}
        nodes = [node for formula in draft.body for node in tree.walk(formula)]
        binders = [node for atoms in draft.relation.outer.values() for atom in atoms for node in tree.walk(atom)]
        denied = {id(inside) for node in nodes if isinstance(node, tree.Not) for inside in tree.walk(node)}
        atoms = [node for node in (*nodes, *binders) if isinstance(node, tree.Atom)]
        self._learn(env, (atom for atom in atoms if id(atom) not in denied))
        equations = [node for node in nodes if isinstance(node, tree.Constraint) and node.op == "="]
        bound = set(env)
        for _ in range(len(equations)):
            before = dict(env)
            for equation in equations:
                for one, other in ((equation.left, equation.right), (equation.right, equation.left)):
                    if isinstance(one, tree.Variable) and one.name not in bound:
                        env[one.name] = join(env.get(one.name), self.of(other, env))
            if env == before:
                break
        self._learn(env, (atom for atom in atoms if id(atom) in denied))
        return env

    def _learn(self, env: dict[str, str | None], atoms: Iterable[tree.Atom]) -> None:
        for atom in atoms:
            for arg, kind in zip(atom.args, self.columns.get(atom.relation, ()), strict=False):
                if isinstance(arg, tree.Variable) and env.get(arg.name) is None:
                    env[arg.name] = kind

    def of(self, term: tree.Term, env: Mapping[str, str | None]) -> str | None:
        if isinstance(term, tree.Variable):
            return env.get(term.name)
        if isinstance(term, tree.Number):
            return _LITERALS[term.suffix]
        if isinstance(term, tree.String):
            return "symbol"
        if isinstance(term, tree.Bool):
            return "bool"
        if isinstance(term, tree.Aggregate):
            fixed = {"count": "number", "mean": "float"}.get(term.op)
            kind = self.of(term.target, env) if term.target is not None else None
            return fixed or (widened(kind) if term.op == "sum" else kind)
        if isinstance(term, tree.Cast):
            return term.type.name
        if not isinstance(term, tree.Call):
            return None
        if term.registered and term.name in self.listings:
            listing = self.listings[term.name]
            if listing.kind is not None or not isinstance(term.args[-1], tree.Bracket):
                return listing.kind
            kind = self.of(term.args[-1].items[listing.argument], env)
            return widened(kind) if listing.is_sum else kind
        if term.registered and term.name in OF_DECIMALS and is_decimal(kind := self.of(term.args[0], env)):
            return _of_decimals(term, kind)
        if term.registered:
            declared = self.functors.get(term.name)
            return declared.result.name if declared is not None else None
        if term.name in RESULTS:
            return RESULTS[term.name]
        if term.name in ("date_trunc", "date_add"):
            return self.of(term.args[term.name == "date_trunc"], env)
        return of_operation(term.name, [self.of(arg, env) for arg in term.args])

    def declared(self, term: tree.Term, env: Mapping[str, str | None], draft: Draft) -> str:
        """The type to declare for a term; what only nulls are in is a number."""
        kind = self.of(term, env) or "number"
        kind = "number" if kind == INTEGER else kind
        nullable = isinstance(term, tree.Nil) or (isinstance(term, tree.Variable) and term.name in draft.nullables)
        return f"{kind}?" if nullable else kind

    def common(self, terms: Iterable[tree.Term], env: Mapping[str, str | None]) -> str | None:
        kind: str | None = None
        for term in terms:
            kind = join(kind, self.of(term, env))
        return kind


def _of_decimals(call: tree.Call, kind: str | None) -> str:
    """The kind of ROUND, TRUNC and SIGN of a decimal."""
    if OF_DECIMALS[call.name] == "SIGN":
        return "number"
    digits = rounding_digits(call)
    return "float" if digits is None else decimal(min(max(0, digits), scale_of(kind) or 0))


def rounding_digits(call: tree.Call) -> int | None:
    """How many digits behind the point stay, if that is written; ROUND(x) and TRUNC(x) leave none."""
    if len(call.args) == 1:
        return 0
    digits = call.args[1]
    if isinstance(digits, tree.Number):
        return int(digits.value)
    return None


def tag_name(relation: Relation) -> str:
    """The type of the hidden column of a tagged relation."""
    return f"{legal(relation.name)}_copy"


def infer(catalog: Catalog) -> ColumnTypes:
    relations, drafts = catalog.relations, catalog.drafts
    columns: dict[str, list[str | None]] = {}
    for relation in relations:
        width = len(relation.outer) + len(relation.own_columns)
        columns[relation.name] = list(relation.types) if relation.types is not None else [None] * width
        if relation.tagged and relation.types is None and not relation.existential:
            columns[relation.name][-1] = tag_name(relation)
        if relation.lists is not None:
            columns[relation.name][-1] = f"list<{catalog.listings[relation.lists].record}>"
    nullables: dict[str, frozenset[str]] = {}
    for draft in drafts:
        nullables[draft.relation.name] = nullables.get(draft.relation.name, frozenset()) | draft.nullables
    types = ColumnTypes(columns, catalog.functors, nullables, catalog.listings)
    _spread(types, drafts, catalog.paired)
    while any(None in own for own in columns.values()) and _from_use(types, drafts):
        _spread(types, drafts, catalog.paired)
    for relation in relations:
        own = columns[relation.name]
        nullable = [*(False for _ in relation.outer), *(() if relation.existential else relation.nullable or ())]
        for at, kind in enumerate(own):
            is_null = kind is None and at < len(nullable) and nullable[at]  # and nothing else
            own[at] = "number" if kind == INTEGER or is_null else kind
    _widen(types, drafts, {relation.name for relation in relations if relation.inlinable})
    return types


def _spread(types: ColumnTypes, drafts: list[Draft], paired: list[tuple[Relation, Relation]]) -> None:
    """Gives columns the types of the values that rules put into them; those of `paired` relations have one type."""
    columns = types.columns
    derived = [draft for draft in drafts if draft.relation.types is None]
    # A column's type goes from unknown to integer to another, and decimals get more digits behind the point.
    for _ in range((MOST_DIGITS + 3) * sum(map(len, columns.values())) + 1):
        changed = False
        for draft in derived:
            env = types.variables(draft)
            own = columns[draft.relation.name]
            for at, arg in enumerate(draft.head.args[: len(own)]):
                kind = join(own[at], types.of(arg, env))
                changed |= kind != own[at]
                own[at] = kind
        for one, other in paired:
            left, right = columns[one.name], columns[other.name]
            for at in range(len(one.columns or ())):
                places = len(one.outer) + at, len(other.outer) + at
                kind = join(left[places[0]], right[places[1]])
                changed |= kind != left[places[0]] or kind != right[places[1]]
                left[places[0]] = right[places[1]] = kind
        if not changed:
            break


def _from_use(types: ColumnTypes, drafts: list[Draft]) -> bool:
    """Gives a column that only nulls are put into the type of what is made of it or compared with it."""
    changed = False
    for draft in drafts:
        nodes = [node for formula in draft.body for node in tree.walk(formula)]
        atoms = [node for node in nodes if isinstance(node, tree.Atom) and None in types.columns.get(node.relation, ())]
        if not atoms:
            continue
        wanted = _wanted(types, draft, nodes)
        for atom in atoms:
            own = types.columns[atom.relation]
            for at, arg in enumerate(atom.args[: len(own)]):
                if own[at] is None and isinstance(arg, tree.Variable) and wanted.get(arg.name) is not None:
                    own[at], changed = wanted[arg.name], True
    return changed


def _wanted(types: ColumnTypes, draft: Draft, nodes: list[object]) -> dict[str, str | None]:
    """The types that a rule asks of variables, where nothing that binds them has one."""
    env = types.variables(draft)
    pairs: list[tuple[tree.Term, str | None]] = list(
        zip(draft.head.args, types.columns[draft.relation.name], strict=False)
    )
    for node in nodes:
        if isinstance(node, tree.Constraint):
            text = "symbol" if node.op in ("match", "contains") else None
            pairs += [(node.left, text or types.of(node.right, env)), (node.right, text or types.of(node.left, env))]
        elif isinstance(node, tree.Call) and node.registered and node.name in types.functors:
            kinds = [param.name for param in types.functors[node.name].params]
            pairs += zip(node.args, kinds, strict=False)
    for term, kind in pairs:
        if isinstance(term, tree.Variable) and env.get(term.name) is None:
            env[term.name] = "number" if kind == INTEGER else kind
    return env


def _widen(types: ColumnTypes, drafts: list[Draft], subqueries: set[str]) -> None:
    """Makes what a subquery gives of the type that also holds what is looked up in it."""
    for draft in drafts:
        env = types.variables(draft)
        atoms = [node for formula in draft.body for node in tree.walk(formula) if isinstance(node, tree.Atom)]
        for atom in atoms:
            if atom.relation in subqueries:
                own = types.columns[atom.relation]
                for at, arg in enumerate(atom.args[: len(own)]):
                    kind = join(own[at], types.of(arg, env))
                    if kind != own[at] and kind != INTEGER and (is_number(own[at]) or own[at] in MOMENTS):
                        own[at] = kind
