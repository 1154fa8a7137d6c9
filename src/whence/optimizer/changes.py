"""Changes of statistics as people write them: `scan(orders) x 4`, `selectivity(customer, orders) x 1/8`, `rows(a, b) = 500`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from whence.optimizer.cost import to_log
from whence.optimizer.query import Query, bits_of, places_of
from whence.optimizer.query_space import QuerySpace
from whence.optimizer.space import Touch

_CHANGE = re.compile(r"\s*(\w+)\s*\(([^)]*)\)\s*([x*=])\s*([0-9.eE+-]+(?:/[0-9]+)?)\s*")
KINDS = {
    "scan": "what reading a table costs",
    "cost": "what joins cost whose result has these relations",
    "rows": "how many rows a table or a join has",
    "selectivity": "how many of the rows a filter or a join lets through",
}


class ChangeError(ValueError):
    """A change that cannot be made; the message says what is wrong with it."""


@dataclass(frozen=True)
class Change:
    """`absolute` says that the value is meant, not a factor."""

    text: str
    kind: str
    expression: int
    value: float
    absolute: bool = False

    def apply(self, space: QuerySpace) -> Touch:
        log = to_log(self.value)
        if self.absolute:
            log -= space.log(self.expression)
        if self.kind in ("scan", "cost"):
            return space.change_cost(self.expression, log)
        alone = len(places_of(self.expression)) == 1
        return space.change_rows(self.expression, log, table=alone and self.kind == "rows" and not self.absolute)


def parse_changes(text: str, query: Query) -> list[Change]:
    """Changes that happen at once, with semicolons between them.

    `rows(t) x 2` makes a table larger, with all that is read of it; `rows(t) = 100` says what was found after its filters.
    """
    return [_parse(each.strip(), query) for each in text.split(";") if each.strip()]


def _parse(text: str, query: Query) -> Change:
    found = _CHANGE.fullmatch(text)
    if found is None:
        raise ChangeError(f"{text} is not a change: write scan(orders) x 4, or rows(customer, orders) = 1000")
    kind, names, sign, number = found.groups()
    if kind not in KINDS:
        raise ChangeError(f"{text}: there is no {kind}; there are {', '.join(KINDS)}")
    try:
        places = {query.at(name.strip()) for name in names.split(",")}
        value = float(Fraction(number))
    except (ValueError, ZeroDivisionError) as error:
        raise ChangeError(f"{text}: {error}") from None
    if kind == "scan" and len(places) > 1:
        raise ChangeError(f"{text}: one table is scanned at a time; cost({names}) is for what joins cost")
    if kind == "cost" and len(places) == 1:
        raise ChangeError(f"{text}: what one table costs is scan({names})")
    if sign == "=" and kind != "rows":
        raise ChangeError(f"{text}: only rows can be said; {kind} changes by a factor, as in {kind}({names}) x 2")
    if value <= 0:
        raise ChangeError(f"{text}: a number above 0 is wanted")
    return Change(text, kind, bits_of(places), value, absolute=sign == "=")
