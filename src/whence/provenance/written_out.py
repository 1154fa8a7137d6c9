"""Rules of SQL views as one query each: the helper relations that a query takes are written out where it asks for them.

What is said of a row that is not there can name the tables and views of the query then. Negations and aggregates stay as they
are, and so do helpers that are recursive, and those of a query with too many alternatives.
"""

from __future__ import annotations

from dataclasses import replace

from whence.lang.bags import bag_rows
from whence.lang.inline import Expansion, in_order
from whence.lang.program import Atom, Program, Rule
from whence.lang.tree import walk


class WrittenOut:
    """The rules of a program, by relation; those of one without SQL are as they are."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._rows_of = {view: rows for rows, view in bag_rows(program)}
        bags = frozenset(self._rows_of.values())
        own = {
            name: [rule for rule in program.rules_for(name) if not rule.is_fact]
            for name, relation in program.relations.items()
            if relation.helper and name not in bags
        }
        for relation in program.relations.values():
            if relation.table is not None and relation.table.rows is not None:
                # What a further copy of a row can do, the row itself can: the rule for copies has nothing to add.
                own[relation.table.rows] = list(program.rules_for(relation.table.rows))[:1]
        uses = {
            name: {part.relation for rule in rules for part in walk(rule.body) if isinstance(part, Atom)} & own.keys()
            for name, rules in own.items()
        }
        self._expansion = Expansion({}, only_atoms=True)
        for name in in_order(uses):
            definitions = [each for rule in own[name] for each in self._expansion.rules_of(rule)]
            self._expansion.definitions[name] = definitions

    def rules(self, relation: str) -> list[Rule]:
        """Alternatives of a rule share its name, by which its query is shown; a view that is a bag has the rules of its rows."""
        rows = self._rows_of.get(relation)
        arity = self._program.relations[relation].arity
        made: list[Rule] = []
        for rule in self._program.rules_for(relation if rows is None else rows):
            if rule.is_fact:
                continue
            name, head = rule.name, rule.head
            if rows is not None:
                name = f"{relation}#{name.rpartition('#')[2]}"
                head = replace(head, relation=relation, args=head.args[:arity])
            made += [replace(each, name=name, head=head) for each in self._expansion.rules_of(rule)]
        return made
