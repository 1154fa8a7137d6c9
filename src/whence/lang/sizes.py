"""How large a value may be that a rule makes.

`s(cat(x, x)) :- s(x).` doubles a text in every round, and `s([x, x]) :- s(x).` a record: a few dozen rounds would ask for more
memory than there is, without ever making many tuples. Values that come from outside are not limited.
"""

from __future__ import annotations

from typing import TypeVar

from whence.lang.deep import size_of
from whence.lang.types import Value, Variant

V = TypeVar("V", bound=Value)

LARGEST_TEXT = 1 << 24  # characters
LARGEST_STRUCTURE = 1 << 20  # fields of records and branches, items of lists, and these themselves


class TooLarge(Exception):
    """A rule makes a value that is larger than a value may be. The message says what of it is too large."""


def check_text(length: int) -> None:
    if length > LARGEST_TEXT:
        raise TooLarge(f"a text of {length:,} characters; a value has at most {LARGEST_TEXT:,}")


def refuse_structure() -> TooLarge:
    return TooLarge(f"a value of more than {LARGEST_STRUCTURE:,} parts")


def check_structure(value: V) -> V:
    """The value, if it is not too large. Its size is how many fields and items are in it, at any depth, and what holds them."""
    if isinstance(value, tuple | Variant) and size_of(value) > LARGEST_STRUCTURE:
        raise refuse_structure()
    return value
