"""Every optimizer finds the plan that looking at all of them finds, at first and after every change."""

from __future__ import annotations

import os
from collections.abc import Iterable
from random import Random

import pytest

from whence.optimizer import (
    BottomUp,
    Memo,
    Optimizer,
    Plan,
    Prunings,
    QuerySpace,
    Space,
    TopDown,
    Touch,
    parse_query,
)
from whence.optimizer.cost import to_log
from whence.optimizer.exhaustive import best_of_each, cheapest, cheapest_of_all, every_plan
from whence.optimizer.given import GivenSpace, clique
from whence.optimizer.plans import plan_of
from whence.optimizer.workloads import SHAPES, synthetic

CASES = int(os.environ.get("WHENCE_EXAMPLES", "40"))
LONG = os.environ.get("WHENCE_LONG") == "1"
SWITCHES = [
    Prunings(),
    Prunings(suppression=False, references=False, bounding=False),
    Prunings(references=False),
    Prunings(bounding=False),
    Prunings(references=False, bounding=False),
    Prunings(suppression=False),
]


def _optimizers(space: Space) -> list[Optimizer | BottomUp | TopDown]:
    twins = [
        kind(space, memo=memo, conditional=conditional)
        for kind in (BottomUp, TopDown)
        for memo in Memo
        for conditional in (True, False)
    ]
    return [*(Optimizer(space, prunings) for prunings in SWITCHES), Optimizer(space, ahead=2.0), *twins]


def _check(space: Space, optimizers: Iterable[Optimizer | BottomUp | TopDown], expected: Plan) -> None:
    for each in optimizers:
        assert each.plan() == expected, (type(each).__name__, vars(each).get("prunings") or vars(each).get("memo"))


def _bounds_hold(space: Space, optimizer: Optimizer) -> None:
    for node, (cost, _) in best_of_each(space).items():
        known = optimizer.known(node)
        if known is not None:
            assert known[0] == cost if known[1] else known[0] <= cost


def _change(space: QuerySpace, random: Random) -> Touch:
    count = len(space.query.relations)
    bits = random.randrange(1, 1 << count)
    log = to_log(random.choice([1 / 64, 1 / 8, 1 / 2, 0.9, 1.1, 2, 8, 64]))
    if random.random() < 0.4:
        bits = 1 << random.randrange(count)
        if random.random() < 0.5:
            return space.change_rows(bits, log, table=True)
    return space.change_cost(bits, log) if random.random() < 0.4 else space.change_rows(bits, log)


@pytest.mark.parametrize("seed", range(CASES))
def test_queries_have_the_cheapest_plan_after_every_change(seed: int) -> None:
    random = Random(seed)
    shape = random.choice(SHAPES)
    count = random.randrange(2, 8 if LONG else (5 if shape == "clique" else 6))
    places, parts = random.choice([(0, 0), (2, 0), (0, 4)]) if count < 5 else (0, 4 * (seed % 5 == 0))
    text, statistics = synthetic(shape, count, seed, places=places, parts=parts)
    space = QuerySpace(parse_query(text, statistics), statistics, left_linear=random.random() < 0.2)
    optimizers = _optimizers(space)
    for _ in range(5):
        expected = cheapest(space.fresh())
        _check(space, optimizers, expected)
        _bounds_hold(space, optimizers[0])  # type: ignore[arg-type]
        touches = [_change(space, random) for _ in range(random.choice([1, 1, 2, 4]))]
        for each in optimizers:
            each.update(touches)


@pytest.mark.parametrize("seed", range(CASES))
def test_given_costs_have_the_cheapest_of_all_plans_after_every_change(seed: int) -> None:
    random = Random(seed)
    count = 7 if LONG and seed % 10 == 0 else 6 if seed % 20 == 0 else random.randrange(2, 6)
    _compare_with_all_plans(count, random, changes=5)


def test_seven_relations_have_the_cheapest_of_their_665280_plans_after_a_change() -> None:
    _compare_with_all_plans(7, Random(7), changes=2)


def _compare_with_all_plans(count: int, random: Random, *, changes: int) -> None:
    most = random.choice([3, 20, 1000])  # small ones have many ties
    space = clique(count, lambda _: random.randint(0, most))
    optimizers = _optimizers(space)
    for _ in range(changes):
        _check(space, optimizers, cheapest_of_all(space))
        touches = [_change_given(space, random, most) for _ in range(random.randint(1, 3))]
        for each in optimizers:
            each.update(touches)


def _change_given(space: GivenSpace, random: Random, most: int) -> Touch:
    if random.random() < 0.3:
        return space.set_scan(1 << random.randrange(space.top.bit_count()), random.randint(0, most))
    return space.set_cost(*random.choice(list(space.costs)), random.randint(0, most))


def test_the_recurrence_finds_what_looking_at_all_plans_finds() -> None:
    for seed in range(12):
        text, statistics = synthetic(SHAPES[seed % 3], 3, seed)
        space = QuerySpace(parse_query(text, statistics), statistics)
        assert cheapest(space) == cheapest_of_all(space)
        assert len(list(every_plan(space, space.root))) > 10


def test_a_node_that_slept_through_many_changes_is_right_when_it_wakes() -> None:
    text, statistics = synthetic("chain", 5, 3)
    space = QuerySpace(parse_query(text, statistics), statistics)
    optimizer, random = Optimizer(space), Random(5)
    for _ in range(300):
        optimizer.update([_change(space, random)])
    assert optimizer.plan() == plan_of(space.root, best_of_each(space.fresh()).__getitem__)


def test_update_says_whether_the_plan_is_another_one() -> None:
    text, statistics = synthetic("star", 5, 7)
    space = QuerySpace(parse_query(text, statistics), statistics)
    optimizer, random = Optimizer(space), Random(1)
    seen = set()
    for _ in range(60):
        before = [each.alternative for each in optimizer.plan().walk()]
        moved = optimizer.update([_change(space, random)])
        assert moved == ([each.alternative for each in optimizer.plan().walk()] != before)
        seen.add(moved)
    assert seen == {True, False}
