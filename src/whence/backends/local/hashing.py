"""Lines that are found by value: the layout, the compiled loops that look them up, and how they grow.

A *line* is a run of 32-bit halves: columns first, then what its owner keeps with them. They share a cache line, since memory
latency is what a look-up costs. `step` is the number of halves a column takes: 1 while all words fit 32 bits, 2 otherwise.

A slot of the hash table holds a line's number in its low bits, as many as it takes to number the slots, and above them the same
bits of the line's hash. Nearly all lines that are not the one looked for are told by these bits, without going to the line.

A line of a table may stand for several rows, which differ in the last bits of their last column only: it has the columns once,
the last without these bits, and behind them what the owner keeps with each of the rows. The number of a row is that of its line
followed by those bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from whence.backends.local.arrays import Lines
from whence.backends.local.memory import Growing, address_of, compiled, halves_at, inlined, kernel, prefetch, words_at

EMPTY, DELETED = -1, -2
# What a handle of hashed lines begins with.
LINES, WIDTH, STEP, COLUMNS, CAPACITY, USED, SLOTS, MASK, FILLED, LIMIT, BITS = range(11)
OWN = 11  # from here on a handle is the owner's
BLOCK = 32  # so many look-ups are under way at once
FULL = 0xFFFFFFFF

Halves = NDArray[np.int32]
Handle = NDArray[np.int64]


@compiled
def word_at(halves: Any, base: int, column: int, step: int) -> int:
    if step == 1:
        return np.int64(halves[base + column])  # type: ignore[return-value]
    high, low = np.int64(halves[base + 2 * column + 1]), np.int64(halves[base + 2 * column])
    return (high << 32) | (low & FULL)  # type: ignore[return-value]


@compiled
def hash_at(halves: Any, base: int, columns: int, step: int) -> int:
    """32 bits, from the high end of a product, where all bits of the input have arrived."""
    hashed = np.uint64(0x2545F4914F6CDD1D)
    for column in range(columns):
        hashed = (hashed ^ np.uint64(word_at(halves, base, column, step))) * np.uint64(0x9E3779B97F4A7C15)
        hashed ^= hashed >> np.uint64(32)
    return np.int64((hashed * np.uint64(0xD6E8FEB86659FD93)) >> np.uint64(32))  # type: ignore[return-value]


@compiled
def hash_key(key: Any, base: int, columns: int, bits: int) -> int:
    """The hash of the line that a key is in: its last word without its last bits."""
    hashed = np.uint64(0x2545F4914F6CDD1D)
    for column in range(columns):
        word = word_at(key, base, column, 2)
        if column == columns - 1:
            word >>= bits
        hashed = (hashed ^ np.uint64(word)) * np.uint64(0x9E3779B97F4A7C15)
        hashed ^= hashed >> np.uint64(32)
    return np.int64((hashed * np.uint64(0xD6E8FEB86659FD93)) >> np.uint64(32))  # type: ignore[return-value]


@compiled
def same_words(halves: Any, base: int, step: int, key: Any, key_base: int, columns: int, bits: int) -> bool:
    """Whether a line has the words of a key, whose columns take two halves each, but for the last bits."""
    same = True
    for column in range(columns - 1):
        if word_at(halves, base, column, step) != word_at(key, key_base, column, 2):
            same = False
            break
    if same and columns > 0:
        same = word_at(halves, base, columns - 1, step) == word_at(key, key_base, columns - 1, 2) >> bits
    return same


@compiled
def shape_of(handle: Any) -> Any:
    """What says where the words of a row are: the halves of a line, those of its columns, the bits, the step, the last column."""
    return handle[WIDTH], handle[COLUMNS] * handle[STEP], handle[BITS], handle[STEP], handle[COLUMNS] - 1


@compiled
def row_word(lines: Any, shape: Any, row: int, column: int) -> int:
    width, _, bits, step, last = shape
    word = word_at(lines, (row >> bits) * width, column, step)
    if column == last:
        word = (word << bits) | (row & ((np.int64(1) << bits) - 1))
    return word


@inlined
def seek(slots: Any, mask: int, hashed: int, lines: Any, layout: Any, key: Any, key_base: int) -> Any:
    """The line with the words of a key, or -1, and its slot; if there is none, the slot for it: that of a line that was taken
    out, or the empty one. `layout` is the halves of a line, the step, the columns and the bits.
    """
    width, step, columns, bits = layout
    slot: Any = hashed & mask
    reusable: Any = np.int64(-1)
    word = np.int64(slots[slot])
    while word != EMPTY:
        if word == DELETED:
            reusable = slot
        elif (word ^ hashed) & (FULL ^ mask) == 0 and same_words(
            lines, (word & mask) * width, step, key, key_base, columns, bits
        ):
            return word & mask, slot
        slot = (slot + 1) & mask
        word = np.int64(slots[slot])
    return np.int64(-1), reusable if reusable >= 0 else slot


@inlined
def layout_of(handle: Any) -> Any:
    """As `seek` is told it."""
    return handle[WIDTH], handle[STEP], handle[COLUMNS], handle[BITS]


@compiled
def find_line(handle: Any, key: Any, key_base: int, hashed: int) -> int:
    """The line with the words of a key, or -1."""
    lines, slots = halves_at(handle[LINES]), halves_at(handle[SLOTS])
    line, _ = seek(slots, handle[MASK], hashed, lines, layout_of(handle), key, key_base)
    return line  # type: ignore[no-any-return]


@compiled
def hash_block(handle: Any, keys: Any, start: int, size: int, hashes: Any) -> None:
    """Hashes `size` keys from the one at `start`, and asks for the slots and then for the lines they may be in."""
    slots_at, lines_at = handle[SLOTS], handle[LINES]
    mask, columns, length, bits = handle[MASK], handle[COLUMNS], 4 * handle[WIDTH], handle[BITS]
    low, first = (np.int64(1) << bits) - 1, 4 * columns * handle[STEP]
    own = (length - first) >> bits
    for at in range(size):
        hashes[at] = hash_key(keys, 2 * columns * (start + at), columns, bits)
        prefetch(slots_at + 4 * (hashes[at] & mask))
    slots = halves_at(slots_at)
    for at in range(size):
        word = np.int64(slots[hashes[at] & mask])
        if (word ^ hashes[at]) & (FULL ^ mask) == 0:
            place = lines_at + length * (word & mask)
            prefetch(place)
            if low:  # what is known of a row of a long line, from its first half to its last
                place += first + own * (word_at(keys, 2 * columns * (start + at), columns - 1, 2) & low)
                prefetch(place)
                prefetch(place + own - 4)


@kernel("int int int int")
def fill_slots(address: int, first: int, flags: int, unwanted: int) -> None:
    """Fills empty slots with the lines in use from the first on, but not those with the unwanted bits in the half `flags`."""
    handle = words_at(address)
    lines, slots, mask = halves_at(handle[LINES]), halves_at(handle[SLOTS]), handle[MASK]
    width, step, columns, used = handle[WIDTH], handle[STEP], handle[COLUMNS], handle[USED]
    hashes = np.empty(BLOCK, dtype=np.int64)
    filled = 0
    for start in range(first, used, BLOCK):
        count = min(BLOCK, used - start)
        for at in range(count):
            hashes[at] = hash_at(lines, (start + at) * width, columns, step)
            prefetch(handle[SLOTS] + 4 * (hashes[at] & mask))
        for at in range(count):
            if unwanted and lines[(start + at) * width + flags] & unwanted:
                continue
            slot = hashes[at] & mask
            while slots[slot] != EMPTY:
                slot = (slot + 1) & mask
            slots[slot] = np.int32((hashes[at] & (FULL ^ mask)) | (start + at))
            filled += 1
    handle[FILLED] = filled if first == 0 else handle[FILLED] + filled


@kernel("int ids lines")
def read_lines(address: int, ids: Any, out: Any) -> None:
    """The words of the lines asked for."""
    handle = words_at(address)
    lines, shape = halves_at(handle[LINES]), shape_of(handle)
    for at in range(len(ids)):
        for column in range(out.shape[1]):
            out[at, column] = row_word(lines, shape, np.int64(ids[at]), column)


@kernel("int ids int words")
def read_column(address: int, ids: Any, column: int, out: Any) -> None:
    handle = words_at(address)
    lines, shape = halves_at(handle[LINES]), shape_of(handle)
    for at in range(len(ids)):
        out[at] = row_word(lines, shape, np.int64(ids[at]), column)


@kernel("lines lines")
def choose_distinct(lines: Any, out: Any) -> int:
    """Each line once, in the order they come first; returns how many there are."""
    count, columns, size, end = lines.shape[0], lines.shape[1], 2 * BLOCK, 0
    while size < 2 * count:
        size *= 2
    slots = np.full(size, EMPTY, dtype=np.int32)
    words, chosen = halves_at(lines.ctypes.data), halves_at(out.ctypes.data)
    for at in range(count):
        key = 2 * columns * at
        slot = hash_at(words, key, columns, 2) & (size - 1)
        while slots[slot] != EMPTY and not same_words(chosen, 2 * columns * slots[slot], 2, words, key, columns, 0):
            slot = (slot + 1) & (size - 1)
        if slots[slot] == EMPTY:
            slots[slot] = end
            for column in range(columns):
                out[end, column] = lines[at, column]
            end += 1
    return end


def distinct_lines(lines: Lines) -> Lines:
    """Each line once."""
    if len(lines) < 2:
        return lines
    chosen: Lines = np.empty_like(lines)
    return chosen[: choose_distinct(lines, chosen)]


def _limit(slots: int) -> int:
    """How many slots may be filled."""
    return (slots * 5) // 8


class HashedLines:
    """The arrays behind a handle. `own_halves` is what a line has besides its columns, `own_words` what the handle has."""

    def __init__(self, columns: int, step: int, own_halves: int, own_words: int) -> None:
        self.columns = columns
        self.handle: Handle = np.zeros(OWN + own_words, dtype=np.int64)
        self.address = address_of(self.handle)
        self.handle[STEP], self.handle[COLUMNS] = step, columns
        self.empty(own_halves, 0)

    def empty(self, own_halves: int, bits: int) -> None:
        """No lines, and so many rows to a line from now on. `own_halves` are those of all its rows."""
        self.own_halves = own_halves
        self.room = Growing((2 * BLOCK >> bits) or 1, self.columns * int(self.handle[STEP]) + own_halves)
        self.slot_room = Growing(4 * BLOCK, 1)
        self.handle[BITS] = bits
        self.clear()
        self._moved()

    @property
    def lines(self) -> Halves:
        return self.room.array

    @property
    def slots(self) -> Halves:
        return self.slot_room.array

    def _moved(self) -> None:
        handle = self.handle
        handle[LINES], handle[WIDTH], handle[CAPACITY] = address_of(self.lines), self.lines.shape[1], len(self.lines)
        handle[SLOTS], handle[MASK] = address_of(self.slots), len(self.slots) - 1
        handle[LIMIT] = _limit(len(self.slots))

    def make_room(self, live: int, flags: int, unwanted: int, more: int = BLOCK) -> None:
        """Room for so many more: lines if they are used up, slots if too many are filled.

        `live` is how many of the lines are in slots: those without the unwanted bits in the half `flags`.
        """
        self.make_lines(more)
        if self.handle[FILLED] + more > self.handle[LIMIT]:
            # Slots that held deleted lines are filled too; if there are many, the same number of slots will do.
            size = len(self.slots) if live + more < len(self.slots) // 4 else 2 * len(self.slots)
            self.fill_anew(live + more, size, flags, unwanted)

    def make_lines(self, more: int, *, in_small_pages: bool = False) -> None:
        used = int(self.handle[USED])
        if used + more > len(self.lines):
            self.room.grow(used + max(used // 2, more) + BLOCK, in_small_pages=in_small_pages)
            self._moved()

    def give_back(self) -> None:
        """The room that was made and is not used."""
        used = int(self.handle[USED])
        self.room.shrink(used + BLOCK)
        self._moved()

    def take_over(self, lines: Halves) -> None:
        """Lines that were another's, for which no slots are filled. There may be none yet."""
        self.make_lines(len(lines))
        self.lines[: len(lines)] = lines
        self.handle[USED] = len(lines)

    def fill_anew(self, lines: int, size: int, flags: int, unwanted: int) -> None:
        """At least `size` slots, and room in them for so many lines."""
        while lines > _limit(size):
            size *= 2
        self.slot_room.grow(size)
        self.slots.fill(EMPTY)
        self._moved()
        fill_slots(self.address, 0, flags, unwanted)

    def clear(self) -> None:
        self.slots.fill(EMPTY)
        self.handle[USED] = self.handle[FILLED] = 0

    def widen(self) -> None:
        """From now on a column takes two halves."""
        used, columns = int(self.handle[USED]), self.columns
        room = Growing(0, 2 * columns + self.own_halves)
        room.grow(len(self.lines))
        wide = room.array
        wide[:used, 0 : 2 * columns : 2] = self.lines[:used, :columns]
        wide[:used, 1 : 2 * columns : 2] = self.lines[:used, :columns] >> 31
        wide[:used, 2 * columns :] = self.lines[:used, columns:]
        self.room = room
        self.handle[STEP] = 2
        self._moved()

    @property
    def nbytes(self) -> int:
        return self.lines.nbytes + self.slots.nbytes
