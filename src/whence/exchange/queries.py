"""Mappings as queries: what can be reasoned about."""

from __future__ import annotations

from collections.abc import Mapping

from whence.exchange.mappings import mapping_rules, original_name
from whence.exchange.model import Confederation
from whence.lang import tree
from whence.lang.diagnostics import Diagnostics
from whence.lang.load import Functions, check
from whence.lang.program import Const, Program, Var
from whence.lang.types import Kind
from whence.reasoning.dependencies import Dependency, SuperfluousMapping, redundant_mappings
from whence.reasoning.queries import NotConjunctive, Simple, Unfolding


def mappings_as_rules(confederation: Confederation, functions: Functions | None = None) -> Program:
    """For each mapping a relation of its name: the values of the variables that its heads use, a row for each way it fires.

    What a mapping makes follows from these and from its heads. Relations of peers are base relations.
    """
    statements: list[tree.Statement] = list(confederation.functors)
    types: dict[str, dict[str, str]] = {}
    for name, relation in confederation.relations.items():
        columns = tuple(
            tree.Attribute(each.name, tree.TypeRef(each.type), False, relation.span) for each in relation.columns
        )
        statements.append(tree.RelationDecl((name,), columns, (), (), relation.span))
        statements.append(tree.Directive("input", (name,), (), relation.span, (relation.span,)))
    for mapping in confederation.mappings.values():
        found = types.setdefault(mapping.name, {})
        for atom in mapping.atoms:
            columns_of = confederation.relations[atom.relation].columns
            found |= {
                arg.name: column.type
                for arg, column in zip(atom.args, columns_of, strict=True)
                if isinstance(arg, tree.Variable)
            }
        span = mapping.span
        shown = tuple(tree.Attribute(f"{each}_", tree.TypeRef(found[each]), False, span) for each in mapping.shared)
        statements.append(tree.RelationDecl((mapping.name,), shown, (), (), span))
        head = tree.Atom(mapping.name, tuple(tree.Variable(each, span) for each in mapping.shared), None, span)
        statements.append(tree.Rule((head,), mapping_rules(mapping)[0].body, mapping.name, None, span))
    diagnostics = Diagnostics(confederation.source)
    return check(tree.Module(tuple(statements)), confederation.source, functions or {}, diagnostics)


def superfluous_mappings(
    confederation: Confederation, semiring: str, functions: Functions | None = None
) -> list[SuperfluousMapping]:
    """Mappings that others make superfluous. Those that a policy or a cost names, or that go both ways, are left alone."""
    program = mappings_as_rules(confederation, functions)
    unfolding = Unfolding(program, frozenset(confederation.relations))
    named = {each for policy in confederation.distrusts for each in (policy.by, policy.through)}
    named |= {each.subject for each in confederation.charges}
    named |= {each for preference in confederation.preferences for each in preference.subjects}
    judged = {each.name for each in confederation.mappings.values() if original_name(each) in named}
    both_ways = {name for each in confederation.mappings.values() if each.reverse for name in (each.name, each.reverse)}
    dependencies = []
    for rule in program.rules:
        mapping = confederation.mappings[rule.name]
        try:
            parts = unfolding.parts_of_rule(rule)
        except NotConjunctive:
            continue
        for part in parts:
            kinds = {each.name: each for each in part.variables}
            heads = tuple(
                (
                    head.relation,
                    tuple(
                        _term(arg, field.kind, kinds)
                        for arg, field in zip(head.args, program.relations[head.relation].fields, strict=True)
                    ),
                )
                for head in mapping.heads
            )
            exists = frozenset(
                each for _, args in heads for each in args if isinstance(each, Var) and each.name in mapping.exists
            )
            dependencies.append(Dependency(mapping.name, part, heads, exists))
    found = redundant_mappings(dependencies, semiring, frozenset(judged))
    return [each for each in found if each.name not in both_ways]


def _term(arg: tree.Term, kind: Kind, variables: Mapping[str, Var]) -> Simple:
    if isinstance(arg, tree.Variable):
        return variables.get(arg.name, Var(arg.name, kind))
    assert isinstance(arg, tree.Number | tree.String)
    return Const(arg.value, kind)
