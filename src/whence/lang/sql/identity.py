"""What tells the rows of a query apart: sets and bags.

A bag is a set whose rows keep what tells their derivations apart. The rows of a SELECT are told apart by the keys of
its tables; as far as the selected columns do not determine these, they become hidden columns. What is determined
follows from equations, from constants, and from keys: whoever knows a key of a table knows the whole row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from whence.lang import tree
from whence.lang.sql.formulas import variables
from whence.lang.sql.scope import Item


def hidden_variables(
    values: Sequence[tree.Term], body: Iterable[tree.Formula], items: Sequence[Item]
) -> list[tree.Variable]:
    """The variables that have to be kept beside the values, so that no two rows become one."""
    known = {value.name for value in values if isinstance(value, tree.Variable)}
    formulas = list(body)
    hidden: list[tree.Variable] = []
    _close(known, formulas, items)
    for item in items:
        names = {variable.name: variable for variable in item.all_variables}
        if set(names) <= known:
            continue
        key = min(item.keys, key=lambda each: len(each - known), default=frozenset(names))
        hidden += [variable for name, variable in names.items() if name in key and name not in known]
        known |= set(names)
        _close(known, formulas, items)
    return hidden


def _close(known: set[str], body: list[tree.Formula], items: Sequence[Item]) -> None:
    """Adds what follows from what is known."""
    before = -1
    while before != len(known):
        before = len(known)
        for formula in body:
            if isinstance(formula, tree.Constraint) and formula.op == "=":
                for one, other in ((formula.left, formula.right), (formula.right, formula.left)):
                    is_value = not isinstance(other, tree.Aggregate) and known.issuperset(variables(other))
                    if isinstance(one, tree.Variable) and is_value:
                        known.add(one.name)
        for item in items:
            if any(key <= known for key in item.keys):
                known.update(variable.name for variable in item.all_variables)


def keys_of(values: Sequence[tree.Term], body: Iterable[tree.Formula], items: Sequence[Item]) -> list[frozenset[int]]:
    """Sets of positions among the values that tell rows apart: all of them do, and maybe fewer."""
    formulas = list(body)
    places = {value.name: at for at, value in reversed(list(enumerate(values))) if isinstance(value, tree.Variable)}
    everything = frozenset(range(len(values)))
    chosen = set(places)
    for name in sorted(places, key=lambda each: -places[each]):
        known = chosen - {name}
        _close(known, formulas, items)
        if all(known.issuperset(variable.name for variable in item.all_variables) for item in items):
            chosen.discard(name)
    known = set(chosen)
    _close(known, formulas, items)
    if all(known.issuperset(variable.name for variable in item.all_variables) for item in items):
        return [frozenset(places[name] for name in chosen)]
    return [everything]


def kept_variables(item: Item, used: set[str] | None) -> list[tree.Variable]:
    """The variables of an item that a helper has to hold: of columns that are mentioned, and of a key."""
    if used is None or item.columns is None:
        return item.all_variables
    key = min(item.keys, key=len, default=frozenset())
    mentioned = {
        variable.name for name, variable in zip(item.columns, item.variables, strict=True) if name.lower() in used
    }
    return [variable for variable in item.all_variables if variable.name in mentioned or variable.name in key]
