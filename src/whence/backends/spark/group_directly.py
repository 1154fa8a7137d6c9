"""Groups that are asked for by the rows they are made of.

`t(c, n) :- sale(c, _), n = sum a : { sale(c, a) }.` asks for a group for each customer of `sale`, which is what grouping `sale`
gives: there is no need to find the customers first, to join them with their rows, and to join the groups with them again.
"""

from __future__ import annotations

from dataclasses import replace

from whence.lang.program import Anything, Atom, Literal, Rule, Term, Var
from whence.plan import Plan
from whence.plan.extract_aggregates import AggregateSpec


def group_directly(plan: Plan) -> Plan:
    """The plan without the contexts that its groups imply."""
    rules: dict[str, list[Rule]] = {name: [] for name in plan.program.relations}
    for rule in plan.program.rules:
        rules[rule.head.relation].append(rule)
    direct: dict[str, Atom] = {}
    strata = list(plan.strata)
    for at, stratum in enumerate(strata):
        spec = stratum.aggregate
        asking = None if spec is None else _asking_atom(spec, rules)
        if spec is not None and asking is not None:
            rules[spec.rows] = [replace(rule, body=rule.body[1:]) for rule in rules[spec.rows]]
            strata[at] = replace(stratum, inputs=(spec.rows,), aggregate=replace(spec, context=None))
            direct[stratum.relations[0]] = asking
    found = tuple(_without_asking(rule, direct) for each in rules.values() for rule in each)
    return Plan(replace(plan.program, rules=found), tuple(strata))


def _asking_atom(spec: AggregateSpec, rules: dict[str, list[Rule]]) -> Atom | None:
    """The atom that asks for the groups, if each of its matches is a row of one of them, and the other way round."""
    if spec.context is None:
        return None
    (context,) = rules[spec.context]
    (asking, *others) = context.body
    if others or not isinstance(asking, Atom) or not all(isinstance(arg, Var | Anything) for arg in asking.args):
        return None
    asked = [arg for arg in asking.args if isinstance(arg, Var)]
    if len(set(asked)) != len(asked) or set(asked) != set(context.head.args):
        return None
    for rule in rules[spec.rows]:
        _, *body = rule.body
        if len(body) != 1 or not _matches_every_row(body[0], asking):
            return None
    return asking


def _matches_every_row(literal: Literal, asking: Atom) -> bool:
    """Whether the literal matches all rows of the asking atom's relation, with the same variables for what is asked."""
    if not isinstance(literal, Atom) or literal.relation != asking.relation:
        return False
    free: list[Term] = [
        arg for arg, asked in zip(literal.args, asking.args, strict=True) if isinstance(asked, Anything)
    ]
    kept = all(
        arg == asked for arg, asked in zip(literal.args, asking.args, strict=True) if not isinstance(asked, Anything)
    )
    named = [arg for arg in free if isinstance(arg, Var)]
    return (
        kept
        and all(isinstance(arg, Var | Anything) for arg in free)
        and len(set(named)) == len(named)
        and not set(named).intersection(asking.args)
    )


def _without_asking(rule: Rule, direct: dict[str, Atom]) -> Rule:
    """The rule without the atoms that the groups it reads imply."""
    implied = [direct[each.relation] for each in rule.body if isinstance(each, Atom) and each.relation in direct]
    body = tuple(each for each in rule.body if not any(_is_same(each, atom) for atom in implied))
    return replace(rule, body=body)


def _is_same(literal: Literal, atom: Atom) -> bool:
    return isinstance(literal, Atom) and (literal.relation, literal.args) == (atom.relation, atom.args)
