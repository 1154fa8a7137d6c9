"""Workloads only do what can happen to links, and soft state expires when it should."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whence import Session, load
from whence.topology import (
    Link,
    LinkChanges,
    come_up,
    fail_alone,
    fail_and_repair,
    fail_around,
    flap,
    grid_network,
    refresh,
)

NETWORK = grid_network(4, 4, seed=1)
LINKS = NETWORK.links
SEEDS = st.integers(0, 2**32)

WORKLOADS: dict[str, Callable[[int], Iterator[LinkChanges]]] = {
    "fail_and_repair": lambda seed: fail_and_repair(LINKS, seed=seed, epochs=30, failures=3),
    "fail_alone": lambda seed: fail_alone(LINKS, seed=seed, epochs=30),
    "fail_around": lambda seed: fail_around(NETWORK, seed=seed, epochs=30, hops=2, outage=(1, 4)),
    "flap": lambda seed: flap(LINKS, seed=seed, epochs=30, flapping=4, period=3),
}


@pytest.mark.parametrize("name", WORKLOADS)
@given(seed=SEEDS)
def test_only_working_links_fail_and_only_failed_ones_are_repaired(name: str, seed: int) -> None:
    working = set(LINKS)
    epochs = list(WORKLOADS[name](seed))
    assert len(epochs) == 30
    for changes in epochs:
        assert len(set(changes.failed + changes.repaired)) == len(changes.failed) + len(changes.repaired)
        assert working.issuperset(changes.failed)
        assert working.isdisjoint(changes.repaired)
        working = (working | set(changes.repaired)) - set(changes.failed)
    assert epochs == list(WORKLOADS[name](seed))


@given(seed=SEEDS, per_epoch=st.integers(1, 40))
def test_all_links_come_up_once(seed: int, per_epoch: int) -> None:
    epochs = list(come_up(LINKS, seed=seed, per_epoch=per_epoch))
    assert sorted(str(link) for each in epochs for link in each.repaired) == sorted(map(str, LINKS))
    assert all(len(each.repaired) == per_epoch for each in epochs[:-1])


@given(seed=SEEDS)
def test_each_link_fails_alone_before_one_fails_again(seed: int) -> None:
    failed = [each.failed[0] for each in fail_alone(LINKS, seed=seed, epochs=2 * len(LINKS)) if each.failed]
    assert set(failed) == set(LINKS)


@given(seed=SEEDS, hops=st.integers(1, 3))
def test_failures_are_around_one_node(seed: int, hops: int) -> None:
    graph = nx.Graph((link.a, link.b) for link in LINKS)
    (changes,) = fail_around(NETWORK, seed=seed, epochs=1, hops=hops)
    surroundings = [
        {link for link in LINKS if min(distances.get(link.a, 99), distances.get(link.b, 99)) < hops}
        for distances in (nx.single_source_shortest_path_length(graph, node) for node in graph)
    ]
    assert set(changes.failed) in surroundings


@given(seed=SEEDS, period=st.integers(1, 4))
def test_a_flapping_link_is_up_as_long_as_down(seed: int, period: int) -> None:
    turns: dict[Link, list[int]] = {}
    for number, changes in enumerate(flap(LINKS, seed=seed, epochs=40, flapping=3, period=period)):
        for link in changes.failed + changes.repaired:
            turns.setdefault(link, []).append(number)
    assert len(turns) == 3
    assert all(later - earlier == period for numbers in turns.values() for earlier, later in pairwise(numbers))


SOFT = """
.decl link(src:symbol, dst:symbol)
.input link
.lifetime link {lifetime}
.output link
"""


@given(seed=SEEDS, period=st.integers(1, 4), longer=st.integers(1, 4))
def test_links_that_are_refreshed_stay(seed: int, period: int, longer: int) -> None:
    lifetime = period + longer
    session = Session(load(SOFT.format(lifetime=lifetime)))
    expected = {pair for link in LINKS for pair in link.pairs()}
    for epoch in refresh(LINKS, seed=seed, epochs=25, lifetime=lifetime, period=period, rows=Link.pairs):
        session.apply(epoch.updates, epoch.now)
        assert set(session.relation("link")) == expected


@given(seed=SEEDS, share=st.floats(0, 1))
def test_in_a_storm_links_expire_and_come_back_together(seed: int, share: float) -> None:
    session = Session(load(SOFT.format(lifetime=4)))
    sizes = []
    for epoch in refresh(LINKS, seed=seed, epochs=20, lifetime=4, period=3, rows=Link.pairs, storms=[5], share=share):
        session.apply(epoch.updates, epoch.now)
        sizes.append(len(session.relation("link")) // 2)
    left = len(LINKS) - round(share * len(LINKS))
    assert sizes == [len(LINKS)] * 9 + [left] * 4 + [len(LINKS)] * 7


def test_an_epoch_has_the_rows_asked_for() -> None:
    changes = LinkChanges((Link("a", "b", 2, 50),), (Link("b", "c", 3, 60),))
    assert [update[:3] for update in changes.epoch("road", Link.priced).updates] == [
        ("-", "road", ("a", "b", 2)),
        ("-", "road", ("b", "a", 2)),
        ("+", "road", ("b", "c", 3)),
        ("+", "road", ("c", "b", 3)),
    ]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: come_up(LINKS, seed=1, per_epoch=0), "at least"),
        (lambda: fail_around(NETWORK, seed=1, epochs=1, hops=0), "at least"),
        (lambda: fail_around(NETWORK, seed=1, epochs=1, outage=(0, 1)), "one epoch or more"),
        (lambda: flap(LINKS, seed=1, epochs=1, flapping=99), "up to 24 can flap"),
        (lambda: refresh(LINKS, seed=1, epochs=1, lifetime=3, period=3), "before their lifetime is over"),
        (lambda: refresh(LINKS, seed=1, epochs=1, lifetime=3, period=1, share=2), "between 0 and 1"),
    ],
)
def test_workloads_that_cannot_be_are_refused(make, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        next(make())
