"""Questions that are asked once: the literals of a rule's body, or a SELECT, answered from the tables of a session.

A question becomes a view of its own, whose rules are evaluated by the reference's evaluator over the session's tables: rows are
looked up through the same indexes as for proofs, and nothing is kept. The order in which a body is searched follows the sizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count, islice

from whence.html import SHOWN_ROWS, shown_block, shown_note, shown_table, shown_title
from whence.io.order import sort_rows
from whence.lang import load, tree
from whence.lang.parser import parse
from whence.lang.program import Program, Relation, Rule
from whence.lang.revise import add_rules
from whence.lang.source import Source
from whence.lang.types import FLOAT, NUMBER, SYMBOL, Field, Kind, Tuple
from whence.limits import Limits
from whence.lookup import LiveTable, ordered_for_search
from whence.reader import Reader
from whence.reference.evaluate import StratumEvaluator

_SELECT = re.compile(r"\s*(?:--[^\n]*\n\s*)*(?:SELECT|WITH|VALUES)\b", re.IGNORECASE)
_SQL_TYPES: Mapping[Kind, str] = {NUMBER: "BIGINT", FLOAT: "DOUBLE PRECISION", SYMBOL: "TEXT"}


@dataclass(frozen=True)
class Answer:
    """The rows that a question has for an answer, and what their columns are. `more` says that there are others."""

    fields: tuple[Field, ...]
    rows: list[Tuple]
    more: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.fields)

    def __iter__(self) -> Iterator[Tuple]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def _repr_html_(self) -> str:
        if not self.fields:
            return shown_block(shown_title("yes" if self.rows else "no"))
        shown = sort_rows(self.rows, [field.kind for field in self.fields])[:SHOWN_ROWS]
        left = len(self) - len(shown)
        more = f"{left:,} more" if left else "there are others" if self.more else ""
        return shown_block(
            shown_table(self.columns, shown), shown_note(more) if more else shown_note(f"{len(self):,} rows")
        )


def is_select(text: str) -> bool:
    return _SELECT.match(text) is not None


def ask(session: Reader, text: str, *, limit: int | None = None, timeout: float | None = None) -> Answer:
    """The answer to a question: `reach(x, "b"), link(x, y)`, or a SELECT over the relations of the session.

    The columns of the first are its variables, in the order in which they are met. No more rows are looked for than `limit`.
    Raises `ProgramError` for a question that has no meaning, and `RunawayError` when the time is over.
    """
    program, name = _as_sql(session.program, text) if is_select(text) else _as_rules(session.program, text)
    own = [each for each in program.relations if each not in session.program.relations]
    tables = {each: LiveTable(session.backend, each) for each in program.relations if each not in own}
    searched = tuple(_searched(rule, tables) if rule.head.relation in own else rule for rule in program.rules)
    program = replace(program, rules=searched)
    evaluator = StratumEvaluator(program, Limits(timeout=timeout, within_memory=False))
    evaluator.tables.update(tables)
    evaluator.guard.restart()
    rules = list(program.rules_for(name))
    last = next(stratum for stratum in program.strata if name in stratum.relations)
    for stratum in program.strata:
        if stratum is not last and set(stratum.relations) <= set(own):
            evaluator.evaluate(stratum)
    fields = program.relations[name].fields
    if last.recursive or len(last.relations) > 1:
        evaluator.evaluate(last)
        rows = list(evaluator.tables[name].rows)
        kept = rows if limit is None else rows[:limit]
        return Answer(fields, kept, more=len(kept) < len(rows))
    evaluator.guard.begin(last)
    # Rows come as they are found, so that a question for a few of many does not wait for all.
    distinct = dict.fromkeys(islice(_distinct(rules, evaluator), None if limit is None else limit + 1))
    found = list(distinct)
    return Answer(fields, found if limit is None else found[:limit], more=limit is not None and len(found) > limit)


def _distinct(rules: list[Rule], evaluator: StratumEvaluator) -> Iterator[Tuple]:
    met: set[Tuple] = set()
    for rule in rules:
        for row in evaluator.solver.heads(rule):
            if row not in met:
                met.add(row)
                yield row


def _searched(rule: Rule, tables: Mapping[str, LiveTable]) -> Rule:
    def size(relation: str) -> int:
        return len(tables[relation]) if relation in tables else 1

    return replace(rule, body=tuple(ordered_for_search(rule.body, (), size)))


# -- as a view


def _as_rules(program: Program, text: str) -> tuple[Program, str]:
    body = text.strip().removesuffix(".")
    name = _fresh("query", program.relations)
    parsed = parse(Source.of(f"{name}() :- {body}.", "<query>"))
    variables: dict[str, None] = {}
    for statement in parsed.module.statements:
        if isinstance(statement, tree.Rule) and statement.body is not None:
            variables |= dict.fromkeys(_variables(statement.body))
    return add_rules(program, f"{name}({', '.join(variables)}) :- {body}.", name="<query>"), name


def _variables(formula: object) -> Iterator[str]:
    """The variables that a body gives values to: those of negations and inside of aggregates are theirs."""
    match formula:
        case tree.Not() | tree.Aggregate():
            return
        case tree.Variable(name=name):
            yield name
        case tuple():
            for part in formula:
                yield from _variables(part)
        case _:
            for name in tree.parts_of(type(formula)) or ():
                yield from _variables(getattr(formula, name))


def _as_sql(program: Program, text: str) -> tuple[Program, str]:
    name = _fresh("query", program.relations)
    tables = " ".join(_table(each) for each in program.relations.values() if _is_plain(each))
    view = f"CREATE VIEW {name} AS\n{text.strip().removesuffix(';')};"
    return load(f"{tables} {view}", name="<query>", dialect="sql", functions=program.functions), name


def _is_plain(relation: Relation) -> bool:
    return (
        bool(relation.fields) and all(each.kind in _SQL_TYPES for each in relation.fields) and "!" not in relation.name
    )


def _table(relation: Relation) -> str:
    columns = ", ".join(f'"{each.name}" {_SQL_TYPES[each.kind]}' for each in relation.fields)
    return f'CREATE TABLE "{relation.name}" ({columns});'


def _fresh(name: str, taken: Mapping[str, object]) -> str:
    return name if name not in taken else next(made for n in count(1) if (made := f"{name}_{n}") not in taken)
