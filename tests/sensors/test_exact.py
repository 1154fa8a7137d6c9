"""At rest the views of a field are those of the reference: random fields, simultaneous updates, clocks that are off, jitter."""

from __future__ import annotations

import os

import pytest
from tests.sensors.runs import PROGRAMS, drawn_run, wrong

from whence.sensors import Scheme

# `make test-long` asks for more.
EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "0")) * 3 or 100
BATCH = 50


@pytest.mark.parametrize("first", range(0, EXAMPLES, BATCH))
def test_views_are_those_of_the_reference(first: int) -> None:
    for seed in range(first, first + BATCH):
        run = drawn_run(seed)
        network = run.network()
        network.feed(run.updates)
        network.run()
        assert not wrong(network, run.truth()), seed
        assert network.late == 0, seed


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_changes_after_it_is_final(name: str) -> None:
    """Every change comes before the time at which the row was said to be final, for all updates it goes back to."""
    run = drawn_run(7, name)
    network = run.network()
    network.feed(run.updates)
    network.run()
    for moment in network.moments:
        if moment.relation not in network.base:
            assert moment.time <= moment.final + 1e-9, moment


def test_runs_are_drawn_of_all_kinds() -> None:
    runs = [drawn_run(seed) for seed in range(60)]
    assert {run.choices.scheme for run in runs} == set(Scheme) - {Scheme.ONE_HOP, Scheme.HASHED}
    assert {run.field.shape is None for run in runs} == {True, False}
    assert {run.choices.several_passes for run in runs} == {True, False, None}
    assert min(len(run.updates) for run in runs) >= 40
