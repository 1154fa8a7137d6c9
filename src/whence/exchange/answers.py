"""Queries over what peers have. A certain answer holds whatever values the nulls stand for: one that has none in it.

A query is rules, `ans(y) :- B(x, y).`, or SQL over the tables of a peer; both become mappings into relations of a peer of their
own, which is there for the question only. Nulls join like any value: two are equal if they are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from whence.exchange.check import load_confederation
from whence.exchange.closed import closed_answers
from whence.exchange.instance import Instance
from whence.exchange.model import Files
from whence.exchange.rows import has_null
from whence.lang import tree
from whence.lang.diagnostics import ProgramError
from whence.lang.parser import parse
from whence.lang.printer import print_node
from whence.lang.rewrite import rebuild
from whence.lang.source import File, Segment, Source
from whence.lang.sql import translate
from whence.lang.types import Tuple

_ASKING = "Query"
_SQL_TYPES = {"number": "BIGINT", "unsigned": "BIGINT", "float": "DOUBLE PRECISION", "symbol": "TEXT"}


def answers(instance: Instance, files: Files, text: str, *, nulls: bool = False) -> set[Tuple]:
    """The rows of the last rule's head: the certain ones, or, with `nulls`, those that hold invented values too.

    `files` is the confederation's text. Raises ValueError for what is not a query, and `ProgramError` for what is wrong in it.
    """
    rules = _rules(text)
    return _answers(instance, files, rules, _schemas(instance, rules), nulls=nulls)


def sql_answers(instance: Instance, files: Files, peer: str, query: str, *, nulls: bool = False) -> set[Tuple]:
    """The same for a query in SQL over the peer's tables. With aggregates or negation it is about the rows that are there."""
    text = ""
    tables = {each.name: each for each in instance.confederation.relations_of(peer)}
    for name, relation in tables.items():
        # An invented value is no null of SQL: it is equal to itself.
        columns = ", ".join(f'"{each.name}" {_SQL_TYPES[each.type]} NOT NULL' for each in relation.columns)
        text += f'CREATE TABLE "{name}" ({columns});\n'
    text += f'CREATE VIEW "{_ASKING}_answer" AS\n'
    asked = query.strip().removesuffix(";")
    segments = [Segment(0, File("<tables>", text), 0), Segment(len(text), File("<query>", asked), 0)]
    source = Source(f"{text}{asked};", tuple(segments))
    translation = translate(source, as_sets=True)
    module, errors = translation.module, translation.found
    if errors:
        raise ProgramError(source, tuple(errors))
    given = [each for each in module.statements if isinstance(each, tree.Rule)]
    if not all(map(_is_positive, given)):
        return closed_answers(instance, tables, module, source, given[-1].heads[0].relation, nulls=nulls)
    full = {name: each.full_name for name, each in tables.items()}
    rules = [plain for rule in given for plain in _plain_rules(_with_names(rule, full))]
    heads = {rule.heads[0].relation for rule in rules}
    schemas = {
        name: [attribute.type.name for attribute in each.attributes]
        for each in module.statements
        if isinstance(each, tree.RelationDecl)
        for name in each.names
        if name in heads
    }
    return _answers(instance, files, rules, schemas, nulls=nulls)


def _plain_rules(rule: tree.Rule) -> Iterator[tree.Rule]:
    """Rules with atoms and comparisons only: alternatives become several."""
    assert rule.body is not None
    head = rule.heads[0]
    bound: list[tree.Formula] = []
    args: list[tree.Term] = []
    for at, arg in enumerate(head.args):
        if isinstance(arg, tree.Variable | tree.Number | tree.String):
            args.append(arg)
        else:
            args.append(tree.Variable(f"column{at}", arg.span))
            bound.append(tree.Constraint("=", args[-1], arg, arg.span))
    for parts in _alternatives(rule.body):
        body = tree.And((*parts, *bound), rule.span) if len(parts) + len(bound) > 1 else parts[0]
        yield replace(rule, heads=(replace(head, args=tuple(args)),), body=body)


def _alternatives(formula: tree.Formula) -> list[tuple[tree.Formula, ...]]:
    if isinstance(formula, tree.Or):
        return [each for item in formula.items for each in _alternatives(item)]
    if isinstance(formula, tree.And):
        parts = product(*(_alternatives(item) for item in formula.items))
        return [tuple(each for part in choice for each in part) for choice in parts]
    return [(formula,)]


def _is_positive(rule: tree.Rule) -> bool:
    return not any(isinstance(each, tree.Aggregate | tree.Not) for each in tree.walk(rule.body))


def _with_names(rule: tree.Rule, names: Mapping[str, str]) -> tree.Rule:
    def renamed(node: object) -> object:
        return replace(node, relation=names.get(node.relation, node.relation)) if isinstance(node, tree.Atom) else node

    return rebuild(rule, renamed)


def _answers(
    instance: Instance,
    files: Files,
    rules: Sequence[tree.Rule],
    schemas: Mapping[str, Sequence[str]],
    *,
    nulls: bool,
) -> set[Tuple]:
    asked = rules[-1].heads[0].relation
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
    for atom in (each for rule in rules for each in tree.walk(rule.body) if isinstance(each, tree.Atom)):
        if atom.relation in known and len(known[atom.relation]) != len(atom.args):
            raise ValueError(f"{atom.relation} has {len(known[atom.relation])} columns, not {len(atom.args)}")
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
