"""Rules with many alternatives, taken apart.

A rule with `;` stands for one rule for each combination of its alternatives. A SELECT list of several expressions that may be
null would make hundreds of them. Where there are too many, what holds in all of them becomes a helper, `given`, and each
disjunction one of its own, so that alternatives add up instead of multiplying.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from whence.lang import tree
from whence.lang.sql.finish import bound_by
from whence.lang.sql.formulas import conjuncts, equation, variables
from whence.lang.sql.nulls import is_not_nil
from whence.lang.sql.relations import Catalog, Draft

MOST = 12


def split_alternatives(catalog: Catalog) -> None:
    """Takes all rules apart that stand for too many."""
    pending, done = list(catalog.drafts), []
    while pending:
        draft = pending.pop(0)
        body = [part for formula in draft.body for part in conjuncts(formula)]
        if prod(map(_alternatives, body)) <= MOST:
            done.append(draft)
        else:
            pending = [*_split(replace(draft, body=body), catalog), *pending]
    catalog.drafts[:] = done


def _alternatives(formula: tree.Formula) -> int:
    if isinstance(formula, tree.Or):
        return sum(map(_alternatives, formula.items))
    if isinstance(formula, tree.And):
        return prod(map(_alternatives, formula.items))
    return 1


def _split(draft: Draft, catalog: Catalog) -> list[Draft]:
    choices = [formula for formula in draft.body if isinstance(formula, tree.Or)]
    if len(choices) == 1:
        # A choice between conjunctions that have choices themselves: each is a rule of its own.
        rest = [formula for formula in draft.body if formula is not choices[0]]
        return [replace(draft, body=[*rest, *conjuncts(item)]) for item in choices[0].items]
    plain: list[tree.Formula] = [formula for formula in draft.body if not isinstance(formula, tree.Or)]
    bound = bound_by(plain) | set(draft.relation.outer)
    early = [formula for formula in plain if isinstance(formula, tree.Atom) or bound.issuperset(variables(formula))]
    late = [formula for formula in plain if formula not in early]
    made: list[Draft] = []
    head = set(variables(draft.values)) | set(draft.relation.outer)
    wanted = head | set(variables((*choices, *late)))
    given: list[tree.Formula] = early
    if len(early) != 1 or not isinstance(early[0], tree.Atom):
        columns = [name for name in dict.fromkeys(variables(tuple(early))) if name in bound and name in wanted]
        atom, own = _helper(draft, catalog, "given", columns, early)
        given = [atom]
        made.append(own)
    # What gives values to variables that the given ones do not have, in the order in which that can be.
    providers = [provider for formula in late if (provider := _provider(formula, bound)) is not None]
    kept: list[tree.Formula] = []
    for choice in choices:
        names = dict.fromkeys(variables(choice))
        others = set(variables((*(other for other in choices if other is not choice), *late))) | head
        columns = [name for name in names if name in others or name in bound]
        needed = _needed(set(names) - bound_by([choice], bound), providers)
        atom, own = _helper(draft, catalog, "choice", columns, [*given, *needed, choice])
        made.append(own)
        kept.append(atom)
        providers.append((set(columns) - bound, set(), atom))
    return [*made, replace(draft, body=[*given, *kept, *late])]


# What a formula gives a value to, what it needs for that, and the formula.
_Provider = tuple[set[str], set[str], tree.Formula]


def _provider(formula: tree.Formula, bound: set[str]) -> _Provider | None:
    if not isinstance(formula, tree.Constraint) or formula.op != "=":
        return None
    for one, other in ((formula.left, formula.right), (formula.right, formula.left)):
        if isinstance(one, tree.Variable) and one.name not in bound:
            return {one.name}, set(variables(other)) - bound, formula
    return None


def _needed(missing: set[str], providers: list[_Provider]) -> list[tree.Formula]:
    """The formulas that bind variables which a choice reads and does not bind itself."""
    found: list[tree.Formula] = []
    grown = True
    while grown:
        grown = False
        for given, needed, formula in providers:
            if formula not in found and given & missing:
                found.append(formula)
                missing |= needed
                grown = True
    return found


def _helper(
    draft: Draft, catalog: Catalog, purpose: str, names: list[str], body: list[tree.Formula]
) -> tuple[tree.Atom, Draft]:
    outer = draft.relation.outer
    columns = [name for name in names if name not in outer]
    relation = catalog.helper(draft.relation, purpose, columns)
    relation.nullable = [name in draft.nullables for name in columns]
    used = set(variables(tuple(body)))
    relation.outer.update((name, atoms) for name, atoms in outer.items() if name in used)
    values = tuple(tree.Variable(name) for name in columns)
    # What the rule finds not to be null may be so by a formula that is not in this part of it.
    unsure = _equal_to_nullable(body, draft) | draft.tested
    tests = [is_not_nil(value) for value in values if value.name in unsure and value.name not in draft.nullables]
    body = [*body, *tests]
    return relation.atom(values, draft.span), replace(draft, relation=relation, values=values, body=body)


def _equal_to_nullable(body: list[tree.Formula], draft: Draft) -> set[str]:
    pairs = [pair for formula in body if (pair := equation(formula)) is not None]
    return {
        one.name
        for pair in pairs
        for one, other in (pair, pair[::-1])
        if other.name in draft.nullables or other.name in draft.tested
    }
