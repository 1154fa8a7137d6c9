"""What is known of tables: sizes, histograms, most common values, distinct counts, indexes, and where they are.

Columns are taken to be independent of each other: a filter on one says nothing of another, nor of what a join finds.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

Scalar = int | float | str

UNKNOWN_ROWS = 1000
UNKNOWN_WIDTH = 8
PREFIX = 6  # how much of a text says where it lies between two others
BUCKETS = 32
COMMON = 16


class StatisticsError(ValueError):
    """Statistics that cannot be used; the message names the table and the column."""


@dataclass(frozen=True)
class Column:
    """`bounds` are those of buckets that hold equally many of the rows whose value is not `common`."""

    distinct: float | None = None
    bounds: tuple[Scalar, ...] = ()
    common: Mapping[Scalar, float] = field(default_factory=dict)
    nulls: float = 0.0
    width: float = UNKNOWN_WIDTH

    @property
    def rest(self) -> float:
        """The share of rows whose value is neither common nor null."""
        return max(0.0, 1 - self.nulls - sum(self.common.values()))

    def distinct_of(self, rows: float) -> float:
        return max(1.0, rows / 10 if self.distinct is None else self.distinct)

    def equal(self, value: Scalar, rows: float) -> float:
        """The share of rows with this value."""
        if value in self.common:
            return self.common[value]
        return self.rest / max(1.0, self.distinct_of(rows) - len(self.common))

    def below(self, value: Scalar) -> float | None:
        """The share of rows with a lower value, or None if nothing is known of how values are distributed."""
        if not self.bounds and not self.common:
            return None
        at = place_of(value)
        common = sum(share for each, share in self.common.items() if place_of(each) < at)
        return common + self.rest * self._rank(at)

    def _rank(self, at: float) -> float:
        places = [place_of(bound) for bound in self.bounds]
        if len(places) < 2 or at <= places[0]:
            return 0.0
        if at >= places[-1]:
            return 1.0
        bucket = bisect_left(places, at) - 1
        low, high = places[bucket], places[bucket + 1]
        return (bucket + (at - low) / (high - low)) / (len(places) - 1)


def place_of(value: Scalar) -> float:
    """Where a value lies on the line of values: numbers as they are, dates by their day, texts by how they begin.

    >>> place_of("1995-03-15") - place_of("1995-03-01")
    14.0
    >>> place_of("ab") < place_of("b") < place_of("ba")
    True
    """
    if not isinstance(value, str):
        return float(value)
    try:
        return float(date.fromisoformat(value[:10]).toordinal())
    except ValueError:
        return float(int.from_bytes(value.encode()[:PREFIX].ljust(PREFIX, b"\0")))


@dataclass(frozen=True)
class Table:
    """`ordered` is the column that rows are stored in the order of, `place` the site that has them.

    `partitioned` is the column by which rows are dealt to parts; `*`, if every part has all of them.
    """

    rows: float = UNKNOWN_ROWS
    columns: Mapping[str, Column] = field(default_factory=dict)
    indexes: frozenset[str] = frozenset()
    ordered: str = ""
    place: str = ""
    width: float = 100.0
    partitioned: str = ""

    def column(self, name: str) -> Column:
        return self.columns.get(name, _UNKNOWN)


_UNKNOWN = Column()
_NOTHING = Table()


@dataclass(frozen=True)
class Statistics:
    """Tables by name, in lower case; of a table that is not there nothing is known."""

    tables: Mapping[str, Table] = field(default_factory=dict)
    place: str = ""  # where results are wanted
    parts: int = 0  # that tables are dealt to, of which each joins its own rows; 0 if they are in one piece

    def table(self, name: str) -> Table:
        return self.tables.get(name, _NOTHING)


def summarize(values: Iterable[Scalar | None], *, buckets: int = BUCKETS, common: int = COMMON) -> Column:
    """The statistics of a column, from all of its values.

    >>> column = summarize([1] * 50 + list(range(100, 150)), buckets=5, common=1)
    >>> column.distinct, dict(column.common), column.bounds
    (51, {1: 0.5}, (100, 110, 120, 130, 140, 149))
    >>> column.below(120)
    0.7
    """
    listed = list(values)
    present = [value for value in listed if value is not None]
    if not present:
        return Column(distinct=0, nulls=1.0 if listed else 0.0)
    counts = Counter(present)
    average = len(present) / len(counts)
    often = {value: count / len(listed) for value, count in counts.most_common(common) if count > 1.25 * average}
    rest = sorted((value for value in present if value not in often), key=place_of)
    steps = [rest[min(len(rest) - 1, at * len(rest) // buckets)] for at in range(buckets + 1)] if rest else []
    bounds = tuple(value for at, value in enumerate(steps) if at == 0 or value != steps[at - 1])
    width = sum(len(value) if isinstance(value, str) else 8 for value in present) / len(present)
    return Column(len(counts), bounds, often, 1 - len(present) / len(listed), width)


def read_statistics(path: Path) -> Statistics:
    """Raises StatisticsError for a file that does not hold statistics, and OSError."""
    try:
        return statistics_from_json(json.loads(path.read_text(encoding="utf-8")))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise StatisticsError(f"{path} is not JSON: {error}") from None


_TABLE_FIELDS = {"partitioned", "rows", "width", "ordered", "place", "indexes", "columns"}
_COLUMN_FIELDS = {"distinct", "histogram", "common", "nulls", "width"}


def statistics_from_json(given: Any) -> Statistics:
    if not isinstance(given, dict) or not isinstance(given.get("tables"), dict):
        raise StatisticsError('statistics are an object with "tables": {NAME: {"rows": …, "columns": {…}}}')
    _only(given, {"tables", "place", "parts"}, "statistics")
    tables = {name.lower(): _table(name, each) for name, each in given["tables"].items()}
    found = Statistics(tables, _text(given, "place", "statistics"), int(_number(given, "parts", 0, "statistics")))
    if found.parts and (found.place or any(each.place for each in tables.values())):
        raise StatisticsError("tables are in parts or at places: statistics have one of them")
    return found


def _table(name: str, given: Any) -> Table:
    what = f"table {name}"
    _only(given, _TABLE_FIELDS, what)
    described, indexes = given.get("columns", {}), given.get("indexes", [])
    if not isinstance(described, dict):
        raise StatisticsError(f"columns of {what} is an object: {{NAME: {{…}}}}")
    if not isinstance(indexes, list) or not all(isinstance(each, str) for each in indexes):
        raise StatisticsError(f"indexes of {what} is a list of columns")
    columns = {column.lower(): _column(f"column {column} of {name}", each) for column, each in described.items()}
    return Table(
        rows=max(1.0, _number(given, "rows", UNKNOWN_ROWS, what)),
        columns=columns,
        indexes=frozenset(each.lower() for each in indexes),
        ordered=_text(given, "ordered", what).lower(),
        place=_text(given, "place", what),
        width=_number(given, "width", sum(each.width for each in columns.values()) or 100.0, what),
        partitioned=_text(given, "partitioned", what).lower(),
    )


def _column(name: str, given: Any) -> Column:
    _only(given, _COLUMN_FIELDS, name)
    common, bounds = given.get("common", []), given.get("histogram", [])
    if not isinstance(common, list) or not all(isinstance(each, list) and len(each) == 2 for each in common):
        raise StatisticsError(f"common of {name} is a list of [value, share of rows]")
    if not isinstance(bounds, list) or not all(map(_is_scalar, [*bounds, *(value for value, _ in common)])):
        raise StatisticsError(f"histogram and common of {name} hold numbers and texts")
    if any(place_of(one) > place_of(other) for one, other in pairwise(bounds)):
        raise StatisticsError(f"histogram of {name} is not in ascending order")
    return Column(
        distinct=None if given.get("distinct") is None else _number(given, "distinct", 1, name),
        bounds=tuple(bounds),
        common={value: _number({"share": share}, "share", 0, f"common of {name}") for value, share in common},
        nulls=_number(given, "nulls", 0.0, name),
        width=_number(given, "width", UNKNOWN_WIDTH, name),
    )


def _is_scalar(value: Any) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool) and value == value  # noqa: PLR0124 - nan


def _text(given: Mapping[str, Any], name: str, what: str) -> str:
    value = given.get(name, "")
    if not isinstance(value, str):
        raise StatisticsError(f"{name} of {what} is {value!r}: a text is wanted")
    return value


def _only(given: Any, fields: set[str], what: str) -> None:
    if not isinstance(given, dict):
        raise StatisticsError(f"{what} is an object with {', '.join(sorted(fields))}")
    if unknown := given.keys() - fields:
        raise StatisticsError(f"{what} has {min(unknown)}; it may have {', '.join(sorted(fields))}")


def _number(given: Mapping[str, Any], name: str, default: float, what: str) -> float:
    value = given.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise StatisticsError(f"{name} of {what} is {value!r}: a number that is not negative is wanted")
    return float(value)


def statistics_to_json(statistics: Statistics) -> dict[str, Any]:
    """What `statistics_from_json` takes."""
    tables = {
        name: {
            "rows": table.rows,
            "width": round(table.width, 1),
            **({"ordered": table.ordered} if table.ordered else {}),
            **({"place": table.place} if table.place else {}),
            **({"partitioned": table.partitioned} if table.partitioned else {}),
            "indexes": sorted(table.indexes),
            "columns": {column: _column_to_json(each) for column, each in table.columns.items()},
        }
        for name, table in statistics.tables.items()
    }
    rest = {"place": statistics.place, "parts": statistics.parts}
    return {"tables": tables, **{name: value for name, value in rest.items() if value}}


def _column_to_json(column: Column) -> dict[str, Any]:
    found: dict[str, Any] = {"width": round(column.width, 1)}
    if column.distinct is not None:
        found["distinct"] = column.distinct
    if column.bounds:
        found["histogram"] = list(column.bounds)
    if column.common:
        found["common"] = [[value, round(share, 9)] for value, share in column.common.items()]
    if column.nulls:
        found["nulls"] = column.nulls
    return found
