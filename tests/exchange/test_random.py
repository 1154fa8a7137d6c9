"""Every exchange equals a full recomputation, whatever peers do and however their confederation changes."""

from __future__ import annotations

import os

import pytest
from tests.exchange.confederations import Story
from tests.exchange.oracle import chase

from whence import reference
from whence.exchange.compile import table_of
from whence.exchange.instance import STRATEGIES, Instance

LONG = "WHENCE_LONG" in os.environ
STORIES, EXCHANGES = (640, 8) if LONG else (24, 5)
# Ours in most of them: a session of it is quick, and it is what peers run.
SHARES = {"support": STORIES, "propagate-delete": STORIES // 2, "dred": STORIES // 4, "recompute": STORIES // 4}


def check(instance: Instance, story: Story) -> None:
    confederation = story.confederation()
    expected = chase(confederation, story.edits)
    assert {name: instance.relation(name) for name in confederation.relations} == expected
    compiled = instance.compiled
    base = {
        f"{name}.{part}": [instance.rows.to_engine(name, row) for row in instance.part(name, part)]
        for name in confederation.relations
        for part in ("local", "rejected", "lost")
    }
    evaluated = reference.evaluate(compiled.program, base)
    for name in confederation.mappings:
        assert set(instance._maintained.relation(table_of(name))) == evaluated[table_of(name)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_exchanges_equal_recomputation(strategy: str) -> None:
    exchanges = 0
    for seed in range(SHARES[strategy]):
        story = Story(seed)
        instance = Instance(story.confederation(), strategy=strategy)
        for number in range(EXCHANGES):
            if number % 4 == 3:
                before = {name: instance.relation(name) for name in story.schemas}
                story.change()
                delta = instance.change(story.confederation())
            else:
                before = {name: instance.relation(name) for name in story.schemas}
                delta = instance.apply(story.epoch())
            exchanges += 1
            check(instance, story)
            for name in story.schemas:
                came, went = delta.inserted.get(name, set()), delta.deleted.get(name, set())
                assert not came & before[name], seed
                assert went <= before[name], seed
                assert (before[name] - went) | came == instance.relation(name), seed
    print(f"{exchanges} exchanges, {strategy}")
    assert exchanges == SHARES[strategy] * EXCHANGES
