"""Names for tuples and for steps of runs: digests over an encoding in which no two values look alike.

A value is a letter for its kind, then its length or count, then its bytes or parts; so "ab", "c" and "a", "bc" differ. All
digests begin with the version of the program, which is the digest of its rules: the same rule name in another program is
another rule. They are BLAKE2b of 20 bytes.

`PrintedIds` gives those of the paper, SHA-1 over plain text, for comparison with its tables. They name different things alike.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable
from datetime import date
from decimal import Decimal
from hashlib import blake2b, sha1
from typing import Protocol

from whence.lang.scalars import text_of
from whence.lang.types import Value, Variant
from whence.provenance.graph import Fact

SIZE = 20


class Ids(Protocol):
    """What a store calls things."""

    def tuple_id(self, fact: Fact) -> bytes: ...

    def execution_id(
        self, rule: str, place: Value, slow: Iterable[bytes], event: bytes | None, parent: bytes | None
    ) -> bytes:
        """A rule that fired at a place, on an event that came from a parent execution."""
        ...

    def node_id(self, rule: str, slow: Iterable[bytes]) -> bytes:
        """A rule with the slow tuples that it used, whatever the event."""
        ...

    def link_id(self, node: bytes, place: Value, parent: bytes | None) -> bytes:
        """A node at the end of a chain of nodes: `place` and `parent` name the chain below it."""
        ...


class ChainedIds:
    def __init__(self, description: str) -> None:
        self.version = blake2b(description.encode("utf-8", "surrogatepass"), digest_size=SIZE).digest()

    def tuple_id(self, fact: Fact) -> bytes:
        return self._digest(b"t", fact.relation, fact.tuple)

    def execution_id(
        self, rule: str, place: Value, slow: Iterable[bytes], event: bytes | None, parent: bytes | None
    ) -> bytes:
        return self._digest(b"e", rule, place, *slow, event, parent)

    def node_id(self, rule: str, slow: Iterable[bytes]) -> bytes:
        return self._digest(b"n", rule, *slow)

    def link_id(self, node: bytes, place: Value, parent: bytes | None) -> bytes:
        return self._digest(b"l", node, place, parent)

    def _digest(self, kind: bytes, *parts: Value | bytes) -> bytes:
        return blake2b(self.version + kind + b"".join(map(encode, parts)), digest_size=SIZE).digest()


def encode(value: Value | bytes) -> bytes:
    """The value as bytes; no two values have the same."""
    match value:
        case None:
            return b"0"
        case bytes():
            return b"b" + _length(value) + value
        case str():
            data = value.encode("utf-8", "surrogatepass")
            return b"s" + _length(data) + data
        case int():
            data = str(int(value)).encode()
            return b"i" + _length(data) + data
        case float():
            return b"f" + struct.pack(">d", value)
        case tuple():
            return b"t" + _length(value) + b"".join(map(encode, value))
        case Variant(branch=branch, args=args):
            return b"v" + encode(branch) + encode(args)
        case date() | Decimal():
            return b"x" + encode(text_of(value))


def _length(data: Collection[object]) -> bytes:
    return struct.pack(">I", len(data))


class PrintedIds:
    """The identifiers of the paper's tables. `places` are written bare, other symbols in quotes."""

    def __init__(self, places: Collection[Value]) -> None:
        self._places = places

    def tuple_id(self, fact: Fact) -> bytes:
        place, *rest = fact.tuple
        shown = [f"@{place}", *(str(each) if each in self._places else f'"{each}"' for each in rest)]
        return sha1(f"{fact.relation}({','.join(shown)})".encode(), usedforsecurity=False).digest()

    def execution_id(
        self,
        rule: str,
        place: Value,
        slow: Iterable[bytes],
        event: bytes | None,
        parent: bytes | None,  # noqa: ARG002
    ) -> bytes:
        return self._concatenated(rule, str(place), *slow, event or b"")

    def node_id(self, rule: str, slow: Iterable[bytes]) -> bytes:
        return self._concatenated(rule, *slow)

    def link_id(self, node: bytes, place: Value, parent: bytes | None) -> bytes:  # noqa: ARG002
        return node

    @staticmethod
    def _concatenated(*parts: str | bytes) -> bytes:
        text = "".join(part if isinstance(part, str) else part.hex() for part in parts)
        return sha1(text.encode(), usedforsecurity=False).digest()
