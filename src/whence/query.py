"""Questions that are asked once: the literals of a rule's body, or a SELECT, answered from the tables of a session.

A question becomes a view of its own, whose rules are evaluated by the reference's evaluator over the session's tables: rows are
looked up through the same indexes as for proofs, and nothing is kept. The order in which a body is searched follows the sizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count, islice

from whence.html import SHOWN_ROWS, shown_block, shown_note, shown_table, shown_title, value_text
from whence.io.order import sort_rows
from whence.lang import load, tree
from whence.lang.parser import parse
from whence.lang.program import Program, Relation, Rule
from whence.lang.revise import add_rules
from whence.lang.source import Source
from whence.lang.tables import bag_tables, behind_tables
from whence.lang.types import (
    BOOL,
    DATE,
    FLOAT,
    NUMBER,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
    DecimalKind,
    Field,
    Kind,
    Nullable,
    Tuple,
    base,
)
from whence.limits import Limits
from whence.lookup import LiveTable, ordered_for_search
from whence.reader import Reader
from whence.reference.evaluate import StratumEvaluator
from whence.text_table import aligned

_SELECT = re.compile(r"\s*(?:--[^\n]*\n\s*)*(?:SELECT|WITH|VALUES)\b", re.IGNORECASE)
_SQL_TYPES: Mapping[Kind, str] = {
    NUMBER: "BIGINT",
    UNSIGNED: "UBIGINT",
    FLOAT: "DOUBLE PRECISION",
    SYMBOL: "TEXT",
    BOOL: "BOOLEAN",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
}


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

    def __str__(self) -> str:
        """
        >>> print(Answer((Field("x", "number", NUMBER), Field("name", "symbol", SYMBOL)), [(12, "a"), (7, "b")]))
        x   name
        7   b
        12  a
        2 rows
        """
        if not self.fields:
            return self._truth
        shown = [[value_text(each) for each in row] for row in self._first]
        return f"{aligned([[*self.columns], *shown])}\n{self._note}"

    def _repr_html_(self) -> str:
        if not self.fields:
            return shown_block(shown_title(self._truth))
        return shown_block(shown_table(self.columns, self._first), shown_note(self._note))

    @property
    def _truth(self) -> str:
        return "yes" if self.rows else "no"

    @property
    def _first(self) -> list[Tuple]:
        """Those that are shown."""
        return sort_rows(self.rows, [field.kind for field in self.fields])[:SHOWN_ROWS]

    @property
    def _note(self) -> str:
        left = len(self) - SHOWN_ROWS
        if left > 0:
            return f"{left:,} more"
        return "there are others" if self.more else f"{len(self):,} row{'' if len(self) == 1 else 's'}"


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
    bags, behind = bag_tables(program), behind_tables(program)
    tables = " ".join(
        _table(each, is_set=each.name not in bags)
        for each in program.relations.values()
        if _is_plain(each) and each.name not in behind
    )
    view = f"CREATE VIEW {name} AS\n{text.strip().removesuffix(';')};"
    return load(f"{tables} {view}", name="<query>", dialect="sql", functions=program.functions), name


def _is_plain(relation: Relation) -> bool:
    """Whether SQL can name it."""
    are_plain = all(_sql_type(each.kind) is not None for each in relation.fields)
    return bool(relation.fields) and are_plain and "!" not in relation.name


def _table(relation: Relation, *, is_set: bool) -> str:
    columns = ", ".join(f'"{each.name}" {_sql_type(each.kind)}' for each in relation.fields)
    key = ", ".join(f'"{each.name}"' for each in relation.fields)
    return f'CREATE TABLE "{relation.name}" ({columns}{f", UNIQUE ({key})" if is_set else ""});'


def _sql_type(kind: Kind) -> str | None:
    """How SQL declares a column of the kind; None if it cannot."""
    of = base(kind)
    name = str(of).upper() if isinstance(of, DecimalKind) else _SQL_TYPES.get(of)
    return name if name is None or isinstance(kind, Nullable) else f"{name} NOT NULL"


def _fresh(name: str, taken: Mapping[str, object]) -> str:
    return name if name not in taken else next(made for n in count(1) if (made := f"{name}_{n}") not in taken)
