"""Maintenance by absorption: what must be kept, and worked examples of "Incremental Processing of Update Streams", chapter 3."""

from __future__ import annotations

import os
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.semiring.programs import Annotatable, programs

from whence import Session, Update, load
from whence.engine.absorption import AbsorptionStratum, Variable
from whence.lang.types import Tuple
from whence.reference import evaluate
from whence.semiring import PosBool
from whence.semiring.bdd import FormulaDiagrams
from whence.semiring.depth_first import DepthFirstOrder
from whence.semiring.labelled_order import LabelledOrder

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "40"))
REACHABLE = """
.decl link(src: symbol, dst: symbol) .input link
reachable(x, y) :- link(x, y).
reachable(x, y) :- link(x, z), reachable(z, y).
"""
NAMES = {("A", "B"): "p1", ("B", "C"): "p2", ("C", "A"): "p3", ("C", "B"): "p4"}


def stratum_of(session: Session, relation: str) -> AbsorptionStratum:  # type: ignore[type-arg]
    found = next(each for each in session._atomic._maintainer.strata if relation in each.plan.relations)
    assert isinstance(found, AbsorptionStratum)
    return found


def formulas(session: Session, relation: str) -> dict[str, str]:
    """`p1p2 p4` for p1 and p2 together, or p4."""
    shown = {}
    for row in session._atomic._backend.decode(relation, session._atomic._backend.table(relation).ids()):
        witnesses = stratum_of(session, relation).witnesses(relation, row)
        words = sorted("".join(sorted(NAMES[each.tuple] for each in witness)) for witness in witnesses)  # type: ignore[attr-defined, index]
        shown["".join(row)] = " ".join(sorted(words, key=lambda word: (len(word), word)))  # type: ignore[arg-type]
    return shown


# -- exact, and adding up ---------------------------------------------------------------------------------------------

VALUE = st.integers(0, 2)
update = st.one_of(
    st.builds(lambda op, x, y: Update(op, "e", (x, y)), st.sampled_from("++-"), VALUE, VALUE),
    st.builds(lambda op, x: Update(op, "f", (x,)), st.sampled_from("++-"), VALUE),
)


@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(run=programs(negation=True), epochs=st.lists(st.lists(update, min_size=1, max_size=5), min_size=1, max_size=6))
def test_views_are_exact_and_changes_add_up(run: Annotatable, epochs: list[list[Update]]) -> None:
    session = Session(run.program, strategy="absorption")
    base: dict[str, set[Tuple]] = {"e": set(), "f": set()}
    total: dict[str, set[Tuple]] = {name: set() for name in run.program.relations}
    start = [Update("+", name, row) for name, rows in run.facts.items() for row in rows]
    for epoch in (start, *epochs):
        for op, relation, row, _ in epoch:
            (base[relation].add if op == "+" else base[relation].discard)(row)
        for op, relation, row, _ in session.apply(epoch):
            assert (row in total[relation]) == (op == "-"), "a change that changes nothing"
            (total[relation].remove if op == "-" else total[relation].add)(row)
        expected = evaluate(run.program, base)
        assert session.views() == total == expected
        for stratum in session._atomic._maintainer.strata:
            if isinstance(stratum, AbsorptionStratum):
                check_formulas(session, stratum)


def check_formulas(session: Session, stratum: AbsorptionStratum) -> None:  # type: ignore[type-arg]
    """Every formula names only what is there."""
    for name, of in stratum.formulas.items():
        assert len(of) == len(set(session._atomic._backend.decode(name, session._atomic._backend.table(name).ids())))
        for value in of.values():
            for relation, row, absent in stratum.diagrams.support(value):
                there = row in set(
                    session._atomic._backend.decode(relation, session._atomic._backend.table(relation).ids())
                )
                assert there != absent


def test_a_tuple_that_comes_back_is_not_taken_for_the_one_that_went() -> None:
    session = Session(load(REACHABLE), strategy="absorption", facts={"link": [("A", "B"), ("B", "C")]})
    for _ in range(3):
        assert ("A", "C") in set(session.apply([Update("-", "link", ("B", "C"))]).deleted["reachable"])
        assert ("A", "C") in set(session.apply([Update("+", "link", ("B", "C"))]).inserted["reachable"])
    assert formulas(session, "reachable")["AC"] == "p1p2"


def test_deleting_and_inserting_in_one_epoch() -> None:
    session = Session(load(REACHABLE), strategy="absorption", facts={"link": [("A", "B"), ("B", "C"), ("C", "A")]})
    changes = session.apply([Update("-", "link", ("C", "A")), Update("+", "link", ("C", "B"))])
    assert set(changes.deleted["reachable"]) == {("A", "A"), ("B", "A"), ("C", "A")}
    assert set(changes.inserted.get("reachable", ())) == set()  # (C, B) was there through A, and is there by itself


# -- the worked example ----------------------------------------------------------------------------------------------

FINAL = {
    "AA": "p1p2p3", "AB": "p1", "AC": "p1p2", "BA": "p2p3", "BB": "p2p4 p1p2p3", "BC": "p2", "CA": "p3",
    "CB": "p4 p1p3", "CC": "p2p4 p1p2p3",
}  # fmt: skip


def test_1_step_by_step() -> None:
    steps: list[tuple[int, dict[str, str]]] = []
    session = Session(load(REACHABLE), strategy="absorption", on_round=lambda name, *_: name == "reachable" and note())

    def note() -> None:
        steps.append((session._atomic._backend.enumerated, formulas(session, "reachable")))

    session.apply([Update("+", "link", link) for link in NAMES])
    note()
    base = {"AB": "p1", "BC": "p2", "CA": "p3", "CB": "p4"}
    first = base | {"AC": "p1p2", "BA": "p2p3", "BB": "p2p4", "CB": "p4 p1p3", "CC": "p2p4"}
    assert [state for _, state in steps] == [base, first, FINAL, FINAL]
    # 4 links, then 5, 7 and 4 derivations: the last ones are absorbed.
    assert [count for count, _ in steps] == [4, 9, 16, 20]


def test_2_deletion_is_a_substitution() -> None:
    session = Session(load(REACHABLE), strategy="absorption", facts={"link": list(NAMES)})
    before = session._atomic._backend.enumerated
    changes = session.apply([Update("-", "link", ("C", "B"))])
    assert "reachable" not in changes.deleted
    assert session._atomic._backend.enumerated == before, "no join is needed to delete"
    assert formulas(session, "reachable") == FINAL | {"BB": "p1p2p3", "CB": "p1p3", "CC": "p1p2p3"}


EDGES = {"e0": "AB", "e1": "BF", "e2": "BC", "e3": "CF", "e4": "AD", "e5": "DF", "e6": "AE", "e7": "ED"}
DEPTH_FIRST = ["e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7"]
BREADTH_FIRST = ["e0", "e4", "e6", "e1", "e2", "e5", "e7", "e3"]


@pytest.mark.parametrize(
    ("order", "size"), [(DEPTH_FIRST, 9), (BREADTH_FIRST, 18), (["e1", "e2", "e3", "e0", "e4", "e6", "e7", "e5"], 8)]
)
def test_4_the_order_of_variables_decides_the_size(order: list[str], size: int) -> None:
    diagrams = FormulaDiagrams(order)
    paths = ["e0 e1", "e0 e2 e3", "e4 e5", "e6 e7 e5"]
    value = diagrams.sum([diagrams.product([diagrams.literal(edge) for edge in path.split()]) for path in paths])
    assert diagrams.size(value) == size
    assert diagrams.witnesses(value) == {frozenset(path.split()) for path in paths}
    (moved,) = diagrams.deal_out(DEPTH_FIRST, [value])
    assert diagrams.size(moved) == 9
    assert diagrams.witnesses(moved) == {frozenset(path.split()) for path in paths}


def test_4_the_engine_orders_links_depth_first() -> None:
    links = [Update("+", "link", tuple(EDGES[edge])) for edge in BREADTH_FIRST]
    session = Session(load(REACHABLE), strategy="absorption")
    session.apply(links)
    stratum = stratum_of(session, "reachable")
    (row,) = (
        session._atomic._backend.table("reachable")
        .find(session._atomic._backend.encode("reachable", [("A", "F")]))
        .tolist()
    )
    assert stratum.diagrams.size(stratum.formulas["reachable"][row]) == 9


@pytest.mark.parametrize("arrival", [BREADTH_FIRST, DEPTH_FIRST])
def test_5_the_order_is_kept_as_edges_come(arrival: list[str]) -> None:
    order: DepthFirstOrder[str] = DepthFirstOrder()
    for edge in arrival:
        order.insert(edge, *EDGES[edge])
        order.edges()
    assert order.edges() == DEPTH_FIRST
    order.delete("e2")
    assert order.edges() == [edge for edge in DEPTH_FIRST if edge != "e2"]


@pytest.mark.parametrize(
    ("arrival", "expected"),
    [
        (BREADTH_FIRST, DEPTH_FIRST),
        (DEPTH_FIRST, DEPTH_FIRST),
        ("e3 e7 e5 e2 e1 e6 e4 e0".split(), "e2 e3 e1 e6 e7 e5 e4 e0".split()),
    ],
)
def test_5_labels_keep_the_order(arrival: list[str], expected: list[str]) -> None:
    order: LabelledOrder[str] = LabelledOrder()
    for edge in arrival:
        order.insert(edge, *EDGES[edge])
    assert order.edges() == expected


def test_5_what_hung_on_an_edge_goes_where_others_lead_to_it() -> None:
    order: LabelledOrder[str] = LabelledOrder()
    for edge in ("ab", "bc", "cd", "ce", "af", "fc", "gh"):
        order.insert(edge, *edge)
    assert order.edges() == ["ab", "bc", "cd", "ce", "af", "fc", "gh"]
    order.delete("bc")
    assert order.edges() == ["ab", "af", "fc", "cd", "ce", "gh"]
    order.delete("fc")
    assert order.edges() == ["ab", "af", "gh", "cd", "ce"]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)), max_size=40))
def test_5_labels_lose_no_edge(steps: list[tuple[int, int, int]]) -> None:
    order: LabelledOrder[tuple[int, int]] = LabelledOrder()
    edges: dict[tuple[int, int], None] = {}
    for start, end, odds in steps:
        if (start, end) in edges:
            del edges[start, end]
            order.delete((start, end))
        elif odds or not edges:
            edges[start, end] = None
            order.insert((start, end), start, end)
        assert sorted(order.edges()) == sorted(edges)


@given(st.lists(st.sampled_from(list(product(range(5), repeat=2))), unique=True, max_size=12))
def test_5_the_order_is_always_depth_first(edges: list[tuple[int, int]]) -> None:
    order: DepthFirstOrder[tuple[int, int]] = DepthFirstOrder()
    for edge in edges:
        order.insert(edge, *edge)
    walked = order.edges()
    assert sorted(walked) == sorted(edges)
    # An edge comes right after one that leads to its start, or after the block of a sibling, or starts a walk of its own.
    for at, (start, _) in enumerate(walked):
        earlier = walked[:at]
        open_path = []
        for x, y in earlier:
            while open_path and open_path[-1] != x:
                open_path.pop()
            if not open_path:
                open_path = [x]
            open_path.append(y)
        assert start in open_path or all(x != start for x, _ in earlier)


REGIONS = """
.decl near(a: symbol, b: symbol) .input near
.decl main(region: symbol, sensor: symbol) .input main
.decl triggered(sensor: symbol) .input triggered
active(r, s) :- main(r, s), triggered(s).
active(r, t) :- active(r, s), near(s, t), triggered(t).
size(r, n) :- active(r, _), n = count : { active(r, _) }.
largest(n) :- n = max m : { size(_, m) }.
largestRegion(r) :- size(r, n), largest(n).
"""


def test_6_regions_follow_their_sensors() -> None:
    grid = [(f"{x}{y}", f"{u}{v}") for x, y, u, v in product(range(3), repeat=4) if abs(x - u) + abs(y - v) == 1]
    facts: dict[str, set[Tuple]] = {
        "near": set(grid),
        "main": {("left", "00"), ("right", "22")},
        "triggered": {(f"{x}{y}",) for x, y in product(range(3), repeat=2) if x != 1},
    }
    session = Session(load(REGIONS), strategy="absorption", facts=facts)
    assert set(session.relation("largestRegion")) == {("left",), ("right",)}
    for op, sensor in (("+", "11"), ("-", "02"), ("-", "11"), ("+", "02"), ("-", "00"), ("-", "22"), ("+", "22")):
        session.apply([Update(op, "triggered", (sensor,))])
        (facts["triggered"].add if op == "+" else facts["triggered"].discard)((sensor,))
        assert session.views() == evaluate(load(REGIONS), facts)


def test_10_the_minimum_under_updates() -> None:
    program = load(".decl q(v: number) .input q best(m) :- m = min v : { q(v) }.")
    session = Session(program, strategy="absorption", facts={"q": [(5,), (7,), (9,)]})
    best = []
    for gone, come in ((None, 4), (4, None), (5, 8), (9, 6), (6, 3), (7, None)):
        updates = [Update("-", "q", (gone,))] if gone is not None else []
        session.apply([*updates, *([Update("+", "q", (come,))] if come is not None else [])])
        best += [row[0] for row in session.relation("best")]
    assert best == [4, 5, 7, 6, 3, 3]


# -- diagrams ---------------------------------------------------------------------------------------------------------

literals = st.sampled_from("abcde")
expressions = st.recursive(literals, lambda inner: st.tuples(st.sampled_from("&|"), inner, inner), max_leaves=12)


def build(expression: object, diagrams: FormulaDiagrams[str]) -> tuple[object, object]:
    """The same expression as a diagram and as minimal witnesses."""
    if isinstance(expression, str):
        return diagrams.literal(expression), PosBool().variable(expression)
    op, left, right = expression  # type: ignore[misc]
    one, other = build(left, diagrams), build(right, diagrams)
    for_diagrams, for_sets = (diagrams.times, PosBool().times) if op == "&" else (diagrams.plus, PosBool().plus)
    return for_diagrams(one[0], other[0]), for_sets(one[1], other[1])  # type: ignore[arg-type]


@given(one=expressions, other=expressions, gone=st.frozensets(literals), order=st.permutations("abcde"))
def test_diagrams_are_minimal_witnesses(one: object, other: object, gone: frozenset[str], order: list[str]) -> None:
    diagrams: FormulaDiagrams[str] = FormulaDiagrams(order)
    (value, witnesses), (second, others) = build(one, diagrams), build(other, diagrams)
    assert diagrams.witnesses(value) == witnesses  # type: ignore[arg-type]
    assert (value == second) == (witnesses == others), "equal functions are equal diagrams"
    assert diagrams.leq(value, second) == PosBool().leq(witnesses, others)  # type: ignore[arg-type]
    assert diagrams.witnesses(diagrams.restrict(value, gone)) == PosBool().restrict(witnesses, gone)  # type: ignore[arg-type]
    assert diagrams.load(diagrams.dump(value)) == value  # type: ignore[arg-type]
    odds = dict(zip("abcde", (0.1, 0.5, 0.7, 0.9, 0.2), strict=True))
    expected = 0.0
    for bits in product((True, False), repeat=5):
        world = {token for token, there in zip("abcde", bits, strict=True) if there}
        chance = 1.0
        for token in "abcde":
            chance *= odds[token] if token in world else 1 - odds[token]
        expected += chance if any(each <= world for each in witnesses) else 0  # type: ignore[attr-defined, operator]
    assert diagrams.probability(value, odds) == pytest.approx(expected)  # type: ignore[arg-type]


def test_levels_are_dealt_out_again_when_there_is_no_room() -> None:
    diagrams: FormulaDiagrams[int] = FormulaDiagrams()
    order: list[int] = []
    value = diagrams.one
    for number in range(300):
        order.insert(len(order) // 2, number)
        if not diagrams.place(order):
            (value,) = diagrams.deal_out(order, [value])
        value = diagrams.times(value, diagrams.literal(number))
    assert diagrams.size(value) == 300
    assert [diagrams.levels[each] for each in order] == sorted(diagrams.levels.values())
    assert diagrams.restrict(value, [150]) == diagrams.zero


def test_absences_are_variables_too() -> None:
    session = Session(
        load(REACHABLE + "alone(x) :- link(x, _), !reachable(x, x)."),
        strategy="absorption",
        facts={"link": [("A", "B")]},
    )
    (witness,) = stratum_of(session, "alone").witnesses("alone", ("A",))
    assert witness == {Variable("link", ("A", "B")), Variable("reachable", ("A", "A"), absent=True)}
    session.apply([Update("+", "link", ("B", "A"))])
    assert not set(session.relation("alone"))
