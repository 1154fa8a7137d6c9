"""Queries over what peers have. A certain answer holds whatever values the nulls stand for: one that has none in it.

A query is rules, `ans(y) :- B(x, y).`; they become mappings into relations of a peer of their own, which is there for the
question only. Nulls join like any value: two are equal if they are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from whence.exchange.check import load_confederation
from whence.exchange.instance import Instance
from whence.exchange.model import Files
from whence.exchange.rows import has_null
from whence.lang import tree
from whence.lang.diagnostics import ProgramError
from whence.lang.parser import parse
from whence.lang.printer import print_node
from whence.lang.source import Source
from whence.lang.types import Tuple

_ASKING = "Query"


def answers(instance: Instance, files: Files, text: str, *, nulls: bool = False) -> set[Tuple]:
    """The rows of the last rule's head: the certain ones, or, with `nulls`, those that hold invented values too.

    `files` is the confederation's text. Raises ValueError for what is not a query, and `ProgramError` for what is wrong in it.
    """
    rules = _rules(text)
    asked = rules[-1].heads[0].relation
    schemas = _schemas(instance, rules)
    block = " ".join(
        f"{name}({', '.join(f'c{at}: {each}' for at, each in enumerate(types))})." for name, types in schemas.items()
    )
    mappings = [f"{_ASKING}_{at}: {_side(rule)}" for at, rule in enumerate(rules)]
    query = "\n".join([f"peer {_ASKING} {{ {block} }}", *mappings])
    before = instance.confederation
    instance.change(load_confederation([*files, ("<query>", query)]))
    try:
        found = instance.relation(f"{_ASKING}.{asked}")
    finally:
        instance.change(before)
    return found if nulls else {row for row in found if not has_null(row)}


def _rules(text: str) -> Sequence[tree.Rule]:
    source = Source.of(text if text.rstrip().endswith(".") else f"{text}.", "<query>")
    parsed = parse(source)
    if parsed.errors:
        raise ProgramError(source, tuple(parsed.errors))
    rules = [each for each in parsed.module.statements if isinstance(each, tree.Rule)]
    if (
        not rules
        or len(rules) != len(parsed.module.statements)
        or any(len(rule.heads) != 1 or not rule.body for rule in rules)
    ):
        raise ValueError("a query is made of rules, such as ans(y) :- B(x, y).")
    return rules


def _side(rule: tree.Rule) -> str:
    assert rule.body is not None
    return f"{print_node(rule.body)} -> {print_node(rule.heads[0])}."


def _schemas(instance: Instance, rules: Sequence[tree.Rule]) -> Mapping[str, Sequence[str]]:
    """The types of the columns of heads, from the columns that their variables stand in."""
    relations = instance.confederation.relations
    known: dict[str, Sequence[str]] = {
        name: [column.type for column in each.columns] for name, each in relations.items()
    }
    for each in relations.values():
        known.setdefault(each.name, [column.type for column in each.columns])
    found: dict[str, Sequence[str]] = {}
    for _ in rules:  # a rule may use the head of a later one
        for rule in rules:
            head = rule.heads[0]
            types = {
                arg.name: type_
                for atom in tree.walk(rule.body)
                if isinstance(atom, tree.Atom) and len(known.get(atom.relation, ())) == len(atom.args)
                for arg, type_ in zip(atom.args, known[atom.relation], strict=True)
                if isinstance(arg, tree.Variable)
            }
            columns = [_type(arg, types) for arg in head.args]
            if None not in columns:
                known[head.relation] = found[head.relation] = [each for each in columns if each is not None]
    missing = {rule.heads[0].relation for rule in rules} - found.keys()
    if missing:
        raise ValueError(f"the columns of {min(missing)} come from no relation: use its variables in an atom")
    return found


def _type(arg: tree.Term, types: Mapping[str, str]) -> str | None:
    if isinstance(arg, tree.Variable):
        return types.get(arg.name)
    if isinstance(arg, tree.String):
        return "symbol"
    return "number" if isinstance(arg, tree.Number) else None
