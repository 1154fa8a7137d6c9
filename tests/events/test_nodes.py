"""Events on a network of nodes: loss, overtaking, changes while events are under way; and what questions cost there."""

from __future__ import annotations

import os
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.events.programs import dns, hopping, is_sub_domain, packet, packets, shape
from tests.events.test_stores import LINE, PLACES, SERVERS

from whence import load
from whence.events.nodes import EventNetwork
from whence.events.program import event_program
from whence.events.questions import Questions
from whence.events.schemes import Trail
from whence.events.wire import Trails, Wire
from whence.lang.types import Tuple
from whence.provenance.graph import Fact
from whence.runtime import Channel, Wiring

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "60"))
SCHEMES = ("exspan", "basic", "advanced")
place = st.sampled_from(PLACES)


def assert_all_come_back(network: EventNetwork) -> None:
    """Every tree of every event that arrived, and no other."""
    expected: dict[Fact, set[Tuple]] = {}
    for tree in network.trees:
        expected.setdefault(tree.fact, set()).add(shape(tree))
    questions = Questions(network.store)
    for output, trees in expected.items():
        found = questions.of_output(output)
        assert found.is_complete
        assert {shape(each.tree) for each in found.trees} == trees


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(max_examples=EXAMPLES)
@given(
    routes=st.lists(st.tuples(place, place, place), max_size=15),
    happens=st.lists(
        st.tuples(
            st.floats(0, 10),
            st.one_of(
                st.tuples(st.just("packet"), place, place, st.integers(0, 5), st.sampled_from("xyz")),
                st.tuples(st.sampled_from("+-"), place, place, place),
            ),
        ),
        max_size=30,
    ),
    loss=st.sampled_from([0.0, 0.2]),
    seed=st.integers(0, 1000),
)
def test_whatever_is_lost_overtakes_or_changes_meanwhile_every_tree_comes_back(
    scheme: str, routes: list[Tuple], happens: list[tuple[float, Tuple]], loss: float, seed: int
) -> None:
    channel = Channel(latency=0.5, jitter=2.0, loss=loss, duplication=0.1, fifo=False)
    network = EventNetwork(hopping(), PLACES, scheme=scheme, wiring=Wiring(default=channel), seed=seed)
    network.load({"route": routes})
    for time, (what, *row) in happens:
        if what == "packet":
            at, to, hops, data = row
            network.inject(time, (at, at, to, hops, data))
        else:
            network.change(time, str(what), "route", tuple(row))
    network.run()
    assert_all_come_back(network)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_first_event_of_a_class_may_vanish(scheme: str) -> None:
    network = EventNetwork(packets(), ["n1", "n2", "n3"], scheme=scheme)
    network.load(LINE)
    network.inject(0, packet("n1", "n3", "gone"))
    network.run(until=0.0015)  # it is between n2 and n3
    network.simulation.crash("n3")
    network.run()
    network.simulation.restart("n3")
    for data in ("x1", "x2"):
        network.inject(network.simulation.now, packet("n1", "n3", data))
    network.run()
    assert Counter(tree.fact.tuple[3] for tree in network.trees) == {"x1": 1, "x2": 1}
    assert_all_come_back(network)


def test_an_event_that_crosses_a_change_keeps_the_routes_that_it_met() -> None:
    network = EventNetwork(packets(), ["n0", "n1", "n2", "n3", "n4"])
    network.load({"route": [("n0", "n3", "n1"), ("n1", "n3", "n2"), ("n2", "n3", "n3"), ("n4", "n3", "n3")]})
    network.inject(0, packet("n0", "n3", "a"))
    network.inject(0.0005, packet("n0", "n3", "b"))
    for op, row in (("-", ("n1", "n3", "n2")), ("+", ("n1", "n3", "n4"))):
        network.change(0.0012, op, "route", row)  # after a left n1, before b gets there
    network.run()
    ways = {tree.fact.tuple[3]: [each.fact.tuple[0] for each in tree if each.firing] for tree in network.trees}
    assert ways == {"a": ["n1", "n2", "n3", "n3"], "b": ["n1", "n4", "n3", "n3"]}
    assert_all_come_back(network)


def test_a_loop_is_reported() -> None:
    network = EventNetwork(packets(), ["n1", "n2"], hops=10)
    network.load({"route": [("n1", "n3", "n2"), ("n2", "n3", "n1")]})
    network.inject(0, packet("n1", "n3", "x"))
    network.run()
    (loop,) = network.loops
    assert "went round: n1 -> n2 -> n1" in str(loop)


def test_an_event_at_a_node_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no node n9"):
        EventNetwork(packets(), ["n1"]).inject(0, packet("n9", "n3", "x"))


def test_messages_carry_little_more_than_without_provenance() -> None:
    sizes = {}
    for recording in (True, False):
        network = EventNetwork(packets(), ["n1", "n2", "n3"], recording=recording)
        network.load(LINE)
        network.inject(0, packet("n1", "n3", "x" * 500))
        network.run()
        sizes[recording] = network.simulation.figures.total
    assert sizes[True].messages == sizes[False].messages == 2
    assert sizes[False].provenance_bytes == 0
    assert sizes[True].bytes < 1.1 * sizes[False].bytes


def test_what_questions_cost() -> None:
    chain = [f"n{at}" for at in range(8)]
    output = Fact("recv", ("n7", "n0", "n7", "x"))
    costs = {}
    for name, options in {
        "exspan": {"scheme": "exspan"},
        "basic": {"scheme": "basic"},
        "advanced": {"scheme": "advanced"},
        "remembering": {"scheme": "advanced", "remembering": True},
    }.items():
        network = EventNetwork(packets(), chain, **options)  # type: ignore[arg-type]
        network.load({"route": [(at, "n7", to) for at, to in pairwise(chain)]})
        network.inject(0, packet("n0", "n7", "x"))
        network.run()
        answer = network.ask(output)
        assert [shape(each.tree) for each in answer.trees.trees] == [shape(network.trees[0])]
        costs[name] = (answer.messages, round(answer.seconds / 0.001))
    # There and back step by step; there step by step and back at once; one question for the event.
    assert costs == {"exspan": (14, 14), "basic": (8, 8), "advanced": (8, 8), "remembering": (2, 2)}


@given(st.integers(), st.text(max_size=5), st.floats(allow_nan=False))
def test_tuples_survive_the_wire(number: int, text: str, real: float) -> None:
    program = event_program(
        load(".decl e(a:symbol, b:number, c:float) .event e .decl o(a:symbol) .output o o(x) :- e(x, _, _).")
    )
    wire, fact = Wire(program), Fact("e", (text, number, real))
    assert wire.read_fact(wire.fact(fact)) == (fact, len(wire.fact(fact)))


def test_names_are_resolved_on_nodes() -> None:
    network = EventNetwork(dns(), ["h1", "h2", "root", "ns_com", "ns_hello"])
    network.load(SERVERS)
    network.inject(0, ("h1", "www.hello.com", 1))
    network.run()
    answer = network.ask(Fact("reply", ("h1", "www.hello.com", "10.0.0.1", 1)))
    assert len(answer.trees.trees) == 1
    assert is_sub_domain("com", "www.hello.com")


@pytest.mark.parametrize("scheme", SCHEMES)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**40 - 1)), max_size=8), st.booleans())
def test_trails_survive_the_wire_and_known_steps_are_short(
    scheme: str, steps: list[tuple[int, int]], ordered: bool
) -> None:
    sender, receiver = Trails(scheme, ordered=ordered), Trails(scheme, ordered=ordered)
    seen: set[int] = set()
    for step, run in steps:
        event = b"e" * 20 if scheme == "basic" else b""
        trail = Trail(event, (5 << 40) | run, "n1", bytes([step]) * 20)
        data = sender.write(trail)
        assert receiver.read(data, "n1") == trail
        assert (len(data) < 20 + len(event)) == (ordered and step in seen)
        seen.add(step)
