"""Queries: certain answers, and those with nulls."""

from __future__ import annotations

import pytest
from tests.exchange.test_vectors import GUS
from tests.exchange.vectors import FIRST, MAPPINGS, MUSC, NAMES, OSCI, SCHEMAS, SECOND, confederation, null, numbers

from whence.exchange.answers import answers
from whence.exchange.instance import Instance
from whence.lang.diagnostics import ProgramError

FILES = (("test.peers", SCHEMAS + MAPPINGS),)


def test_an_invented_value_is_no_certain_answer() -> None:
    """1.3"""
    instance, files = Instance(confederation(NAMES), GUS), (("test.peers", NAMES),)
    assert answers(instance, files, f'ans(b, n) :- B(b, n), n = "{OSCI}".') == set()
    assert answers(instance, files, f'ans(n) :- B(b, n), n = "{OSCI}".') == {(OSCI,)}
    assert answers(instance, files, f'ans(b) :- B(b, "{MUSC}").', nulls=True) == {(null(MUSC),)}


def test_nulls_join() -> None:
    """3.2"""
    pairs = {(8, 8), (2, 2), (2, 3), (3, 2), (3, 3), (5, 5), (5, 6), (6, 5), (6, 6)}
    instance = numbers()
    before = {name: instance.relation(name) for name in instance.confederation.relations}
    assert answers(instance, FILES, "ans(y, z) :- B(x, y), B(x, z)") == pairs
    assert answers(instance, FILES, "ans(x, y) :- B(x, y).") == {(7, 8)}
    assert {name: instance.relation(name) for name in instance.confederation.relations} == before


def test_rules_may_use_each_other() -> None:
    text = "path(x, y) :- U(x, y). path(x, z) :- path(x, y), U(y, z). ans(x) :- path(x, x)."
    assert answers(numbers(), FILES, text) == {(5,), (6,)}
    assert answers(numbers(), FILES, "ans(x) :- B(x, 3).", nulls=True) == {(FIRST,)}
    assert answers(numbers(), FILES, "ans(x) :- B(x, 6).", nulls=True) == {(SECOND,)}


@pytest.mark.parametrize("text", ["ans(x)", "ans(z) :- B(x, y)."])
def test_what_is_not_a_query_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"made of rules|come from no relation"):
        answers(numbers(), FILES, text)
    with pytest.raises(ProgramError):
        answers(numbers(), FILES, "ans(x) :- Q(x), B(x, y).")
    with pytest.raises(ProgramError):
        answers(numbers(), FILES, "ans(x) :- B(x,")
