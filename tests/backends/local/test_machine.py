"""The machine that runs delta plans, on what its blocks and buffers make delicate; what plans mean is tested with the engine."""

from __future__ import annotations

import pytest

from whence import Session, load
from whence.backends.local import machine, parallel
from whence.backends.local.instructions import BUFFER


@pytest.fixture(autouse=True, params=[1, 2, 3])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param > 1:
        monkeypatch.setattr(parallel, "LARGE", 2)
        monkeypatch.setattr(parallel, "CORES", request.param)


DECLARATIONS = ".decl e(x: number, y: number) .input e .decl f(x: number, y: number) .input f .output p\n"


def views(rules: str, **facts: list[tuple[int, int]]) -> tuple[set[tuple[int, ...]], Session]:
    session = Session(load(DECLARATIONS + rules), facts=facts)
    return set(session.relation("p")), session  # type: ignore[arg-type]


@pytest.mark.parametrize("fan_out", [1, machine.BLOCK - 1, machine.BLOCK, machine.BLOCK + 1, BUFFER, BUFFER + 1])
def test_one_row_joins_with_many(fan_out: int) -> None:
    rows, session = views("p(x, z) :- e(x, y), f(y, z).", e=[(1, 2)], f=[(2, at) for at in range(fan_out)])
    assert rows == {(1, at) for at in range(fan_out)}
    assert session.stats()["derivations"] == fan_out


@pytest.mark.parametrize("count", [machine.BLOCK - 1, machine.BLOCK, machine.BLOCK + 1, 3 * machine.BLOCK + 7])
def test_many_rows_join_with_one(count: int) -> None:
    rows, _ = views("p(x, z) :- e(x, y), f(y, z).", e=[(at, 2) for at in range(count)], f=[(2, 5), (3, 6)])
    assert rows == {(at, 5) for at in range(count)}


def test_joins_in_a_row_go_on_where_they_stopped() -> None:
    """Three joins of 30 rows each: every depth fills its block many times, and the output overflows."""
    e = [(at, at % 2) for at in range(60)]
    rows, session = views("p(a, d) :- e(a, k), e(b, k), e(c, k), f(k, d), b != c.", e=e, f=[(0, 7), (1, 8)])
    assert rows == {(at, 7 + at % 2) for at in range(60)}
    assert session.stats()["derivations"] == 2 * 30 * 30 * 29


def test_tests_that_keep_nothing_of_a_block_do_not_end_the_plan() -> None:
    many = [(at, at) for at in range(4 * machine.BLOCK)]
    last = len(many) - 1
    rows, _ = views(f"p(x, y) :- e(x, y), f(x, z), z >= {last}, !f(y, 3).", e=many, f=many)
    assert rows == {(last, last)}


def test_repeated_variables_and_constants() -> None:
    e = [(at, at % 3) for at in range(300)]
    rows, _ = views("p(x, 9) :- e(x, 1), e(x, x).", e=e)
    assert rows == {(1, 9)}


def test_tables_that_widen_while_a_plan_runs() -> None:
    """Heads overflow the output buffer, so the table of the recursion changes its layout between two parts of one plan."""
    rows, _ = views(
        "p(x, x) :- e(x, _). p(x, z * 4294967296) :- p(x, y), f(_, z), y < 100.",
        e=[(at, 0) for at in range(90)],
        f=[(at, at) for at in range(2 * BUFFER // 90)],
    )
    count = 2 * BUFFER // 90
    assert rows == {(x, x) for x in range(90)} | {(x, z << 32) for x in range(90) for z in range(count)}
