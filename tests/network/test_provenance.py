"""The strategies with provenance: views are those of one evaluation, and what is shipped is what the papers print."""

from __future__ import annotations

import os
import random

import pytest
from tests.network.test_maintenance import BASE, Followed, drawn_channel, drawn_epoch
from tests.properties.counting import count_sequence

from whence import load
from whence.io.changes import Update
from whence.lang.types import Tuple
from whence.network import Network
from whence.network.absorption import ORDERS
from whence.network.annotated_codec import AnnotatedShipment
from whence.network.provenance import AbsorptionStrategy, RelativeStrategy
from whence.network.strategy import STRATEGIES
from whence.plan import UnsuitableStrategy
from whence.reference import evaluate
from whence.runtime import Delivery, Wiring

# `make test-long` asks for more.
EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "60"))
SHIPS = ("lazy", "batched", "eager")

REACH = """.decl link(@a:symbol, b:symbol) .input link .output reach
reach(@x, y) :- link(@x, y).
reach(@x, y) :- link(@x, z), reach(@z, y).
"""
LINKS = (("A", "B"), ("B", "C"), ("C", "A"), ("C", "B"))

PROGRAMS = {
    "left-linear": ".output r r(@x, y) :- link(@x, y). r(@x, y) :- link(@x, z), r(@z, y).",
    "right-linear": ".output r r(@x, y) :- link(@x, y). r(@x, y) :- r(@x, z), link(@z, y).",
    "at the other end": ".output r r(x, @y) :- link(@x, y). r(x, @y) :- r(x, @z), link(@z, y).",
    "three places": ".output t t(@z, x) :- link(@x, y), link(@y, z), node(@y), link(@x, x).",
    "counted": ".output n, s, most r(@x, y) :- link(@x, y). r(@x, y) :- link(@x, z), r(@z, y)."
    "n(@x, c) :- node(@x), c = count : { r(@x, _) }. s(@x, t) :- node(@x), t = sum y : { r(@x, y) }."
    "most(@y, c) :- n(@x, c), link(@x, y).",
    "aggregates of aggregates": ".output low, size, top r(@x, y) :- link(@x, y). r(@x, y) :- link(@x, z), r(@z, y)."
    "low(@x, m) :- node(@x), m = min y : { r(@x, y) }. in(@m, x) :- low(@x, m). "
    "size(@m, n) :- in(@m, _), n = count : { in(@m, _) }. all(@0, n) :- size(@_, n). top(@0, m) :- m = max n : { all(@0, n) }.",
    "everywhere": ".decl both(x:number) everywhere .decl sure(x:number) everywhere .output both, sure, p, r "
    "both(x) :- link(@x, y), link(@y, x). sure(x) :- both(x), known(x). p(@x, y) :- link(@x, y), both(y)."
    "r(@x, y) :- known(y), node(@x). r(@x, y) :- link(@x, z), r(@z, y).",
    "facts": "node(0). link(@1, 2). .output r, z r(@x, y) :- link(@x, y). r(@x, y) :- link(@x, z), r(@z, y)."
    "z(@x) :- node(@x), r(@x, 2).",
    "costs in bounds": ".output p p(@x, y, c) :- road(@x, y, c). p(@x, y, c + e) :- road(@x, z, c), p(@z, y, e), c + e < 6.",
}


def drawn_wiring(draw: random.Random) -> Wiring:
    return Wiring(drawn_channel(draw))


@pytest.mark.parametrize("ship", SHIPS)
@pytest.mark.parametrize("strategy", ["absorption", "relative"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_views_on_disturbed_networks(name: str, strategy: str, ship: str) -> None:
    program = load(BASE + PROGRAMS[name])
    for seed in range(max(4, EXAMPLES // 10)):
        draw = random.Random(f"{name} {ship} {seed}")
        nodes = draw.randint(2, 5)
        order = draw.choice(ORDERS)
        settings = {"period": draw.choice((0.003, None)), "capacity": draw.choice((2, 1000))}
        made = RelativeStrategy(**settings) if strategy == "relative" else AbsorptionStrategy(order=order, **settings)
        network = Network(
            program,
            strategy=made,
            ship=ship,
            nodes=range(nodes),
            wiring=drawn_wiring(draw),
            processors=draw.choice((None, None, 2)),
            seed=seed,
        )
        followed = Followed(network, draw)
        base: dict[str, set[Tuple]] = {"link": set(), "road": set(), "node": set(), "known": set()}
        for number in range(6):
            followed.apply(drawn_epoch(base, draw, nodes, draw.randint(1, 8) if number else 10))
            followed.check(evaluate(program, base))
        count_sequence()


# -- what the papers print


class Traced:
    """A network, and what its nodes told each other."""

    def __init__(self, strategy: str, ship: str | None = None) -> None:
        self.told: list[str] = []
        self.network = Network(load(REACH), strategy=strategy, ship=ship, on_delivery=self._take)

    def _take(self, delivery: Delivery) -> None:
        if hasattr(delivery.message, "shown"):
            for each in delivery.message.shown(self.network.compiled):
                self.told.append(f"{delivery.sender}→{delivery.target} {each}")

    def apply(self, *updates: tuple[str, tuple[str, str]]) -> list[str]:
        self.told.clear()
        self.figures = self.network.apply([Update(op, "link", row) for op, row in updates])
        return self.told

    def annotations(self) -> dict[Tuple, str]:
        shown: dict[Tuple, str] = {}
        for process in self.network.processes.values():
            state = process.state
            table = self.network.compiled.tables["reach"]
            shown |= {row: state.algebra.show(each) for row, each in state.known[table].items()}  # type: ignore[attr-defined]
        return shown


# p1 is A0, the link from A to B; p2 is B0, p3 is C0 and p4 is C1.
TV1 = """
A→B +link!b(B, A) A0 | B→C +link!b(C, B) B0 | C→A +link!b(A, C) C0 | C→B +link!b(B, C) C1
B→A +reach(A, C) A0·B0 | C→B +reach(B, A) B0·C0 | C→B +reach(B, B) B0·C1 | A→C +reach(C, B) A0·C0 | B→C +reach(C, C) B0·C1
B→A +reach(A, A) A0·B0·C0 | B→A +reach(A, B) A0·B0·C1 | C→B +reach(B, B) A0·B0·C0 | C→B +reach(B, C) B0·C1
B→C +reach(C, A) B0·C0·C1 | B→C +reach(C, B) B0·C1 | A→C +reach(C, C) A0·B0·C0
B→A +reach(A, B) A0·B0·C0 | C→B +reach(B, C) A0·B0·C0 | A→C +reach(C, A) A0·B0·C0 | B→C +reach(C, B) A0·B0·C0·C1
"""


def _lines(text: str) -> list[str]:
    return sorted(each.strip() for line in text.strip().splitlines() for each in line.split("|"))


def test_1_every_message() -> None:
    traced = Traced("absorption", "eager")
    told = traced.apply(*(("+", link) for link in LINKS))
    assert sorted(told) == _lines(TV1)
    assert traced.figures.traffic.tuples == 20
    assert traced.annotations() == {
        ("A", "A"): "A0·B0·C0",
        ("A", "B"): "A0",
        ("A", "C"): "A0·B0",
        ("B", "A"): "B0·C0",
        ("B", "B"): "A0·B0·C0 | B0·C1",
        ("B", "C"): "B0",
        ("C", "A"): "C0",
        ("C", "B"): "A0·C0 | C1",
        ("C", "C"): "A0·B0·C0 | B0·C1",
    }


@pytest.mark.parametrize("strategy", ["support", "dred"])
def test_1_without_provenance(strategy: str) -> None:
    traced = Traced(strategy)
    traced.apply(*(("+", link) for link in LINKS))
    assert traced.figures.traffic.tuples == 16


def test_2_a_deletion_takes_two_messages() -> None:
    traced = Traced("absorption", "eager")
    traced.apply(*(("+", link) for link in LINKS))
    assert traced.apply(("-", ("C", "B"))) == ["C→B -C1", "B→A -C1"]
    assert traced.figures.traffic.messages == 2
    assert traced.figures.changes == 0
    assert traced.annotations() == {
        ("A", "A"): "A0·B0·C0",
        ("A", "B"): "A0",
        ("A", "C"): "A0·B0",
        ("B", "A"): "B0·C0",
        ("B", "B"): "A0·B0·C0",
        ("B", "C"): "B0",
        ("C", "A"): "C0",
        ("C", "B"): "A0·C0",
        ("C", "C"): "A0·B0·C0",
    }


def test_2_lazily_alternatives_go_before_the_news() -> None:
    traced = Traced("absorption", "lazy")
    traced.apply(*(("+", link) for link in LINKS))
    assert traced.figures.traffic.tuples == 16
    told = traced.apply(("-", ("C", "B")))
    assert traced.figures.traffic.messages == 2
    assert told == [
        "C→B +reach(B, B) A0·B0·C0",
        "C→B +reach(B, C) A0·B0·C0",
        "C→B -C1",
        "B→A +reach(A, B) A0·B0·C0",
        "B→A -C1",
    ]
    assert traced.figures.changes == 0


def test_3_delete_and_rederive_takes_everything_away_and_back() -> None:
    traced = Traced("dred")
    traced.apply(*(("+", link) for link in LINKS))
    told = traced.apply(("-", ("C", "B")))
    moments = [came for _, _, _, came in traced.network.watched.moments]
    assert moments == [False] * 9 + [True] * 9
    assert len([each for each in told if " +reach" in each]) == 9
    assert len(traced.network.relation("reach")) == 9


# -- details


def test_a_tuple_that_comes_again_has_a_new_variable() -> None:
    traced = Traced("absorption")
    traced.apply(("+", ("A", "B")), ("+", ("B", "C")))
    traced.apply(("-", ("B", "C")))
    assert traced.network.relation("reach") == {("A", "B")}
    traced.apply(("+", ("B", "C")))
    assert traced.annotations() == {("A", "B"): "A0", ("B", "C"): "B1", ("A", "C"): "A0·B1"}


@pytest.mark.parametrize("strategy", ["absorption", "relative"])
def test_messages_are_what_their_bytes_say(strategy: str) -> None:
    seen: list[AnnotatedShipment] = []
    network = Network(
        load(REACH), strategy=strategy, ship="batched", on_delivery=lambda each: seen.append(each.message)
    )  # type: ignore[arg-type]
    network.apply([Update("+", "link", row) for row in (*LINKS, ("B", "A"), ("A", "C"))])
    for message in seen:
        data = message.encode()
        assert message.size().bytes == len(data)
        read = AnnotatedShipment.decode(data, message.language)
        assert (read.phase, read.items, list(read.deaths)) == (message.phase, message.items, list(message.deaths))
    network.apply([Update("-", "link", ("C", "B"))])
    deaths = [AnnotatedShipment.decode(each.encode(), each.language).deaths for each in seen]
    assert any(deaths)


def test_levels_are_dealt_out_anew_while_messages_are_under_way() -> None:
    program = load(
        BASE + ".output n, t r(@x, y) :- link(@x, y). r(@x, y) :- link(@x, z), r(@z, y)."
        "n(@x, c) :- node(@x), c = count : { r(@x, _) }. t(@y, x, c) :- n(@x, c), link(@x, y)."
    )
    for order in ORDERS:
        network = Network(program, strategy=AbsorptionStrategy(order=order))
        base: dict[str, set[Tuple]] = {"link": set(), "road": set(), "node": set(), "known": set()}
        draw = random.Random(order)
        for _ in range(30):
            network.apply(drawn_epoch(base, draw, 8, 12))
            assert network.views() == evaluate(program, base)
        for process in network.processes.values():
            assert len(process.state.algebra.diagrams.levels) < 1500  # type: ignore[attr-defined]


@pytest.mark.parametrize("ship", SHIPS)
def test_windows_on_both_sides_of_a_join(ship: str) -> None:
    program = load(""".decl seen(@x:symbol, y:symbol) .input seen .window seen(time=10)
        .decl near(@y:symbol, z:symbol) .input near .window near(rows=2)
        .output met met(@z, x) :- seen(@x, y), near(@y, z).""")
    network = Network(program, strategy="absorption", ship=ship)
    network.apply([Update("+", "seen", ("a", "b")), Update("+", "near", ("b", "c"))], 0)
    assert network.relation("met") == {("c", "a")}
    network.apply([Update("+", "near", ("b", "d")), Update("+", "seen", ("e", "b"))], 5)
    assert network.relation("met") == {("c", "a"), ("d", "a"), ("c", "e"), ("d", "e")}
    # A third row of near: the first is out of its window. Then time alone: what a has seen is too old, and in the end all is.
    network.apply([Update("+", "near", ("b", "f"))], 6)
    assert network.relation("met") == {("d", "a"), ("f", "a"), ("d", "e"), ("f", "e")}
    network.apply([], 11)
    assert network.relation("met") == {("d", "e"), ("f", "e")}
    network.apply([], 30)
    assert network.relation("met") == set()


@pytest.mark.parametrize("strategy", ["absorption", "relative"])
@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ("r(@x, y) :- link(@x, y). r(@x, y) :- r(@x, z), r(@z, y).", "not linear"),
        ("o(@x, y) :- link(@x, y). o(@x, y) :- link(@x, z), e(@z, y). e(@x, y) :- link(@x, z), o(@z, y).", "mutual recursion of"),
        ("r(@x, y) :- link(@x, y), !node(@x).", "negation"),
        ("d(@x, y, m) :- p(@x, y, _), m = min c : { p(@x, y, c) }. p(@x, y, c) :- road(@x, y, c)."
         "p(@x, y, c + e) :- road(@x, z, c), d(@z, y, e).", "mutual recursion of"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused_by_name(strategy: str, rules: str, reason: str) -> None:
    with pytest.raises(UnsuitableStrategy, match=f"{strategy} cannot run .*{reason}"):
        Network(load(BASE + rules), strategy=strategy)


def test_all_strategies_are_offered() -> None:
    assert set(STRATEGIES) == {"support", "dred", "relative", "absorption"}
