"""Columns as lines of delimited text, in the order of their rows.

Numbers are written digit by digit where they will stand, and texts copied from one block of bytes, so that no row becomes an
object. Lines come in pieces, some of them made by each thread while the memory of those before is used again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from whence.backends.local import parallel
from whence.backends.local.memory import address_of, bytes_at, compiled, kernel, words_at
from whence.backends.local.text_in import (
    A_NUMBER,
    A_TEXT,
    KINDS,
    LENGTH,
    LENGTH_BITS,
    MINUS,
    NEWLINE,
    PADDING,
    ZERO,
    Bytes,
)
from whence.backends.local.text_order import KEY_BITS, order_of_texts, sorted_keys
from whence.io.plain_columns import Coded, PlainColumns, Words
from whence.lang.types import UNSIGNED, Kind

ROWS = 1 << 15  # of a piece
NUMBER_WIDTH = 20
MARK = "\ufeff".encode()


class _Texts(NamedTuple):
    """Texts in order, as spans of bytes; and which of these each one of a list is."""

    data: Bytes
    spans: Words
    ranks: Words


class _Column(NamedTuple):
    """What rows are sorted by: words, or places in a list whose texts have ranks. Each is a number of so many bits, and of words
    it is the difference to the least."""

    kind: Kind
    words: Any
    texts: _Texts | None
    least: np.int64
    bits: int

    def keys(self, rows: slice) -> Words:
        if self.texts is not None:
            return self.texts.ranks[self.words[rows]]
        found: Words = self.words[rows] - self.least
        return found


def lines_in_order(columns: PlainColumns, kinds: Sequence[Kind], delimiter: str) -> Iterator[memoryview] | None:
    """None if texts cannot stand as they are, since they hold the delimiter or ends of lines, or have no form in UTF-8."""
    found: list[_Column] = []
    for at, kind in enumerate(kinds):
        whole = columns.whole(at)
        column = _of_texts(whole, kind, delimiter) if isinstance(whole, Coded) else _of_numbers(whole, kind)
        if column is None:
            return None
        found.append(column)
    return _pieces(_in_order(found, len(columns)), found, len(columns), ord(delimiter))


def _of_numbers(words: Words, kind: Kind) -> _Column:
    numbers = words.view(np.uint64) if kind == UNSIGNED else words
    least, most = numbers.min(), numbers.max()
    return _Column(kind, words, None, least.astype(np.int64), (int(most) - int(least)).bit_length())


def _of_texts(coded: Coded, kind: Kind, delimiter: str) -> _Column | None:
    try:
        joined = "\n".join(coded.values).encode()
    except UnicodeEncodeError:
        return None
    data: Bytes = np.empty(len(joined) + PADDING, dtype=np.uint8)
    data[: len(joined)] = np.frombuffer(joined, np.uint8)
    ends = np.append(np.flatnonzero(data[: len(joined)] == NEWLINE), len(joined))
    begins = np.append(0, ends[:-1] + 1)
    is_ambiguous = len(ends) != len(coded.values) or delimiter.encode() in joined or b"\r" in joined
    # A file that begins with the mark has to begin with another, so that it is read back.
    if is_ambiguous or MARK in joined or (ends - begins).max() > LENGTH:
        return None
    spans = (begins << LENGTH_BITS) | (ends - begins)
    order = order_of_texts(data, spans)
    ranks: Words = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return _Column(kind, coded.places, _Texts(data, spans[order], ranks), np.int64(0), len(order).bit_length())


def _in_order(columns: Sequence[_Column], size: int) -> Callable[[int, int], list[Words]]:
    """What gives the keys of some of the rows in order, by column."""
    bits = [each.bits for each in columns]
    if sum(bits) > KEY_BITS:
        keys = [each.keys(slice(None)) for each in columns]
        order = np.lexsort([key.view(np.uint64) for key in reversed(keys)])
        return lambda begin, end: [key[order[begin:end]] for key in keys]
    packed: Words = np.empty(size, dtype=np.int64)

    def pack(share: range) -> None:
        for begin in share:
            rows = slice(begin, begin + ROWS)
            together = columns[0].keys(rows)
            for column, width in zip(columns[1:], bits[1:], strict=True):
                together = (together << width) | column.keys(rows)
            packed[rows] = together

    threads = parallel.threads(size)
    parallel.run([partial(pack, range(thread * ROWS, size, threads * ROWS)) for thread in range(threads)])
    keys_in_order = sorted_keys(packed)

    def unpack(begin: int, end: int) -> list[Words]:
        rest, found = keys_in_order[begin:end], []
        for width in reversed(bits):
            found.append(rest & ((1 << width) - 1))
            rest = rest >> width
        return found[::-1]

    return unpack


def _pieces(
    rows: Callable[[int, int], list[Words]], columns: Sequence[_Column], size: int, delimiter: int
) -> Iterator[memoryview]:
    def write(begin: int) -> memoryview:
        found = rows(begin, min(begin + ROWS, size))
        told, room = [], 0
        for column, words in zip(columns, found, strict=True):
            if column.texts is None:
                np.add(words, column.least, out=words)
                told += [KINDS[column.kind], address_of(words), 0]
                room += (NUMBER_WIDTH + 1) * len(words)
            else:
                np.take(column.texts.spans, words, out=words)
                told += [A_TEXT, address_of(words), address_of(column.texts.data)]
                room += int((words & LENGTH).sum()) + len(words)
        piece: Bytes = np.empty(room, dtype=np.uint8)
        return piece[: write_rows(np.array(told, dtype=np.int64), len(found[0]), delimiter, address_of(piece))].data

    begins = range(0, size, ROWS)
    threads = parallel.threads(size)
    for at in range(0, len(begins), threads):
        yield from parallel.run([partial(write, begin) for begin in begins[at : at + threads]])


@kernel("words int int int")
def write_rows(columns: Any, count: int, delimiter: int, target: int) -> int:
    """Lines, and how many bytes they are. For each column, `columns` has its kind, the address of its words or spans, and that
    of its texts."""
    piece, end, last = bytes_at(target), 0, len(columns) - 3
    for row in range(count):
        for column in range(0, len(columns), 3):
            word = words_at(columns[column + 1])[row]
            if columns[column] == A_TEXT:
                source, begin = bytes_at(columns[column + 2]), word >> LENGTH_BITS
                for at in range(begin, begin + (word & LENGTH)):
                    piece[end] = source[at]
                    end += 1
            else:
                number = np.uint64(word)
                if columns[column] == A_NUMBER and word < 0:
                    piece[end] = MINUS
                    end += 1
                    number = -number
                end = write_number(number, piece, end)
            piece[end] = NEWLINE if column == last else delimiter
            end += 1
    return end


@compiled
def write_number(number: Any, piece: Any, end: int) -> int:
    """Digits from `end` on, and where they end."""
    width, rest = 1, number
    while rest >= np.uint64(10):
        rest //= np.uint64(10)
        width += 1
    for at in range(end + width - 1, end - 1, -1):
        piece[at] = ZERO + np.int64(number % np.uint64(10))
        number //= np.uint64(10)
    return end + width
