"""Expressions of dates and timestamps as terms: literals, intervals, EXTRACT, and functions that take the name of a unit."""

from __future__ import annotations

from typing import Protocol

from sqlglot import exp

from whence.lang import tree
from whence.lang.sql.constants import has_zone, moment
from whence.lang.sql.dates import (
    PARTS,
    TRUNCATED,
    UNITS,
    Interval,
    difference,
    of_unit,
    read_interval,
    seconds_between,
    truncated,
    unit_named,
)
from whence.lang.sql.formulas import counted
from whence.lang.sql.nodes import inner
from whence.lang.sql.parse import INTERVAL, span_of

_WITH_ZONE = ("TIMESTAMPTZ", "TIMESTAMPLTZ")
_DIFFERENCES = ("DATE_DIFF", "DATEDIFF")
_PARTS = ("DATE_PART", "DATEPART")
BY_UNIT = frozenset({"DATE_TRUNC", "DATETRUNC", *_PARTS, *_DIFFERENCES})
_NOTHING = tree.Number(0)


class Translating(Protocol):
    """What makes terms of the expressions inside, and takes note of what is wrong."""

    def term(self, node: exp.Expr) -> tree.Term: ...

    def refuse(self, node: exp.Expr, feature: str, advice: str = "") -> tree.Term: ...

    def bad_literal(self, span: tree.Span, literal: str, problem: str, advice: str) -> None: ...

    def wrong_arity(self, node: exp.Expr, name: str, arity: str, found: int) -> None: ...


def written_moment(terms: Translating, node: exp.Expr, given: exp.Expr, to: str) -> tree.Term:
    """DATE '…' and TIMESTAMP '…'."""
    made = moment(given.name, to, span_of(node))
    if made is None:
        advice = "write one as in 1995-03-15" + " 12:30:00" * (to == "timestamp")
        terms.bad_literal(span_of(node), f"'{given.name}'", f"is not a {to}", advice)
    elif has_zone(given.name) and node.args["to"].this.name not in _WITH_ZONE:
        advice = "write TIMESTAMPTZ, which takes it in UTC, or leave the zone out"
        terms.bad_literal(span_of(node), f"'{given.name}'", "has a zone, and TIMESTAMP has none", advice)
    return made or _NOTHING


# -- intervals --------------------------------------------------------------------------------------------------------


def is_interval(node: exp.Expr) -> bool:
    """Whether the expression is an INTERVAL, or so many times one."""
    node = inner(node)
    sides = (node.this, node.expression) if isinstance(node, exp.Mul) else ()
    return isinstance(node, exp.Interval) or any(isinstance(inner(side), exp.Interval) for side in sides)


def shifted(terms: Translating, node: exp.Expr, at: exp.Expr, interval: exp.Expr) -> tree.Term:
    """A date or timestamp with an interval added or taken away."""
    span, date = _interval(terms, interval), terms.term(at)
    if span is None:
        return _NOTHING
    moved = span.times(tree.Number(-1)).after(date) if isinstance(node, exp.Sub) else span.after(date)
    if moved is None:
        advice = "take a shorter interval"
        terms.bad_literal(span_of(node), "the result", "is not in the years 1 to 9999", advice)
    return moved or _NOTHING


def _interval(terms: Translating, node: exp.Expr) -> Interval | None:
    """What INTERVAL says, also so many times; None if it is refused."""
    node = inner(node)
    if isinstance(node, exp.Mul):
        sides = (node.this, node.expression)
        factor, other = sides if isinstance(inner(sides[1]), exp.Interval) else sides[::-1]
        interval = _interval(terms, other)
        return None if interval is None else interval.times(terms.term(factor))
    found = _read(terms, node)
    if found is None:
        advice = f"write INTERVAL '3' DAY, or '1 year 2 months'; units are {', '.join(UNITS)}"
        terms.refuse(node, "this INTERVAL", advice)
    return found


def _read(terms: Translating, node: exp.Expr) -> Interval | None:
    text, unit = node.meta.get(INTERVAL), node.args.get("unit")
    if text is not None and unit is not None and text.strip().lstrip("+-").replace(".", "", 1).isdecimal():
        text = f"{text} {unit.name}" if isinstance(unit, exp.Var) else ""
    if text is not None:
        return read_interval(text)
    if not isinstance(unit, exp.Var) or node.this is None:
        return None
    count = inner(node.this)
    if isinstance(count, exp.Literal):
        return read_interval(f"{count.name} {unit.name}")
    return of_unit(terms.term(count), unit.name)


# -- parts and units --------------------------------------------------------------------------------------------------


def extracted(terms: Translating, node: exp.Expr) -> tree.Term:
    """EXTRACT, also of the seconds between two timestamps."""
    apart = inner(node.expression)
    is_apart = isinstance(apart, exp.Sub) and not is_interval(apart.expression)
    if unit_named(node.this.name) == "EPOCH" and is_apart:
        return seconds_between(terms.term(apart.expression), terms.term(apart.this))
    return _part(terms, node, node.this.name, node.expression)


def _part(terms: Translating, node: exp.Expr, name: str, at: exp.Expr) -> tree.Term:
    part = unit_named(name)
    if part not in PARTS:
        return terms.refuse(node, f"EXTRACT of {name.upper()}", f"the parts are {', '.join(PARTS)}")
    return PARTS[part](terms.term(at))


def by_unit(terms: Translating, node: exp.Expr) -> tree.Term:
    """DATE_PART, DATE_TRUNC and DATE_DIFF, whose first argument is the name of a unit."""
    name = node.name.upper()
    count = 3 if name in _DIFFERENCES else 2
    if len(node.expressions) != count:
        terms.wrong_arity(node, name, counted(count, "argument"), len(node.expressions))
        return _NOTHING
    unit = inner(node.expressions[0])
    if not isinstance(unit, exp.Literal) or not unit.is_string:
        return terms.refuse(node, f"{name} with a unit that is not a string", f"write it as one: {name}('month', …)")
    if name in _PARTS:
        return _part(terms, node, unit.name, node.expressions[1])
    # Of weeks, databases do not agree what lies between.
    units = [each for each in TRUNCATED if each != "WEEK" or name not in _DIFFERENCES]
    wanted = unit_named(unit.name)
    if wanted not in units:
        return terms.refuse(node, f"{name} by {unit.name.upper()}", f"the units are {', '.join(units)}")
    args = [terms.term(arg) for arg in node.expressions[1:]]
    return difference(wanted, *args) if name in _DIFFERENCES else truncated(wanted, *args)
