"""Rows with one key: the cheapest wins, ties wait for a decision, and decisions can be undone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.exchange.network import Network
from tests.exchange.vectors import FIRST, MAPPINGS, NUMBERS, SCHEMAS, SECOND, confederation, put

from whence.exchange.explain import ExchangeDerivations, costs
from whence.exchange.instance import Instance
from whence.exchange.reconcile import deferred, reconcile
from whence.provenance.expand import derivation_graph
from whence.provenance.graph import Fact
from whence.provenance.solve import solve_graph
from whence.semiring import Tropical

TEXT = """
peer A { R(id: number, name: symbol) key (id). }
peer B { S(id: number, name: symbol) key (id). }
peer C { T(id: number, name: symbol) key (id). }
peer D { V(id: number, name: symbol). }
fromA: A.R(i, n) -> C.T(i, n).
fromB: B.S(i, n) -> C.T(i, n).
on: C.T(i, n) -> D.V(i, n).
"""


def network_of(folder: Path, *policies: str) -> Network:
    network = Network(folder, TEXT + "\n".join(policies))
    network.join("A", "B", "C", "D")
    network.edit("A", "R", add={(1, "one"), (2, "two")})
    network.edit("B", "S", add={(1, "uno"), (3, "tre")})
    network.exchange("A", "B")
    return network


def test_costs_are_those_of_the_cheapest_derivation() -> None:
    """3.6"""
    charges = (
        "BioSQL charges m1 1. BioSQL charges m2 1. BioSQL charges m3 3. BioSQL charges uBio 5. BioSQL charges GUS 1."
    )
    instance = Instance(confederation(SCHEMAS, MAPPINGS, charges), NUMBERS)
    rows = [Fact("uBio.U", row) for row in ((2, 3), (5, 6), (6, 5))]
    rows += [Fact("BioSQL.B", row) for row in ((FIRST, 2), (FIRST, 3), (SECOND, 5), (SECOND, 6))]
    assert list(costs(instance, "BioSQL", rows).values()) == [2, 2, 5, 2, 7, 2, 7]
    # Row by row, as in the example, where one row of GUS costs more than the other.
    graph = derivation_graph(ExchangeDerivations(instance), rows)
    paid = {Fact("GUS.G", (1, 2, 3)): 1.0, Fact("GUS.G", (4, 5, 6)): 2.0, Fact("uBio.U", (6, 5)): 5.0}
    solved = solve_graph(graph, Tropical(), paid.get, rules={"m1": 1.0, "m2": 1.0, "m3": 3.0})
    assert [solved[row] for row in rows] == [2, 3, 5, 2, 7, 3, 9]


def test_rows_may_cost_by_their_values() -> None:
    """3.6, with the costs of its rows in the text"""
    charges = """
    BioSQL charges G(1, _, _) 1. BioSQL charges G(i, n, c) 2 if i > 1, n != c. BioSQL charges U(6, 5) 5.
    BioSQL charges m1 1. BioSQL charges m2 1. BioSQL charges m3 3. uBio charges G(_, _, _) 100.
    """
    instance = Instance(confederation(SCHEMAS, MAPPINGS, charges), NUMBERS)
    rows = [Fact("uBio.U", row) for row in ((2, 3), (5, 6), (6, 5))]
    rows += [Fact("BioSQL.B", row) for row in ((FIRST, 2), (FIRST, 3), (SECOND, 5), (SECOND, 6))]
    assert list(costs(instance, "BioSQL", rows).values()) == [2, 3, 5, 2, 7, 3, 9]
    assert list(costs(instance, "uBio", rows[:2]).values()) == [100, 100]


def test_a_preference_outweighs_charges(tmp_path: Path) -> None:
    network = network_of(tmp_path, "C prefers B over A over on.", "C charges B 900.")
    network.exchange("C")
    assert network.tables("C") == {"T": {(1, "uno"), (2, "two"), (3, "tre")}}
    with network.open("C") as peer:
        assert peer.cost("C.T", (2, "two")) == 1_000_000
        result = peer.trust("prefers A over B")
        assert not result.delta, "the decision stands"
        peer.trust_again("prefers B over A over on")
        peer.undo("C.T", (1, "uno"))
    assert network.tables("C") == {"T": {(1, "one"), (2, "two"), (3, "tre")}}


def test_the_cheapest_row_wins_and_its_consequences_follow(tmp_path: Path) -> None:
    network = network_of(tmp_path, "C charges A 1.", "C charges B 2.")
    result = network.exchange("C")
    assert network.tables("C") == {"T": {(1, "one"), (2, "two"), (3, "tre")}}
    assert [tuple(each) for each in result.decisions] == [
        ("+", "lost", "C.T", (1, "uno")),
        ("+", "chosen", "C.T", (1, "one")),
    ]
    network.exchange("D")
    assert network.tables("D") == {"V": {(1, "one"), (2, "two"), (3, "tre")}}
    # When the winner goes, the loser is considered again.
    network.edit("A", "R", drop={(1, "one")})
    network.exchange("A", "C", "D")
    assert network.tables("D") == {"V": {(1, "uno"), (2, "two"), (3, "tre")}}


def test_a_tie_waits_for_a_decision_that_can_be_undone(tmp_path: Path) -> None:
    network = network_of(tmp_path)
    result = network.exchange("C")
    assert network.tables("C") == {"T": {(2, "two"), (3, "tre")}}
    (conflict,) = result.deferred
    assert (conflict.relation, conflict.key) == ("C.T", (1,))
    assert conflict.rows == (((1, "one"), 0.0), ((1, "uno"), 0.0))
    with network.open("C") as peer:
        with pytest.raises(ValueError, match="is not one of the rows"):
            peer.resolve("T", (1, "ein"))
        assert not peer.resolve("T", (1, "uno")).deferred
    network.exchange("D")
    assert network.tables("D") == {"V": {(1, "uno"), (2, "two"), (3, "tre")}}
    with network.open("C") as peer:
        peer.resolve("T", (1, "one"))
    network.exchange("D")
    assert network.tables("D") == {"V": {(1, "one"), (2, "two"), (3, "tre")}}
    with network.open("C") as peer:
        assert len(peer.undo("T", (1, "one")).deferred) == 1
    assert network.tables("C") == {"T": {(2, "two"), (3, "tre")}}


def test_a_decision_stands_when_a_cheaper_row_arrives(tmp_path: Path) -> None:
    network = network_of(tmp_path, "C charges A 3.", "C charges B 2.")
    network.exchange("C")
    assert (1, "uno") in network.tables("C")["T"]
    with network.open("C") as peer:
        peer.trust("charges B 9")
        peer.trust_again("C charges B 2.")
    network.edit("A", "R", drop={(1, "one")}, add={(1, "eins")})
    network.exchange("A", "C")
    assert (1, "uno") in network.tables("C")["T"]
    with network.open("C") as peer:
        peer.undo("T", (1, "uno"))
    assert (1, "eins") in network.tables("C")["T"]


def test_what_a_peer_put_in_itself_wins(tmp_path: Path) -> None:
    network = network_of(tmp_path)
    network.edit("C", "T", add={(1, "own")})
    result = network.exchange("C")
    assert network.tables("C") == {"T": {(1, "own"), (2, "two"), (3, "tre")}}
    assert not result.deferred
    network.edit("C", "T", drop={(1, "own")})
    assert len(network.exchange("C").deferred) == 1


def test_a_rejected_row_ends_the_conflict(tmp_path: Path) -> None:
    network = network_of(tmp_path)
    network.exchange("C")
    with network.open("C") as peer:
        peer.resolve("T", (1, "one"))
        peer.reject("T", (1, "one"))
    assert (1, "uno") in network.tables("C")["T"]


@pytest.mark.parametrize("charges", ["", "A charges m1 1. A charges m2 1. A charges m3 1.\n"])
def test_reconciling_again_decides_nothing_new(charges: str) -> None:
    """Also where rows bring about the conflicts in which they are lost."""
    text = """
    peer A { R(id: number, v: number) key (id). Q(id: number, v: number) key (id). }
    peer B { S(id: number, v: number) key (id). }
    m1: S(i, v) -> R(i, v).
    m2: R(i, v) -> Q(v, i).
    m3: Q(i, v) -> R(i, v).
    """
    source = random.Random(7)
    for _ in range(30):
        rows = {(source.randrange(4), source.randrange(4)) for _ in range(source.randint(1, 5))}
        instance = Instance(confederation(text, charges), put("B.S", *rows))
        reconcile(instance, "A")
        for name in ("A.R", "A.Q"):
            shown = instance.relation(name)
            assert len({row[0] for row in shown}) == len(shown)
        assert not reconcile(instance, "A")
        listed = deferred(instance, "A")
        lost = instance.part("A.R", "lost") | instance.part("A.Q", "lost")
        assert {row for each in listed for row, _ in each.rows} <= lost
