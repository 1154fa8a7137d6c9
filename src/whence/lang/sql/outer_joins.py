"""Outer joins: a helper with one rule for the pairs, and one for the rows of a side that have no partner.

Whether a row has a partner depends on those of its columns that the condition reads: the rows without are found by the
negation of a relation of these.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from whence.lang import tree
from whence.lang.sql.formulas import variables
from whence.lang.sql.identity import kept_variables
from whence.lang.sql.parse import span_of
from whence.lang.sql.relations import Draft, Relation
from whence.lang.sql.scope import Item, Scope
from whence.lang.sql.terms import Subqueries


class OuterJoin:
    """One outer join of a SELECT; `condition` is what pairs have to satisfy."""

    def __init__(self, scope: Scope, queries: Subqueries, node: exp.Expr, condition: list[tree.Formula]) -> None:
        self._scope = scope
        self._queries = queries
        self._node = node
        self._span = span_of(node)
        self._condition = condition

    def left(
        self, left: list[tree.Formula], kept: list[Item], right: list[tree.Formula], filled: list[Item]
    ) -> tree.Atom:
        """The rows of `left` with those of `right`, or with nulls. Gives the atom that stands for the join."""
        columns = [*self._columns(kept), *self._columns(filled)]
        relation = self._helper("joined", columns)
        alone = set(self._names(filled))
        self._rule(relation, columns, [*left, *right, *self._condition])
        self._rule(relation, columns, [*left, self._without(left, right, kept)], alone)
        self._fill(filled)
        return self._replace(relation, columns, [*kept, *filled])

    def full(
        self,
        left: list[tree.Formula],
        before: list[Item],
        right: list[tree.Formula],
        added: list[Item],
        shared: Sequence[tuple[str, Item, Item]],
    ) -> tree.Atom:
        columns = [*self._columns(before), *self._columns(added)]
        merged: list[tuple[str, tree.Variable, tree.Variable, tree.Variable]] = []
        for name, one, other in shared:
            ours, theirs = one.find(name), other.find(name)
            if ours is None or theirs is None:
                continue
            both = self._scope.may_be_nil(ours.name) and self._scope.may_be_nil(theirs.name)
            merged.append((name, self._scope.fresh(name, nullable=both), ours, theirs))
            one.merged.add(name)
        extra = [variable for _, variable, _, _ in merged]
        relation = self._helper("joined", [*columns, *extra])
        of_left = [tree.Constraint("=", variable, ours) for _, variable, ours, _ in merged]
        of_right = [tree.Constraint("=", variable, theirs) for _, variable, _, theirs in merged]
        every = [*columns, *extra]
        self._rule(relation, every, [*left, *right, *self._condition, *of_left])
        no_right = self._without(left, right, before)
        self._rule(relation, every, [*left, no_right, *of_left], set(self._names(added)))
        no_left = self._without(right, left, added)
        self._rule(relation, every, [*right, no_left, *of_right], set(self._names(before)))
        self._fill([*before, *added])
        atom = self._replace(relation, every, [*before, *added])
        if merged:
            names = [name for name, _, _, _ in merged]
            self._scope.items.append(Item("", names, extra, atom, keys=[frozenset(each.name for each in extra)]))
        return atom

    # -- parts

    def _names(self, items: list[Item]) -> list[str]:
        return [variable.name for variable in self._columns(items)]

    def _columns(self, items: list[Item]) -> list[tree.Variable]:
        """The variables of the items that are needed: those that are mentioned, and what tells rows apart."""
        return list(dict.fromkeys(variable for item in items for variable in kept_variables(item, self._scope.used)))

    def _helper(self, purpose: str, columns: list[tree.Variable]) -> Relation:
        relation = self._queries.catalog.helper(self._scope.relation, purpose, [variable.name for variable in columns])
        relation.nullable = [False] * len(columns)
        return relation

    def _rule(
        self,
        relation: Relation,
        columns: list[tree.Variable],
        body: list[tree.Formula],
        empty: set[str] = frozenset(),  # type: ignore[assignment]
    ) -> None:
        # Each null is a node of its own: its kind is that of its place.
        values = tuple(tree.Nil() if variable.name in empty else variable for variable in columns)
        assert relation.nullable is not None
        for at, (variable, value) in enumerate(zip(columns, values, strict=True)):
            relation.nullable[at] |= isinstance(value, tree.Nil) or self._scope.may_be_nil(variable.name)
        self._outer(relation, [*body, *columns])
        self._queries.catalog.drafts.append(Draft(relation, values, body, self._span, self._scope.every_nullable()))

    def _outer(self, relation: Relation, parts: Sequence[object]) -> None:
        used = set(variables(tuple(parts)))
        scope = self._scope
        relation.outer.update((name, atoms) for name, atoms in scope.relation.outer.items() if name in used)

    def _without(self, left: list[tree.Formula], right: list[tree.Formula], kept: list[Item]) -> tree.Formula:
        """That a row of the left side has no partner."""
        relation = self._queries.catalog.helper(self._scope.relation, "partner")
        relation.existential, relation.inlinable = True, True
        own = {variable.name for item in kept for variable in item.all_variables}
        binders = tuple(formula for formula in left if isinstance(formula, tree.Atom))
        for name in dict.fromkeys(variables((*self._condition, *right))):
            if name in own:
                relation.outer[name] = binders
        self._outer(relation, [*self._condition, *right])
        body = [*right, *self._condition]
        self._queries.catalog.drafts.append(Draft(relation, (), body, self._span, self._scope.every_nullable()))
        atom = relation.atom((), self._span)
        return tree.Not(atom, self._span)

    def _fill(self, items: list[Item]) -> None:
        for item in items:
            self._scope.nullables.update(variable.name for variable in item.all_variables)

    def _replace(self, relation: Relation, columns: list[tree.Variable], items: list[Item]) -> tree.Atom:
        """The atom of the join takes the place of those of its tables."""
        atom = relation.atom(columns, self._span)
        held = {variable.name for variable in columns}
        for item in items:
            item.atom = atom
            item.keys = [key for key in item.keys if key <= held]
        return atom
