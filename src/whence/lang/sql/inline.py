"""Helpers that only restate one atom are put where they are used: `!link(x, _)` reads better than `!view.exists(x)`."""

from __future__ import annotations

from dataclasses import replace

from whence.lang import tree
from whence.lang.rewrite import rebuild


def inline(rules: list[tree.Rule], helpers: set[str]) -> list[tree.Rule]:
    """The rules without those helpers that stand for one atom each."""
    by_name: dict[str, list[tree.Rule]] = {}
    for rule in rules:
        by_name.setdefault(rule.heads[0].relation, []).append(rule)
    # An aggregate counts assignments, so the wildcards of an inlined atom could change it.
    counted = {
        node.relation
        for rule in rules
        for part in tree.walk(rule)
        if isinstance(part, tree.Aggregate)
        for node in tree.walk(part)
        if isinstance(node, tree.Atom)
    }
    meanings = {
        name: own[0]
        for name, own in by_name.items()
        if name in helpers
        and len(own) == 1
        and _restates_an_atom(own[0])
        and (name not in counted or _is_exact(own[0]))
    }

    def change(node: object) -> object:
        while isinstance(node, tree.Atom) and node.relation in meanings:
            node = _meaning(meanings[node.relation], node)
        return node

    kept = [rule for rule in rules if rule.heads[0].relation not in meanings]
    return [replace(rule, body=rebuild(rule.body, change)) for rule in kept]


def _restates_an_atom(rule: tree.Rule) -> bool:
    head, body = rule.heads[0], rule.body
    if not isinstance(body, tree.Atom) or body.relation == head.relation:
        return False
    names = {arg.name for arg in head.args if isinstance(arg, tree.Variable)}
    plain = tree.Wildcard | tree.Number | tree.String
    # A variable of the body alone, as in r(x, x), would be caught or unbound at the place of use.
    known = all(arg.name in names if isinstance(arg, tree.Variable) else isinstance(arg, plain) for arg in body.args)
    return known and len(names) == len(head.args)


def _is_exact(rule: tree.Rule) -> bool:
    """Whether the tuples of the two relations correspond one to one."""
    assert isinstance(rule.body, tree.Atom)
    return all(isinstance(arg, tree.Variable) for arg in rule.body.args) and len(rule.body.args) == len(
        rule.heads[0].args
    )


def _meaning(rule: tree.Rule, atom: tree.Atom) -> tree.Atom:
    assert isinstance(rule.body, tree.Atom)
    values = {
        param.name: arg
        for param, arg in zip(rule.heads[0].args, atom.args, strict=True)
        if isinstance(param, tree.Variable)
    }
    args = tuple(values.get(arg.name, arg) if isinstance(arg, tree.Variable) else arg for arg in rule.body.args)
    return replace(rule.body, args=args, span=atom.span)
