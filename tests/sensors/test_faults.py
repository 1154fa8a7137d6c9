"""Losses, collisions, nodes that die, batteries: what is wrong is told, and what it took is counted."""

from __future__ import annotations

from random import Random

import networkx as nx
import pytest
from tests.sensors.runs import BASE, PROGRAMS, drawn_updates
from tests.sensors.test_vectors import LOGIC_J, both, levels

from whence import Update, load
from whence.runtime import Channel
from whence.sensors import Choices, Field, Radio, Scheme, SensorNetwork

PROGRAM = load(BASE + PROGRAMS["layers"])


def network_of(**settings: object) -> SensorNetwork:
    field = Field.grid(5, 5)
    network = SensorNetwork(PROGRAM, field, choices=Choices(scheme=Scheme.PERPENDICULAR), **settings)
    network.feed(drawn_updates(Random(3), PROGRAM, field, 50, 4.0))
    return network


def test_losses_are_missed_and_false_rows() -> None:
    found = []
    for seed in range(6):
        network = network_of(channel=Channel(latency=0.01, loss=0.3), seed=seed)
        network.run()
        assert network.simulation.figures.total.lost > 0
        found.append(network.compare())
    assert sum(each.missed + each.false for each in found) > 0


@pytest.mark.parametrize("seed", range(4))
def test_what_is_repeated_arrives_in_time(seed: int) -> None:
    network = network_of(channel=Channel(latency=0.01, loss=0.15), seed=seed, reliable=True)
    network.run()
    compared = network.compare()
    assert (compared.missed, compared.false, network.late) == (0, 0, 0)
    assert network.simulation.figures.total.retransmitted > 0


def test_bounds_that_are_too_short_are_noticed() -> None:
    network = network_of(channel=Channel(latency=0.01, jitter=0.05), hop_bound=0.01)
    network.run()
    assert network.late > 0


def test_radios_that_are_receiving_miss_what_begins_meanwhile() -> None:
    quiet = network_of(channel=Channel(latency=0.01, bandwidth=2000))
    loud = network_of(channel=Channel(latency=0.01, bandwidth=2000), collide=True)
    for network in (quiet, loud):
        network.run()
    assert quiet.simulation.figures.total.lost == 0
    assert loud.simulation.figures.total.lost > 0


def test_a_node_that_dies_takes_its_part_with_it() -> None:
    network = SensorNetwork(load(LOGIC_J), Field.grid(1, 4, named=int))
    network.kill(1, after=0.0)
    network.feed(network.link_updates())
    network.run()
    assert network.relation("J") == {(0, 0)}
    assert network.compare().missed > 0


def test_batteries_run_empty() -> None:
    radio = Radio(battery=0.004, listen=0.0)
    network = network_of(radio=radio)
    network.run()
    dead = [node for node in network.nodes if not network.simulation.is_up(node)]
    assert 0 < len(dead) < 25
    assert not any(network_of(radio=Radio()).simulation.is_up(node) is False for node in network.nodes)


def test_energy_follows_the_stated_model() -> None:
    network = SensorNetwork(load(LOGIC_J), Field.grid(1, 2, named=int))
    network.apply(network.link_updates())
    radio, figures = network.radio, network.simulation.figures
    energy = network.energy()
    sent = figures.by_node[0]
    heard, size = figures.received[0]
    assert energy.by_node[0] == pytest.approx(
        1.67e-6 * (sent.bytes + 11 * sent.messages) + 1.80e-6 * (size + 11 * heard)
    )
    assert energy.total == pytest.approx(sum(energy.by_node.values()))
    assert energy.lifetime(0.0) == pytest.approx(radio.battery / radio.listen)
    assert energy.lifetime(10.0) < energy.lifetime(1.0)


@pytest.mark.parametrize("seed", range(4))
def test_links_that_come_and_go_at_any_time(seed: int) -> None:
    """Updates that overtake each other's stages: rows may climb, and the last stage ends that."""
    draw = Random(seed)
    field = Field.grid(3, 4, named=int)
    graph = nx.Graph([(a, b) for a, heard in field.neighbours.items() for b in heard])
    network = SensorNetwork(load(LOGIC_J), field, channel=Channel(latency=0.01, jitter=0.01, fifo=False), seed=seed)
    network.apply(network.link_updates())
    time = network.simulation.now
    updates: list[Update] = []
    for _ in range(8):
        time += draw.choice((0.001, 0.02, 0.05))
        edge = draw.choice(list(field.neighbours))
        other = draw.choice(field.neighbours[edge])
        op = "-" if graph.has_edge(edge, other) else "+"
        (graph.remove_edge if op == "-" else graph.add_edge)(edge, other)
        updates += [each._replace(time=time) for each in both(op, [(edge, other)])]
    network.apply(updates)
    tree, shorter, hops = levels(graph)
    assert (network.relation("H"), network.relation("P"), network.relation("J")) == (tree, shorter, hops)
