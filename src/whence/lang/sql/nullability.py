"""Which columns of the finished rules may be null.

Those of queries are known from their expressions. The first columns of a correlated subquery are variables of the query
around it: what they may be depends on the atoms that bind them in the end.
"""

from __future__ import annotations

from collections.abc import Mapping

from whence.lang import tree
from whence.lang.sql.formulas import conjuncts
from whence.lang.sql.nulls import never_nil
from whence.lang.sql.relations import Catalog


def nullable_columns(catalog: Catalog, rules: Mapping[str, list[tree.Rule]]) -> dict[str, list[bool]]:
    """For each relation, whether each of its columns may be null, those of outer variables included."""
    columns = {
        relation.name: [
            *(False for _ in relation.outer),
            *([] if relation.existential else relation.nullable or [False] * len(relation.own_columns)),
        ]
        for relation in catalog.relations
    }
    for relation in catalog.relations:
        columns[relation.name] += [False] * (
            len(relation.outer) + len(relation.own_columns) - len(columns[relation.name])
        )
    outer = {relation.name: len(relation.outer) for relation in catalog.relations if relation.outer}
    changed = True
    while changed:
        changed = False
        for name, count in outer.items():
            for rule in rules.get(name, ()):
                for at, arg in enumerate(rule.heads[0].args[:count]):
                    if not columns[name][at] and isinstance(arg, tree.Variable) and _may_be_nil(arg, rule, columns):
                        columns[name][at] = changed = True
    return columns


def _may_be_nil(variable: tree.Variable, rule: tree.Rule, columns: Mapping[str, list[bool]]) -> bool:
    """Whether every atom that binds the variable may bind it to nil."""
    body = conjuncts(rule.body) if rule.body is not None else []
    if variable.name in never_nil(body):
        return False
    places = [
        columns[formula.relation][at]
        for formula in body
        if isinstance(formula, tree.Atom)
        for at, arg in enumerate(formula.args)
        if isinstance(arg, tree.Variable) and arg.name == variable.name
    ]
    return all(places)
