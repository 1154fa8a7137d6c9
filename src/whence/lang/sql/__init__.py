"""SQL to the tree of a Datalog program.

Tables become input relations, views become output relations with rules, and everything means what it means in SQL on
sets of rows without nulls: `SELECT` is `SELECT DISTINCT`, `UNION ALL` is `UNION`, and recursion runs to its fixpoint.
`/` divides integers to an integer; `min`, `max` and `avg` of no rows at all give no row, `count` and `sum` give 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from whence.lang import tree
from whence.lang.diagnostics import Diagnostic, SqlBagRecursion, TooDeep
from whence.lang.source import Source
from whence.lang.sql.column_types import ColumnTypes, infer
from whence.lang.sql.conversions import convert
from whence.lang.sql.finish import rule
from whence.lang.sql.inline import inline
from whence.lang.sql.nodes import Functions
from whence.lang.sql.parse import Statement, parse
from whence.lang.sql.relations import Catalog, Relation, legal, unique
from whence.lang.sql.statements import Statements
from whence.lang.tree import Span

_NO_FUNCTIONS: Functions = MappingProxyType({})


def translate(source: Source, functions: Functions = _NO_FUNCTIONS) -> tuple[tree.Module, list[Diagnostic]]:
    """The program that SQL text stands for, and everything that is wrong with the text."""
    statements, found = parse(source.text, functions)
    try:
        catalog = _read(statements, functions)
        catalog.found.extend(_bag_recursion(catalog))
        module = tree.Module(()) if catalog.found else _module(catalog)
    except RecursionError:
        return tree.Module(()), [*found, TooDeep(Span(0, len(source.text)))]
    return module, [*found, *catalog.found]


def _read(statements: list[Statement], functions: Functions) -> Catalog:
    catalog = Catalog()
    reader = Statements(catalog, functions)
    for statement in statements:
        reader.read(statement)
    reader.translate()
    return catalog


def _bag_recursion(catalog: Catalog) -> list[Diagnostic]:
    uses: dict[str, set[str]] = {}
    for draft in catalog.drafts:
        atoms = (node for formula in draft.body for node in tree.walk(formula) if isinstance(node, tree.Atom))
        uses.setdefault(draft.relation.name, set()).update(atom.relation for atom in atoms)
    return [
        SqlBagRecursion(span, name=relation.name)
        for relation, span in catalog.bags
        if relation.name in _reached(relation.name, uses)
    ]


def _reached(start: str, uses: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        new = uses.get(waiting.pop(), set()) - reached
        reached |= new
        waiting.extend(new)
    return reached


def _module(catalog: Catalog) -> tree.Module:
    types = infer(catalog.relations, catalog.drafts, catalog.functors)
    helpers = {relation.name for relation in catalog.relations if relation.inlinable}
    rules: dict[str, list[tree.Statement]] = {}
    for each in inline([rule(convert(draft, types), types) for draft in catalog.drafts], helpers):
        rules.setdefault(each.heads[0].relation, []).append(each)
    statements: list[tree.Statement] = list(catalog.functors.values())
    for relation in _in_order(catalog):
        own = rules.get(relation.name, [])
        if relation.inlinable and not own:
            continue
        statements.extend(_declaration(relation, types))
        if relation.types is not None and not own:  # a table that the text fills itself has no file
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


def _declaration(relation: Relation, types: ColumnTypes) -> list[tree.Statement]:
    known = types.known(relation.name)
    if known is None:
        return []
    names: list[str] = []
    for name in (*relation.outer, *(() if relation.existential else relation.columns or ())):
        names.append(unique(legal(name), names))
    pairs = zip(names, known, strict=True)
    attributes = tuple(tree.Attribute(name, tree.TypeRef(kind)) for name, kind in pairs)
    return [tree.RelationDecl((relation.name,), attributes, span=relation.span)]
