"""The worked example of the papers: three nodes, four links, and what becomes of reachability when link(C, B) goes."""

from __future__ import annotations

from whence import load
from whence.io.changes import Update
from whence.network import Network
from whence.runtime import Delivery

PROGRAM = """
.decl link(@a:symbol, b:symbol) .input link .output reach
reach(@x, y) :- link(@x, y).
reach(@x, y) :- link(@x, z), reach(@z, y).
"""
LINKS = (("A", "B"), ("B", "C"), ("C", "A"), ("C", "B"))
ALL = {(x, y) for x in "ABC" for y in "ABC"}
# With set semantics: what each step derives, where, and for whom. Four of twenty rows are there for provenance only.
STEPS = {
    1: {"A->B link!b(B, A)", "B->C link!b(C, B)", "C->A link!b(A, C)", "C->B link!b(B, C)"},
    2: {"B->A reach(A, C)", "C->B reach(B, A)", "C->B reach(B, B)", "A->C reach(C, B)", "B->C reach(C, C)"},
    3: {
        "B->A reach(A, A)",
        "B->A reach(A, B)",
        "C->B reach(B, C)",
        "B->C reach(C, A)",
        "B->C reach(C, B)",
        "A->C reach(C, C)",
    },
    4: {"A->C reach(C, A)"},
}


class Traced:
    def __init__(self, strategy: str) -> None:
        self.steps: dict[int, set[str]] = {}
        self.network = Network(load(PROGRAM), strategy=strategy, on_delivery=self.take)
        self.inserted = self.network.apply([Update("+", "link", link) for link in LINKS])

    def take(self, delivery: Delivery) -> None:
        shown = getattr(delivery.message, "shown", None)
        if shown is not None:
            step = round(delivery.arrived * 1000)
            for line in shown(self.network.compiled):
                text = f"{delivery.sender}->{delivery.target} {line.removeprefix('+').partition(' rank')[0]}"
                self.steps.setdefault(step, set()).add(text)

    def delete(self) -> None:
        self.steps = {}
        self.deleted = self.network.apply([Update("-", "link", ("C", "B"))])


def test_insertions_ship_sixteen_tuples_message_by_message() -> None:
    traced = Traced("support")
    assert traced.steps == STEPS
    assert traced.inserted.traffic.tuples == 16
    assert traced.network.relation("reach") == ALL


def test_delete_and_rederive_takes_all_away_and_brings_it_back() -> None:
    traced = Traced("dred")
    assert traced.steps == STEPS
    traced.delete()
    told = [text for texts in traced.steps.values() for text in texts]
    gone = {text.partition("-reach")[2] for text in told if "-reach" in text}
    back = {text.partition(" reach")[2] for text in told if " reach" in text}
    assert len(gone) == len(ALL)
    assert len(back) == len(ALL)
    assert sum(" reach" in text for text in told) == 9
    assert traced.network.relation("reach") == ALL


def test_one_support_a_sender_ships_less_than_half_for_the_deletion() -> None:
    support, dred = Traced("support"), Traced("dred")
    support.delete()
    dred.delete()
    assert support.network.relation("reach") == ALL
    assert 2 * support.deleted.traffic.tuples < dred.deleted.traffic.tuples
    assert support.deleted.seconds < dred.deleted.seconds


def test_runs_are_the_same_to_the_byte() -> None:
    one, other = Traced("support"), Traced("support")
    one.delete()
    other.delete()
    assert one.network.simulation.figures == other.network.simulation.figures
