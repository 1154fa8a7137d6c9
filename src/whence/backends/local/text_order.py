"""The order of rows and of texts, by digits: no two of them are compared.

Rows whose columns fit into one word together are sorted as such *keys*, with the first column in the highest bits; each thread
takes those between two bounds. Texts are sorted by eight bytes after the other, from the second time on only those that are
alike so far.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whence.backends.local import parallel
from whence.backends.local.arrays import Ids
from whence.backends.local.memory import address_of, compiled, kernel, word_within
from whence.backends.local.text_in import LENGTH, LENGTH_BITS, Bytes
from whence.io.plain_columns import Words

KEY_BITS = 62
DIGIT_BITS = 8
EACH_BYTE, EACH_PAIR = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
SAMPLE = 1 << 12  # of the keys, from which the bounds of threads are taken


def sorted_keys(keys: Words) -> Words:
    """Numbers of no more than `KEY_BITS` bits, in order."""
    threads = parallel.threads(len(keys))
    sample = np.sort(keys[:: max(1, len(keys) // SAMPLE)])
    bounds = [0, *(int(sample[len(sample) * at // threads]) for at in range(1, threads)), 1 << KEY_BITS]
    ends = [*parallel.run([partial(_count_below, keys, bound) for bound in bounds[:-1]]), len(keys)]
    found: Words = np.empty(len(keys), dtype=np.int64)
    spare: Words = np.empty(len(keys), dtype=np.int64)

    def sort(share: int) -> None:
        own = slice(ends[share], ends[share + 1])
        sort_keys(keys, bounds[share], bounds[share + 1], found[own], spare[own])

    parallel.run([partial(sort, share) for share in range(threads)])
    return found


def _count_below(keys: Words, bound: int) -> int:
    return int(np.count_nonzero(keys < bound))


def order_of_texts(data: Bytes, spans: Words) -> Ids:
    """Which text is the first by its bytes, and so on; they are different, and `data` can be read behind the last."""
    order: Ids = np.arange(len(spans), dtype=np.int32)
    tied: Words = np.arange(len(spans))  # the places in that order which are not settled
    groups: Words = np.zeros(len(spans), dtype=np.int64)  # of texts that are alike so far
    longest, depth = int((spans & LENGTH).max(initial=0)), 0
    while len(tied) > 1:
        texts = order[tied]
        words: Words = spans[texts] & LENGTH  # of texts that differ in zeros at their ends only
        if depth < longest:
            read_words(address_of(data), spans, texts, depth, words)
        places: Ids = np.arange(len(tied), dtype=np.int32)
        order_words(words.copy(), places)
        if depth:
            order_words(groups[places], places)
        order[tied] = texts[places]
        words, groups = words[places], groups[places]
        begins: NDArray[np.bool_] = np.ones(len(tied) + 1, dtype=np.bool_)
        begins[1:-1] = (words[1:] != words[:-1]) | (groups[1:] != groups[:-1])
        alike = np.flatnonzero(~(begins[:-1] & begins[1:]))
        tied, groups = tied[alike], np.cumsum(begins[:-1], dtype=np.int64)[alike]
        depth += 8
    return order


@kernel("words int int words words")
def sort_keys(keys: Any, least: int, bound: int, found: Any, spare: Any) -> None:
    """Those of the keys that are not less than the one and less than the other, as many as there is room for."""
    count, all_set, some_set = 0, -1, 0
    for at in range(len(keys)):
        key = keys[at]
        if least <= key < bound:
            found[count] = key
            all_set &= key
            some_set |= key
            count += 1
    ends = np.empty(1 << DIGIT_BITS, dtype=np.int64)
    source, target, is_elsewhere = found, spare, False
    for shift in range(0, KEY_BITS, DIGIT_BITS):
        if ((all_set ^ some_set) >> shift) & (len(ends) - 1) == 0:
            continue
        begin_digits(source, shift, ends)
        for at in range(count):
            digit = (source[at] >> shift) & (len(ends) - 1)
            target[ends[digit]] = source[at]
            ends[digit] += 1
        source, target = target, source
        is_elsewhere = not is_elsewhere
    if is_elsewhere:
        for at in range(count):
            found[at] = spare[at]


@kernel("words ids")
def order_words(words: Any, order: Any) -> None:
    """Puts them in order, as numbers without a sign, and what belongs to each along with it; equal ones stay as they are."""
    all_set, some_set = -1, 0
    for at in range(len(words)):
        all_set &= words[at]
        some_set |= words[at]
    ends = np.empty(1 << DIGIT_BITS, dtype=np.int64)
    other_words, other_order = np.empty(len(words), dtype=np.int64), np.empty(len(words), dtype=np.int32)
    for shift in range(0, 64, DIGIT_BITS):
        if ((all_set ^ some_set) >> shift) & (len(ends) - 1) == 0:
            continue
        begin_digits(words, shift, ends)
        for at in range(len(words)):
            digit = (words[at] >> shift) & (len(ends) - 1)
            place = ends[digit]
            other_words[place], other_order[place] = words[at], order[at]
            ends[digit] += 1
        for at in range(len(words)):
            words[at], order[at] = other_words[at], other_order[at]


@compiled
def begin_digits(words: Any, shift: int, ends: Any) -> None:
    """Where the words with each digit begin when they are in its order."""
    for digit in range(len(ends)):
        ends[digit] = 0
    for at in range(len(words)):
        ends[(words[at] >> shift) & (len(ends) - 1)] += 1
    before = 0
    for digit in range(len(ends)):
        before, ends[digit] = before + ends[digit], before


@kernel("int words ids int words")
def read_words(address: int, spans: Any, texts: Any, depth: int, words: Any) -> None:
    """The eight bytes of each text from `depth` on, the first of them in the highest bits, and zeros behind its end."""
    for at in range(len(texts)):
        span = spans[texts[at]]
        left, word = (span & LENGTH) - depth, np.uint64(0)
        if left > 0:
            word = word_within(address + (span >> LENGTH_BITS) + depth)
            if left < 8:
                word &= (np.uint64(1) << np.uint64(8 * left)) - np.uint64(1)
            # The first byte is the lowest of a word: they change places, then pairs do, then halves.
            word = ((word & EACH_BYTE) << np.uint64(8)) | ((word >> np.uint64(8)) & EACH_BYTE)
            word = ((word & EACH_PAIR) << np.uint64(16)) | ((word >> np.uint64(16)) & EACH_PAIR)
            word = (word << np.uint64(32)) | (word >> np.uint64(32))
        words[at] = np.int64(word)
