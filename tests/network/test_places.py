"""Nodes are the places that occur: in updates, in the program, and in what is everywhere."""

from __future__ import annotations

import pytest

from whence import load
from whence.network import STRATEGIES, Network, PlaceError
from whence.runtime import Wiring

BASE = ".decl link(@a:symbol, b:symbol) .input link .decl known(x:symbol) everywhere .decl greeted(@x:symbol)"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_everywhere_names_nodes(strategy: str) -> None:
    program = load(f'{BASE} known("p"). known(cat(x, "1")) :- link(@x, _). greeted(@x) :- known(x).')
    network = Network(program, strategy=strategy)
    network.apply([("+", "link", ("a", "b")), ("+", "link", ("b", "a"))])
    assert network.relation("greeted") == {("p",), ("a1",), ("b1",)}
    network.apply([("-", "link", ("a", "b"))])
    assert network.relation("greeted") == {("p",), ("b1",)}
    assert [network.rows("known", node) for node in network.processes] == [{("p",), ("b1",)}] * 5


def test_what_is_everywhere_without_naming_nodes_makes_none() -> None:
    network = Network(load(f'{BASE} known("p"). known(y) :- link(@_, y). greeted(@x) :- link(@x, y), known(y).'))
    network.apply([("+", "link", ("a", "b"))])
    assert list(network.processes) == ["a"]


def test_nodes_that_a_topology_does_not_have() -> None:
    program = load(f'{BASE} known(cat(x, "1")) :- link(@x, _). greeted(@x) :- known(x).')
    network = Network(program, wiring=Wiring.of([("a", "b", 0.001)]))
    with pytest.raises(PlaceError, match="there is no node a1"):
        network.apply([("+", "link", ("a", "b"))])
