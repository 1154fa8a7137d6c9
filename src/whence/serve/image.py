"""A relation in pages: searched, filtered and sorted, as of any epoch that is known, without the session.

An `Image` is a copy of the columns as they were after one epoch. A page of another epoch is the image's with the difference
between the two mixed in, which costs what has changed and not what there is. Rows are found by halving, so that a page far into
millions of rows comes as fast as the first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from whence.lang.types import Field, Tuple, Types
from whence.serve.columns import Column, Key, key_of, sorted_rows
from whence.serve.filters import Filter, Sieve
from whence.serve.history import Difference

_KEPT = 6  # orders and filtered orders, of each image

RowKey = tuple[Key, ...]


@dataclass(frozen=True)
class Wanted:
    """What of a relation a viewer wants to see: which rows, by which column, from where on."""

    sort: int = 0
    descending: bool = False
    filter: Filter = Filter()
    offset: int = 0
    limit: int = 100


@dataclass(frozen=True)
class Page:
    """Rows as asked for, and how many there are in all that pass the filter."""

    rows: list[Tuple]
    total: int


@dataclass(frozen=True)
class _Mixed:
    """What differs from the image, of what passes the filter, in the order asked for."""

    gone: list[RowKey]
    added: list[tuple[RowKey, Tuple]]


class Image:
    """The columns after an epoch. Orders, and what passes a filter, are kept for those who ask again."""

    def __init__(self, fields: Sequence[Field], types: Types, columns: Sequence[Column], size: int, epoch: int) -> None:
        self.fields = fields
        self.types = types
        self.columns = columns
        self.size = size
        self.epoch = epoch
        self._keys = [key_of(field.kind) for field in fields]
        self._lock, self._working = Lock(), Lock()
        self._orders: OrderedDict[tuple[int, Filter], NDArray[np.int64]] = OrderedDict()

    def row(self, at: int) -> Tuple:
        return tuple([column[at] for column in self.columns])

    def page(self, wanted: Wanted, difference: Difference) -> Page:
        """Raises ValueError if the filter does not fit the columns."""
        tests = Sieve(wanted.filter, self.fields, self.types)
        key = self._row_key(wanted.sort)
        order = self._order(wanted.sort, wanted.filter, tests)
        gone = sorted(key(row) for row in difference.gone if tests(row))
        added = sorted((key(row), row) for row in difference.added if tests(row))
        total = len(order) - len(gone) + len(added)
        first = total - wanted.offset - wanted.limit if wanted.descending else wanted.offset
        last = min(total, max(0, first + wanted.limit))
        rows = self._slice(order, key, _Mixed(gone, added), range(max(0, first), last))
        return Page(rows[::-1] if wanted.descending else rows, total)

    def _slice(
        self, order: NDArray[np.int64], key: Callable[[Tuple], RowKey], mixed: _Mixed, wanted: range
    ) -> list[Tuple]:
        """Rows of the mixture, by their places in it."""
        gone, added = mixed.gone, [each for each, _ in mixed.added]

        def place(at: int) -> int:
            """Where the image's row would be in the mixture, if it is in it."""
            own = key(self.row(order[at]))
            return at - bisect_left(gone, own) + bisect_left(added, own)

        low = bisect_left(range(len(order)), wanted.start, key=place)
        before = bisect_left(gone, key(self.row(order[low]))) if low < len(order) else len(gone)
        new = wanted.start - low + before
        missing = set(gone)
        rows: list[Tuple] = []
        while len(rows) < len(wanted):
            own: RowKey = ()
            while low < len(order) and (own := key(self.row(order[low]))) in missing:
                low += 1
            if new < len(added) and (low == len(order) or added[new] < own):
                rows.append(mixed.added[new][1])
                new += 1
            else:
                rows.append(self.row(order[low]))
                low += 1
        return rows

    def _row_key(self, first: int) -> Callable[[Tuple], RowKey]:
        at = [first, *(each for each in range(len(self.fields)) if each != first)] if self.fields else []
        keys = [(each, self._keys[each]) for each in at]
        return lambda row: tuple([key(row[each]) for each, key in keys])

    def _order(self, sort: int, wanted: Filter, tests: Sieve) -> NDArray[np.int64]:
        found = self._kept(sort, wanted)
        if found is not None:
            return found
        whole = self._order(sort, Filter(), tests) if wanted else None
        # One after the other: those who wait may find what they want, and nobody gets all processors by asking often.
        with self._working:
            found = self._kept(sort, wanted)
            if found is not None:
                return found
            if whole is not None:
                order = whole[self._mask(tests)[whole]]
            else:
                order = sorted_rows(self.columns, sort) if self.columns else np.arange(self.size)
            with self._lock:
                self._orders[sort, wanted] = order
                while len(self._orders) > _KEPT:
                    self._orders.popitem(last=False)
            return order

    def _kept(self, sort: int, wanted: Filter) -> NDArray[np.int64] | None:
        with self._lock:
            found = self._orders.get((sort, wanted))
            if found is not None:
                self._orders.move_to_end((sort, wanted))
            return found

    def _mask(self, tests: Sieve) -> NDArray[np.bool_]:
        mask = np.ones(self.size, dtype=np.bool_)
        for at, test in tests.conditions:
            mask &= self.columns[at].where(test)
        if tests.search:
            contains = np.zeros(self.size, dtype=np.bool_)
            for column in self.columns:
                contains |= column.where(tests.contains)
            mask &= contains
        return mask
