"""What was wrong as printed is wrong: each correction taken out again fails where ours holds."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from tests.sensors.runs import BASE, PROGRAMS, Run, drawn_updates, wrong
from tests.sensors.test_vectors import LOGIC_H, LOGIC_J, both, field_of

from whence import load
from whence.lang.types import Value
from whence.runtime import Channel
from whence.sensors import Choices, Field, Scheme, SensorNetwork
from whence.sensors.homes import Entry
from whence.sensors.messages import Fact, Partial, Result, Stamp
from whence.sensors.node import SensorNode
from whence.sensors.timing import Timing

RUNS = 25


class OnePass(SensorNode):
    """A6: results are held against what is negated at the node that completes them, and put out there."""

    def hold(self, fact: Fact, partial: Partial, found: list[Partial]) -> None:
        if not self._is_blocked_for(fact, partial):
            self._output(fact, partial)


class Strict(SensorNode):
    """A7: only what is older by the clock is seen, so that nothing of the same time is."""

    def may_match(self, fact: Fact, update: Fact, is_addition: bool) -> bool:
        return fact.born.time < update.stamp.time and super().may_match(fact, update, is_addition)


class NotStrict(SensorNode):
    """A7: times decide alone, without an order among those that are the same."""

    def may_match(self, fact: Fact, update: Fact, is_addition: bool) -> bool:
        time = update.stamp.time
        return fact.born.time <= time and (fact.died is None or fact.died.time >= time)


class Erasing(SensorNode):
    """A7: a deletion takes replicas away instead of leaving its stamp on them."""

    def learn(self, fact: Fact) -> bool:
        if fact.died is None:
            return super().learn(fact)
        known = self.store[fact.relation].get(fact.born)
        if known is not None and known.born.node != self.number:
            self.store[fact.relation].drop(fact.born)
            return True
        return super().learn(fact)


class AsTheyCome(Entry):
    """A8: the home applies what it is told in the order of arrival."""

    def is_newer(self, stamp: Stamp, known: Stamp) -> bool:
        return True


class OneByOne(SensorNode):
    """A9: every change of whether a tuple has derivations is published, in its turn, be it that it has cancelled itself since."""

    def schedule(self, entry: Entry, result: Result) -> None:
        if result.row[-1] <= self.network.stage_limit:  # it would not end otherwise
            self.port.set_timer(0.0, ("decide", result.relation, result.row, (result.is_addition, entry.count)))

    def on_timer(self, name: object, port: object) -> None:
        match name:
            case ("decide", relation, row, (is_addition, count)) if count == int(is_addition):
                entry = self._entry(relation, row)
                if is_addition:
                    self.publish(entry, Fact(relation, row, self.stamp(), entry.root))
                elif entry.published is not None:
                    gone = entry.published.copy()
                    gone.died = self.stamp()
                    self.publish(entry, gone)
                self.settle()
            case ("decide", *_):
                pass
            case _:
                super().on_timer(name, port)


class AtOnce(SensorNode):
    """A10: a change of any stage is looked at as it comes."""

    def schedule(self, entry: Entry, result: Result) -> None:
        if result.row[-1] <= self.network.stage_limit:
            self.port.set_timer(0.0, ("decide", result.relation, result.row, 0.0))


def grid_run(seed: int, *, times: int | None = None, skew: float = 0.0, jitter: float = 0.05) -> Run:
    draw = Random(seed)
    program = load(BASE + PROGRAMS["a negation"])
    field_ = Field.grid(5, 5)
    updates = drawn_updates(draw, program, field_, 40, 4.0)
    if times is not None:
        updates = [each._replace(time=round(each.time * times) / times) for each in updates]
    channel = Channel(latency=0.05, jitter=jitter, fifo=False)
    return Run(program, field_, updates, channel, skew, seed, Choices(scheme=Scheme.PERPENDICULAR))


def errors(make: Callable[[int], Run], **changed: object) -> int:
    found = 0
    for seed in range(RUNS):
        run = make(seed)
        network = run.network(**changed)
        network.feed(run.updates)
        network.run()
        found += bool(wrong(network, run.truth()))
    return found


@pytest.mark.parametrize("printed", [OnePass, Erasing])
def test_one_pass_and_erasing_go_wrong(printed: type[SensorNode]) -> None:
    assert errors(grid_run) == 0
    assert errors(grid_run, make_node=printed) > 0


@pytest.mark.parametrize("printed", [Strict, NotStrict])
def test_equal_times_need_an_order(printed: type[SensorNode]) -> None:
    def run(seed: int) -> Run:
        return grid_run(seed, times=2)

    assert errors(run) == 0
    assert errors(run, make_node=printed) > 0


def test_messages_overtake_each_other_on_the_way_home() -> None:
    """Each result waits for a while of its own, as it would where some routes are congested."""

    def run(seed: int) -> Run:
        return grid_run(seed, jitter=1.0)

    assert errors(run) == 0
    assert errors(run, make_entry=AsTheyCome) > 0


class Impatient(Timing):
    """A7: a join begins at once, or does not wait for clocks that are behind."""

    @property
    def patience(self) -> float:
        return self.storing


def test_joins_have_to_wait_for_the_slowest_clock() -> None:
    def run(seed: int) -> Run:
        return grid_run(seed, skew=1.0)

    assert errors(run) == 0
    found = 0
    for seed in range(RUNS):
        one = run(seed)
        network = one.network()
        network.timing = Impatient(**{name: getattr(network.timing, name) for name in Timing.__dataclass_fields__})
        network.feed(one.updates)
        network.run()
        found += bool(wrong(network, one.truth()))
    assert found > 0


def climb(
    text: str, make_node: Callable[[SensorNetwork, Value], SensorNode], edges: list, cut: list, limit: int
) -> SensorNetwork:
    network = SensorNetwork(load(text), field_of(edges), make_node=make_node, stage_limit=limit)
    network.apply(network.link_updates())
    if cut:
        network.apply(both("-", cut))
    return network


@pytest.mark.parametrize("text", [LOGIC_H, LOGIC_J])
def test_without_net_effect_a_wave_is_chased_by_its_own_retraction(text: str) -> None:
    """On one edge, level after level up to wherever the limit is; ours stays on the ground."""
    for limit in (50, 100):
        network = climb(text, OneByOne, [(0, 1)], [], limit)
        assert max(each.row[-1] for each in network.moments if each.relation == "H") >= limit - 2
    network = climb(text, SensorNode, [(0, 1)], [], 100)
    assert max(each.row[-1] for each in network.moments if each.relation == "H") == 1


@pytest.mark.parametrize("text", [LOGIC_H, LOGIC_J])
@pytest.mark.parametrize("rest", [[(1, 2)], [(1, 2), (2, 3), (1, 3)]])
def test_without_stages_what_is_cut_off_counts_to_infinity(text: str, rest: list[tuple[int, int]]) -> None:
    for limit in (50, 100):
        network = climb(text, AtOnce, [(0, 1), *rest], [(0, 1)], limit)
        assert max(each.row[-1] for each in network.moments if each.relation == "H") >= limit - 2
        assert network.relation("H") == {(0, 0, 0)}  # the bound ends it, and the rest is right
    network = climb(text, SensorNode, [(0, 1), *rest], [(0, 1)], 100)
    assert max(each.row[-1] for each in network.moments if each.relation == "H") <= 2
    assert network.relation("H") == {(0, 0, 0)}
