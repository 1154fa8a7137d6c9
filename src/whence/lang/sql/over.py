"""Functions of ordered rows: what windows and ordered aggregates compute, in Python.

The rows of a partition come as one list of records, `(order columns, identity columns, arguments)`. Rows that are equal in
the order columns are put in the order of their identity, so that results do not depend on anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import fsum
from operator import itemgetter
from typing import Any

Row = tuple[Any, ...]
UNBOUNDED = None


@dataclass(frozen=True, slots=True)
class Order:
    """How one column is ordered."""

    descending: bool = False
    nulls_first: bool = False


def in_order(rows: Sequence[Row], orders: Sequence[Order]) -> list[Row]:
    """The rows by their first columns; those that are equal there stay as they are."""
    ordered = list(rows)
    for at in reversed(range(len(orders))):
        order = orders[at]
        nulls = [row for row in ordered if row[at] is None]
        values = [row for row in ordered if row[at] is not None]
        values.sort(key=itemgetter(at), reverse=order.descending)
        ordered = [*nulls, *values] if order.nulls_first else [*values, *nulls]
    return ordered


@dataclass
class Over:
    """One window function. `frame` bounds the rows before and after the current one, None for all of them; without it, a
    frame ends with the last row that is equal in the order columns, or with the partition if nothing orders it.

    What was computed last is kept: it is asked for each row of a partition in turn. While a partition changes, it may be
    asked for a row that is not in it yet, or not any more: then `otherwise` will do, as nothing of it will stay.
    """

    function: str
    orders: tuple[Order, ...]
    arguments: int  # where they begin
    frame: tuple[int | None, int | None] | None = None
    otherwise: int | float | None = None
    _last: tuple[tuple[Row, ...], dict[Row, Any]] | None = field(default=None, repr=False, compare=False)

    def __call__(self, rows: tuple[Row, ...], row: Row) -> Any:
        last = self._last
        if last is None or (last[0] is not rows and last[0] != rows):
            last = self._last = (rows, self._results(rows))
        return last[1].get(row, self.otherwise)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": None}

    def _results(self, rows: tuple[Row, ...]) -> dict[Row, Any]:
        ordered = in_order(rows, self.orders)
        width = len(self.orders)
        peers: list[tuple[int, int]] = []  # where the rows that are equal in the order columns begin and end
        begin = 0
        for at in range(1, len(ordered) + 1):
            if at == len(ordered) or ordered[at][:width] != ordered[begin][:width]:
                peers += [(begin, at)] * (at - begin)
                begin = at
        return dict(zip(ordered, _FUNCTIONS[self.function](self, ordered, peers), strict=True))

    def bounds(self, at: int, peers: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Where the frame of a row begins and ends."""
        if self.frame is None:
            return 0, peers[at][1]
        before, after = self.frame
        begin = 0 if before is UNBOUNDED else max(0, at + before)
        end = len(peers) if after is UNBOUNDED else min(len(peers), at + after + 1)
        return begin, max(begin, end)


Peers = Sequence[tuple[int, int]]


def _row_number(over: Over, rows: list[Row], peers: Peers) -> list[int]:
    del over, peers
    return list(range(1, len(rows) + 1))


def _rank(over: Over, rows: list[Row], peers: Peers) -> list[int]:
    del over, rows
    return [begin + 1 for begin, _ in peers]


def _dense_rank(over: Over, rows: list[Row], peers: Peers) -> list[int]:
    del over, rows
    ranks = {begin: at + 1 for at, begin in enumerate(dict.fromkeys(begin for begin, _ in peers))}
    return [ranks[begin] for begin, _ in peers]


def _percent_rank(over: Over, rows: list[Row], peers: Peers) -> list[float]:
    del over
    return [begin / (len(rows) - 1) if len(rows) > 1 else 0.0 for begin, _ in peers]


def _cume_dist(over: Over, rows: list[Row], peers: Peers) -> list[float]:
    del over
    return [end / len(rows) for _, end in peers]


def _ntile(over: Over, rows: list[Row], peers: Peers) -> list[int]:
    del peers
    count = rows[0][over.arguments]
    size, more = divmod(len(rows), count)
    ends = [size * tile + min(tile, more) for tile in range(1, count + 1)]
    return [next(tile + 1 for tile, end in enumerate(ends) if at < end) for at in range(len(rows))]


def _shifted(direction: int) -> Callable[[Over, list[Row], Peers], list[Any]]:
    def shift(over: Over, rows: list[Row], peers: Peers) -> list[Any]:
        del peers
        results = []
        for at, row in enumerate(rows):
            _, offset, default = (
                (*row[over.arguments :], 1, None)[:3] if len(row) > over.arguments + 1 else (0, 1, None)
            )
            there = at + direction * offset
            results.append(rows[there][over.arguments] if 0 <= there < len(rows) else default)
        return results

    return shift


def _nth(which: Callable[[Over, Row], int]) -> Callable[[Over, list[Row], Peers], list[Any]]:
    def nth(over: Over, rows: list[Row], peers: Peers) -> list[Any]:
        results = []
        for at, row in enumerate(rows):
            begin, end = over.bounds(at, peers)
            place = which(over, row)
            there = begin + place if place >= 0 else end + place
            results.append(rows[there][over.arguments] if begin <= there < end else None)
        return results

    return nth


def _aggregate(combine: Callable[[list[Any]], Any]) -> Callable[[Over, list[Row], Peers], list[Any]]:
    def aggregate(over: Over, rows: list[Row], peers: Peers) -> list[Any]:
        values = [row[over.arguments] for row in rows]
        known: dict[tuple[int, int], Any] = {}
        results = []
        for at in range(len(rows)):
            bounds = over.bounds(at, peers)
            if bounds not in known:
                known[bounds] = combine([value for value in values[slice(*bounds)] if value is not None])
            results.append(known[bounds])
        return results

    return aggregate


def _sum(values: list[Any]) -> Any:
    if not values:
        return None
    return fsum(values) if isinstance(values[0], float) else sum(values[1:], values[0])


def _mean(values: list[Any]) -> float | None:
    if values and isinstance(values[0], Decimal):
        return float(sum(map(Fraction, values)) / len(values))
    return fsum(values) / len(values) if values else None


def _count_rows(over: Over, rows: list[Row], peers: Peers) -> list[int]:
    ends = [over.bounds(at, peers) for at in range(len(rows))]
    return [end - begin for begin, end in ends]


_FUNCTIONS: Mapping[str, Callable[[Over, list[Row], Peers], Sequence[Any]]] = {
    "ROW_NUMBER": _row_number,
    "RANK": _rank,
    "DENSE_RANK": _dense_rank,
    "PERCENT_RANK": _percent_rank,
    "CUME_DIST": _cume_dist,
    "NTILE": _ntile,
    "LAG": _shifted(-1),
    "LEAD": _shifted(1),
    "FIRST_VALUE": _nth(lambda over, row: 0),  # noqa: ARG005
    "LAST_VALUE": _nth(lambda over, row: -1),  # noqa: ARG005
    "NTH_VALUE": _nth(lambda over, row: row[over.arguments + 1] - 1),
    "SUM": _aggregate(_sum),
    "AVG": _aggregate(_mean),
    **dict.fromkeys(("MIN", "BOOL_AND", "EVERY"), _aggregate(lambda values: min(values, default=None))),
    **dict.fromkeys(("MAX", "BOOL_OR"), _aggregate(lambda values: max(values, default=None))),
    "COUNT": _aggregate(len),
    "COUNT_ROWS": _count_rows,
}


@dataclass(frozen=True)
class Joined:
    """STRING_AGG: the texts of a group, in order, with a separator between them."""

    orders: tuple[Order, ...]
    arguments: int
    separator: str

    def __call__(self, rows: tuple[Row, ...]) -> str:
        return self.separator.join(row[self.arguments] for row in in_order(rows, self.orders))
