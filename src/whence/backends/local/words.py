"""Values as 64-bit words and back.

Numbers are themselves, unsigned numbers and floats their bits; symbols, records, branches and lists are numbered as they are
first seen, each value once, so that equal words are equal values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from whence.backends.local.arrays import Lines
from whence.lang.types import FLOAT, NUMBER, UNSIGNED, Kind, Tuple, Value

Words = NDArray[np.int64]


class Dictionary:
    """The values that are numbered."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.numbers: dict[Value, int] = {}

    def number(self, value: Value) -> int:
        number = self.numbers.get(value)
        if number is None:
            number = self.numbers[value] = len(self.values)
            self.values.append(value)
        return number

    # -- one value

    def encode(self, value: Value, kind: Kind) -> int:
        if kind == NUMBER:
            return value  # type: ignore[return-value]
        if kind == UNSIGNED:
            return value - (1 << 64) if value >> 63 else value  # type: ignore[operator,return-value]
        if kind == FLOAT:
            return int(np.float64(value + 0.0).view(np.int64))  # type: ignore[operator]
        return self.number(value)

    def find(self, value: object, kind: Kind) -> int | None:
        """The word of a value that may be of any kind; None if no row can hold it."""
        if kind in (NUMBER, UNSIGNED):
            low, high = (-1 << 63, 1 << 63) if kind == NUMBER else (0, 1 << 64)
            return self.encode(value, kind) if isinstance(value, int) and low <= value < high else None
        if kind == FLOAT:
            return self.encode(float(value), kind) if isinstance(value, int | float) else None
        try:
            return self.numbers.get(value)  # type: ignore[call-overload,no-any-return]
        except TypeError:  # values have a hash
            return None

    # -- columns

    def encode_column(self, values: Sequence[Value], kind: Kind) -> Words:
        if kind == NUMBER:
            return np.array(values, dtype=np.int64)
        if kind == UNSIGNED:
            return np.array(values, dtype=np.uint64).view(np.int64)
        if kind == FLOAT:
            return (np.array(values, dtype=np.float64) + 0.0).view(np.int64)  # -0.0 is 0.0
        return np.array([self.number(value) for value in values], dtype=np.int64)

    def decode_column(self, words: Words, kind: Kind) -> list[Value]:
        if kind == NUMBER:
            return words.tolist()  # type: ignore[no-any-return]
        if kind == UNSIGNED:
            return np.ascontiguousarray(words).view(np.uint64).tolist()  # type: ignore[no-any-return]
        if kind == FLOAT:
            return np.ascontiguousarray(words).view(np.float64).tolist()  # type: ignore[no-any-return]
        values = self.values
        return [values[number] for number in words.tolist()]

    def encode_rows(self, rows: Iterable[Tuple], kinds: Sequence[Kind]) -> Lines:
        listed = list(rows)
        lines: Lines = np.empty((len(listed), len(kinds)), dtype=np.int64)
        for at, kind in enumerate(kinds):
            lines[:, at] = self.encode_column([row[at] for row in listed], kind)
        return lines

    def decode_rows(self, lines: Lines, kinds: Sequence[Kind]) -> list[Tuple]:
        if not kinds:
            return [()] * len(lines)
        columns = [self.decode_column(lines[:, at], kind) for at, kind in enumerate(kinds)]
        return list(zip(*columns, strict=True))
