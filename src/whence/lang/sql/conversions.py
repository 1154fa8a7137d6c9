"""The conversions that SQL leaves unsaid.

SQL compares and adds integers and floats freely and joins text with numbers; Whence does not, so conversions are put in
where the types are known, and those that were written but change nothing are taken out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from whence.lang import tree
from whence.lang.rewrite import rebuild
from whence.lang.sql.column_types import NUMERIC, RESULTS, ColumnTypes
from whence.lang.sql.relations import Draft

_CONVERSIONS = {
    "to_number": "number",
    "to_unsigned": "unsigned",
    "to_float": "float",
    "to_string": "symbol",
    "to_bool": "bool",
}


def convert(draft: Draft, types: ColumnTypes) -> Draft:
    """The draft with the conversions that its types ask for."""
    conversions = _Conversions(types, types.variables(draft))
    own = types.columns[draft.relation.name][len(draft.relation.outer) :]
    values = tuple(rebuild(value, conversions.change) for value in draft.values)
    if len(own) == len(values):
        values = conversions.fit_all(values, own)
    body = [rebuild(formula, conversions.change) for formula in draft.body]
    return replace(draft, values=values, body=body)


@dataclass(frozen=True)
class _Conversions:
    types: ColumnTypes
    env: Mapping[str, str | None]

    def change(self, node: object) -> object:
        if isinstance(node, tree.Call):
            return self._call(node)
        if isinstance(node, tree.Constraint) and node.op == "zero":  # only a whole number cannot be divided by zero
            is_float = self.types.of(node.left, self.env) == "float"
            return tree.Truth(value=False, span=node.span) if is_float else replace(node, op="=")
        if isinstance(node, tree.Constraint) and node.op not in ("match", "contains"):
            wanted = self.types.common((node.left, node.right), self.env)
            return replace(node, left=self._fit(node.left, wanted), right=self._fit(node.right, wanted))
        if isinstance(node, tree.Atom):
            return replace(node, args=self.fit_all(node.args, self.types.columns.get(node.relation, ())))
        return node

    def _call(self, node: tree.Call) -> tree.Term:
        if node.registered and node.name in self.types.listings:
            return node
        if node.registered:
            return replace(node, args=self.fit_all(node.args, [param.name for param in self._params(node.name)]))
        if node.name in _CONVERSIONS:
            return self._conversion(node)
        if node.name == "cat":
            return replace(node, args=tuple(map(self._text, node.args)))
        if node.name in RESULTS:
            return node
        wanted = self.types.common(node.args, self.env)
        return replace(node, args=tuple(self._fit(arg, wanted) for arg in node.args))

    def _params(self, name: str) -> tuple[tree.TypeRef, ...]:
        return self.types.functors[name].params

    def _conversion(self, node: tree.Call) -> tree.Term:
        value = node.args[0]
        if self.types.of(value, self.env) == _CONVERSIONS[node.name]:
            return value
        if node.name == "to_float" and isinstance(value, tree.Number):
            return tree.Number(float(value.value), ".", node.span)
        return self._text(value) if node.name == "to_string" else node

    def _text(self, term: tree.Term) -> tree.Term:
        kind = self.types.of(term, self.env)
        # to_string cuts a float off after six digits.
        name = "to_text" if kind == "float" else "to_string"
        return tree.Call(name, (term,), span=term.span) if kind in NUMERIC or kind == "bool" else term

    def _fit(self, term: tree.Term, wanted: str | None) -> tree.Term:
        needed = wanted == "float" and self.types.of(term, self.env) in ("number", "unsigned")
        return tree.Call("to_float", (term,), span=term.span) if needed else term

    def fit_all(self, terms: tuple[tree.Term, ...], wanted: Sequence[str | None]) -> tuple[tree.Term, ...]:
        if len(terms) != len(wanted):
            return terms
        return tuple(self._fit(term, kind) for term, kind in zip(terms, wanted, strict=True))
