"""Facts of tables that stand in the text: a row that is inserted again is one more copy, or breaks a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from whence.lang.diagnostics import Diagnostic, SqlShape
from whence.lang.functors import implementation
from whence.lang.program import Apply, Const, Relation, Rule, Term
from whence.lang.tables import Table
from whence.lang.tree import Span
from whence.lang.types import NUMBER, Tuple, Value, base
from whence.lang.undefined import Undefined

Functions = Mapping[str, Callable[..., object]]


def number_facts(
    rules: list[Rule], relations: Mapping[str, Relation], functions: Functions, found: list[Diagnostic]
) -> list[Rule]:
    """The rules, in which a fact of a table that is there already is one of the table's companion, or reported."""
    if not any(relation.table is not None for relation in relations.values()):
        return rules
    facts = {name: _Facts(name, relation.table) for name, relation in relations.items() if relation.table is not None}
    made: list[Rule] = []
    for rule in rules:
        table = facts.get(rule.head.relation) if rule.is_fact else None
        row = None if table is None else row_of(rule, functions)
        made.append(rule if table is None or row is None else table.numbered(rule, row, found))
    return made


class _Facts:
    """The rows of one table that the text has given so far."""

    def __init__(self, name: str, table: Table) -> None:
        self.name, self.table = name, table
        self.counts: dict[Tuple, int] = {}
        self.keys: list[dict[Tuple, Span]] = [{} for _ in table.keys]

    def numbered(self, rule: Rule, row: Tuple, found: list[Diagnostic]) -> Rule:
        count = self.counts[row] = self.counts.get(row, 0) + 1
        for key, met in zip(self.table.keys, self.keys, strict=True):
            values = tuple(row[at] for at in key.columns)
            if None in values:
                continue
            if values in met:
                problem = f"{self.name} has a row with this key already: {key.text}"
                related = [(met[values], "it is here")]
                advice = "leave one of them out, or take the key away"
                found.append(SqlShape(rule.span, problem=problem, advice=advice, related=related))
            met.setdefault(values, rule.span)
        if count == 1 or self.table.copies is None:
            return rule
        head = replace(rule.head, relation=self.table.copies, args=(*rule.head.args, Const(count, NUMBER)))
        return replace(rule, head=head)


def row_of(rule: Rule, functions: Functions) -> Tuple | None:
    """The row of a fact; None if it has no value and so is not there."""
    try:
        return tuple([_value(arg, functions) for arg in rule.head.args])
    except Undefined:
        return None


def _value(term: Term, functions: Functions) -> Value:
    if isinstance(term, Const):
        return term.value
    assert isinstance(term, Apply)
    values = [_value(arg, functions) for arg in term.args]
    if None in values and not term.takes_nil:
        raise Undefined(f"{term.functor} of nil")
    if term.functor in functions:
        return functions[term.functor](*values)  # type: ignore[return-value]
    return implementation(term.functor, base(term.args[0].kind) if term.args else None, base(term.kind))(*values)
