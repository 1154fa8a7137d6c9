"""Processes that call each other."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from whence.pipeline.parts.calls import Address, Lines, Office, Unreachable


@pytest.fixture
def offices() -> Iterator[list[Office]]:
    found = [Office(b"secret", "127.0.0.1", lambda said, own=own: (own, said)) for own in range(3)]  # type: ignore[misc]
    yield found
    for each in found:
        each.close()


def test_answers_come_in_the_order_of_the_calls_whatever_their_size(offices: list[Office]) -> None:
    lines = Lines(b"secret")
    for size in (1, 10**5, 10**7, 0):
        asked = {each.address: bytes(size) for each in offices}
        assert lines.call_all(asked) == [(own, bytes(size)) for own in range(3)]
    assert lines.call_all({}) == []
    lines.close()
    assert lines.call(offices[1].address, "again") == (1, "again")


def test_calls_are_made_at_the_same_time() -> None:
    slow = [Office(b"secret", "127.0.0.1", lambda _: time.sleep(0.5)) for _ in range(4)]
    started = time.perf_counter()
    Lines(b"secret").call_all({each.address: None for each in slow})
    assert time.perf_counter() - started < 1.5
    for each in slow:
        each.close()


def test_who_is_not_there_is_named_unreachable(offices: list[Office]) -> None:
    lines = Lines(b"secret")
    gone, *others = (each.address for each in offices)
    assert lines.call(gone, 1) == (0, 1)
    offices[0].close()
    with pytest.raises(Unreachable, match="does not answer"):
        lines.call_all({gone: 2, **dict.fromkeys(others, 2)})
    assert lines.call_all(dict.fromkeys(others, 3)) == [(1, 3), (2, 3)], "no answer of before is left"
    with pytest.raises(Unreachable):
        Lines(b"another").call(others[0], 4)
    with pytest.raises(Unreachable):
        lines.call(Address("127.0.0.1", 1, 0), 5)
