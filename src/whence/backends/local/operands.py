"""What instructions work on: an operand is two words, what it is, and which."""

from __future__ import annotations

from typing import Any

from whence.backends.local.memory import compiled

# A register, a constant's word, or a column: in heads right behind a join, one of the row joined with.
REGISTER, CONSTANT, COLUMN = range(3)


@compiled
def load_operands(code: Any, at: int, count: int, blocks: Any, depth: int, size: int, out: Any) -> None:
    """Operands as lines of words, one after the other."""
    for column in range(count):
        word = code[at + 2 * column + 1]
        if code[at + 2 * column] == CONSTANT:
            for line in range(size):
                out[line * count + column] = word
        else:
            for line in range(size):
                out[line * count + column] = blocks[depth, word, line]
