"""What a viewer searches and filters by: conditions on columns, and a text that any column may contain."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from whence.io import parse_fields
from whence.io.values import parse_value
from whence.lang.types import SYMBOL, Field, Nullable, Tuple, Types, Value
from whence.provenance.show import show_value
from whence.serve.columns import Key, key_of

CONTAINS = "~"
_COMPARISONS: Mapping[str, Callable[[Key, Key], bool]] = {
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
_CONDITION = re.compile(r"\s*([\w.?]+)\s*(!=|<=|>=|=|<|>|~)(.*)", re.DOTALL)

Test = Callable[[Value], bool]


@dataclass(frozen=True)
class Condition:
    """`column op value`, as in `cost<=3` or `name~ab`; `~` is "contains", whatever the case."""

    column: int
    op: str
    text: str


@dataclass(frozen=True)
class Filter:
    """All conditions have to hold, and the text searched for, if there is one, has to be in some column."""

    conditions: tuple[Condition, ...] = ()
    search: str = ""

    def __bool__(self) -> bool:
        return bool(self.conditions or self.search)


def parse_filter(conditions: Sequence[str], search: str, fields: Sequence[Field]) -> Filter:
    """Raises ValueError, saying what is wrong."""
    names = [field.name for field in fields]
    found = []
    for text in conditions:
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise ValueError(f"{text} is not a condition: write column, one of = != < <= > >= ~, and a value")
        name, op, value = match.groups()
        if name not in names:
            raise ValueError(f"there is no column {name}; there are {', '.join(names)}")
        found.append(Condition(names.index(name), op, value.strip()))
    return Filter(tuple(found), search.strip())


class Sieve:
    """A filter made to fit a relation. Raises ValueError if a value does not fit its column."""

    def __init__(self, wanted: Filter, fields: Sequence[Field], types: Types) -> None:
        self.fields = fields
        self.conditions = [(each.column, _test(each, fields[each.column], types)) for each in wanted.conditions]
        self.search = wanted.search.casefold()

    @cached_property
    def contains(self) -> Test:
        return lambda value: self.search in plain_text(value).casefold()

    def __call__(self, row: Tuple) -> bool:
        if not all(test(row[column]) for column, test in self.conditions):
            return False
        return not self.search or any(map(self.contains, row))


def plain_text(value: Value) -> str:
    """As people read it: texts without quotes."""
    return value if isinstance(value, str) else show_value(value)


def _test(condition: Condition, field: Field, types: Types) -> Test:
    if condition.op == CONTAINS:
        wanted = condition.text.casefold()
        return lambda value: wanted in plain_text(value).casefold()
    key, compare = key_of(field.kind), _COMPARISONS[condition.op]
    bound = key(_value(condition.text, field, types))
    return lambda value: compare(key(value), bound)


def _value(text: str, field: Field, types: Types) -> Value:
    if field.kind == SYMBOL:
        return text
    if field.kind == Nullable(SYMBOL):
        return parse_value(text, field.kind, types)
    try:
        return parse_fields(f"({text})", (field,), types)[0]
    except ValueError as error:
        raise ValueError(f"{text} does not fit column {field.name}, a {field.type}: {error}") from None
