"""Lines of delimited text as columns: numbers as words, texts by their places in a list.

Loops look at each byte once. They take what is as plain as can be, and give up on everything else: whoever knows every form
reads it then, and says what is wrong with it. A text is a *span* until all are known, where it begins and how long it is in one
word, so that only texts that differ become objects.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whence.backends.local import parallel
from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.memory import (
    address_of,
    bytes_at,
    compiled,
    halves_at,
    kernel,
    prefetch,
    word_within,
    words_at,
)
from whence.io.plain_columns import Coded, PlainColumns, Words
from whence.lang.types import NUMBER, SYMBOL, UNSIGNED, Kind

Bytes = NDArray[np.uint8]

LENGTH_BITS = 24  # of a span
LENGTH = (1 << LENGTH_BITS) - 1
PADDING = 8  # bytes behind a text that can be read, since it is read by words
KINDS: dict[Kind, int] = {NUMBER: 0, UNSIGNED: 1, SYMBOL: 2}
A_NUMBER, AN_UNSIGNED, A_TEXT = KINDS.values()
SPACE, MINUS, ZERO, NEWLINE, RETURN = b" -0\n\r"
# What could be part of a number, or ends a line.
UNUSUAL_DELIMITERS = b"0123456789-\n\r"
LARGEST = (1 << 63) - 1
TENTH = (1 << 64) // 10  # of 64 bits without a sign, the last digit is at most 5
FULL = (1 << 32) - 1
BLOCK, FEW_SLOTS = 256, 1 << 12
WINDOW = 1 << 16


def read_padded(path: Path) -> Bytes | None:
    """The bytes of a file, with an end to its last line and room behind it; None if it cannot be read, or grows meanwhile."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data: Bytes = np.empty(size + 1 + PADDING, dtype=np.uint8)
            size = file.readinto(data[:size].data)
            if file.read(1):
                return None
    except OSError:
        return None
    data[size:] = NEWLINE
    return data[: size + (size > 0 and data[size - 1] != NEWLINE)]


def read_lines(data: Bytes, delimiter: int, kinds: Sequence[Kind]) -> PlainColumns | None:
    """The columns of lines that `read_padded` gave; None if they take more to read."""
    if delimiter in UNUSUAL_DELIMITERS:
        return None
    ends = _line_ends(data)
    counts = parallel.run([partial(_count, data[begin:end]) for begin, end in pairwise(ends)])
    firsts = [0, *accumulate(counts)]
    rows = firsts[-1]
    texts = [at for at, kind in enumerate(kinds) if kind == SYMBOL]
    spans: Lines = np.empty((len(texts), rows), dtype=np.int64)
    digests = np.empty((len(texts), rows), dtype=np.int32)
    words: list[Words] = [
        spans[texts.index(at)] if kind == SYMBOL else np.empty(rows, dtype=np.int64) for at, kind in enumerate(kinds)
    ]
    columns = np.array(
        [
            (KINDS[kind], address_of(words[at]), address_of(digests[texts.index(at)]) if kind == SYMBOL else 0)
            for at, kind in enumerate(kinds)
        ],
        dtype=np.int64,
    ).ravel()

    def read(part: int) -> bool:
        return bool(read_rows(address_of(data), ends[part], ends[part + 1], delimiter, columns, firsts[part]))

    if not all(parallel.run([partial(read, part) for part in range(len(counts))])):
        return None
    coded = _coded(data, spans.ravel(), digests.ravel())
    if coded is None:
        return None
    places = iter(coded.places.reshape(len(texts), rows))
    return PlainColumns(
        tuple(Coded(next(places), coded.values) if kind == SYMBOL else words[at] for at, kind in enumerate(kinds))
    )


def _line_ends(data: Bytes) -> list[int]:
    """Where the shares of the threads begin and end."""
    threads = parallel.threads(len(data) >> 5)
    ends = [0]
    for thread in range(1, threads):
        at = max(len(data) * thread // threads, ends[-1], 1)
        near = np.flatnonzero(data[at - 1 : at - 1 + WINDOW] == NEWLINE)
        # In the middle of a very long line nothing is shared.
        ends.append(at + int(near[0]) if len(near) else ends[-1])
    return [*ends, len(data)]


def _count(data: Bytes) -> int:
    return int(np.count_nonzero(data == NEWLINE))


def _coded(data: Bytes, spans: Words, digests: Ids) -> Coded | None:
    """The texts at spans, each once; None if they are not in UTF-8."""
    threads = parallel.threads(len(spans))
    places: Ids = np.empty(len(spans), dtype=np.int32)

    def number(thread: int) -> Words:
        found: Words = np.empty(len(spans), dtype=np.int64)
        return found[: number_texts(address_of(data), spans, digests, thread, threads, found, places)]

    found = parallel.run([partial(number, thread) for thread in range(threads)])
    if threads > 1:
        offsets = np.array([0, *accumulate(map(len, found))], dtype=np.int64)
        cuts = [len(spans) * at // threads for at in range(threads + 1)]
        shares = [slice(begin, end) for begin, end in pairwise(cuts)]
        parallel.run([partial(shift_places, digests[each], threads, offsets, places[each]) for each in shares])
    distinct = np.concatenate(found)
    if not len(distinct):
        return Coded(places, [])
    joined: Bytes = np.empty(int((distinct & LENGTH).sum()) + len(distinct), dtype=np.uint8)
    join_texts(address_of(data), distinct, address_of(joined))
    try:
        return Coded(places, joined[:-1].tobytes().decode().split("\n"))
    except UnicodeDecodeError:
        return None


@compiled
def digest_text(address: int, length: int) -> Any:
    """A number of 32 bits."""
    digest = np.uint64(length) * np.uint64(0x9E3779B97F4A7C15)
    while length > 0:
        word = word_within(address)
        if length < 8:
            word &= (np.uint64(1) << np.uint64(8 * length)) - np.uint64(1)
        digest = (digest ^ word) * np.uint64(0xD6E8FEB86659FD93)
        digest ^= digest >> np.uint64(32)
        address += 8
        length -= 8
    digest *= np.uint64(0x9E3779B97F4A7C15)
    return np.int64(digest >> np.uint64(32))


@compiled
def are_equal(one: int, other: int, length: int) -> bool:
    """Whether so many bytes are the same at two addresses."""
    while length >= 8:
        if word_within(one) != word_within(other):
            return False
        one += 8
        other += 8
        length -= 8
    if length <= 0:
        return True
    return bool(((word_within(one) ^ word_within(other)) << np.uint64(64 - 8 * length)) == np.uint64(0))


@kernel("int int int int words int")
def read_rows(address: int, begin: int, end: int, delimiter: int, columns: Any, row: int) -> int:
    """The rows in the bytes from `begin` to `end`, which end with a line, into the columns from `row` on. 0 if they are not
    plain. For each column, `columns` has its kind, the address of its words or spans, and that of the digests of its texts."""
    data, last = bytes_at(address), len(columns) - 3
    at = begin
    while at < end:
        for column in range(0, len(columns), 3):
            stop = NEWLINE if column == last else delimiter
            words = words_at(columns[column + 1])
            byte = np.int64(data[at])
            if columns[column] == A_TEXT:
                start = at
                while byte not in (delimiter, NEWLINE, RETURN):
                    at += 1
                    byte = np.int64(data[at])
                if at - start > LENGTH:
                    return 0
                words[row] = (start << LENGTH_BITS) | (at - start)
                halves_at(columns[column + 2])[row] = np.int32(digest_text(address + start, at - start))
            else:
                while byte == SPACE and byte != delimiter:
                    at += 1
                    byte = np.int64(data[at])
                is_negative = byte == MINUS
                if is_negative:
                    at += 1
                    byte = np.int64(data[at])
                start, found = at, np.uint64(0)
                while ZERO <= byte < ZERO + 10:
                    digit = np.uint64(byte - ZERO)
                    if found > np.uint64(TENTH) or (found == np.uint64(TENTH) and digit > np.uint64(5)):
                        return 0
                    found = found * np.uint64(10) + digit
                    at += 1
                    byte = np.int64(data[at])
                if at == start:
                    return 0
                if columns[column] == A_NUMBER:
                    if found > np.uint64(LARGEST) + np.uint64(is_negative):
                        return 0
                elif is_negative:
                    return 0
                words[row] = -np.int64(found) if is_negative else np.int64(found)
                while byte == SPACE and byte != delimiter:
                    at += 1
                    byte = np.int64(data[at])
            if byte != stop:
                return 0
            at += 1
        row += 1
    return 1


@kernel("int words ids int int words ids")
def number_texts(address: int, spans: Any, digests: Any, thread: int, threads: int, distinct: Any, places: Any) -> int:
    """Numbers the texts that are the thread's own by the first bits of their digests, from 0 on, and has the spans of those that
    differ in `distinct`; how many these are. What a text needs of memory is asked for ahead, a block of them at a time."""
    slots = np.zeros(FEW_SLOTS, dtype=np.int64)  # a digest, and the number of the text plus 1
    own_rows, own_digests = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
    count, row = 0, 0
    while row < len(spans):
        if 2 * (count + BLOCK) > len(slots):
            larger = np.zeros(4 * len(slots), dtype=np.int64)
            for at in range(len(slots)):
                if slots[at]:
                    slot = ((slots[at] >> 32) & FULL) & (len(larger) - 1)
                    while larger[slot]:
                        slot = (slot + 1) & (len(larger) - 1)
                    larger[slot] = slots[at]
            slots = larger
        mask, slots_at = len(slots) - 1, slots.ctypes.data
        own = 0
        while own < BLOCK and row < len(spans):
            digest = np.int64(digests[row]) & FULL
            if (digest * threads) >> 32 == thread:
                own_rows[own], own_digests[own] = row, digest
                prefetch(slots_at + 8 * (digest & mask))
                own += 1
            row += 1
        for at in range(own):
            entry = slots[own_digests[at] & mask]
            if entry:
                prefetch(address + (distinct[(entry & FULL) - 1] >> LENGTH_BITS))
        for at in range(own):
            span, digest = spans[own_rows[at]], own_digests[at]
            slot, number = digest & mask, -1
            while number < 0:
                entry = slots[slot]
                if entry == 0:
                    number = count
                    distinct[number] = span
                    count += 1
                    slots[slot] = (digest << 32) | count
                elif (entry >> 32) & FULL == digest:
                    other = distinct[(entry & FULL) - 1]
                    if (other ^ span) & LENGTH == 0 and are_equal(
                        address + (other >> LENGTH_BITS), address + (span >> LENGTH_BITS), span & LENGTH
                    ):
                        number = (entry & FULL) - 1
                slot = (slot + 1) & mask
            places[own_rows[at]] = number
    return count


@kernel("ids int words ids")
def shift_places(digests: Any, threads: int, offsets: Any, places: Any) -> None:
    """Behind the texts of the threads before that which numbered each."""
    for row in range(len(places)):
        digest = np.int64(digests[row]) & FULL
        places[row] += offsets[(digest * threads) >> 32]


@kernel("int words int")
def join_texts(address: int, spans: Any, target: int) -> None:
    """Copies the texts, each with the end of a line behind it."""
    source, copy, end = bytes_at(address), bytes_at(target), 0
    for number in range(len(spans)):
        begin = spans[number] >> LENGTH_BITS
        for at in range(begin, begin + (spans[number] & LENGTH)):
            copy[end] = source[at]
            end += 1
        copy[end] = NEWLINE
        end += 1
