"""Stores give back every tree: the paper's vectors, its faults, and random networks whose routes change."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.events.programs import Truth, assert_same, dns, hopping, packet, packets, shape

from whence.events.digests import PrintedIds
from whence.events.questions import Questions
from whence.events.store import EventStore
from whence.lang.types import Tuple
from whence.provenance.graph import Fact

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "60"))
SCHEMES = ("exspan", "basic", "advanced")
LINE = {"route": [("n1", "n3", "n2"), ("n2", "n3", "n3")]}


def rows_of(store: EventStore, name: str) -> int:
    return len(store.tables[name])


def line(scheme: str = "advanced", **options: object) -> EventStore:
    store = EventStore(packets(), scheme=scheme, **options)  # type: ignore[arg-type]
    store.load(LINE)
    return store


@pytest.mark.parametrize("scheme", [*SCHEMES, "replay"])
def test_a_packet_walks_to_its_destination_and_its_tree_comes_back(scheme: str) -> None:
    store = line(scheme)
    assert store.event(packet("n1", "n3", "data")) == [Fact("recv", ("n3", "n1", "n3", "data"))]
    found = Questions(store).of_output(Fact("recv", ("n3", "n1", "n3", "data")))
    assert [shape(each.tree) for each in found.trees] == [
        ("recv", ("n3", "n1", "n3", "data"), "r2",
            ("packet", ("n3", "n1", "n3", "data"), "r1",
                ("packet", ("n2", "n1", "n3", "data"), "r1",
                    ("packet", ("n1", "n1", "n3", "data")),
                    ("route", ("n1", "n3", "n2"))),
                ("route", ("n2", "n3", "n3")))),
    ]  # fmt: skip


def test_digests_of_the_uncompressed_tables_as_printed() -> None:
    store = line("exspan", ids=PrintedIds({"n1", "n2", "n3"}))
    store.event(packet("n1", "n3", "data"))
    derivations = {
        (row[0], row[1].hex()[:8], row[3] and row[3].hex()[:8], row[2]) for row in store.tables["derivations"]
    }
    assert derivations == {
        ("n1", "f8d211c9", None, None),
        ("n2", "6308638d", "24573644", "n1"),
        ("n3", "2dd30510", "62dfcdc6", "n2"),
        ("n3", "9ccda8c3", "6cb60772", "n3"),
    }
    assert {(row[0], row[1].hex()[:8]) for row in store.tables["history"]} == {("n1", "75dd47b6"), ("n2", "3d582c1d")}
    executions = {(row[0], row[1].hex(), row[2], len(row[3])) for row in store.tables["executions"]}
    assert executions == {
        ("n1", "24573644c442a37600c53d0b16155e13c23e3677", "r1", 1),
        ("n2", "62dfcdc6c6b167c5713b26e69ca64f44a6c638a5", "r1", 1),
        ("n3", "6cb6077248a3c2cf9baf97593c6a5f39546ad62e", "r2", 0),
    }


def test_digests_of_the_compressed_tables_as_printed() -> None:
    store = line(ids=PrintedIds({"n1", "n2", "n3"}))
    store.event(packet("n1", "n3", "data"))
    store.event(packet("n1", "n3", "url"))
    assert {(row[0], row[1].hex(), row[2]) for row in store.tables["nodes"]} == {
        ("n3", "a50126cc2d6c726de0ca203c3b659f658d356173", "r2"),
        ("n2", "6d46d6d7117731c1a7ea1a8785bb2da7e31bcaf3", "r1"),
        ("n1", "0fb786956f31bfff6826af0797f769e44490403d", "r1"),
    }
    assert {(row[0], row[3]) for row in store.tables["links"]} == {("n3", "n2"), ("n2", "n1"), ("n1", None)}
    assert [(row[0], row[2], row[3].hex()[:8]) for row in store.tables["outputs"]] == [("n3", "n3", "a50126cc")] * 2


def test_rows_after_two_packets_of_a_class() -> None:
    rows = {}
    for scheme in SCHEMES:
        store = line(scheme)
        for data in ("data", "url"):
            store.event(packet("n1", "n3", data))
        rows[scheme] = {table.name: len(table) for table in store.tables if len(table) and table.name != "history"}
    assert rows == {
        "exspan": {"events": 2, "outputs": 2, "executions": 6, "tuples": 8, "derivations": 8},
        "basic": {"events": 2, "outputs": 2, "executions": 6},
        "advanced": {"events": 2, "outputs": 2, "nodes": 3, "links": 3},
    }


def test_basic_keeps_the_slow_tuple_of_a_step_not_the_event_that_it_dropped() -> None:
    store = line("basic")
    store.event(packet("n1", "n3", "data"))
    middle = next(row for row in store.tables["executions"] if row[0] == "n2")
    assert [store.history.fact(each) for each in middle[3]] == [Fact("route", ("n2", "n3", "n3"))]
    assert middle[4] is None


def test_classes_that_share_the_end_of_a_way_share_its_nodes() -> None:
    store, truth = line(), Truth(packets(), LINE)
    for row in (packet("n1", "n3", "data"), packet("n1", "n3", "url"), packet("n2", "n3", "ack")):
        store.event(row)
        truth.event(row)
    assert (rows_of(store, "nodes"), rows_of(store, "links"), rows_of(store, "outputs")) == (3, 5, 3)
    assert_same(store, truth)


def test_old_packets_keep_their_way_when_routes_change() -> None:
    store, truth = line(), Truth(packets(), LINE)
    for data in ("data", "url"):
        store.event(packet("n1", "n3", data))
        truth.event(packet("n1", "n3", data))
    for op, row in (("-", ("n1", "n3", "n2")), ("+", ("n4", "n3", "n3")), ("+", ("n1", "n3", "n4"))):
        assert store.change(op, "route", row)
        truth.change(op, "route", row)
    for data in ("p3", "p4"):
        store.event(packet("n1", "n3", data))
        truth.event(packet("n1", "n3", data))
    assert (rows_of(store, "nodes"), rows_of(store, "links"), rows_of(store, "outputs")) == (5, 6, 4)
    assert_same(store, truth)


SERVERS: dict[str, list[Tuple]] = {
    "rootServer": [("h1", "root"), ("h2", "root")],
    "nameServer": [("root", "com", "ns_com"), ("ns_com", "hello.com", "ns_hello")],
    "addressRecord": [("ns_hello", "www.hello.com", "10.0.0.1")],
}


def test_names_are_resolved_and_the_step_of_a_reply_is_at_another_place() -> None:
    store, truth = EventStore(dns()), Truth(dns(), SERVERS)
    store.load(SERVERS)
    for row in (("h1", "www.hello.com", 1), ("h1", "www.hello.com", 2), ("h2", "www.hello.com", 3)):
        assert store.event(row) == [Fact("reply", (row[0], row[1], "10.0.0.1", row[2]))]
        truth.event(row)
    assert {(row[0], row[2]) for row in store.tables["outputs"]} == {("h1", "ns_hello"), ("h2", "ns_hello")}
    assert rows_of(store, "nodes") == 6  # four of the five steps of h2 are those of h1
    assert store.event(("h1", "www.nowhere.org", 4)) == []
    assert_same(store, truth)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_event_with_several_ways_has_a_tree_for_each(scheme: str) -> None:
    forked = {"route": [("n1", "n3", "n2"), ("n1", "n3", "n4"), ("n2", "n3", "n3"), ("n4", "n3", "n3")]}
    store, truth = EventStore(packets(), scheme=scheme), Truth(packets(), forked)
    store.load(forked)
    for data in ("a", "b"):
        store.event(packet("n1", "n3", data))
        truth.event(packet("n1", "n3", data))
    for each in (store, truth):
        each.change("-", "route", ("n1", "n3", "n4"))
    store.event(packet("n1", "n3", "c"))
    truth.event(packet("n1", "n3", "c"))
    assert {output.tuple[3]: len(trees) for output, trees in truth.trees.items()} == {"a": 2, "b": 2, "c": 1}
    assert_same(store, truth)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_loop_that_ends_by_a_counter_keeps_every_round_apart(scheme: str) -> None:
    loop = {"route": [("n1", "n3", "n2"), ("n2", "n3", "n1"), ("n2", "n3", "n3")]}
    store, truth = EventStore(hopping(), scheme=scheme), Truth(hopping(), loop)
    store.load(loop)
    outputs: Counter[Fact] = Counter()
    for data, hops in (("x", 5), ("y", 5), ("z", 3)):
        row = ("n1", "n1", "n3", hops, data)
        found = store.event(row)
        outputs.update(found)
        assert Counter(found) == truth.event(row)
    assert sum(outputs.values()) == 5
    assert_same(store, truth)


def test_events_of_a_class_are_the_same_up_to_what_no_rule_asks_for() -> None:
    store = line()
    assert store.class_of(packet("n1", "n3", "url")) == store.class_of(("n1", "n9", "n3", "x"))
    assert store.class_of(("n2", "n1", "n3", "data")) != store.class_of(packet("n1", "n3", "data"))


# -- random networks --------------------------------------------------------------------------------------------------

PLACES = [f"n{at}" for at in range(5)]


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, str, Tuple]]:
    """Changes of routes and packets in any order, forks and loops included: a counter ends those."""
    place = st.sampled_from(PLACES)
    change = st.tuples(st.sampled_from("++-"), st.just("route"), st.tuples(place, place, place))
    event = st.tuples(
        st.just("+"), st.just("packet"), st.tuples(place, place, place, st.integers(0, 4), st.sampled_from("xyz"))
    )
    return draw(st.lists(st.one_of(change, change, event, event), min_size=5, max_size=40))


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(max_examples=EXAMPLES)
@given(steps=histories(), classes=st.sampled_from([0, 1, 100]))
def test_every_tree_of_a_network_whose_routes_change_comes_back(
    scheme: str, steps: list[tuple[str, str, Tuple]], classes: int
) -> None:
    events = hopping()
    store, truth = EventStore(events, scheme=scheme, classes=classes), Truth(events)
    for op, relation, row in steps:
        if relation == "route":
            store.change(op, relation, row)
            truth.change(op, relation, row)
        else:
            assert Counter(store.event(row)) == truth.event(row)
    assert_same(store, truth)


@settings(max_examples=EXAMPLES)
@given(steps=histories())
def test_what_is_not_of_interest_is_replayed(steps: list[tuple[str, str, Tuple]]) -> None:
    events = hopping()
    store, truth = EventStore(events), Truth(events)
    seen: dict[Fact, set[Tuple]] = {}
    for op, relation, row in steps:
        if relation == "route":
            store.change(op, relation, row)
            truth.change(op, relation, row)
        else:
            store.event(row)
            for hop in truth.walker.run(Fact("packet", row)):
                if hop.firing.head.relation == "packet":
                    seen.setdefault(hop.firing.head, set()).add(shape(hop.tree))
    questions = Questions(store)
    for fact, expected in list(seen.items())[:5]:
        assert {shape(each.tree) for each in questions.of_output(fact).trees} == expected


def test_a_store_goes_on_where_it_was_committed(tmp_path: Path) -> None:
    truth = Truth(packets(), LINE)
    with EventStore(packets(), tmp_path) as store:
        store.load(LINE)
        store.event(packet("n1", "n3", "data"))
        store.commit()
        store.event(packet("n1", "n3", "lost"))
    truth.event(packet("n1", "n3", "data"))
    with EventStore(packets(), tmp_path) as store:
        assert store.runs == 1
        store.event(packet("n2", "n3", "more"))
        store.commit()
    truth.event(packet("n2", "n3", "more"))
    assert_same(EventStore.read(tmp_path), truth)
    assert not Questions(EventStore.read(tmp_path)).of_output(Fact("recv", ("n3", "n1", "n3", "lost"))).trees
