"""SQL to the tree of a Datalog program.

Tables become input relations, views become output relations with rules, and everything means what it means in SQL: nulls
are `nil`, conditions may be unknown, and where SQL has bags, rows keep what tells them apart in hidden columns
(`identity`, `bags`). Recursion runs to its fixpoint. `/` divides integers to an integer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from types import MappingProxyType

from whence.lang import tree
from whence.lang.diagnostics import Diagnostic, TooDeep
from whence.lang.source import Source
from whence.lang.sql.alternatives import split_alternatives
from whence.lang.sql.bags import show_bags, tag_types
from whence.lang.sql.column_types import ColumnTypes, infer
from whence.lang.sql.conversions import convert
from whence.lang.sql.finish import rule
from whence.lang.sql.inline import inline
from whence.lang.sql.kinds import widened
from whence.lang.sql.nodes import Functions
from whence.lang.sql.nullability import nullable_columns
from whence.lang.sql.parse import Statement, parse
from whence.lang.sql.relations import Assumed, Catalog, Listing, Relation, legal, unique
from whence.lang.sql.statements import Statements
from whence.lang.tree import Span

_NO_FUNCTIONS: Functions = MappingProxyType({})


@dataclass(frozen=True)
class Translation:
    """The program that SQL text stands for, everything that is wrong with the text, and functions that the program calls."""

    module: tree.Module
    found: list[Diagnostic]
    functions: Functions


def translate(source: Source, functions: Functions = _NO_FUNCTIONS, *, as_sets: bool = False) -> Translation:
    """With `as_sets`, views hold each row once, as if all of them were DISTINCT."""
    statements, found = parse(source.text, functions)
    try:
        catalog = _read(statements, functions, as_sets=as_sets)
        module = tree.Module(()) if catalog.found else _module(catalog)
    except RecursionError:
        return Translation(tree.Module(()), [*found, TooDeep(Span(0, len(source.text)))], functions)
    return Translation(module, [*found, *_once(catalog.found)], {**functions, **catalog.made_functions})


def _read(statements: list[Statement], functions: Functions, *, as_sets: bool) -> Catalog:
    """What the statements define.

    What a recursive query refers to is not known before it has been translated: it is assumed to be a set without nulls,
    and where that turns out wrong everything is translated again, knowing better.
    """
    assumed: dict[str, Assumed] = {}
    while True:
        catalog = Catalog(assumed=assumed, as_sets=as_sets)
        reader = Statements(catalog, functions)
        for statement in statements:
            reader.read(statement)
        reader.translate()
        learnt = {
            relation.name: Assumed(tuple(relation.nullable or ()), bool(relation.hidden))
            for relation in catalog.relations
            if relation.name in catalog.recursive
        }
        if catalog.found or all(_is_nothing_new(each, assumed.get(name, Assumed())) for name, each in learnt.items()):
            return catalog
        assumed = {name: _joined(each, assumed.get(name, Assumed())) for name, each in learnt.items()}


def _is_nothing_new(found: Assumed, before: Assumed) -> bool:
    return _joined(found, before) == before or found == before or found == Assumed((False,) * len(found.nullable))


def _joined(one: Assumed, other: Assumed) -> Assumed:
    pairs = zip_longest(one.nullable, other.nullable, fillvalue=False)
    return Assumed(tuple(left or right for left, right in pairs), one.is_bag or other.is_bag)


def _once(found: list[Diagnostic]) -> list[Diagnostic]:
    """An expression that is translated several times is wrong once."""
    return list({(each.code, each.span, each.text): each for each in found}.values())


def _module(catalog: Catalog) -> tree.Module:
    show_bags(catalog)
    split_alternatives(catalog)
    types = infer(catalog)
    helpers = {relation.name for relation in catalog.relations if relation.inlinable}
    drafts = [convert(draft, types, catalog) for draft in catalog.drafts]
    if catalog.found:
        return tree.Module(())
    rules: dict[str, list[tree.Rule]] = {}
    for each in inline([rule(draft, types) for draft in drafts], helpers):
        rules.setdefault(each.heads[0].relation, []).append(each)
    nullable = nullable_columns(catalog, rules)
    statements: list[tree.Statement] = list(catalog.functors.values())
    statements += tag_types(catalog, types)
    for listing in catalog.listings.values():
        statements += _functor(listing, types)
    for relation in _in_order(catalog):
        own = rules.get(relation.name, [])
        if relation.inlinable and not own:
            continue
        statements.extend(_declaration(relation, types, nullable[relation.name]))
        # A table that the text fills itself has no file.
        if relation.types is not None and relation.owner is None and not own:
            statements.append(tree.Directive("input", (relation.name,), span=relation.span))
        statements.extend(own)
        if relation.types is None and relation.owner is None:
            statements.append(tree.Directive("output", (relation.name,), span=relation.span))
    return tree.Module(tuple(statements))


def _in_order(catalog: Catalog) -> list[Relation]:
    """Views as they come in the text, each after its helpers."""
    order: list[Relation] = []
    for view in catalog.globals.values():
        order += [helper for helper in catalog.relations if helper.owner is view]
        order.append(view)
    return order


def _functor(listing: Listing, types: ColumnTypes) -> list[tree.Statement]:
    """The type of the rows that are listed, and the function of them."""
    rows = listing.rows
    known = types.columns[rows.name][len(rows.outer) :]
    nullable = rows.nullable or [False] * len(known)
    kinds = [f"{known[at] or 'number'}{'?' * nullable[at]}" for at in listing.entry]
    fields = tuple(tree.Attribute(f"c{at + 1}", tree.TypeRef(kind)) for at, kind in enumerate(kinds))
    result = listing.kind
    if result is None:
        argument = kinds[listing.argument].removesuffix("?")
        result = widened(argument) if listing.is_sum else argument
    row = tree.TypeRef(listing.record)
    params = (tree.TypeRef("list", (row,)), *([row] if listing.takes_row else []))
    return [
        tree.TypeDecl(listing.record, tree.RecordOf(fields)),
        tree.FunctorDecl(listing.name, params, tree.TypeRef(f"{result}{'?' * listing.nullable}")),
    ]


def _type_ref(kind: str) -> tree.TypeRef:
    if kind.startswith("list<"):
        return tree.TypeRef("list", (tree.TypeRef(kind.removeprefix("list<").removesuffix(">")),))
    return tree.TypeRef(kind)


def _declaration(relation: Relation, types: ColumnTypes, nullable: list[bool]) -> list[tree.Statement]:
    known = types.known(relation.name)
    if known is None:
        return []
    names: list[str] = []
    for name in (*relation.outer, *relation.own_columns):
        names.append(unique(legal(name), names))
    kinds = [f"{kind}?" if null else kind for kind, null in zip_longest(known, nullable, fillvalue=False)]
    pairs = zip(names, kinds, strict=True)
    attributes = tuple(tree.Attribute(name, _type_ref(str(kind))) for name, kind in pairs)
    tagged = relation.tagged and not relation.existential
    declaration = tree.RelationDecl(
        (relation.name,),
        attributes,
        span=relation.span,
        helper=relation.a_row,
        table=relation.table,
        tagged=tagged,
        hidden=0 if relation.existential else len(relation.hidden),
    )
    return [declaration]
