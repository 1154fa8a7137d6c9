"""What follows from mappings alone, whoever trusts them: which values they invent, where these can get to, and their rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from whence.exchange.model import Confederation, SchemaMapping, variables_of
from whence.lang import tree

Position = tuple[str, int]


def skolem_name(mapping: SchemaMapping, variable: str) -> str:
    return f"{mapping.name}_{variable}"


def mapping_rules(mapping: SchemaMapping) -> tuple[tree.Rule, ...]:
    """The mapping as rules over peers' relations, one for each head: for those who reason about it. Nobody's trust is in them."""

    def term(arg: tree.Term) -> tree.Term:
        if not arg_is_new(arg, mapping):
            return arg
        assert isinstance(arg, tree.Variable)
        return tree.Branch(skolem_name(mapping, arg.name), tuple(map(tree.Variable, mapping.shared)), arg.span)

    parts = (*mapping.atoms, *mapping.conditions)
    body = parts[0] if len(parts) == 1 else tree.And(parts, mapping.span)
    heads = [replace(head, args=tuple(map(term, head.args))) for head in mapping.heads]
    return tuple(tree.Rule((head,), body, mapping.name, None, mapping.span) for head in heads)


def original_name(mapping: SchemaMapping) -> str:
    """The name that the mapping was written with: one direction of a `<->` has one of its own."""
    return mapping.name.removesuffix("_back") if mapping.reverse else mapping.name


def nullable_positions(confederation: Confederation) -> frozenset[Position]:
    """The columns that may hold invented values."""
    found: set[Position] = set()
    while True:
        before = len(found)
        for mapping in confederation.mappings.values():
            plain = plain_variables(mapping, found)
            for head in mapping.heads:
                for at, arg in enumerate(head.args):
                    if isinstance(arg, tree.Variable) and arg.name not in plain:
                        found.add((head.relation, at))
        if len(found) == before:
            return frozenset(found)


def plain_variables(mapping: SchemaMapping, nullable: Iterable[Position]) -> frozenset[str]:
    """The variables that never hold an invented value: they meet a column that has none, or a condition looks at them."""
    null = frozenset(nullable)
    plain = set(variables_of(mapping.conditions))
    for atom in mapping.atoms:
        plain.update(
            arg.name
            for at, arg in enumerate(atom.args)
            if isinstance(arg, tree.Variable) and (atom.relation, at) not in null
        )
    return frozenset(plain)


def arg_is_new(arg: tree.Term, mapping: SchemaMapping) -> bool:
    return isinstance(arg, tree.Variable) and arg.name in mapping.exists
