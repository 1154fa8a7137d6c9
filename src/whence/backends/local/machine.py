"""A small machine that runs delta plans on words: one compiled loop for all programs.

A plan becomes a list of instructions over registers, one for each slot. The loop takes changed rows one after the other and goes
depth first through the joins; each time it comes to the end of the instructions it writes a head. It stops when its output is
full and can go on from there, since all it knows is in `state`. Nothing is compiled for a program, and a round of a recursion
costs a few calls.

Instructions are runs of int64: an operation, its length, its operands. An operand is two words: 1 and a constant's word, or 0
and a register.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from whence.backends.local.kernels import compiled, hash_of

JOIN, CHECK, COMPARE, COMPUTE, EMIT = 1, 2, 3, 4, 5
EQUAL, UNEQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL = range(6)
ADD, SUBTRACT, MULTIPLY, NEGATE, BIT_AND, BIT_OR, BIT_XOR, BIT_NOT, MINIMUM, MAXIMUM, COPY = range(11)
_SIGN = -(1 << 63)
AS_NUMBER, AS_UNSIGNED, AS_FLOAT = range(3)

# What `addresses` holds for each table and index that a plan uses.
TABLE_WORDS, INDEX_WORDS = 4, 6
# What `state` holds: the next changed row, the depth reached, and whether to go on after a head.
NEXT, DEPTH, RESUME = 0, 1, 2


def _pointer_type(element: Any) -> Any:
    @intrinsic
    def pointer(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(element)(types.int64), generate

    return pointer


_words = _pointer_type(types.int64)
_halves = _pointer_type(types.int32)


@njit(cache=True, nogil=True, inline="always")
def _value(code: Any, at: int, registers: Any) -> int:
    return code[at + 1] if code[at] else registers[code[at + 1]]


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
def enumerate_heads(
    code: Any, addresses: Any, scan: Any, ids: Any, registers: Any, key: Any,
    places: Any, ends: Any, starts: Any, ranks: Any, state: Any, heads: Any, head_ranks: Any,
) -> int:  # fmt: skip
    """Writes heads until there are no more or `heads` is full; returns their number. `state[NEXT]` tells how far it came.

    `scan` is: table, whether it is recursive, then how many columns go into registers, are compared with a constant, and are
    compared with each other, and these in turn.
    """
    written, capacity, width = 0, heads.shape[0], heads.shape[1]
    table = scan[0] * TABLE_WORDS
    lines, line_width = _words(addresses[table]), addresses[table + 1]
    small = _halves(addresses[table])
    depth, at = state[DEPTH], 0
    going_back = state[RESUME] == 1
    while True:
        if not going_back:
            # The next changed row that fits.
            if state[NEXT] >= len(ids):
                state[RESUME] = 0
                return written
            row = np.int64(ids[state[NEXT]])
            state[NEXT] += 1
            base = row * line_width
            offset, fits = 5, True
            for _ in range(scan[2]):
                registers[scan[offset + 1]] = lines[base + scan[offset]]
                offset += 2
            for _ in range(scan[3]):
                fits = fits and lines[base + scan[offset]] == scan[offset + 1]
                offset += 2
            for _ in range(scan[4]):
                fits = fits and lines[base + scan[offset]] == lines[base + scan[offset + 1]]
                offset += 2
            if not fits:
                continue
            depth, at = 0, 0
            ranks[0] = small[2 * base + 2 * line_width - 2] if scan[1] else -1
        while True:
            if going_back:
                # Back to the last join that has another row.
                going_back = False
                advanced = False
                while depth > 0:
                    begin = starts[depth]
                    table = code[begin + 2] * TABLE_WORDS
                    lines_of, width_of = _words(addresses[table]), addresses[table + 1]
                    small_of = _halves(addresses[table])
                    index = addresses[-1] + code[begin + 3] * INDEX_WORDS
                    arena = _halves(addresses[index + 5])
                    forbid = code[begin + 4]
                    while places[depth] < ends[depth]:
                        row = np.int64(arena[places[depth]])
                        places[depth] += 1
                        base = row * width_of
                        if forbid and small_of[2 * base + 2 * width_of - 1] & forbid:
                            continue
                        offset = begin + 9 + 2 * code[begin + 6]
                        fits = True
                        for _ in range(code[begin + 8]):
                            pair = offset + 2 * code[begin + 7]
                            fits = fits and lines_of[base + code[pair]] == lines_of[base + code[pair + 1]]
                            offset += 2
                        if not fits:
                            continue
                        offset = begin + 9 + 2 * code[begin + 6]
                        for _ in range(code[begin + 7]):
                            registers[code[offset + 1]] = lines_of[base + code[offset]]
                            offset += 2
                        rank = ranks[depth - 1]
                        if code[begin + 5]:
                            rank = max(rank, small_of[2 * base + 2 * width_of - 2])
                        ranks[depth] = rank
                        advanced = True
                        break
                    if advanced:
                        at = begin + code[begin + 1]
                        break
                    depth -= 1
                if not advanced:
                    break
            op = code[at]
            if op == JOIN:
                # Finds the block of rows under the key; the rows are taken above, one by one.
                index = addresses[-1] + code[at + 3] * INDEX_WORDS
                keys_of = _words(addresses[index + 2])
                count = code[at + 6]
                for column in range(count):
                    key[0, column] = _value(code, at + 9 + 2 * column, registers)
                mask = addresses[index + 1]
                slots = _halves(addresses[index])
                slot = np.int64(hash_of(key, 0, count)) & mask
                found = np.int64(slots[slot])
                while found != -1:
                    same = True
                    for column in range(count):
                        if keys_of[found * count + column] != key[0, column]:
                            same = False
                            break
                    if same:
                        break
                    slot = (slot + 1) & mask
                    found = np.int64(slots[slot])
                first, last = np.int64(0), np.int64(0)
                if found != -1:
                    first = _words(addresses[index + 3])[found]
                    last = first + _halves(addresses[index + 4])[found]
                following = at + code[at + 1]
                if code[following] != EMIT or written + last - first > capacity:
                    depth += 1
                    starts[depth], places[depth], ends[depth] = at, first, last
                    going_back = True
                    continue
                # The last join: its rows become heads without going through the stack.
                table = code[at + 2] * TABLE_WORDS
                lines_of, width_of = _words(addresses[table]), addresses[table + 1]
                small_of = _halves(addresses[table])
                arena = _halves(addresses[index + 5])
                forbid, recursive, binds, same_pairs = code[at + 4], code[at + 5], code[at + 7], code[at + 8]
                bound = at + 9 + 2 * count
                for place in range(first, last):
                    base = np.int64(arena[place]) * width_of
                    if forbid and small_of[2 * base + 2 * width_of - 1] & forbid:
                        continue
                    fits = True
                    for pair in range(same_pairs):
                        offset = bound + 2 * (binds + pair)
                        fits = fits and lines_of[base + code[offset]] == lines_of[base + code[offset + 1]]
                    if not fits:
                        continue
                    for bind in range(binds):
                        registers[code[bound + 2 * bind + 1]] = lines_of[base + code[bound + 2 * bind]]
                    for column in range(width):
                        heads[written, column] = _value(code, following + 2 + 2 * column, registers)
                    rank = ranks[depth]
                    if recursive:
                        rank = max(rank, small_of[2 * base + 2 * width_of - 2])
                    head_ranks[written] = rank
                    written += 1
                going_back = True
                if written == capacity:
                    state[DEPTH], state[RESUME] = depth, 1
                    return written
                continue
            if op == CHECK:
                table = code[at + 2] * TABLE_WORDS
                lines_of, width_of = _words(addresses[table]), addresses[table + 1]
                small_of = _halves(addresses[table])
                slots, mask = _halves(addresses[table + 2]), addresses[table + 3]
                count = code[at + 6]
                for column in range(count):
                    key[0, column] = _value(code, at + 7 + 2 * column, registers)
                slot = np.int64(hash_of(key, 0, count)) & mask
                row = np.int64(slots[slot])
                while row != -1:
                    if row >= 0:
                        same = True
                        for column in range(count):
                            if lines_of[row * width_of + column] != key[0, column]:
                                same = False
                                break
                        if same:
                            break
                    slot = (slot + 1) & mask
                    row = np.int64(slots[slot])
                base = row * width_of
                there = row >= 0 and not small_of[2 * base + 2 * width_of - 1] & code[at + 3]
                if there != (code[at + 4] == 1):
                    going_back = True
                    continue
                if there and code[at + 5]:
                    ranks[depth] = max(ranks[depth], small_of[2 * base + 2 * width_of - 2])
            elif op == COMPARE:
                if not _compare(
                    code[at + 2], code[at + 3], _value(code, at + 4, registers), _value(code, at + 6, registers)
                ):
                    going_back = True
                    continue
            elif op == COMPUTE:
                registers[code[at + 2]] = _compute(
                    code[at + 3], _value(code, at + 4, registers), _value(code, at + 6, registers)
                )
            else:
                for column in range(width):
                    heads[written, column] = _value(code, at + 2 + 2 * column, registers)
                head_ranks[written] = ranks[depth]
                written += 1
                going_back = True
                if written == capacity:
                    state[DEPTH], state[RESUME] = depth, 1
                    return written
                continue
            at += code[at + 1]
