"""The columns of a relation at one moment, in arrays that sort and filter millions of rows without the session.

A column of numbers is an array of them. Any other is an array of ranks among the distinct values, which are kept in order, so
that whatever has to be done with values is done once for each of them. NumPy and Arrow work without the interpreter's lock: an
epoch goes on meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from whence.backends.local.words import Words
from whence.lang.compare import order_key
from whence.lang.types import FLOAT, NUMBER, SYMBOL, UNSIGNED, Kind, Nullable, Value, is_whole
from whence.provenance.show import show_value

_BITS: Mapping[Kind, type[np.generic]] = {NUMBER: np.int64, UNSIGNED: np.uint64, FLOAT: np.float64}

Mask = NDArray[np.bool_]
Key = Any  # what values of one kind are ordered by


@dataclass(frozen=True)
class Numbers:
    """Of kind number, unsigned or float."""

    array: NDArray[Any]

    def __getitem__(self, row: int) -> Value:
        value: Value = self.array[row].item()
        return value

    def where(self, test: Callable[[Value], bool]) -> Mask:
        distinct, codes = np.unique(self.array, return_inverse=True)
        passing = np.fromiter((test(each) for each in distinct.tolist()), dtype=np.bool_, count=len(distinct))
        return passing[codes]

    @property
    def ranks(self) -> NDArray[Any]:
        return self.array


@dataclass(frozen=True)
class Ranked:
    """Of any other kind: `values` in order, and the rank of each row's value among them."""

    values: Sequence[Value]
    ranks: NDArray[np.int32]

    def __getitem__(self, row: int) -> Value:
        value: Value = self.values[self.ranks[row]]
        return value

    def where(self, test: Callable[[Value], bool]) -> Mask:
        passing = np.fromiter((test(each) for each in self.values), dtype=np.bool_, count=len(self.values))
        return passing[self.ranks]


Column = Numbers | Ranked


@dataclass(frozen=True)
class Raw:
    """A column as it was read under the lock: words, and what the distinct ones among them stand for."""

    kind: Kind
    words: Words
    distinct: NDArray[np.int64] | None = None
    values: Sequence[Value] = ()

    def column(self) -> Column:
        if self.distinct is None:
            return Numbers(self.words.view(_BITS[self.kind]))
        order = self._order()
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        of_word = np.zeros(int(self.distinct[-1]) + 1 if len(self.distinct) else 0, dtype=np.int32)
        of_word[self.distinct] = rank
        return Ranked([self.values[at] for at in order.tolist()], of_word[self.words])

    def _order(self) -> NDArray[Any]:
        """The places of the distinct values, in order."""
        if isinstance(self.kind, Nullable) or is_whole(self.kind):
            key = key_of(self.kind)
            return np.array(sorted(range(len(self.values)), key=lambda at: key(self.values[at])), dtype=np.int64)
        texts = [text.encode("utf-8", "surrogatepass") for text in map(sort_text(self.kind), self.values)]
        order: NDArray[Any] = pc.array_sort_indices(pa.array(texts, pa.large_binary())).to_numpy()
        return order


def sort_text(kind: Kind) -> Callable[[Value], str]:
    """What values of a kind that are not numbers are ordered by."""
    return str if kind == SYMBOL else show_value


def key_of(kind: Kind) -> Callable[[Value], Key]:
    """What single values are ordered by, in the order of the arrays."""
    match kind:
        case Nullable():
            return lambda value: order_key((value,))
        case _ if kind == FLOAT:
            return _float_key
        case _ if kind in _BITS or kind == SYMBOL or is_whole(kind):
            return _itself
        case _:
            return show_value


def _itself(value: Value) -> Key:
    return value


def _float_key(value: Value) -> Key:
    assert isinstance(value, float)
    return (True, 0.0) if isnan(value) else (False, value)


def sorted_rows(columns: Sequence[Column], first: int) -> NDArray[np.int64]:
    """The rows in the order of one column, those with equal values in the order of all columns."""
    keys = [columns[first].ranks, *(column.ranks for at, column in enumerate(columns) if at != first)]
    packed = _packed(keys)
    return np.argsort(packed, kind="stable") if packed is not None else np.lexsort(keys[::-1])


def _packed(keys: Sequence[NDArray[Any]]) -> NDArray[np.int64] | None:
    """One number for each row that orders as the keys do, if 63 bits are enough: sorting that takes a third of the time."""
    packed: NDArray[np.int64] | None = None
    bits = 0
    for key in keys:
        if key.dtype.kind != "i" or not len(key):
            return None
        least, most = int(key.min()), int(key.max())
        width = (most - least).bit_length()
        bits += width
        if bits > 63:
            return None
        own = key.astype(np.int64) - least
        packed = own if packed is None else (packed << width) | own
    return packed
