"""Functions of columns."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from whence import Session, Update, load
from whence.backends.local.functors import SOME
from whence.reference import EvaluationWarning, evaluate

PROGRAM = """
.functor half(x: number): number
.decl n(x: number, y: number) .input n
.decl halved(x: number, y: number) .output halved
halved(y, @half(x)) :- n(x, y).
.decl kept(x: number, y: number) .output kept
kept(y, 12 / x) :- n(x, y).
"""


@pytest.mark.parametrize("rows", [SOME // 2, 40 * SOME])
def test_a_function_of_one_column_is_called_once_for_each_of_many_equal_values(rows: int) -> None:
    calls: Counter[int] = Counter()

    def half(x: int) -> int:
        calls[x] += 1
        return x // 2

    program = load(PROGRAM, functions={"half": half})
    base = {(number % 5, number) for number in range(rows)}
    with pytest.warns(EvaluationWarning, match="division by zero"):
        session = Session(program, facts={"n": base})
    if rows > SOME:
        assert set(calls.values()) == {1}
    source = np.random.default_rng(3)
    for _ in range(3):
        gone = [row for row in sorted(base) if source.random() < 0.5]
        base.difference_update(gone)
        session.apply([Update("-", "n", row) for row in gone])
        with pytest.warns(EvaluationWarning):
            expected = evaluate(program, {"n": base | {(0, -1)}})
        session.apply([Update("+", "n", (0, -1))])
        base.add((0, -1))
        for name in ("halved", "kept"):
            assert set(session.relation(name)) == expected[name]
