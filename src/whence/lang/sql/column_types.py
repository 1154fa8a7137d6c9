"""The types of derived columns, inferred from the drafts of all rules at once, because views may be recursive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from whence.lang import tree
from whence.lang.sql.relations import Catalog, Draft, Listing, Relation, legal

# An integer literal: it takes the type of what it meets, or else it is a number.
_INTEGER = "integer"
_LITERALS = {"": _INTEGER, "u": "unsigned", ".": "float"}
RESULTS: Mapping[str, str] = {
    "to_number": "number",
    "to_unsigned": "unsigned",
    "to_float": "float",
    "to_string": "symbol",
    "to_text": "symbol",
    "to_bool": "bool",
    "cat": "symbol",
    "substr": "symbol",
    "strlen": "number",
}
NUMERIC = frozenset({_INTEGER, "number", "unsigned", "float"})


def _join(left: str | None, right: str | None) -> str | None:
    """The type that holds both; where there is none, the first: the checks of the program report the conflict."""
    if left is None or left == right:
        return right
    if right is None or not {left, right} <= NUMERIC:
        return left
    if left == _INTEGER:
        return right
    return "float" if right == "float" else left


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
        """The types of a rule's variables: what binds them first decides, atoms before equations."""
        env: dict[str, str | None] = {}
        nodes = [node for formula in draft.body for node in tree.walk(formula)]
        binders = [node for atoms in draft.relation.outer.values() for atom in atoms for node in tree.walk(atom)]
        for node in (*nodes, *binders):
            if isinstance(node, tree.Atom):
                for arg, kind in zip(node.args, self.columns.get(node.relation, ()), strict=False):
                    if isinstance(arg, tree.Variable) and env.get(arg.name) is None:
                        env[arg.name] = kind
        equations = [node for node in nodes if isinstance(node, tree.Constraint) and node.op == "="]
        bound = set(env)
        for _ in range(len(equations)):
            before = dict(env)
            for equation in equations:
                for one, other in ((equation.left, equation.right), (equation.right, equation.left)):
                    if isinstance(one, tree.Variable) and one.name not in bound:
                        env[one.name] = _join(env.get(one.name), self.of(other, env))
            if env == before:
                break
        return env

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
            return fixed or (self.of(term.target, env) if term.target is not None else None)
        if not isinstance(term, tree.Call):
            return None
        if term.registered and term.name in self.listings:
            listing = self.listings[term.name]
            if listing.kind is not None or not isinstance(term.args[-1], tree.Bracket):
                return listing.kind
            return self.of(term.args[-1].items[listing.argument], env)
        if term.registered:
            declared = self.functors.get(term.name)
            return declared.result.name if declared is not None else None
        if term.name in RESULTS:
            return RESULTS[term.name]
        return self.common(term.args, env)

    def declared(self, term: tree.Term, env: Mapping[str, str | None], draft: Draft) -> str:
        """The type to declare for a term; what only nulls are in is a number."""
        kind = self.of(term, env) or "number"
        kind = "number" if kind == _INTEGER else kind
        nullable = isinstance(term, tree.Nil) or (isinstance(term, tree.Variable) and term.name in draft.nullables)
        return f"{kind}?" if nullable else kind

    def common(self, terms: Iterable[tree.Term], env: Mapping[str, str | None]) -> str | None:
        kind: str | None = None
        for term in terms:
            kind = _join(kind, self.of(term, env))
        return kind


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
    _spread(types, drafts)
    while any(None in own for own in columns.values()) and _from_use(types, drafts):
        _spread(types, drafts)
    for relation in relations:
        own = columns[relation.name]
        nullable = [*(False for _ in relation.outer), *(() if relation.existential else relation.nullable or ())]
        for at, kind in enumerate(own):
            is_null = kind is None and at < len(nullable) and nullable[at]  # and nothing else
            own[at] = "number" if kind == _INTEGER or is_null else kind
    _widen(types, drafts, {relation.name for relation in relations if relation.inlinable})
    return types


def _spread(types: ColumnTypes, drafts: list[Draft]) -> None:
    """Gives columns the types of the values that rules put into them."""
    columns = types.columns
    derived = [draft for draft in drafts if draft.relation.types is None]
    # A column's type changes at most twice, from unknown to integer to another.
    for _ in range(3 * sum(map(len, columns.values())) + 1):
        changed = False
        for draft in derived:
            env = types.variables(draft)
            own = columns[draft.relation.name]
            for at, arg in enumerate(draft.head.args[: len(own)]):
                kind = _join(own[at], types.of(arg, env))
                changed |= kind != own[at]
                own[at] = kind
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
            env[term.name] = "number" if kind == _INTEGER else kind
    return env


def _widen(types: ColumnTypes, drafts: list[Draft], subqueries: set[str]) -> None:
    """Makes floats of the integers of a subquery in which floats are looked up."""
    for draft in drafts:
        env = types.variables(draft)
        atoms = [node for formula in draft.body for node in tree.walk(formula) if isinstance(node, tree.Atom)]
        for atom in atoms:
            if atom.relation in subqueries:
                own = types.columns[atom.relation]
                for at, arg in enumerate(atom.args[: len(own)]):
                    if own[at] in ("number", "unsigned") and types.of(arg, env) == "float":
                        own[at] = "float"
