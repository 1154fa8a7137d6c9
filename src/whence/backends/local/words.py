"""Values as 64-bit words and back.

Numbers are themselves, unsigned numbers and floats their bits; nil is the word of the least number (no float has it, for -0.0 is
0.0), but for symbols, of which it is the first. Symbols are numbered as they are first seen, and records, branches
and lists are cells (see `cells`), each value once, so that equal words are equal values.

Words that no row holds any more are given up and used again, when there are more of them than of those that rows hold: what
comes and goes for months takes no more memory than what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.cells import A_CELL, A_SYMBOL, ITEM, NO_ITEM, RECORD, Cells, mark_cells
from whence.backends.local.memory import address_of
from whence.backends.local.structures import decode_structures, encode_structures
from whence.backends.local.text_array import TextArray
from whence.lang.fit import fits
from whence.lang.scalars import of_whole, to_whole
from whence.lang.types import (
    BOOL,
    DATE,
    FLOAT,
    LEAST,
    NUMBER,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
    Kind,
    ListKind,
    Nullable,
    Tuple,
    Types,
    Value,
    base,
    is_plain,
    is_whole,
)

Words = NDArray[np.int64]

# Looking which words rows hold takes a look at every row: so many words must have come since, and this share of the rows.
FEWEST, SHARE = 1 << 12, 8
# What Python keeps for a symbol besides its text: a place in a list, an entry of a hash table, a number.
_BYTES_OF_SYMBOL = 180
_COMMON = frozenset((NUMBER, SYMBOL))
MANY = 64  # texts: fewer are numbered, and taken, sooner one by one


class Holder(Protocol):
    """Who holds words."""

    def held_words(self) -> Iterable[tuple[Kind, Words]]:
        """All of them, by kind, in any order and more than once."""
        ...

    def cells_changed(self) -> None:
        """Told when cells have become wider."""
        ...


class Dictionary:
    """The values that are numbered, for all who share it. Sessions that share one take turns: an epoch at a time."""

    def __init__(self, types: Types | None = None) -> None:
        self.types = types or Types()
        self.values: list[str | None] = [None]  # where a number is free, and for nil, which is the first
        self._texts = TextArray(self.values)
        self.free: list[int] = []
        self.cells: dict[Kind, Cells] = {}
        self.holders: WeakSet[Holder] = WeakSet()
        self._limit = FEWEST

    @cached_property
    def numbers(self) -> dict[str | None, int]:
        """The number of each value; made when one is looked up, which those of large files often never are."""
        numbers = dict(zip(self.values, count()))
        numbers[None] = 0
        return numbers

    def learn(self, types: Types) -> None:
        """The types of the programs whose values are encoded; a later program may add to them."""
        if types == self.types:
            return
        self.types = types
        wider = [cells for cells in self.cells.values() if cells.learn(types)]
        if wider:
            for each in self.holders:
                each.cells_changed()

    def restore(self, values: list[str | None], cells: Iterable[Cells]) -> None:
        """Takes over the values of another one, each with the word that it had there. None may be known yet."""
        self.values, self._texts = values, TextArray(values)
        self.__dict__.pop("numbers", None)
        self.free = [number for number, text in enumerate(values) if text is None and number]
        for each in cells:
            each.learn(self.types)
            self.cells[each.kind] = each
        self._limit = max(2 * len(self), FEWEST)

    def number(self, text: str | None) -> int:
        number = self.numbers.get(text)
        if number is None:
            if self.free:
                number = self.free.pop()
                self.values[number] = text
                self._texts.change(number)
            else:
                number = len(self.values)
                self.values.append(text)
            self.numbers[text] = number
        return number

    def number_distinct(self, texts: list[str]) -> Words:
        """The numbers of texts that are all different."""
        if len(self.values) > 1 or None in texts:
            return self.encode_primitives(texts, SYMBOL, is_new=True)
        self.values += texts
        self.__dict__.pop("numbers", None)
        return np.arange(1, len(self.values))

    def cells_of(self, kind: Kind) -> Cells:
        found = self.cells.get(kind)
        if found is None:
            found = self.cells[kind] = Cells(kind)
            found.learn(self.types)
        return found

    def bound(self, kind: Kind) -> int:
        """All words of a kind that is not of numbers are below this."""
        return len(self.values) if base(kind) == SYMBOL else self.cells_of(kind).used

    # -- one value

    def encode(self, value: Value, kind: Kind) -> int:
        if isinstance(kind, Nullable):
            if value is None:
                return nil_word(kind)
            kind = kind.of
        if is_whole(kind):
            return to_whole(kind)(value)
        if kind == UNSIGNED:
            return value - (1 << 64) if value >> 63 else value  # type: ignore[operator,return-value]
        if kind == FLOAT:
            return int(np.float64(value + 0.0).view(np.int64))  # type: ignore[operator]
        if kind == SYMBOL:
            return self.number(value)  # type: ignore[arg-type]
        return int(self.encode_column([value], kind)[0])

    def find(self, value: object, kind: Kind) -> int | None:
        """The word of a value that may be of any kind; None if no row can hold it."""
        if not fits(value, kind, self.types):
            return None
        if is_number(kind):
            return self.encode(value, kind)  # type: ignore[arg-type]
        if base(kind) == SYMBOL:
            return self.numbers.get(value)  # type: ignore[call-overload,no-any-return]
        word = int(encode_structures(self, [value], kind, is_new=False)[0])  # type: ignore[list-item]
        return None if word < 0 else word

    # -- columns

    def encode_column(self, values: Sequence[Value], kind: Kind) -> Words:
        if is_plain(kind):
            return self.encode_primitives(values, kind, is_new=True)
        return encode_structures(self, values, kind, is_new=True)

    def decode_column(self, words: Words, kind: Kind) -> list[Value]:
        if kind == SYMBOL:
            if len(words) >= MANY:
                return self._texts.take(words)
            return [self.values[number] for number in words.tolist()]
        if kind == NUMBER:
            return words.tolist()  # type: ignore[no-any-return]
        if isinstance(kind, Nullable):
            return self._decode_nullable(words, kind)
        if is_whole(kind):
            return _decode_whole(words, kind)
        if kind == UNSIGNED:
            return np.ascontiguousarray(words).view(np.uint64).tolist()  # type: ignore[no-any-return]
        if kind == FLOAT:
            return np.ascontiguousarray(words).view(np.float64).tolist()  # type: ignore[no-any-return]
        return decode_structures(self, words, kind)

    def _decode_nullable(self, words: Words, kind: Nullable) -> list[Value]:
        values = self.decode_column(words, kind.of)
        if kind.of != SYMBOL:
            for at in np.flatnonzero(words == LEAST).tolist():
                values[at] = None
        return values

    def encode_rows(self, rows: Iterable[Tuple], kinds: Sequence[Kind]) -> Lines:
        listed = list(rows)
        if 0 < len(listed) < MANY and _COMMON.issuperset(kinds):  # most are: one call of NumPy for all columns
            number: Callable[[Any], int] = self.number
            return np.array(
                [[v if kind is NUMBER else number(v) for v, kind in zip(row, kinds, strict=True)] for row in listed],
                dtype=np.int64,
            )
        lines: Lines = np.empty((len(listed), len(kinds)), dtype=np.int64)
        for at, kind in enumerate(kinds):
            lines[:, at] = self.encode_column([row[at] for row in listed], kind)
        return lines

    def decode_rows(self, lines: Lines, kinds: Sequence[Kind]) -> list[Tuple]:
        if not kinds:
            return [()] * len(lines)
        if len(lines) < MANY and _COMMON.issuperset(kinds):
            text = self.values.__getitem__
            told = zip(lines.T.tolist(), kinds, strict=True)
            return list(zip(*[words if kind is NUMBER else map(text, words) for words, kind in told], strict=True))
        columns = [self.decode_column(lines[:, at], kind) for at, kind in enumerate(kinds)]
        return list(zip(*columns, strict=True))

    def encode_primitives(self, values: Sequence[Value], kind: Kind, *, is_new: bool) -> Words:
        if isinstance(kind, Nullable):
            return self._encode_nullable(values, kind.of, is_new=is_new)
        if kind == NUMBER:
            return np.array(values, dtype=np.int64)
        if kind == UNSIGNED:
            return np.array(values, dtype=np.uint64).view(np.int64)
        if is_whole(kind):
            return _encode_whole(values, kind)
        if kind == FLOAT:
            return (np.array(values, dtype=np.float64) + 0.0).view(np.int64)  # -0.0 is 0.0
        if is_new:
            return self._number_all(values)  # type: ignore[arg-type]
        return np.array([self.numbers.get(value, -1) for value in values], dtype=np.int64)  # type: ignore[arg-type]

    def _number_all(self, texts: Sequence[str | None]) -> Words:
        if len(texts) < MANY or self.free:
            return np.array([self.number(text) for text in texts], dtype=np.int64)
        # One that is new is given the number that it would have if all were, and then one without gaps.
        first, numbers = len(self.values), self.numbers
        found = np.fromiter(map(numbers.setdefault, texts, count(first)), np.int64, len(texts))
        unknown = np.flatnonzero(found >= first)
        new = unknown[found[unknown] == first + unknown]
        added = [texts[at] for at in new.tolist()]
        self.values += added
        if len(new) and new[-1] >= len(new):
            numbers.update(zip(added, count(first)))
            closed = np.empty(len(texts), dtype=np.int64)
            closed[new] = np.arange(first, first + len(new))
            found[unknown] = closed[found[unknown] - first]
        return found

    def _encode_nullable(self, values: Sequence[Value], kind: Kind, *, is_new: bool) -> Words:
        if kind == SYMBOL or None not in values:
            return self.encode_primitives(values, kind, is_new=is_new)
        words = np.full(len(values), LEAST, dtype=np.int64)
        present = [value for value in values if value is not None]
        places = [at for at, value in enumerate(values) if value is not None]
        words[places] = self.encode_primitives(present, kind, is_new=is_new)
        return words

    # -- making and opening cells by columns of words

    def build(self, kind: Kind, branch: str | None, parts: Sequence[Words], rest: Words | None, size: int) -> Words:
        """Records, branches or lists of columns of parts. Raises `TooLarge`."""
        cells = self.cells_of(kind)
        if isinstance(kind, ListKind):
            made = np.full(size, self.empty_list(kind), dtype=np.int64) if rest is None else rest
            for part in reversed(parts):
                made = cells.make(ITEM, (part, made), self.cells)
            return made
        tag = cells.branches[branch] if branch is not None else RECORD
        made = cells.make(tag, parts, self.cells)
        return made if parts else np.repeat(made, size)

    def empty_list(self, kind: Kind) -> int:
        return int(self.cells_of(kind).make(NO_ITEM, (), self.cells)[0])

    # -- forgetting

    @property
    def is_outgrown(self) -> bool:
        """Whether so much has come since words were last reclaimed that it is worth a look."""
        return len(self) > self._limit

    def __len__(self) -> int:
        return len(self.values) - 1 - len(self.free) + sum(map(len, self.cells.values()))

    def reclaim(self) -> None:
        """Gives up what no holder holds. To be called between epochs."""
        marker, held = _Marker(self), 0
        for holder in self.holders:
            for kind, words in holder.held_words():
                held += len(words)
                marker.mark(kind, words)
        for kind, cells in self.cells.items():
            cells.keep(marker.marks[kind])
        for number in np.flatnonzero(marker.symbols == 0).tolist():
            text = self.values[number]
            if text is not None:
                del self.numbers[text]
                self.values[number] = None
                self._texts.change(number)
                self.free.append(number)
        self._limit = len(self) + max(len(self), held // SHARE, FEWEST)

    @property
    def nbytes(self) -> int:
        """About what it takes: of symbols, the texts and what Python keeps with each."""
        symbols = len(self.values) * _BYTES_OF_SYMBOL + sum(map(len, filter(None, self.values)))
        return symbols + self._texts.nbytes + sum(cells.nbytes for cells in self.cells.values())


def is_number(kind: Kind) -> bool:
    """Whether words are what they say, and not the numbers of something kept elsewhere."""
    return is_plain(kind) and base(kind) != SYMBOL


def _encode_whole(values: Sequence[Value], kind: Kind) -> Words:
    if kind in _MOMENTS:
        return np.array(values, dtype=_MOMENTS[kind]).astype(np.int64)
    return np.array([*map(to_whole(kind), values)], dtype=np.int64)


def _decode_whole(words: Words, kind: Kind) -> list[Value]:
    if kind == BOOL:
        return (words != 0).tolist()  # type: ignore[no-any-return]
    if kind in _MOMENTS:
        moments = np.ascontiguousarray(np.where(words == LEAST, 0, words)).view(_MOMENTS[kind])
        return moments.tolist()  # type: ignore[no-any-return]
    return [*map(of_whole(kind), words.tolist())]


# NumPy counts dates and timestamps as we do.
_MOMENTS: Mapping[Kind, str] = {DATE: "datetime64[D]", TIMESTAMP: "datetime64[us]"}


def nil_word(kind: Nullable) -> int:
    return 0 if kind.of == SYMBOL else LEAST


class _Marker:
    """Which symbols and cells are held, by somebody or inside others."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.symbols = np.zeros(len(dictionary.values), dtype=np.int64)
        self.marks: dict[Kind, Ids] = {
            kind: np.zeros(cells.used, dtype=np.int32) for kind, cells in dictionary.cells.items()
        }
        self.numbers = {kind: number for number, kind in enumerate(self.marks)}
        listed = [(cells, parts) for cells in dictionary.cells.values() for parts in cells.parts]
        self.parts = np.zeros((len(listed), 1 + max((len(parts) for _, parts in listed), default=0)), dtype=np.int64)
        for at, (_, parts) in enumerate(listed):
            for column, kind in enumerate(parts, 1):
                if base(kind) == SYMBOL:
                    self.parts[at, column] = A_SYMBOL
                elif kind in self.numbers:  # of other kinds there are no cells
                    self.parts[at, column] = A_CELL + self.numbers[kind]
        begins = np.cumsum([0, *(len(cells.parts) for cells in dictionary.cells.values())]).tolist()
        self.kinds = np.array(
            [
                (cells.address, address_of(marks), begin)
                for cells, marks, begin in zip(dictionary.cells.values(), self.marks.values(), begins[:-1], strict=True)
            ],
            dtype=np.int64,
        ).reshape(-1, 3)

    def mark(self, kind: Kind, words: Words) -> None:
        if base(kind) == SYMBOL:
            self.symbols[words] = 1
        elif len(words):
            mark_cells(np.ascontiguousarray(words), self.numbers[kind], self.kinds, self.parts, self.symbols)
