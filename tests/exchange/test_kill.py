"""kill -9 at any instant of an exchange: the next one completes it, nothing is lost and nothing counts twice."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

from tests.exchange.network import Network
from tests.exchange.victim import exchange

from whence.exchange.instance import PARTS
from whence.lang.types import Tuple

LONG = "WHENCE_LONG" in os.environ
TEXT = """
peer A { R(id: number, name: symbol) key (id). }
peer B { S(id: number, name: symbol) key (id). }
peer C { T(id: number, name: symbol) key (id). N(name: symbol). }
fromA: A.R(i, n) -> C.T(i, n).
fromB: B.S(i, n) -> C.T(i, n).
on: C.T(i, n) -> C.N(n).
back: C.N(n) -> exists i. A.R(i, n).
C charges A 1.
"""


def prepared(folder: Path) -> Network:
    """A peer with an exchange ahead in which it publishes, imports and decides."""
    network = Network(folder, TEXT)
    network.join("A", "B", "C")
    network.edit("A", "R", add={(1, "one"), (2, "two")})
    network.exchange("A", "C")
    network.edit("C", "T", drop={(2, "two")}, add={(5, "five")})
    network.edit("C", "N", add={("more",)})
    network.edit("A", "R", add={(7, "seven")})
    network.edit("B", "S", add={(1, "uno"), (3, "tre"), (7, "sette")})
    network.exchange("A", "B")
    return network


def state(network: Network) -> tuple[dict[str, set[Tuple]], dict[tuple[str, str], set[Tuple]]]:
    instance = network.replica().instance
    relations = [name for name in instance.confederation.relations if name.startswith("C.")]
    return network.tables("C"), {(name, part): instance.part(name, part) for name in relations for part in PARTS}


def test_a_kill_at_every_instant_of_an_exchange(tmp_path: Path) -> None:
    """At every 9th, unless there is time."""
    whole = prepared(tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "start", ignore=shutil.ignore_patterns("lock"))
    code, instants = exchange(whole.path("C"))
    assert code == 0
    expected = state(whole)
    assert expected[0]["T"] >= {(1, "uno"), (3, "tre"), (5, "five"), (7, "sette")}
    assert expected[1]["C.T", "rejected"] == {(2, "two")}
    assert instants > 15
    for at in range(1, instants + 1, 1 if LONG else 9):
        for halve in (False, True):
            folder = tmp_path / f"killed{at}{halve}"
            network = prepared_copy(tmp_path / "start", folder)
            assert exchange(network.path("C"), kill_at=at, halve=halve)[0] == -signal.SIGKILL
            network.exchange("C")
            assert state(network) == expected, at
            last = network.store.last
            network.exchange("C")
            assert network.store.last == last, at
            shutil.rmtree(folder)


def prepared_copy(start: Path, folder: Path) -> Network:
    shutil.copytree(start, folder)
    return Network(folder, TEXT)
