"""Numbers that are not negative, at seven bits a byte."""

from __future__ import annotations

_SMALL = [bytes([value]) for value in range(128)]


def varint(value: int) -> bytes:
    """
    >>> varint(300).hex()
    'ac02'
    """
    if value < 128:
        return _SMALL[value]
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint_bytes(value: int) -> int:
    """How many bytes a number takes."""
    return max(1, (value.bit_length() + 6) // 7)
