"""Views that are bags, as users see them.

The rows of a bag `v` are in `v.rows`, with the hidden columns that tell them apart. `v` itself holds each row once, like
every other relation, and `v.copies` those that are there more than once, with their number.
"""

from __future__ import annotations

from dataclasses import replace

from whence.lang import tree
from whence.lang.rewrite import rebuild
from whence.lang.sql.column_types import ColumnTypes, tag_name
from whence.lang.sql.relations import Catalog, Draft, Relation, legal, unique


def show_bags(catalog: Catalog) -> None:
    """Gives each view that is a bag its three relations."""
    renamed: dict[str, str] = {}
    for view in list(catalog.globals.values()):
        if view.hidden and view.types is None:
            renamed[view.name] = _split(view, catalog)
    if not renamed:
        return

    def change(node: object) -> object:
        if isinstance(node, tree.Atom) and node.relation in renamed:
            return replace(node, relation=renamed[node.relation])
        return node

    for draft in catalog.drafts:
        if draft.relation.name not in renamed:
            draft.body = [rebuild(formula, change) for formula in draft.body]
            for name, atoms in draft.relation.outer.items():
                draft.relation.outer[name] = tuple(rebuild(atom, change) for atom in atoms)


def _split(view: Relation, catalog: Catalog) -> str:
    assert view.columns is not None
    width = len(view.columns)
    rows = catalog.add(replace(view, name=catalog.name_for(f"{view.name}.rows"), owner=view, query=None, a_row="row"))
    copies = Relation(
        catalog.name_for(f"{view.name}.copies"), [*view.columns, "copies"], owner=view, span=view.span, a_row="row"
    )
    view.nullable = (view.nullable or [False] * width)[:width]
    copies.nullable = [*view.nullable, False]
    copies.columns = [*view.columns, unique("copies", view.columns)]
    catalog.add(copies)
    view.hidden, view.tagged = [], False
    for draft in catalog.drafts:
        if draft.relation is view:
            draft.relation = rows
    names: list[str] = []
    for column in (*view.columns, *rows.hidden):
        names.append(unique(legal(column), names))
    values = tuple(tree.Variable(name) for name in names[:width])
    hidden = tuple(tree.Variable(f"_{name}") for name in names[width:])
    unnamed = tuple(tree.Wildcard() for _ in hidden)
    some = rows.atom((*values, *unnamed), view.span)
    count = tree.Variable(unique("copies", names))
    number = tree.Aggregate("count", None, rows.atom((*values, *hidden), view.span), view.span)
    counted: list[tree.Formula] = [
        some,
        tree.Constraint("=", count, number, view.span),
        tree.Constraint(">", count, tree.Number(1), view.span),
    ]
    catalog.drafts.append(Draft(view, values, [some], view.span))
    catalog.drafts.append(Draft(copies, (*values, count), counted, view.span))
    return rows.name


def tag_types(catalog: Catalog, types: ColumnTypes) -> list[tree.Statement]:
    """The types of the terms that tell the rows of UNION ALL apart: one branch for each rule."""
    made: list[tree.Statement] = []
    for relation in catalog.relations:
        if not relation.tagged:
            continue
        branches: list[tree.BranchDecl] = []
        for draft in catalog.drafts:
            if draft.relation is not relation or not draft.values:
                continue
            term = draft.values[-1]
            assert isinstance(term, tree.Branch)
            if any(branch.name == term.name for branch in branches):  # a rule that was taken apart
                continue
            env = types.variables(draft)
            fields = tuple(
                tree.Attribute(f"k{at + 1}", tree.TypeRef(types.declared(arg, env, draft)))
                for at, arg in enumerate(term.args)
            )
            branches.append(tree.BranchDecl(term.name, fields, draft.span))
        if branches:
            made.append(tree.TypeDecl(tag_name(relation), tree.BranchesOf(tuple(branches)), relation.span))
    return made
