"""Worked examples of "Collaborative Data Sharing with Mappings and Provenance", chapter 1: three databases that share names.

Numbered as the vectors are: TV-1.5 is test_1_5. Where the printed text is wrong the computed value stands, with its erratum.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.provenance.graphs import graph_of
from tests.provenance.sharing import (
    MAPPINGS,
    added,
    annotated,
    chains,
    paths,
    poly,
    subtracted,
    tagged,
    variables,
)

from whence import Session, Update, load
from whence.annotated import evaluate_annotated
from whence.lang.types import Variant
from whence.provenance.graph import Fact
from whence.provenance.recorded import recorded_derivations
from whence.provenance.series import Shape, polynomials, series, shapes
from whence.provenance.solve import equations_of
from whence.reference import evaluate
from whence.semiring import (
    INTEGER_POLYNOMIALS,
    NATURAL_POLYNOMIALS,
    SEMIRINGS,
    Boolean,
    Integer,
    Natural,
    PosBool,
)
from whence.semiring.homomorphisms import specialize
from whence.semiring.polynomials import Polynomial

STRATEGIES = ["support", "dred", "absorption", "recompute"]

OSCI, DROS, MUSC, PERI = "Oscinella frit", "Drosophila melanogaster", "Musca domestica", "Periplaneta americana"
GENES = {(82, OSCI, DROS): "g1", (26, MUSC, MUSC): "g2"}
NULL1, NULL2, FORTY_FOUR = Variant("f", (OSCI,)), Variant("f", (MUSC,)), Variant("num", (44,))
SHARED = {"g": [*GENES], "b": [(FORTY_FOUR, PERI)]}
SHARED_TAGS = tagged("g", GENES) | {Fact("b", (FORTY_FOUR, PERI)): "b1"}


def test_1_1_heads_of_one_mapping_share_their_null() -> None:
    text = """
        .type Id = h {n: symbol, c: symbol}
        .decl g(id: number, nam: symbol, can: symbol) .input g
        m4: b($h(n, c), n), c($h(n, c), c) :- g(_, n, c).
        joined(n, c) :- b(x, n), c(x, c).
    """
    session = Session(load(text), facts={"g": GENES}, record=["b", "c"])
    assert set(session.relation("b")) == {(Variant("h", (n, c)), n) for _, n, c in GENES}
    assert set(session.relation("c")) == {(Variant("h", (n, c)), c) for _, n, c in GENES}
    assert set(session.relation("joined")) == {(n, c) for _, n, c in GENES}
    assert len({each.relation for each in session.recordings.values()}) == 1, "one composite table for both heads"


def test_1_2_exchange_invents_one_null_per_name() -> None:
    views = evaluate(load(MAPPINGS), SHARED)
    assert views["u"] == {(OSCI, DROS), (MUSC, MUSC)}
    assert views["b"] == {(FORTY_FOUR, PERI), (NULL1, OSCI), (NULL1, DROS), (NULL2, MUSC)}


def test_1_3_answers_are_certain_without_nulls() -> None:
    text = (
        MAPPINGS
        + f"""
        row(i, n) :- b($num(i), n), n = "{OSCI}".
        name(n) :- b(_, n), n = "{OSCI}".
    """
    )
    session = Session(load(text), facts=SHARED)
    assert set(session.relation("row")) == set()
    assert set(session.relation("name")) == {(OSCI,)}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_1_4_an_insertion_adds_what_follows_from_it(strategy: str) -> None:
    session = Session(load(MAPPINGS), facts=SHARED, strategy=strategy)
    synonym = (OSCI, "Oscinella frit Linnaeus")
    changes = session.apply([Update("+", "u", synonym)])
    assert changes.inserted == {"u": [synonym], "b": [(NULL1, "Oscinella frit Linnaeus")]}
    assert not changes.deleted


# A peer's table as others make it, and as its curators let it be seen.
CURATED = """
.type Id = num {n: number} | f {n: symbol}
.decl g(id: number, nam: symbol, can: symbol) .input g
.decl own(id: Id, nam: symbol) .input own
.decl rejected(id: Id, nam: symbol) .input rejected
u(n, c) :- g(_, n, c).
imported($f(n), n) :- g(_, n, _).
imported(x, n2) :- b(x, n1), u(n1, n2).
b(x, n) :- imported(x, n), !rejected(x, n).
b(x, n) :- own(x, n).
"""


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_1_5_what_a_curator_deletes_stays_away(strategy: str) -> None:
    session = Session(load(CURATED), facts={"g": GENES, "own": SHARED["b"]}, strategy=strategy)
    changes = session.apply([Update("+", "rejected", (NULL2, MUSC))])
    assert changes.deleted == {"b": [(NULL2, MUSC)]}
    assert (NULL2, MUSC) in set(session.relation("imported"))
    # The next exchange derives it once more, and in another way.
    session.apply([Update("-", "g", (26, MUSC, MUSC)), Update("+", "g", (27, MUSC, DROS))])
    assert set(session.relation("b")) == {(FORTY_FOUR, PERI), (NULL1, OSCI), (NULL1, DROS)}
    assert (NULL2, MUSC) in set(session.relation("imported"))
    back = session.apply([Update("-", "rejected", (NULL2, MUSC))])
    assert set(back.inserted["b"]) == {(NULL2, MUSC), (NULL2, DROS)}


def test_1_6_trust_conditions_on_values() -> None:
    found = annotated(graph_of(MAPPINGS, SHARED), PosBool(), "b", variables(PosBool(), SHARED_TAGS))
    from_gus = set(GENES.values())
    trusted = {row for row, witnesses in found.items() if row[1] != MUSC or any(not w & from_gus for w in witnesses)}
    assert trusted == {(FORTY_FOUR, PERI), (NULL1, OSCI), (NULL1, DROS)}


def test_1_6_trust_conditions_on_mappings() -> None:
    names = annotated(graph_of(MAPPINGS, SHARED), Boolean(), "b", {}, m2=False)
    assert names.keys() == {(FORTY_FOUR, PERI), (NULL1, OSCI), (NULL2, MUSC)}


def test_1_7_and_1_8_equations_with_the_names_of_mappings() -> None:
    semiring = NATURAL_POLYNOMIALS
    graph = graph_of(MAPPINGS, SHARED)
    tags = variables(semiring, SHARED_TAGS)
    equations = equations_of(
        graph, semiring, tags.get, rules={name: semiring.variable(name) for name in ("m1", "m2", "m3")}
    )
    b4, u2 = Fact("b", (NULL2, MUSC)), Fact("u", (MUSC, MUSC))
    assert set(equations[b4]) == {
        (poly("m1"), (Fact("g", (26, MUSC, MUSC)),)),
        (poly("m3"), (b4, u2)),
    }  # E1: u2, not g2
    found = polynomials(equations)
    assert {fact.tuple: found[fact] for fact in found if fact.relation != "g"} == {
        (OSCI, DROS): poly("m2 g1"),
        (MUSC, MUSC): poly("m2 g2"),
        (FORTY_FOUR, PERI): poly("b1"),
        (NULL1, OSCI): poly("m1 g1"),
        (NULL1, DROS): poly("m3 m1 g1 m2 g1"),
        (NULL2, MUSC): None,
    }
    # The closed form of b4: m1 g2 (m3 m2 g2)^n for every n.
    assert series(equations, 8)[b4] == poly("m1 g2 + m1 g2 m3 m2 g2 + m1 g2 m3 m2 g2 m3 m2 g2")
    assert shapes(equations)[b4] is Shape.INFINITE_MONOMIALS


def test_1_9_the_provenance_table_of_a_mapping() -> None:
    session = Session(load(MAPPINGS), facts=SHARED, record=["b"])
    table = session.recordings["m3"]
    assert [each.name for each in table.variables] == ["x", "n1", "n2"]
    assert set(session.relation(table.relation)) == {(NULL1, OSCI, DROS), (NULL2, MUSC, MUSC)}
    firings = {
        (*each.body[0].tuple, *each.body[1].tuple, *each.head.tuple) for each in recorded_derivations(session, "m3")
    }
    assert firings == {(NULL1, OSCI, OSCI, DROS, NULL1, DROS), (NULL2, MUSC, MUSC, MUSC, NULL2, MUSC)}
    changes = session.apply([Update("-", "g", (26, MUSC, MUSC))])
    assert changes.deleted[table.relation] == [(NULL2, MUSC, MUSC)]
    assert set(session.relation(table.relation)) == {(NULL1, OSCI, DROS)}


def test_1_10_replacing_a_mapping() -> None:
    text = MAPPINGS.replace(
        "m1: b($f(n), n) :- g(_, n, _).", ".decl t(i: number, b: number) m1: b($num(i), n) :- g(g, n, _), t(g, i)."
    )
    views = evaluate(load(text), SHARED | {"t": [(82, 5001)]})
    five = Variant("num", (5001,))
    assert views["b"] == {(FORTY_FOUR, PERI), (five, OSCI), (five, DROS)}
    assert views["u"] == {(OSCI, DROS), (MUSC, MUSC)}


@pytest.mark.parametrize("strategy", ["support", "counting", "dred"])
def test_1_11_delta_rules_meet_each_new_derivation_once(strategy: str) -> None:
    text = ".decl r(x: symbol, z: symbol) .input r .decl s(z: symbol, y: symbol) .input s q(x, y) :- r(x, z), s(z, y)."
    session = Session(load(text), facts={"r": [("r", "m")], "s": [("m", "s")]}, strategy=strategy)
    changes = session.apply([Update("+", "r", ("r+", "m")), Update("+", "s", ("m", "s+"))])
    assert set(changes.inserted["q"]) == {("r+", "s"), ("r", "s+"), ("r+", "s+")}
    assert session.last_epoch["derivations"] == 3


def test_1_12_deletion_by_substitution() -> None:
    def without_u(text: str) -> Polynomial[int]:
        gone = specialize(NATURAL_POLYNOMIALS, lambda x: poly("0") if x == "u" else NATURAL_POLYNOMIALS.variable(x))
        return gone(poly(text))

    assert without_u("u v") == NATURAL_POLYNOMIALS.zero
    assert without_u("u v + r") == poly("r")


JOINS = ".decl r(x: symbol, y: symbol) .input r q1(x, y) :- r(x, y), r(x, _). q2(x, y) :- r(x, y)."


@pytest.mark.parametrize(
    ("name", "less", "more"),
    [
        ("boolean", True, True),
        ("lineage", True, False),
        ("why", True, False),
        ("boolean-polynomial", False, False),
        ("polynomial", False, False),
    ],
)
def test_1_13_a_redundant_join_matters(name: str, less: bool, more: bool) -> None:
    semiring = SEMIRINGS[name]
    graph = graph_of(JOINS, {"r": [("a", "b"), ("a", "c")]})
    first, second = annotated(graph, semiring, "q1", {}), annotated(graph, semiring, "q2", {})
    assert all(semiring.leq(second[row], first[row]) for row in first) is less
    assert all(semiring.leq(first[row], second[row]) for row in first) is more


def test_1_13_a_redundant_join_matters_to_bags() -> None:
    graph = graph_of(JOINS, {"r": [("a", "b"), ("a", "c")]})
    assert annotated(graph, Natural(), "q1", {}) == {("a", "b"): 2, ("a", "c"): 2}
    assert annotated(graph, Natural(), "q2", {}) == {("a", "b"): 1, ("a", "c"): 1}


# -- signed multiplicities

EDGES = st.dictionaries(
    st.sampled_from([a + b for a in "abc" for b in "abc"]), st.integers(-3, 3).filter(bool), max_size=6
)


@given(old=EDGES, delta=EDGES)
def test_1_14_two_rules_for_the_delta_of_a_join(old: dict[str, int], delta: dict[str, int]) -> None:
    ring = Integer()
    new = added(ring, old, delta)
    wanted = subtracted(ring, paths(new, ring, 2), paths(old, ring, 2))
    assert added(ring, chains(ring, old, delta), chains(ring, delta, new)) == wanted
    assert added(ring, chains(ring, delta, old), chains(ring, new, delta)) == wanted


def test_1_15_signed_multiplicities() -> None:
    ring = Integer()
    old = {"ab": 2, "bc": 1, "ad": 1, "dc": 1, "de": 3}
    delta = {"ab": -2, "bc": -1, "ef": 1}
    new = added(ring, old, delta)
    assert new == {"ad": 1, "dc": 1, "de": 3, "ef": 1}
    assert paths(old, ring, 2) == {"ac": 3, "ae": 3}
    assert paths(new, ring, 2) == {"ac": 1, "ae": 3, "df": 3}
    assert added(ring, chains(ring, old, delta), chains(ring, delta, new)) == {"ac": -2, "df": 3}
    assert added(ring, chains(ring, delta, old), chains(ring, new, delta)) == {"ac": -2, "df": 3}


def test_1_15_the_engine_maintains_what_the_signs_say() -> None:
    """Sets instead of bags: a row goes when its count reaches zero."""
    text = ".decl r(x: symbol, y: symbol) .input r v(x, y) :- r(x, z), r(z, y)."
    session = Session(load(text), facts={"r": [tuple(edge) for edge in ("ab", "bc", "ad", "dc", "de")]})
    changes = session.apply([Update(op, "r", tuple(edge)) for op, edge in (("-", "ab"), ("-", "bc"), ("+", "ef"))])
    assert (changes.inserted["v"], changes.deleted.get("v")) == ([("d", "f")], None)
    assert set(session.relation("v")) == {("a", "c"), ("a", "e"), ("d", "f")}


def test_1_16_view_adaptation_with_signed_polynomials() -> None:
    ring = INTEGER_POLYNOMIALS
    edges = {"ab": ring.variable("p"), "bc": ring.variable("q"), "ac": ring.variable("r"), "cd": ring.variable("s")}
    squares, cubes = paths(edges, ring, 2), paths(edges, ring, 3)
    old, new = added(ring, squares, cubes), added(ring, edges, cubes)
    assert old == {"ac": poly("p q", ring), "bd": poly("q s", ring), "ad": poly("r s + p q s", ring)}
    delta = subtracted(ring, new, old)  # E5: the new view without the old one
    assert delta == subtracted(ring, edges, squares), "reformulated, the long paths are not looked at"
    assert delta == {
        "ab": poly("p", ring), "bc": poly("q", ring), "cd": poly("s", ring),
        "ac": poly("r + -1 p q", ring), "bd": poly("-1 q s", ring), "ad": poly("-1 r s", ring),
    }  # fmt: skip
    assert added(ring, old, delta) == new == {**edges, "ad": poly("p q s", ring)}


# -- annotated trees, shredded into a relation of edges

# a[ b^x1[ a[ c^y3, d ] ], c^y1[ d[a], c^y2, b^x2 ] ]: parent, node, label, annotation
TREE = [
    (0, 1, "a", ""), (1, 7, "b", "x1"), (7, 8, "a", ""), (8, 9, "c", "y3"), (8, 10, "d", ""),
    (1, 2, "c", "y1"), (2, 3, "d", ""), (3, 4, "a", ""), (2, 5, "c", "y2"), (2, 6, "b", "x2"),
]  # fmt: skip
DESCENDANTS = """
.decl e(parent: number, node: number, label: symbol) .input e
below(node, label) :- e(0, node, label).
below(node, label) :- below(above, _), e(above, node, label).
hit(node) :- below(node, "c").
leaf(node) :- hit(node), !e(node, _, _).
"""


def test_1_17_a_path_query_on_an_annotated_tree() -> None:
    """TV-6.2 by way of TV-6.9: //c gives the tree at node 2 with y1, and a leaf c with x1 y3 + y1 y2."""
    semiring = NATURAL_POLYNOMIALS
    tags = {row[:3]: row[3] for row in TREE}

    def annotate(_relation: str, row: object) -> Polynomial[int]:
        return semiring.variable(tags[row]) if tags[row] else semiring.one  # type: ignore[index]

    found = evaluate_annotated(load(DESCENDANTS), {"e": tags}, semiring, annotate)
    assert found["hit"] == {(2,): poly("y1"), (5,): poly("y1 y2"), (9,): poly("x1 y3")}
    assert semiring.sum(found["leaf"].values()) == poly("x1 y3 + y1 y2"), "equal trees are one, with the sum"
    without = specialize(semiring, lambda x: semiring.zero if x == "x1" else semiring.variable(x))
    shredded = {node: without(value) for (node,), value in found["hit"].items()}
    assert shredded == {2: poly("y1"), 5: poly("y1 y2"), 9: semiring.zero}
