"""The rules on the engine give the plan that the recurrence gives, and the native optimizer knows nothing that they deny."""

from __future__ import annotations

import os
from random import Random

import pytest

from whence.optimizer import Optimizer, QuerySpace, parse_query
from whence.optimizer.cost import to_log
from whence.optimizer.exhaustive import best_of_each
from whence.optimizer.rules import RuleOptimizer
from whence.optimizer.workloads import SHAPES, synthetic

CASES = min(60, int(os.environ.get("WHENCE_EXAMPLES", "5")))


@pytest.mark.parametrize("seed", range(CASES))
def test_the_views_are_right_after_every_change(seed: int) -> None:
    random = Random(seed)
    text, statistics = synthetic(SHAPES[seed % 3], random.randrange(2, 5), seed, places=random.choice([0, 2]))
    space = QuerySpace(parse_query(text, statistics), statistics)
    rules, optimizer = RuleOptimizer(space), Optimizer(space)
    for _ in range(3):
        expected = best_of_each(space.fresh())
        assert rules.view("BestCost") == {node: cost for node, (cost, _) in expected.items()}
        assert rules.plan() == optimizer.plan()
        assert set(rules.session.relation("Kept")) == optimizer.kept()[0]
        references = rules.view("References")
        assert {node: references[node] for node in optimizer.references()} == optimizer.references()
        # A plan's nodes are of use up to what they cost, by the rules as by what the optimizer knows.
        bounds, known = rules.view("Bound"), optimizer.bounds()
        assert all(bounds[node] == expected[node][0] == known[node] for node in optimizer.kept()[0])
        count = len(space.query.relations)
        touches = [space.change_rows(random.randrange(1, 1 << count), to_log(random.choice([1 / 8, 1 / 2, 3])))]
        touches.append(space.change_cost(random.randrange(1, 1 << count), to_log(random.choice([1 / 8, 1 / 2, 3]))))
        rules.update()
        optimizer.update(touches)
