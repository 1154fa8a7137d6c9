"""The worked examples of the dissertation's chapter on annotated XML, corrections included (TV-6.1 to TV-6.9)."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from tests.trees.samples import figure_64, forest_of

from whence import Variant, load
from whence.annotated import evaluate_annotated
from whence.semiring import NATURAL_POLYNOMIALS, Access, Boolean, Natural
from whence.semiring.homomorphisms import specialize
from whence.trees import convert, evaluate_query, evaluate_shredded, load_query
from whence.trees.relational import decode_relation, encode_relations
from whence.trees.shred import shred
from whence.trees.values import Forest, KSets, Tree

N = NATURAL_POLYNOMIALS
SETS = KSets(N)

# The join of AB in R with BC in R or in S, as the dissertation writes it.
FIGURE_65 = """
let $r := $d/R/*,
    $rAB := for $t in $r return <t> { $t/A, $t/B } </>,
    $rBC := for $t in $r return <t> { $t/B, $t/C } </>,
    $s := $d/S/*
return
    <Q> { for $x in $rAB, $y in ($rBC, $s)
          where $x/B = $y/B
          return <t> { $x/A, $y/C } </> } </>
"""
R = {("a", "b", "c"): "x1", ("d", "b", "e"): "x2", ("f", "g", "e"): "x3"}
S = {("b", "c"): "x4", ("g", "c"): "x5"}


@pytest.fixture(params=[evaluate_query, evaluate_shredded], ids=["recursion", "shredding"])
def evaluate(request: pytest.FixtureRequest) -> Any:
    return request.param


def x(text: str) -> Any:
    """A polynomial such as x1*x1 + y."""
    return N.sum([N.product([N.variable(name) for name in term.split("*")]) for term in text.split(" + ")])


def one_tree(forest: Forest[Any]) -> Tree[Any]:
    ((tree, annotation),) = forest.items()
    assert annotation == N.one
    return tree


def test_6_1_grandchildren(evaluate: Any) -> None:
    source = forest_of(
        N,
        [("a", "z", [("b", "x1", [("d", "y1", [])]), ("c", "x2", [("d", "y2", []), ("e", "y3", [])])])],
        N.variable,
    )
    query = load_query("element p { for $t in $S return for $x in ($t)/* return ($x)/* }", N)
    expected = Tree("p", SETS.of([(SETS.leaf("d"), x("z*x1*y1 + z*x2*y2")), (SETS.leaf("e"), x("z*x2*y3"))]))
    assert one_tree(evaluate(query, {"S": source}, N)) == expected
    assert evaluate(load_query("$S/*/*", N), {"S": source}, N) == expected.children


def test_6_2_descendants(evaluate: Any) -> None:
    answer = evaluate(load_query("$T//c", N), {"T": figure_64(N)}, N)
    inner = SETS.of(
        [(Tree("d", SETS.single(SETS.leaf("a"))), N.one), (SETS.leaf("c"), x("y2")), (SETS.leaf("b"), x("x2"))]
    )
    assert answer == SETS.of([(Tree("c", inner), x("y1")), (SETS.leaf("c"), x("x1*y3 + y1*y2"))])


def test_6_3_equal_trees_are_one(evaluate: Any) -> None:
    def children(one: str, other: str) -> Any:
        text = f"element b {{ annot k1 (element {one} {{()}}), annot k2 (element {other} {{()}}) }}"
        return one_tree(evaluate(load_query(text, N), {}, N)).children

    assert children("a", "a") == SETS.of([(SETS.leaf("a"), x("k1 + k2"))])
    assert children("a1", "a2") == SETS.of([(SETS.leaf("a1"), x("k1")), (SETS.leaf("a2"), x("k2"))])


def database(**annotations: Any) -> Forest[Any]:
    """R and S as a tree; annotations by name, those of tuples otherwise one."""

    def value_of(name: str) -> Any:
        return annotations.get(name, N.one)

    def attributes(names: str, row: tuple[str, ...], relation: str) -> list[Any]:
        return [(name, f"{relation}.{name}", [(value, None, [])]) for name, value in zip(names, row, strict=True)]

    relations = [
        ("R", "R", [("t", name, attributes("ABC", row, "R")) for row, name in R.items()]),
        ("S", "S", [("t", name, attributes("BC", row, "S")) for row, name in S.items()]),
    ]
    return forest_of(N, [("D", None, relations)], value_of)


def test_6_4_relational_algebra(evaluate: Any) -> None:
    expected = {
        "ac": "x1*x1 + x1*x4",
        "ae": "x1*x2",
        "dc": "x1*x2 + x2*x4",
        "de": "x2*x2",
        "fc": "x3*x5",
        "fe": "x3*x3",
    }
    relations = {
        "R": (("A", "B", "C"), {row: x(name) for row, name in R.items()}),
        "S": (("B", "C"), {row: x(name) for row, name in S.items()}),
    }
    answer = evaluate(load_query(FIGURE_65, N), {"d": encode_relations(relations, N)}, N)
    assert decode_relation(one_tree(answer), ("A", "C")) == {tuple(row): x(value) for row, value in expected.items()}
    # The same by the rules of relations.
    program = load(
        """.decl R(a: symbol, b: symbol, c: symbol) .input R .decl S(b: symbol, c: symbol) .input S
        Q(a, c) :- R(a, b, _), R(_, b, c). Q(a, c) :- R(a, b, _), S(b, c). .output Q"""
    )
    given = {name: rows for name, (_, rows) in relations.items()}
    views = evaluate_annotated(program, given, N, lambda name, row: given[name][row])
    assert views["Q"] == {tuple(row): x(value) for row, value in expected.items()}


def test_6_5_annotations_everywhere_split_tuples(evaluate: Any) -> None:
    """With annotations on attributes the tuples of ac and dc come in two; they are one again when those are set to one."""
    places = ["R", "x1", "x2", "x3", "x4", "x5", "R.A", "R.B", "R.C", "S.B", "S.C"]
    document = database(**{each: N.variable(each) for each in places})
    query = load_query(FIGURE_65, N)
    answer = one_tree(evaluate(query, {"d": document}, N))
    assert len(answer.children) == 8
    only_tuples = specialize(N, lambda name: N.variable(name) if str(name).startswith("x") else N.one)
    merged = convert(SETS.single(answer), only_tuples, N)
    plain = evaluate(query, {"d": database(**{each: N.variable(each) for each in ("x1", "x2", "x3", "x4", "x5")})}, N)
    assert merged == plain
    assert len(one_tree(merged).children) == 6


def test_6_6_clearances(evaluate: Any) -> None:
    annotations = {"R": x("w1"), "x2": x("x2"), "S.B": x("y5")}
    answer = one_tree(evaluate(load_query(FIGURE_65, N), {"d": database(**annotations)}, N))
    found = decode_relation(answer, ("A", "C"))
    assert found == {
        ("a", "c"): x("w1*y5 + w1*w1"),
        ("a", "e"): x("w1*w1*x2"),
        ("d", "c"): x("w1*x2*y5 + w1*w1*x2"),
        ("d", "e"): x("w1*w1*x2*x2"),
        ("f", "c"): x("w1*y5"),
        ("f", "e"): x("w1*w1"),
    }
    access = Access()
    levels = {"w1": "confidential", "x2": "secret", "y5": "top-secret"}
    clearance = specialize(access, lambda name: levels[str(name)])
    assert {"".join(row): clearance(value) for row, value in found.items()} == {
        "ac": "confidential",
        "ae": "secret",
        "dc": "secret",
        "de": "secret",
        "fc": "top-secret",
        "fe": "confidential",
    }
    # And with clearances from the start.
    protected = convert(database(**annotations), clearance, access)
    (shown,) = evaluate(load_query(FIGURE_65, access), {"d": protected}, access)
    direct = decode_relation(shown, ("A", "C"))
    assert direct == {row: clearance(value) for row, value in found.items()}
    visible = {
        level: {"".join(row) for row, value in direct.items() if access.visible(value, level)}
        for level in access.levels
    }
    assert visible["confidential"] == {"ac", "fe"}
    assert visible["secret"] == {"ac", "ae", "dc", "de", "fe"}


def test_6_7_nested_sets() -> None:
    p, r, s, u, v = map(N.variable, "prsuv")
    nested = SETS.of([(SETS.of([("a", p), ("b", r)]), u), (SETS.of([("b", s)]), v)])
    assert SETS.big_union(nested, lambda inner: inner) == SETS.of([("a", x("u*p")), ("b", x("u*r + v*s"))])
    left, right = SETS.of([("a", p), ("b", r)]), SETS.of([("c", u)])
    pairs = SETS.big_union(left, lambda one: SETS.big_union(right, lambda other: SETS.single((one, other))))
    assert pairs == SETS.of([(("a", "c"), x("p*u")), (("b", "c"), x("r*u"))])


def test_6_8_worlds(evaluate: Any) -> None:
    source = figure_64(N, x1=N.one, x2=N.one)
    query = load_query("element r { $T//c }", N)
    answer = evaluate(query, {"T": source}, N)
    boolean = Boolean()
    plain = load_query("element r { $T//c }", boolean)
    sources, answers = set(), {}
    for values in product((False, True), repeat=3):
        world = specialize(boolean, dict(zip(("y1", "y2", "y3"), values, strict=True)).__getitem__)
        there = convert(source, world, boolean)
        sources.add(there)
        answers[values] = convert(answer, world, boolean)
        assert answers[values] == evaluate(plain, {"T": there}, boolean)
    assert len(sources) == 6
    shown = {"".join("01"[each] for each in values): _plain(next(iter(found))) for values, found in answers.items()}
    assert shown == {
        "000": "r[]",
        "010": "r[]",
        "001": "r[c[]]",
        "011": "r[c[]]",
        "100": "r[c[b[],d[a[]]]]",
        "101": "r[c[],c[b[],d[a[]]]]",
        "110": "r[c[],c[b[],c[],d[a[]]]]",
        "111": "r[c[],c[b[],c[],d[a[]]]]",
    }
    natural = Natural()
    twice = convert(source, specialize(natural, {"y1": 1, "y2": 2, "y3": 0}.__getitem__), natural)
    (a,) = twice
    (c,) = (tree for tree in a.children if tree.label == "c")
    assert c.children[KSets(natural).leaf("c")] == 2


def _plain(tree: Tree[Any]) -> str:
    return f"{tree.label}[{','.join(sorted(map(_plain, tree.children)))}]"


def test_6_9_shredding() -> None:
    """The printed rules, on the printed tree: rows of the answer, garbage included."""
    rows = {
        (0, 1, "a"): N.one,
        (1, 2, "c"): x("y1"),
        (2, 3, "d"): N.one,
        (3, 4, "a"): N.one,
        (2, 5, "c"): x("y2"),
        (2, 6, "b"): x("x2"),
    }
    program = load(
        """
        .type Id = Top {} | F { of: number }
        .decl E(pid: number, nid: number, label: symbol) .input E
        R(n, l) :- E(0, n, l).
        R(n, l) :- R(p, _), E(p, n, l).
        .decl A(pid: Id, nid: Id, label: symbol)
        A($F(p), $F(n), l) :- E(p, n, l).
        A($Top(), $F(n), "c") :- R(n, "c").
        .output A
        """
    )
    views = evaluate_annotated(program, {"E": rows}, N, lambda _, row: rows[row])
    top, f = Variant("Top", ()), [Variant("F", (number,)) for number in range(7)]
    expected = {
        (top, f[2], "c"): x("y1"),
        (top, f[5], "c"): x("y1*y2"),
        (f[0], f[1], "a"): N.one,
        (f[1], f[2], "c"): x("y1"),
        (f[2], f[3], "d"): N.one,
        (f[3], f[4], "a"): N.one,
        (f[2], f[5], "c"): x("y2"),
        (f[2], f[6], "b"): x("x2"),
    }
    assert views["A"] == expected
    # What leads to the answer is what our rules give.
    source = figure_64(N, x1=N.zero)
    assert sorted(map(str, shred("T", source).values())) == sorted(str(value) for value in rows.values())
    answer = evaluate_shredded(load_query("$T//c", N), {"T": source}, N)
    reached = [x("y1"), x("y1*y2"), N.one, N.one, x("y2"), x("x2")]
    assert sorted(map(str, shred("A", answer).values())) == sorted(map(str, reached))
