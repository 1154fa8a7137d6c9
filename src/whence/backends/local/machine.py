"""A small machine that runs delta plans on words: one compiled loop for all programs.

A plan becomes a list of instructions over registers, one for each slot. A register holds a block of values: the machine takes
changed rows a block at a time and each instruction goes over the whole block, so that the lines of a block share what it costs
to read an instruction. A join opens a block for its results, a depth further; when it is full the instructions behind the join
run, and then the join goes on. Each time the machine comes to the end of the instructions it writes heads. It stops when its
output is full and can go on from there, since all it knows is in `state` and `blocks`. It also stops now and then, so that those
who wait can see whether it takes too long, and where there is no room for a record, branch or list that it makes. Nothing is
compiled for a program, and a round of a recursion costs a few calls.

Where several atoms that are otherwise bound have the next variable, as in a triangle, the values of any of them will do, if the
others are then asked. The machine *chooses* for each line the atom with the fewest rows, so that no more is looked at than is in
the shortest list. The joins of these atoms take turns with the lines of a block, each with those that were given to it.

Where a later step asks for a value that a join finds, together with others that many lines have in common, the join has a
*sieve* (see `sieves`), and most of the rows that would be dropped later are not joined at all.

Instructions are runs of int64: an operation, its length, its operands (see `operands`). Tables and indexes are named by the
addresses of their handles. In front stands what is done with the changed rows: their table, whether it is recursive, then how
many columns go into registers, are compared with a constant, and are compared with each other, the registers for a row and for
its bits if rows of a line go together (see `bundles`; or -1), and the columns in turn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whence.backends.local.cells import add_cell, has_room, size_at
from whence.backends.local.hashing import (
    BITS,
    COLUMNS,
    EMPTY,
    FULL,
    LINES,
    MASK,
    SLOTS,
    WIDTH,
    find_line,
    hash_at,
    hash_block,
    row_word,
    same_words,
    shape_of,
    word_at,
)
from whence.backends.local.kernels import FLAGS, RANK, find_row, row_end
from whence.backends.local.links import ARENA, BEGIN, LENGTH
from whence.backends.local.memory import compiled, halves_at, kernel, prefetch, words_at
from whence.backends.local.operands import COLUMN, CONSTANT, REGISTER, load_operands
from whence.backends.local.sieves import LOOKED, SHIFT, TESTED, UNTIL, area_of, mark_run, sift
from whence.lang.sizes import LARGEST_STRUCTURE

JOIN, CHECK, COMPARE, COMPUTE, EMIT, EMIT_JOINED, BUILD, TAKE_APART, EMIT_BUNDLES, JUMP = range(1, 11)
# Where the lists of an instruction begin.
SCAN, JOINED, CHECKED, COMPARED, BUILT, TAKEN = 7, 13, 8, 5, 7, 6
# In a join: the place of the choice that it is one of, or 0, and which. There are the registers for where rows begin and end and
# for whose they are, how many joins there are, and their places. Then the place of the join's sieve: less than 0 if that is not
# in use, 0 if there is none.
CHOICE, NUMBER, SIEVE = 10, 11, 12
CHOSEN_BEGIN, CHOSEN_END, GIVEN_TO, JOINS, CHOSEN_FROM = range(5)
EQUAL, UNEQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL = range(6)
ADD, SUBTRACT, MULTIPLY, NEGATE, BIT_AND, BIT_OR, BIT_XOR, BIT_NOT, MINIMUM, MAXIMUM, COPY = range(11)
_SIGN = -(1 << 63)
AS_NUMBER, AS_UNSIGNED, AS_FLOAT = range(3)

BLOCK = 256
# `blocks` is: depth, register, line. Behind the registers stand the highest rank that a line uses, and where the rows that it
# joins with begin and end in the arena of the join's index.
RANKS, FIRSTS, LASTS = 3, 2, 1
# What `state` holds: the next changed row, the depth reached, where to go on, and if that is in the middle of the code the
# instruction and the lines of its block; why the machine stopped, how many lines it may still look at before it does, whose
# room is used up; how many joins there are, where the memory of sieves is; then, for each open join, the lines of its block and
# how many are done; then where it is in the code.
NEXT, DEPTH, RESUME, AT, SIZE, STATUS, FUEL, WANTS, LEVELS, MARKS, SIZES = range(11)
AT_START, AFTER_HEADS, IN_CODE = range(3)
DONE, IS_FULL, IS_LATE, NEEDS_ROOM, IS_TOO_LARGE = range(5)
# Some hundredths of a second.
PATIENCE = 1 << 21


@compiled
def _compare(op: int, kind: int, left: int, right: int) -> bool:
    if op == EQUAL:
        return left == right
    if op == UNEQUAL:
        return left != right
    if kind == AS_UNSIGNED:
        # Order is kept when the sign bit is flipped.
        left, right = left ^ _SIGN, right ^ _SIGN
    return (
        left < right
        if op == LESS
        else left <= right
        if op == LESS_EQUAL
        else left > right
        if op == GREATER
        else left >= right
    )


@compiled
def _compute(op: int, left: int, right: int) -> int:
    if op == ADD:
        return left + right
    if op == SUBTRACT:
        return left - right
    if op == MULTIPLY:
        return left * right
    if op == NEGATE:
        return -left
    if op == BIT_AND:
        return left & right
    if op == BIT_OR:
        return left | right
    if op == BIT_XOR:
        return left ^ right
    if op == BIT_NOT:
        return ~left
    if op == MINIMUM:
        return min(left, right)
    if op == MAXIMUM:
        return max(left, right)
    return left


@compiled
def load_block(code: Any, ids: Any, start: int, blocks: Any) -> int:
    """The registers of the first block from changed rows; those that do not fit left out. Returns how many fit."""
    table = words_at(code[0])
    lines, shape = halves_at(table[LINES]), shape_of(table)
    binds, equals, same, own, places = code[2], code[3], code[4], code[5], code[6]
    rank, bits = blocks.shape[1] - RANKS, table[BITS]
    end, line = 0, np.int64(-1)
    for at in range(start, min(start + BLOCK, len(ids))):
        row, offset, fits = np.int64(ids[at]), SCAN + 2 * binds, True
        for _ in range(equals):
            fits = fits and row_word(lines, shape, row, code[offset]) == code[offset + 1]
            offset += 2
        for _ in range(same):
            fits = fits and row_word(lines, shape, row, code[offset]) == row_word(lines, shape, row, code[offset + 1])
            offset += 2
        if fits and own >= 0:
            place = np.int64(1) << (row & ((np.int64(1) << bits) - 1))
            if row >> bits == line:
                blocks[0, places, end - 1] |= place
                continue
            line = row >> bits
            blocks[0, own, end], blocks[0, places, end] = row, place
        if fits:
            for bind in range(SCAN, SCAN + 2 * binds, 2):
                blocks[0, code[bind + 1], end] = row_word(lines, shape, row, code[bind])
            blocks[0, rank, end] = lines[row_end(shape, row) - RANK] if code[1] and own < 0 else -1
            end += 1
    return end


@compiled
def open_join(code: Any, at: int, blocks: Any, depth: int, size: int, keys: Any) -> None:
    """Finds the rows that each line of the block joins with.

    The first join of a choice gives each line to the one that has the fewest rows for it; each has those of its own lines only.
    """
    choice, number = code[at + CHOICE], code[at + NUMBER]
    first, last = blocks[depth, blocks.shape[1] - FIRSTS], blocks[depth, blocks.shape[1] - LASTS]
    begin, end, given_to = first, last, first
    if choice:
        begin, end = blocks[depth, code[choice + CHOSEN_BEGIN]], blocks[depth, code[choice + CHOSEN_END]]
        given_to = blocks[depth, code[choice + GIVEN_TO]]
    if number == 0:
        for each in range(code[choice + JOINS] if choice else 1):
            find_joined(code, code[choice + CHOSEN_FROM + each] if choice else at, blocks, depth, size, keys)
            if choice:
                for line in range(size):
                    if each == 0 or last[line] - first[line] < end[line] - begin[line]:
                        begin[line], end[line], given_to[line] = first[line], last[line], each
    if choice:
        for line in range(size):
            is_own = given_to[line] == number
            first[line], last[line] = begin[line] if is_own else 0, end[line] if is_own else 0


@compiled
def next_choice(code: Any, at: int) -> int:
    """The join that comes after one for the lines of a block, or 0."""
    choice, number = code[at + CHOICE], code[at + NUMBER] + 1
    return code[choice + CHOSEN_FROM + number] if choice > 0 and number < code[choice + JOINS] else 0  # type: ignore[no-any-return]


@compiled
def find_joined(code: Any, at: int, blocks: Any, depth: int, size: int, keys: Any) -> None:
    """Where the rows that each line joins with begin and end."""
    index, count = words_at(code[at + 3]), code[at + 6]
    first, last = blocks.shape[1] - FIRSTS, blocks.shape[1] - LASTS
    load_operands(code, at + JOINED, count, blocks, depth, size, keys)
    lines, width = halves_at(index[LINES]), index[WIDTH]
    slots, mask, words = halves_at(index[SLOTS]), index[MASK], halves_at(keys.ctypes.data)
    hashes = blocks[depth, first]
    for line in range(size):
        hashes[line] = hash_at(words, 2 * count * line, count, 2)
        prefetch(index[SLOTS] + 4 * (hashes[line] & mask))
    for line in range(size):
        word = np.int64(slots[hashes[line] & mask])
        if (word ^ hashes[line]) & (FULL ^ mask) == 0:
            prefetch(index[LINES] + 4 * width * (word & mask))
    for line in range(size):
        key = 2 * count * line
        hashed = hashes[line]
        slot = hashed & mask
        word = np.int64(slots[slot])
        begin, end = np.int64(0), np.int64(0)
        while word != EMPTY:
            if (word ^ hashed) & (FULL ^ mask) == 0 and same_words(
                lines, (word & mask) * width, 2, words, key, count, 0
            ):
                base = ((word & mask) + 1) * width
                begin = np.int64(lines[base - BEGIN])
                end = begin + lines[base - LENGTH]
                break
            slot = (slot + 1) & mask
            word = np.int64(slots[slot])
        prefetch(index[ARENA] + 4 * begin)
        blocks[depth, first, line], blocks[depth, last, line] = begin, end


@compiled
def match_join(code: Any, at: int, blocks: Any, depth: int, state: Any, keys: Any, pairs: Any) -> int:
    """The next pairs of a line and a row that join, as many as a block holds.

    Returns their number, which is 0 when there are no more or it takes too long to find one.
    """
    table, index = words_at(code[at + 2]), words_at(code[at + 3])
    lines, shape = halves_at(table[LINES]), shape_of(table)
    arena, forbid, same = halves_at(index[ARENA]), code[at + 4], code[at + 8]
    compared = at + JOINED + 2 * (code[at + 6] + code[at + 7])
    first, last = blocks[depth, blocks.shape[1] - FIRSTS], blocks[depth, blocks.shape[1] - LASTS]
    picks, rows, sieve = pairs[0], pairs[1], code[at + SIEVE]
    area = words_at(state[MARKS])
    if sieve > 0:
        area = area_of(code, sieve, state[MARKS])
    size, line, end = state[SIZES + 2 * depth], state[SIZES + 2 * depth + 1], 0
    while end == 0 and line < size and state[FUEL] > 0:
        before = state[FUEL]
        while end < BLOCK and line < size and state[FUEL] > 0:
            if sieve > 0 and line >= area[UNTIL]:
                state[FUEL] -= mark_run(code, sieve, blocks[depth], line, size, first, last, state[MARKS], keys)
            begin = first[line]
            stop = min(last[line], begin + BLOCK - end)
            if sieve > 0 and area[SHIFT] > 0:
                end = sift(area, lines, shape, code[sieve + TESTED], arena, begin, stop, line, pairs, end)
            else:
                for place in range(begin, stop):
                    picks[end] = line
                    rows[end] = arena[place]
                    end += 1
            first[line] = stop
            state[FUEL] -= stop - begin
            if stop == last[line]:
                line += 1
        if sieve < 0:
            code[LOOKED - sieve] += before - state[FUEL]
        state[FUEL] -= 1
        if forbid and not same:
            found, end = end, 0
            for pair in range(found):
                row = rows[pair]
                picks[end], rows[end] = picks[pair], row
                end += not lines[row_end(shape, row) - FLAGS] & forbid
        elif same:
            found, end = end, 0
            for pair in range(found):
                row = rows[pair]
                fits = not lines[row_end(shape, row) - FLAGS] & forbid
                for one in range(compared, compared + 2 * same, 2):
                    fits = fits and row_word(lines, shape, row, code[one]) == row_word(lines, shape, row, code[one + 1])
                picks[end], rows[end] = picks[pair], row
                end += fits
    state[SIZES + 2 * depth + 1] = line
    return end


@compiled
def gather_join(code: Any, at: int, blocks: Any, depth: int, pairs: Any, size: int) -> None:
    """A block at `depth` + 1 from pairs of a line and a row."""
    table = words_at(code[at + 2])
    lines, shape = halves_at(table[LINES]), shape_of(table)
    binds, same, carried = code[at + 7], code[at + 8], code[at + 9]
    bound = at + JOINED + 2 * code[at + 6]
    for bind in range(bound, bound + 2 * binds, 2):
        column, register = code[bind], code[bind + 1]
        for pair in range(size):
            blocks[depth + 1, register, pair] = row_word(lines, shape, pairs[1, pair], column)
    listed = bound + 2 * (binds + same)
    for carry in range(listed, listed + carried):
        register = code[carry]
        for pair in range(size):
            blocks[depth + 1, register, pair] = blocks[depth, register, pairs[0, pair]]
    join_ranks(code, at, blocks, depth, pairs, size, blocks[depth + 1, blocks.shape[1] - RANKS])


@compiled
def join_ranks(code: Any, at: int, blocks: Any, depth: int, pairs: Any, size: int, out: Any) -> None:
    """The highest rank that each pair uses."""
    ranks = blocks[depth, blocks.shape[1] - RANKS]
    for pair in range(size):
        out[pair] = ranks[pairs[0, pair]]
    if code[at + 5]:
        table = words_at(code[at + 2])
        lines, shape = halves_at(table[LINES]), shape_of(table)
        for pair in range(size):
            out[pair] = max(np.int64(out[pair]), np.int64(lines[row_end(shape, pairs[1, pair]) - RANK]))


@compiled
def emit_joined(
    code: Any, at: int, blocks: Any, depth: int, pairs: Any, size: int, heads: Any, head_ranks: Any, written: int
) -> None:
    """Heads straight from the pairs of the last join, with no block in between."""
    table = words_at(code[at + 2])
    lines, shape = halves_at(table[LINES]), shape_of(table)
    operands = at + code[at + 1] + 2
    for column in range(heads.shape[1]):
        source, word = code[operands + 2 * column], code[operands + 2 * column + 1]
        if source == CONSTANT:
            for pair in range(size):
                heads[written + pair, column] = word
        elif source == REGISTER:
            for pair in range(size):
                heads[written + pair, column] = blocks[depth, word, pairs[0, pair]]
        else:
            for pair in range(size):
                heads[written + pair, column] = row_word(lines, shape, pairs[1, pair], word)
    join_ranks(code, at, blocks, depth, pairs, size, head_ranks[written:])


@compiled
def emit_bundles(
    code: Any, at: int, blocks: Any, depth: int, pairs: Any, size: int, heads: Any, head_ranks: Any, written: int
) -> int:
    """The same for rows that share a line, as bundles; returns how many there are."""
    table = words_at(code[at + 2])
    lines, shape, bits = halves_at(table[LINES]), shape_of(table), table[BITS]
    operands, columns = at + code[at + 1] + 2, heads.shape[1] - 2
    ranks = blocks[depth, blocks.shape[1] - RANKS]
    end, pick, line = written - 1, np.int64(-1), np.int64(-1)
    for pair in range(size):
        row = pairs[1, pair]
        place = np.int64(1) << (row & ((np.int64(1) << bits) - 1))
        if pairs[0, pair] == pick and row >> bits == line:
            heads[end, columns + 1] |= place
            continue
        pick, line = pairs[0, pair], row >> bits
        end += 1
        for column in range(columns):
            source, word = code[operands + 2 * column], code[operands + 2 * column + 1]
            if source == REGISTER:
                word = blocks[depth, word, pick]
            elif source == COLUMN:
                word = row_word(lines, shape, row, word)
            heads[end, column] = word
        heads[end, columns], heads[end, columns + 1] = row, place
        head_ranks[end] = ranks[pick]
    return end + 1 - written


@compiled
def keep_lines(code: Any, at: int, carried: int, blocks: Any, depth: int, kept: Any, size: int) -> int:
    """Keeps the lines of a block that are marked; the registers listed in the code are still needed."""
    end, rank = 0, blocks.shape[1] - RANKS
    for line in range(size):
        if kept[line]:
            for carry in range(at, at + carried):
                blocks[depth, code[carry], end] = blocks[depth, code[carry], line]
            blocks[depth, rank, end] = blocks[depth, rank, line]
            end += 1
    return end


@compiled
def check_block(code: Any, at: int, blocks: Any, depth: int, size: int, keys: Any, pairs: Any) -> int:
    """Keeps the lines for which a row is there, or is not there."""
    table, count = words_at(code[at + 2]), code[at + 6]
    lines, shape, rank = halves_at(table[LINES]), shape_of(table), blocks.shape[1] - RANKS
    load_operands(code, at + CHECKED, count, blocks, depth, size, keys)
    words = halves_at(keys.ctypes.data)
    hash_block(table, words, 0, size, pairs[1])
    for line in range(size):
        row = find_row(table, words, 2 * count * line, pairs[1, line])
        there = row >= 0 and not lines[row_end(shape, row) - FLAGS] & code[at + 3]
        pairs[0, line] = there == (code[at + 4] == 1)
        if there and code[at + 5]:
            blocks[depth, rank, line] = max(blocks[depth, rank, line], np.int64(lines[row_end(shape, row) - RANK]))
    return keep_lines(code, at + CHECKED + 2 * count, code[at + 7], blocks, depth, pairs[0], size)


@compiled
def compare_block(code: Any, at: int, blocks: Any, depth: int, size: int, keys: Any, pairs: Any) -> int:
    """Keeps the lines that satisfy a comparison."""
    load_operands(code, at + COMPARED, 2, blocks, depth, size, keys)
    for line in range(size):
        pairs[0, line] = _compare(code[at + 2], code[at + 3], keys[2 * line], keys[2 * line + 1])
    return keep_lines(code, at + COMPARED + 4, code[at + 4], blocks, depth, pairs[0], size)


@compiled
def compute_block(code: Any, at: int, blocks: Any, depth: int, size: int, keys: Any) -> None:
    load_operands(code, at + 4, 2, blocks, depth, size, keys)
    for line in range(size):
        blocks[depth, code[at + 2], line] = _compute(code[at + 3], keys[2 * line], keys[2 * line + 1])


@compiled
def build_block(code: Any, at: int, blocks: Any, depth: int, size: int, keys: Any, pairs: Any) -> int:
    """A record, branch or list for each line. Nothing has been done if it returns that there is no room."""
    cells, count = words_at(code[at + 3]), code[at + 6]
    if not has_room(cells, size):
        return NEEDS_ROOM
    columns = cells[COLUMNS]
    for line in range(size * columns):
        keys[line] = 0
    for line in range(size):
        keys[line * columns] = code[at + 4]
    for part in range(count):
        operand = at + BUILT + 2 * part
        word = code[operand + 1]
        for line in range(size):
            keys[line * columns + part + 1] = word if code[operand] == CONSTANT else blocks[depth, word, line]
    words = halves_at(keys.ctypes.data)
    hash_block(cells, words, 0, size, pairs[1])
    sized = at + BUILT + 2 * count
    for line in range(size):
        row = find_line(cells, words, 2 * columns * line, pairs[1, line])
        if row < 0:
            parts = code[at + 5]
            for part in range(count):
                if code[sized + part]:
                    parts += size_at(words_at(code[sized + part]), keys[line * columns + part + 1])
            if parts > LARGEST_STRUCTURE:
                return IS_TOO_LARGE
            row = add_cell(cells, words, 2 * columns * line, pairs[1, line], parts)
        # Where a value is made out of one in the same register, that has been read.
        blocks[depth, code[at + 2], line] = row
    return DONE


@compiled
def take_apart_block(code: Any, at: int, blocks: Any, depth: int, size: int, keys: Any, pairs: Any) -> int:
    """Keeps the lines whose value has a constructor, with its parts."""
    cells, count = words_at(code[at + 2]), code[at + 4]
    lines, width = halves_at(cells[LINES]), cells[WIDTH]
    load_operands(code, at + TAKEN, 1, blocks, depth, size, keys)
    for line in range(size):
        pairs[0, line] = word_at(lines, keys[line] * width, 0, 2) == code[at + 3]
    for part in range(count):
        register = code[at + TAKEN + 2 + part]
        for line in range(size):
            blocks[depth, register, line] = word_at(lines, keys[line] * width, part + 1, 2)
    return keep_lines(code, at + TAKEN + 2 + count, code[at + 5], blocks, depth, pairs[0], size)


@compiled
def emit_block(
    code: Any, at: int, blocks: Any, depth: int, size: int, heads: Any, head_ranks: Any, written: int
) -> None:
    rank = blocks.shape[1] - RANKS
    for column in range(heads.shape[1]):
        word = code[at + 2 * column + 3]
        if code[at + 2 * column + 2] == CONSTANT:
            for line in range(size):
                heads[written + line, column] = word
        else:
            for line in range(size):
                heads[written + line, column] = blocks[depth, word, line]
    for line in range(size):
        head_ranks[written + line] = blocks[depth, rank, line]


@kernel("words ids blocks words lines words lines ids")
def enumerate_heads(
    code: Any, ids: Any, blocks: Any, keys: Any, pairs: Any, state: Any, heads: Any, head_ranks: Any
) -> int:
    """Writes heads until there are no more, or until `state` says why it stopped; returns their number."""
    written: Any = np.int64(0)  # typed, or Numba compiles what it is passed to twice
    depth, at, size = state[DEPTH], state[AT], state[SIZE]
    going_back = state[RESUME] == AFTER_HEADS
    if state[RESUME] != IN_CODE:
        size = 0
    state[STATUS], state[FUEL] = DONE, PATIENCE
    while True:
        if going_back:
            # Back to the last join that has more.
            going_back, size = False, 0
            while depth > 0:
                at = state[SIZES + 2 * state[LEVELS] + depth - 1]
                found = match_join(code, at, blocks, depth - 1, state, keys, pairs)
                if state[FUEL] <= 0 and found == 0:
                    state[DEPTH], state[RESUME], state[STATUS] = depth, AFTER_HEADS, IS_LATE
                    return written
                if found == 0:
                    depth -= 1
                    at = next_choice(code, at)
                    if at != 0:
                        size = state[SIZES + 2 * depth]
                        break
                elif code[at + code[at + 1]] == EMIT_JOINED or code[at + code[at + 1]] == EMIT_BUNDLES:
                    if code[at + code[at + 1]] == EMIT_JOINED:
                        emit_joined(code, at, blocks, depth - 1, pairs, found, heads, head_ranks, written)
                    else:
                        found = emit_bundles(code, at, blocks, depth - 1, pairs, found, heads, head_ranks, written)
                    written += found
                    if written + BLOCK > heads.shape[0]:
                        state[DEPTH], state[RESUME], state[STATUS] = depth, AFTER_HEADS, IS_FULL
                        return written
                else:
                    gather_join(code, at, blocks, depth - 1, pairs, found)
                    at += code[at + 1]
                    size = found
                    break
        if size == 0:
            if state[NEXT] >= len(ids):
                return written
            if state[FUEL] <= 0:
                state[DEPTH], state[RESUME], state[STATUS] = 0, AFTER_HEADS, IS_LATE
                return written
            size = load_block(code, ids, state[NEXT], blocks)
            state[NEXT] += BLOCK
            state[FUEL] -= BLOCK
            depth, at = 0, SCAN + 2 * (code[2] + code[3] + code[4])
            if size == 0:
                continue
        op = code[at]
        if op == JOIN:
            open_join(code, at, blocks, depth, size, keys)
            if code[at + SIEVE] > 0:
                area_of(code, code[at + SIEVE], state[MARKS])[UNTIL] = 0
            state[SIZES + 2 * depth], state[SIZES + 2 * depth + 1] = size, 0
            state[SIZES + 2 * state[LEVELS] + depth] = at
            depth += 1
            going_back = True
            continue
        if op == EMIT:
            emit_block(code, at, blocks, depth, size, heads, head_ranks, written)
            written += size
            going_back = True
            if written + BLOCK > heads.shape[0]:
                state[DEPTH], state[RESUME], state[STATUS] = depth, AFTER_HEADS, IS_FULL
                return written
            continue
        if op == JUMP:
            at = code[at + 2]
            continue
        if op == CHECK:
            size = check_block(code, at, blocks, depth, size, keys, pairs)
        elif op == COMPARE:
            size = compare_block(code, at, blocks, depth, size, keys, pairs)
        elif op == COMPUTE:
            compute_block(code, at, blocks, depth, size, keys)
        elif op == BUILD:
            status = build_block(code, at, blocks, depth, size, keys, pairs)
            if status != DONE:
                state[DEPTH], state[RESUME], state[STATUS] = depth, IN_CODE, status
                state[AT], state[SIZE], state[WANTS] = at, size, code[at + 3]
                return written
        else:
            size = take_apart_block(code, at, blocks, depth, size, keys, pairs)
        if size == 0:
            going_back = True
        at += code[at + 1]
