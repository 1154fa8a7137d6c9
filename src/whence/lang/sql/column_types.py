"""The types of derived columns, inferred from the drafts of all rules at once, because views may be recursive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from whence.lang import tree
from whence.lang.sql.relations import Draft, Relation

# An integer literal: it takes the type of what it meets, or else it is a number.
_INTEGER = "integer"
_LITERALS = {"": _INTEGER, "u": "unsigned", ".": "float"}
RESULTS: Mapping[str, str] = {
    "to_number": "number",
    "to_unsigned": "unsigned",
    "to_float": "float",
    "to_string": "symbol",
    "to_text": "symbol",
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
    """`columns` holds the types of each relation's columns as far as they are known."""

    columns: dict[str, list[str | None]]
    functors: Mapping[str, tree.FunctorDecl]

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
        if isinstance(term, tree.Aggregate):
            fixed = {"count": "number", "mean": "float"}.get(term.op)
            return fixed or (self.of(term.target, env) if term.target is not None else None)
        if not isinstance(term, tree.Call):
            return None
        if term.registered:
            declared = self.functors.get(term.name)
            return declared.result.name if declared is not None else None
        if term.name in RESULTS:
            return RESULTS[term.name]
        return self.common(term.args, env)

    def common(self, terms: Iterable[tree.Term], env: Mapping[str, str | None]) -> str | None:
        kind: str | None = None
        for term in terms:
            kind = _join(kind, self.of(term, env))
        return kind


def infer(relations: list[Relation], drafts: list[Draft], functors: Mapping[str, tree.FunctorDecl]) -> ColumnTypes:
    columns: dict[str, list[str | None]] = {}
    for relation in relations:
        width = len(relation.outer) + (0 if relation.existential else len(relation.columns or ()))
        columns[relation.name] = list(relation.types) if relation.types is not None else [None] * width
    types = ColumnTypes(columns, functors)
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
    for own in columns.values():
        own[:] = ["number" if kind == _INTEGER else kind for kind in own]
    _widen(types, drafts, {relation.name for relation in relations if relation.inlinable})
    return types


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
