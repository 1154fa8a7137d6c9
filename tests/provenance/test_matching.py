"""Patterns against a filter over all facts."""

from __future__ import annotations

from itertools import product

import pytest

from whence import Session, load
from whence.provenance.derive import Deriver
from whence.provenance.graph import Fact
from whence.provenance.matching import FactPattern, parse_pattern
from whence.provenance.show import show_value

PROGRAM = load(".decl e(a:symbol, b:number, c:symbol, d:number) .input e .output e")
TEXTS = ("a", "b, c", 'q"x', "_", "it's", "(")


def test_every_pattern_of_some_facts() -> None:
    rows = {(x, n, y, m) for x, y in product(TEXTS[:4], TEXTS[3:]) for n, m in product((1, 2), (2, 3))}
    deriver = Deriver(Session(PROGRAM, facts={"e": rows}))
    for row in sorted(rows)[::3]:
        for known in product((True, False), repeat=4):
            written = [show_value(value) if is_known else "_" for value, is_known in zip(row, known, strict=True)]
            asked = parse_pattern(f"e({', '.join(written)})", PROGRAM)
            if all(known):
                assert asked == Fact("e", row)
                continue
            assert isinstance(asked, FactPattern)
            expected = {each for each in rows if all(each[at] == row[at] for at in range(4) if known[at])}
            found = list(deriver.matching(asked))
            assert {fact.tuple for fact in found} == expected
            assert len(found) == len(expected)
    same = parse_pattern("e(_x, _n, _x, _n)", PROGRAM)
    assert isinstance(same, FactPattern)
    assert {fact.tuple for fact in deriver.matching(same)} == {row for row in rows if row[:2] == row[2:]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [("e(_)", "it has 1 values"), ("f(_)", "there is no relation f"), ('e(_, "x", _, _)', "is not a number")],
)
def test_wrong_patterns(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_pattern(text, PROGRAM)
