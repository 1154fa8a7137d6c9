"""The reference evaluator against oracles that share nothing with it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from itertools import product

import networkx as nx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from whence import Session, Update
from whence.lang import load
from whence.lang.types import Tuple
from whence.limits import Limits, RunawayError
from whence.reference import EvaluationWarning, FunctionError, evaluate

Edges = set[tuple[int, int]]
nodes = st.integers(0, 5)
edges = st.sets(st.tuples(nodes, nodes), max_size=12)
weighted = st.dictionaries(st.tuples(nodes, nodes), st.integers(0, 9), max_size=12)
GRAPH = ".decl e(x: number, y: number)\n.input e\n"


def derive(text: str, facts: Mapping[str, Iterable[Tuple]] = {}) -> dict[str, set[Tuple]]:
    return evaluate(load(text), facts)


# -- limits -----------------------------------------------------------------------------------------------------------

COUNTER = "start: n(0).\nup: n(x + 1) :- n(x).\n.output n\n"


@pytest.mark.parametrize(
    ("limits", "when", "last"),
    [
        (Limits(max_rounds=10), "after 10 rounds", "n(9)"),
        (Limits(max_tuples=20), "at 21 tuples (limit 20)", "n(20)"),
    ],
)
def test_a_recursion_without_end_is_stopped_with_its_rule_and_a_tuple(limits: Limits, when: str, last: str) -> None:
    with pytest.raises(RunawayError) as caught:
        evaluate(load(COUNTER, name="count.dl"), {}, limits=limits)
    assert str(caught.value) == (
        f"stopped {when}: rule up (count.dl:2) keeps deriving, most recently {last}\n"
        "  hint: bound what the rule counts up (x < 100), or raise --max-rounds, --max-tuples or --timeout"
    )


def test_the_time_limit_holds_for_recursion() -> None:
    with pytest.raises(
        RunawayError, match=r"^stopped after 0.05 s: rule up \(.*:2\) keeps deriving, most recently n\("
    ):
        evaluate(load(COUNTER), {}, limits=Limits(timeout=0.05))


def test_the_time_limit_holds_for_a_search_that_derives_nothing() -> None:
    text = "n(1).\nslow: r(x) :- n(x), x = range(2, 9000000000).\n.output r\n"
    with pytest.raises(
        RunawayError, match=r"^stopped after 0.05 s in rule slow \(.*:2\); the last new tuple was n\(1\)\n"
    ):
        evaluate(load(text), {}, limits=Limits(timeout=0.05))


def test_a_rule_that_derives_too_much_at_once_is_stopped() -> None:
    text = "r(x) :- x = range(0, 9000000000).\n.output r\n"
    with pytest.raises(RunawayError, match=r"^stopped at 1001 tuples \(limit 1000\)"):
        evaluate(load(text), {}, limits=Limits(max_tuples=1000))


def test_other_recursions_are_stopped_too() -> None:
    staged = "a(0).\na(t + 1) :- a(t), !b(t).\nb(t + 1) :- a(t), t < 0.\n"
    growing = (
        GRAPH
        + "p(x, y, 1) :- e(x, y).\np(x, y, d + 1) :- b(x, y, d).\nb(x, y, m) :- p(x, y, _), m = max d : { p(x, y, d) }.\n"
    )
    for text, facts in ((staged, {}), (growing, {"e": [(1, 1)]})):
        with pytest.raises(RunawayError, match="stopped after 30 rounds"):
            evaluate(load(text), facts, limits=Limits(max_rounds=30))


def test_rounds_are_reported() -> None:
    seen: list[tuple[str, int, int]] = []
    evaluate(
        load(GRAPH + "r(x, y) :- e(x, y).\nr(x, z) :- r(x, y), e(y, z).\n"),
        {"e": [(1, 2), (2, 3), (3, 4)]},
        on_round=lambda stratum, number, tuples: seen.append((stratum, number, tuples)),
    )
    assert seen == [("e", 1, 3), ("r", 1, 3), ("r", 2, 6), ("r", 3, 8), ("r", 4, 9)]


def test_a_limit_of_size_ends_the_recursion() -> None:
    assert 10 <= len(derive(COUNTER + ".limitsize n(n=10)\n")["n"]) <= 11


# -- undefined values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "reason", "expected"),
    [
        ("n(x), y = 10 / x", "division by zero", {(1, 10), (2, 5)}),
        ("n(x), y = 10 % x", "division by zero", {(1, 0), (2, 0)}),
        ("n(x), n(y), n(10 / x)", "division by zero", set()),
        ("n(x), y = x, 10 / x > 4", "division by zero", {(1, 1), (2, 2)}),
        ("n(x), y = x, !n(10 / x)", "division by zero", {(1, 1), (2, 2)}),
        ("m(x, y, 10 / x)", "division by zero", {(1, 1)}),
        ('n(x), y = to_number("x")', '"x" is not a number', set()),
        ("n(x), y = sum 10 / z : { n(z) }", "division by zero", {(0, 15), (1, 15), (2, 15)}),
        ('n(x), y = x, match("[", "a")', '"[" is not a regular expression', set()),
    ],
)
def test_what_has_no_value_derives_nothing_and_gets_a_warning(body: str, reason: str, expected: set[Tuple]) -> None:
    text = f"n(0). n(1). n(2).\nm(0, 0, 0). m(1, 1, 10). m(2, 2, 9).\nr: r(x, y) :- {body}.\n"
    with pytest.warns(EvaluationWarning) as caught:
        views = derive(text)
    assert views["r"] == expected
    assert [str(each.message) for each in caught] == [f"<program>:3: rule r: {reason}; nothing is derived there"]


def test_a_head_without_a_value_loses_only_its_instance() -> None:
    with pytest.warns(EvaluationWarning, match="division by zero"):
        assert derive("n(0). n(1). n(2).\nr(4 / x) :- n(x).\n")["r"] == {(4,), (2,)}


def test_infinities_have_no_sum() -> None:
    text = ".decl n(x: float)\n.input n\nr(s) :- s = sum x : { n(x) }.\nm(s) :- s = mean x : { n(x) }.\n"
    with pytest.warns(EvaluationWarning, match="the sum of inf and -inf is not a number"):
        assert derive(text, {"n": [(float("inf"),), (float("-inf"),)]})["r"] == set()
    views = derive(text, {"n": [(1e308,), (1.5e308,), (-1e308,)]})
    assert (views["r"], views["m"]) == ({(1.5e308,)}, {(5e307,)})
    assert derive(text, {"n": [(1e308,), (1.5e308,)]})["r"] == {(float("inf"),)}


def test_a_negative_value_in_a_recursive_sum_is_an_error() -> None:
    text = (
        ".decl own(x: number, y: number, s: number)\n.input own\nshare(x, x, y, s) :- own(x, y, s).\n"
        "share(x, z, y, s) :- control(x, z), own(z, y, s).\n"
        "control(x, y) :- share(x, _, y, _), t = sum s : { share(x, z, y, s) }, t > 50.\n"
    )
    with pytest.raises(FunctionError, match="rule control#1: a sum inside recursion met a negative value"):
        derive(text, {"own": [(1, 2, 60), (2, 3, -1)]})


def test_other_sums_beside_a_recursion_may_be_negative() -> None:
    text = (
        ".decl own(x: number, y: number, s: number)\n.input own\n.decl worth(x: number, s: number)\n.input worth\n"
        "best(x, s) :- worth(x, _), s = sum v : { worth(x, v) }.\nbest(x, s) <= best(x, t) :- s < t.\n"
        "share(x, x, y, s) :- own(x, y, s).\nshare(x, z, y, s) :- control(x, z), own(z, y, s).\n"
        "control(x, y) :- share(x, _, y, _), t = sum s : { share(x, z, y, s) }, d = sum v : { worth(y, v) }, t > d.\n"
    )
    session = Session(load(text), facts={"own": [(1, 2, 6), (2, 3, 1)]})
    views = derive(text, {"own": [(1, 2, 6), (2, 3, 1)], "worth": [(2, -5), (2, 1), (3, -9)]})
    assert (views["best"], views["control"]) == ({(2, -4), (3, -9)}, {(1, 2), (1, 3), (2, 3)})
    with pytest.raises(FunctionError, match="rule control#1: a sum inside recursion met a negative value"):
        session.apply([Update("+", "own", (2, 4, -1))])
    session.apply([Update("+", "worth", row) for row in [(2, -5), (2, 1), (3, -9)]])
    assert {name: session.views()[name] for name in ("best", "share", "control")} == {
        name: views[name] for name in ("best", "share", "control")
    }


# -- autoinc, choice, eqrel, subsumption ------------------------------------------------------------------------------


def test_autoinc_numbers_every_instance_differently() -> None:
    views = derive(
        GRAPH + "r(x, y, autoinc()) :- e(x, y).\ns(x, autoinc()) :- e(x, _).\n", {"e": product(range(3), range(3))}
    )
    numbers = [row[-1] for row in (*views["r"], *views["s"])]
    assert sorted(numbers) == list(range(len(numbers)))


def test_autoinc_is_stable_within_an_evaluation() -> None:
    text = GRAPH + "id(x, autoinc()) :- e(x, _).\nreach(i, x) :- id(x, i).\nreach(i, y) :- reach(i, x), e(x, y).\n"
    views = derive(text, {"e": [(1, 2), (2, 1)]})
    assert {number for number, _ in views["reach"]} == {number for _, number in views["id"]}


@given(edges)
def test_a_choice_is_functional_and_maximal(rows: Edges) -> None:
    views = derive(GRAPH + ".decl c(x: number, y: number) choice-domain x\nc(x, y) :- e(x, y).\n", {"e": rows})
    chosen = views["c"]
    assert chosen <= rows
    assert sorted(x for x, _ in chosen) == sorted({x for x, _ in rows})


@given(edges)
def test_a_matching_is_valid_and_maximal(rows: Edges) -> None:
    views = derive(GRAPH + ".decl c(x: number, y: number) choice-domain x, y\nc(x, y) :- e(x, y).\n", {"e": rows})
    left, right = [x for x, _ in views["c"]], [y for _, y in views["c"]]
    assert views["c"] <= rows
    assert len(set(left)) == len(left)
    assert len(set(right)) == len(right)
    assert all(x in left or y in right for x, y in rows)


@given(edges)
def test_a_recursive_choice_builds_a_spanning_tree(rows: Edges) -> None:
    text = GRAPH + ".decl t(x: number, y: number) choice-domain y\nt(-1, 0).\nt(x, y) :- t(_, x), e(x, y).\n"
    tree = derive(text, {"e": rows})["t"]
    reached = {0} | nx.descendants(nx.DiGraph([*rows, (0, 0)]), 0)
    assert sorted(y for _, y in tree) == sorted(reached)
    assert tree - {(-1, 0)} <= rows


@given(edges)
def test_an_equivalence_is_the_components(rows: Edges) -> None:
    views = derive(GRAPH + ".decl q(x: number, y: number) eqrel\nq(x, y) :- e(x, y).\n", {"e": rows})
    parts = nx.connected_components(nx.Graph(list(rows)))
    assert views["q"] == {pair for part in parts for pair in product(part, part)}


@given(edges, edges)
def test_an_equivalence_grows_with_recursion(rows: Edges, links: Edges) -> None:
    text = GRAPH + ".decl k(x: number, y: number)\n.input k\n.decl q(x: number, y: number) eqrel\n"
    views = derive(text + "q(x, y) :- e(x, y).\nq(u, v) :- q(x, y), k(x, u), k(y, v).\n", {"e": rows, "k": links})
    graph = nx.Graph(list(rows))
    while True:
        parts = list(nx.connected_components(graph))
        implied = [
            (u, v)
            for part in parts
            for x, y in product(part, part)
            for (a, u), (b, v) in product(links, links)
            if (a, b) == (x, y)
        ]
        before = {pair for part in parts for pair in product(part, part)}
        graph.add_edges_from(implied)
        if before == {pair for part in nx.connected_components(graph) for pair in product(part, part)}:
            break
    assert views["q"] == before


@given(st.sets(st.tuples(nodes, nodes), max_size=12))
def test_subsumption_keeps_what_nothing_dominates(rows: Edges) -> None:
    text = GRAPH + "p(x, y) :- e(x, y).\np(x, y) <= p(u, v) :- x <= u, y <= v.\n"
    assert derive(text, {"e": rows})["p"] == {
        (x, y) for x, y in rows if not any((u, v) != (x, y) and x <= u and y <= v for u, v in rows)
    }


@given(weighted)
def test_subsumption_inside_recursion_finds_shortest_paths(weights: dict[tuple[int, int], int]) -> None:
    text = (
        ".decl e(x: number, y: number, w: number)\n.input e\nd(0, 0).\nd(y, n + w) :- d(x, n), e(x, y, w).\n"
        "d(x, n) <= d(x, m) :- m < n.\n"
    )
    assert derive(text, {"e": rows_of(weights)})["d"] == set(distances(weights).items())


# -- recursive aggregates ---------------------------------------------------------------------------------------------


def rows_of(weights: Mapping[tuple[int, int], int]) -> list[Tuple]:
    return [(x, y, w) for (x, y), w in weights.items()]


def distances(weights: Mapping[tuple[int, int], int]) -> dict[int, int]:
    graph = nx.DiGraph()
    graph.add_node(0)
    graph.add_weighted_edges_from(rows_of(weights))
    return dict(nx.single_source_dijkstra_path_length(graph, 0))


@given(weighted)
def test_recursive_min_is_dijkstra(weights: dict[tuple[int, int], int]) -> None:
    text = (
        ".decl e(x: number, y: number, w: number)\n.input e\nc(0, 0).\nc(y, n + w) :- d(x, n), e(x, y, w).\n"
        "d(x, n) :- c(x, _), n = min m : { c(x, m) }.\n"
    )
    assert derive(text, {"e": rows_of(weights)})["d"] == set(distances(weights).items())


@given(weighted)
def test_recursive_max_finds_widest_paths(weights: dict[tuple[int, int], int]) -> None:
    text = (
        ".decl e(x: number, y: number, w: number)\n.input e\nc(x, y, w) :- e(x, y, w).\n"
        "c(x, z, min(b, w)) :- d(x, y, b), e(y, z, w).\nd(x, y, n) :- c(x, y, _), n = max m : { c(x, y, m) }.\n"
    )
    expected: dict[tuple[int, int], int] = {}
    for width in sorted(set(weights.values())):
        wide = nx.DiGraph([pair for pair, w in weights.items() if w >= width])
        for x, y in nx.transitive_closure(wide, reflexive=False).edges:
            expected[x, y] = width
    assert derive(text, {"e": rows_of(weights)})["d"] == {(x, y, w) for (x, y), w in expected.items()}


@given(st.dictionaries(st.tuples(nodes, nodes), st.integers(0, 60), max_size=14))
def test_recursive_sum_is_company_control(shares: dict[tuple[int, int], int]) -> None:
    text = (
        ".decl own(x: number, y: number, s: number)\n.input own\nshare(x, x, y, s) :- own(x, y, s).\n"
        "share(x, z, y, s) :- control(x, z), own(z, y, s).\n"
        "control(x, y) :- share(x, _, y, _), t = sum s : { share(x, z, y, s) }, t > 50.\n"
    )
    control: Edges = set()
    while True:
        held = {
            (x, y): sum(shares.get((z, y), 0) for z in range(6) if z == x or (x, z) in control)
            for x, y in product(range(6), range(6))
        }
        if control == {pair for pair, share in held.items() if share > 50}:
            break
        control = {pair for pair, share in held.items() if share > 50}
    assert derive(text, {"own": rows_of(shares)})["control"] == control


@given(edges, st.sets(nodes, max_size=3))
def test_recursive_count_with_a_threshold_is_a_k_core_of_its_kind(rows: Edges, first: set[int]) -> None:
    text = (
        GRAPH + ".decl first(x: number)\n.input first\ncomes(x) :- first(x).\n"
        "comes(x) :- e(x, _), n = count : { e(x, y), comes(y) }, n >= 2.\n"
    )
    comes = set(first)
    while more := {x for x in range(6) if x not in comes and sum((x, y) in rows for y in comes) >= 2}:
        comes |= more
    assert derive(text, {"e": rows, "first": [(x,) for x in first]})["comes"] == {(x,) for x in comes}


# -- stages -----------------------------------------------------------------------------------------------------------


@given(edges)
def test_logic_h_is_breadth_first_search(rows: Edges) -> None:
    text = (
        GRAPH + "h(-1, 0, 0).\nh1(y, d + 1) :- h(_, y, e), d + 1 > e, h(_, x, d), e(x, y).\n"
        "h(x, y, d + 1) :- e(x, y), h(_, x, d), !h1(y, d + 1).\n"
    )
    depth = nx.single_source_shortest_path_length(nx.DiGraph([*rows, (0, 0)]), 0)
    expected = {(x, y, depth[y]) for x, y in rows if x in depth and depth[y] == depth[x] + 1}
    assert derive(text, {"e": rows})["h"] == expected | {(-1, 0, 0)}


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.integers(1, 6))
def test_staged_negation_is_a_cellular_automaton(cells: list[bool], steps: int) -> None:
    """Each cell is alive next if exactly one of its two neighbours is: negation at the stage before."""
    size = len(cells)
    text = (
        ".decl init(x: number)\n.input init\nalive(x, 0) :- init(x).\n"
        f"cell(x) :- x = range(0, {size}).\n"
        f"alive(x, t + 1) :- cell(x), step(t), t < {steps}, alive((x + 1) % {size}, t), !alive((x + {size - 1}) % {size}, t).\n"
        f"alive(x, t + 1) :- cell(x), step(t), t < {steps}, !alive((x + 1) % {size}, t), alive((x + {size - 1}) % {size}, t).\n"
        f"step(t) :- t = range(0, {steps}).\n"
    )
    state = list(cells)
    expected = {(x, 0) for x in range(size) if state[x]}
    for step in range(1, steps + 1):
        state = [state[(x + 1) % size] != state[(x - 1) % size] for x in range(size)]
        expected |= {(x, step) for x in range(size) if state[x]}
    assert derive(text, {"init": [(x,) for x in range(size) if cells[x]]})["alive"] == expected


# -- against an evaluator of thirty lines -----------------------------------------------------------------------------

RELATIONS = ("e", "f", "p", "q", "s")
Literal = tuple[bool, str, tuple[str | int, str | int]]
Clause = tuple[str, tuple[str | int, str | int], tuple[Literal, ...]]
VARIABLES = ("x", "y", "z")
terms = st.sampled_from([*VARIABLES, 0, 1])


@st.composite
def clauses(draw: st.DrawFn) -> Clause:
    """A safe rule for p, q or s. Negation goes to earlier relations only, so programs are stratified."""
    head = draw(st.integers(2, 4))
    positive = draw(
        st.lists(st.tuples(st.sampled_from(RELATIONS[: head + 1]), st.tuples(terms, terms)), min_size=1, max_size=3)
    )
    bound = sorted({term for _, args in positive for term in args if isinstance(term, str)})
    safe = st.sampled_from([*bound, 0, 1, 2])
    negative = draw(st.lists(st.tuples(st.sampled_from(RELATIONS[:head]), st.tuples(safe, safe)), max_size=1))
    body = [(True, *each) for each in positive] + [(False, *each) for each in negative]
    return RELATIONS[head], draw(st.tuples(safe, safe)), tuple(draw(st.permutations(body)))


def naive(program: list[Clause], facts: Mapping[str, Edges]) -> dict[str, Edges]:
    """Every assignment of constants to variables, again and again, one relation after the other."""
    views: dict[str, Edges] = {name: set(facts.get(name, ())) for name in RELATIONS}
    constants = {value for rows in facts.values() for row in rows for value in row} | {0, 1, 2}
    for relation in RELATIONS:
        while True:
            new = {
                row
                for head, args, body in program
                if head == relation
                for row in instances(args, body, views, constants)
            } - views[relation]
            if not new:
                break
            views[relation] |= new
    return views


def instances(
    head: tuple[str | int, str | int], body: tuple[Literal, ...], views: Mapping[str, Edges], constants: set[int]
) -> Iterator[tuple[int, int]]:
    for values in product(sorted(constants), repeat=len(VARIABLES)):
        value = dict(zip(VARIABLES, values, strict=True))

        def ground(args: tuple[str | int, str | int], value: dict[str, int] = value) -> tuple[int, int]:
            first, second = (value[each] if isinstance(each, str) else each for each in args)
            return first, second

        if all((ground(args) in views[relation]) == positive for positive, relation, args in body):
            yield ground(head)


def written(program: list[Clause]) -> str:
    text = "".join(f".decl {name}(x: number, y: number)\n" for name in RELATIONS) + ".input e\n.input f\n"
    for head, args, body in program:
        literals = (f"{'' if positive else '!'}{name}({first}, {second})" for positive, name, (first, second) in body)
        text += f"{head}({args[0]}, {args[1]}) :- {', '.join(literals)}.\n"
    return text


@settings(deadline=None)
@given(
    st.lists(clauses(), max_size=6),
    st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6),
    st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6),
)
@example([("p", ("x", "x"), ((False, "e", ("x", "x")), (True, "f", ("x", "y"))))], {(1, 1)}, {(1, 2), (2, 2)})
def test_rounds_over_new_tuples_give_what_naive_rounds_give(program: list[Clause], e: Edges, f: Edges) -> None:
    assert derive(written(program), {"e": e, "f": f}) == naive(program, {"e": e, "f": f})


def test_no_warnings_without_cause() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        derive(GRAPH + "r(x / y) :- e(x, y), y != 0.\n", {"e": [(4, 2), (1, 0)]})


def test_a_function_of_the_program_takes_the_place_of_a_function_of_floats() -> None:
    def sqrt(number: int) -> int:
        return -number

    text = "n(4). a(sqrt(x)) :- n(x). b(floor(1.5))."
    assert evaluate(load(text, functions={"sqrt": sqrt}), {})["a"] == {(-4,)}
    declared = f".functor sqrt(x:number):number\n{text}"
    assert evaluate(load(declared, functions={"sqrt": sqrt}), {})["a"] == {(-4,)}


def test_a_function_with_the_name_of_another_functor_does_not() -> None:
    def strlen(text: str) -> int:
        raise AssertionError(text)

    assert evaluate(load('a(strlen("abc")).', functions={"strlen": strlen}), {})["a"] == {(3,)}
