"""Ranks: what a tuple is derived from ranks below it.

Any order will do as long as every tuple is above something that derives it. A rank is a *height*, one more than that of what it
was first derived from, and a place among those of the same height, by the tuple's own hash. So of two tuples of the same height
that derive each other one may support the other: when a tuple loses what derived it first, there is more that keeps it.
"""

from __future__ import annotations

from zlib import crc32

from whence.lang.types import Tuple

BASE_RANK = 0
_WITHIN = 8  # ranks of a height; up to 15 heights are a byte


def above(rank: int, row: Tuple) -> int:
    """The rank of a tuple that is derived from what has another rank."""
    return (rank // _WITHIN + 1) * _WITHIN + crc32(repr(row).encode(errors="surrogatepass")) % _WITHIN


def shown(rank: int) -> str:
    return f"{rank // _WITHIN}.{rank % _WITHIN}"
