"""From drafts to rules: variables that are equal become one, those that do not matter become wildcards.

A draft of a correlated subquery may use outer variables that its own tables do not bind; the atoms that bind them in
the outer query are added then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from whence.lang import tree
from whence.lang.rewrite import rebuild
from whence.lang.sql.column_types import ColumnTypes
from whence.lang.sql.formulas import conjunction, conjuncts, equation, rename, variables
from whence.lang.sql.relations import Draft, Names


def rule(draft: Draft, types: ColumnTypes) -> tree.Rule:
    head, body = draft.head, [part for formula in draft.body for part in conjuncts(formula)]
    body = _bind(head, body, draft)
    head, body = _unify(head, body, types.variables(draft))
    body = [_unify_in_aggregate(formula, head, body) for formula in body]
    head, body = _hide(head, body)
    formula = conjunction(body)
    is_fact = isinstance(formula, tree.Truth) and formula.value
    return tree.Rule((head,), None if is_fact else formula, span=draft.span)


# -- outer variables --------------------------------------------------------------------------------------------------


def _bind(head: tree.Atom, body: list[tree.Formula], draft: Draft) -> list[tree.Formula]:
    for name, atoms in draft.relation.outer.items():
        if name not in bound_by(body) and name in variables((head, *body)):
            body = [*(atom for atom in atoms if atom not in body), *body]
    return body


def bound_by(body: list[tree.Formula], known: Iterable[str] = ()) -> set[str]:
    """The variables that have a value where the body holds, if those that are known have one."""
    bound = set(known)
    for formula in body:
        if isinstance(formula, tree.Atom):
            bound.update(arg.name for arg in formula.args if isinstance(arg, tree.Variable))
        elif isinstance(formula, tree.Or):
            bound.update(set.intersection(*(bound_by(conjuncts(item), known) for item in formula.items)))
    grown = True
    while grown:
        grown = False
        for formula in body:
            if not isinstance(formula, tree.Constraint) or formula.op != "=":
                continue
            for one, other in ((formula.left, formula.right), (formula.right, formula.left)):
                if isinstance(one, tree.Variable) and one.name not in bound and _has_value(other, bound):
                    bound.add(one.name)
                    grown = True
    return bound


def _has_value(term: tree.Term, bound: set[str]) -> bool:
    return isinstance(term, tree.Aggregate) or set(variables(term)) <= bound


# -- equal variables --------------------------------------------------------------------------------------------------


def _unify(
    head: tree.Atom, body: list[tree.Formula], types: Mapping[str, str | None]
) -> tuple[tree.Atom, list[tree.Formula]]:
    # The variable that comes first in an atom stays: it has the plainest name.
    atoms = variables(tuple(formula for formula in body if isinstance(formula, tree.Atom)))
    rank = {name: at for at, name in enumerate(dict.fromkeys([*atoms, *variables(tuple(body))]))}
    names: dict[str, tree.Variable] = {}
    kept_body: list[tree.Formula] = []
    for formula in body:
        pair = equation(formula)
        # Variables of two types cannot be one: the equation stays, and its place is where the checks report it.
        if pair is None or len({types.get(variable.name) for variable in pair} - {None}) > 1:
            kept_body.append(formula)
            continue
        kept, gone = sorted((_final(variable, names) for variable in pair), key=lambda variable: rank[variable.name])
        if kept.name != gone.name:
            names[gone.name] = kept
    final = {name: _final(variable, names) for name, variable in names.items()}
    return rename(head, final), [rename(formula, final) for formula in kept_body]


def _final(variable: tree.Variable, names: Mapping[str, tree.Variable]) -> tree.Variable:
    while variable.name in names:
        variable = names[variable.name]
    return variable


def _unify_in_aggregate(formula: tree.Formula, head: tree.Atom, body: list[tree.Formula]) -> tree.Formula:
    """Inside an aggregate a variable of its own becomes the one it equals."""
    if not isinstance(formula, tree.Constraint) or not isinstance(formula.right, tree.Aggregate):
        return formula
    outside = set(variables((head, formula.left, *(other for other in body if other is not formula))))
    aggregate = formula.right
    changed = True
    while changed:
        changed = False
        items = conjuncts(aggregate.body)
        for at, item in enumerate(items):
            pair = equation(item)
            own = [variable for variable in pair or () if variable.name not in outside]
            if pair is None or not own:
                continue
            gone = own[-1]
            kept = pair[0] if gone.name == pair[1].name else pair[1]
            if kept.name in outside and gone.name in variables(aggregate.target):
                continue
            rest = conjunction(other for index, other in enumerate(items) if index != at)
            aggregate = rename(replace(aggregate, body=rest), {gone.name: kept})
            changed = True
            break
    return replace(formula, right=aggregate)


# -- variables that do not matter -------------------------------------------------------------------------------------


def _hide(head: tree.Atom, body: list[tree.Formula]) -> tuple[tree.Atom, list[tree.Formula]]:
    """Variables that occur once become wildcards, or in aggregates that count them, names with an underscore."""
    once = {name for name, times in Counter(variables((head, *body))).items() if times == 1}
    names = Names(variables((head, *body)))

    def hide(formula: tree.Formula) -> tree.Formula:
        if isinstance(formula, tree.Atom):
            return _without(formula, once)
        if isinstance(formula, tree.And | tree.Or):
            return replace(formula, items=tuple(hide(item) for item in formula.items))
        if isinstance(formula, tree.Constraint) and isinstance(formula.right, tree.Aggregate):
            return replace(formula, right=_in_aggregate(formula.right, once, names))
        return formula

    return head, [hide(formula) for formula in body]


def _without(atom: tree.Atom, once: set[str]) -> tree.Atom:
    args = (tree.Wildcard() if isinstance(arg, tree.Variable) and arg.name in once else arg for arg in atom.args)
    return replace(atom, args=tuple(args))


def _in_aggregate(aggregate: tree.Aggregate, once: set[str], names: Names) -> tree.Aggregate:
    if aggregate.op in ("min", "max"):
        return rebuild(aggregate, lambda node: _without(node, once) if isinstance(node, tree.Atom) else node)
    own = [name for name in dict.fromkeys(variables(aggregate.body)) if name in once]
    return rename(aggregate, {name: names.fresh(f"_{name}") for name in own})
