"""Repairs against brute force: every set of changes over a tiny domain, tried on the reference evaluator."""

from __future__ import annotations

import os
from itertools import combinations, product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whence import Program, Session, load
from whence.lang.types import Tuple
from whence.provenance import Effort, Fact, Repair, whynot
from whence.provenance.causes import Causes
from whence.provenance.suppose import Change
from whence.reference import EvaluationWarning, evaluate

SOME = settings(
    max_examples=int(os.environ.get("WHENCE_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
BASE = {"e": 2, "f": 1}
VIEWS = {"p": 1, "q": 2, "r": 1}
DOMAIN = (0, 1)
LARGEST = 3
Facts = dict[str, set[Tuple]]


def smallest_repairs(program: Program, facts: Facts, fact: Fact) -> set[frozenset[Fact]]:
    """All repairs of the least size, as sets of base facts that change sides; none if none has up to LARGEST changes."""
    changes = [Fact(name, row) for name, arity in BASE.items() for row in product(DOMAIN, repeat=arity)]
    for size in range(1, LARGEST + 1):
        found = {frozenset(each) for each in combinations(changes, size) if works(program, facts, fact, each)}
        if found:
            return found
    return set()


def works(program: Program, facts: Facts, fact: Fact, changes: tuple[Fact, ...]) -> bool:
    after = {name: set(rows) for name, rows in facts.items()}
    for relation, row in changes:
        after[relation] ^= {row}
    return fact.tuple in evaluate(program, after)[fact.relation]


def toggled(repair: Repair) -> tuple[Fact, ...]:
    return (*repair.insertions, *repair.deletions)


@st.composite
def rules(draw: st.DrawFn, head: str, readable: dict[str, int]) -> str:
    """A rule over the relations that it may read: atoms first, then negations and comparisons of what they bind."""

    def atom(terms: tuple[str, ...]) -> str:
        name = draw(st.sampled_from(sorted(readable)))
        return f"{name}({', '.join(draw(st.sampled_from(terms)) for _ in range(readable[name]))})"

    body = [atom(("x", "y", "z", "x", "y", "z", "0", "_")) for _ in range(draw(st.integers(1, 2)))]
    bound = tuple(name for name in "xyz" if name in "".join(body)) or ("1",)
    body += [f"!{atom((*bound, *bound, '1', '_'))}" for _ in range(draw(st.integers(0, 2)))]
    if len(bound) > 1 and draw(st.booleans()):
        body.append(f"{bound[0]} {draw(st.sampled_from(('!=', '<', '=')))} {bound[1]}")
    args = ", ".join(draw(st.sampled_from((*bound, *bound, "1"))) for _ in range(VIEWS[head]))
    return f"{head}({args}) :- {', '.join(body)}."


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, Facts, Fact]:
    lines = [
        f".decl {name}({', '.join(f'c{at}:number' for at in range(arity))})" for name, arity in (BASE | VIEWS).items()
    ]
    lines += [f".input {name}" for name in BASE] + [f".output {name}" for name in VIEWS]
    for level, name in enumerate(VIEWS):
        readable = BASE | {each: VIEWS[each] for each in list(VIEWS)[:level]}
        lines += [draw(rules(name, readable)) for _ in range(draw(st.integers(1, 2)))]
    lines += draw(st.sampled_from(([], ["q(x, z) :- q(x, y), e(y, z)."], ["p(x) :- p(y), e(y, x), !e(x, y)."])))
    facts: Facts = {
        name: {row for row in product(DOMAIN, repeat=arity) if draw(st.booleans())} for name, arity in BASE.items()
    }
    name = draw(st.sampled_from(sorted(VIEWS)))
    return "\n".join(lines), facts, Fact(name, tuple(draw(st.sampled_from(DOMAIN)) for _ in range(VIEWS[name])))


def test_one_fact_is_what_two_atoms_miss_by_way_of_a_constant_in_a_head() -> None:
    """e(1, 0) is what e(y, x) misses if p(1) comes, and what e(_, x) misses that makes it come."""
    program = load(
        ".decl e(x:number, y:number) .input e .decl f(x:number) .input f .decl p(x:number) .output p\n"
        "p(1) :- f(x), e(_, x).\np(x) :- p(y), e(y, x), !e(x, y)."
    )
    (repair,) = whynot(Session(program), "p", (0,), repairs=1).repairs
    assert repair.insertions == (Fact("e", (1, 0)), Fact("f", (0,)))


@SOME
@given(cases())
def test_the_smallest_repairs_are_found(case: tuple[str, Facts, Fact]) -> None:
    text, facts, fact = case
    program = load(text)
    if fact.tuple in evaluate(program, facts)[fact.relation]:
        return
    expected = smallest_repairs(program, facts, fact)
    answer = whynot(Session(program, facts=facts), *fact, repairs=1, effort=Effort(changes=LARGEST, seconds=60))
    if not answer.repairs:
        assert not expected, answer.bound
        return
    (repair,) = answer.repairs
    assert works(program, facts, fact, toggled(repair))
    if any(value not in DOMAIN for each in toggled(repair) for value in each.tuple):
        assert not expected or len(repair) <= min(map(len, expected))  # a value that brute force did not try
    else:
        assert frozenset(toggled(repair)) in expected


@SOME
@given(cases())
def test_no_part_of_a_repair_is_enough(case: tuple[str, Facts, Fact]) -> None:
    text, facts, fact = case
    program = load(text)
    if fact.tuple in evaluate(program, facts)[fact.relation]:
        return
    answer = whynot(Session(program, facts=facts), *fact, repairs=6, effort=Effort(changes=LARGEST, seconds=60))
    sizes = [len(each) for each in answer.repairs]
    assert sizes == sorted(sizes)
    assert len({toggled(each) for each in answer.repairs}) == len(answer.repairs)
    for repair in answer.repairs:
        changes = toggled(repair)
        assert works(program, facts, fact, changes)
        for size in range(1, len(changes)):
            assert not any(works(program, facts, fact, part) for part in combinations(changes, size))


LINES = """
.decl link(id:symbol, x:symbol, y:symbol)
.decl down(id:symbol)
.input link
.input down
dead(x, y) :- link(i, x, y), down(i).
up(x, y) :- link(_, x, y), !dead(x, y).
reach(x, y) :- up(x, y).
reach(x, z) :- reach(x, y), up(y, z).
cut_off(x) :- link(_, x, _), !reach(x, "d").
safe(x) :- link(_, x, _), !cut_off(x).
.output reach
.output cut_off
.output safe
"""
LINKS = [("L1", "a", "b"), ("L2", "b", "c"), ("L3", "c", "d"), ("L4", "d", "e")]


def repairs_of(text: str, facts: dict[str, list[Tuple]], fact: Fact, **options: int) -> tuple[Repair, ...]:
    return whynot(Session(load(text), facts=facts), *fact, **options).repairs


def test_what_a_negated_view_forbids_is_taken_back() -> None:
    first, *_ = repairs_of(LINES, {"link": LINKS, "down": [("L3",)]}, Fact("reach", ("a", "e")))
    assert first == Repair((), (Fact("down", ("L3",)),))


def test_repairs_go_through_negated_views_of_negated_views() -> None:
    """safe(a) lacks !cut_off(a), which lacks reach(a, d), which lacks !dead(c, d)."""
    first, *_ = repairs_of(LINES, {"link": LINKS, "down": [("L3",)]}, Fact("safe", ("a",)))
    assert first == Repair((), (Fact("down", ("L3",)),))
    found = repairs_of(LINES, {"link": LINKS}, Fact("cut_off", ("a",)), repairs=10)
    single = {toggled(each) for each in found if len(each) == 1}
    assert {(Fact("down", (name,)),) for name in ("L1", "L2", "L3")} <= single
    assert {(Fact("link", row),) for row in LINKS[1:3]} <= single


def test_one_fact_may_be_what_two_atoms_miss() -> None:
    text = ".decl e(x:number, y:number) .input e\np(x) :- e(x, y), e(y, x), e(y, y). .output p"
    first, *_ = repairs_of(text, {"e": [(2, 3)]}, Fact("p", (1,)))
    assert first == Repair((Fact("e", (1, 1)),), ())


def test_an_insertion_that_forbids_something_takes_another_change() -> None:
    """f(1) brings p(1) and bad(1), which forbids it unless g(1) goes."""
    text = (
        ".decl f(x:number) .input f .decl g(x:number) .input g\nbad(x) :- f(x), g(x). p(x) :- f(x), !bad(x). .output p"
    )
    assert repairs_of(text, {"g": [(1,)]}, Fact("p", (1,))) == (Repair((Fact("f", (1,)),), (Fact("g", (1,)),)),)


def test_aggregates_are_changed() -> None:
    text = (
        ".decl e(x:number) .input e .decl f(x:number) .input f\n"
        "few(x) :- f(x), n = count : { e(_) }, n < 2. total(n) :- n = sum x : { e(x) }.\n"
        "alone(x) :- f(x), !total(3). .output few, total, alone"
    )
    facts: dict[str, list[Tuple]] = {"e": [(1,), (2,)], "f": [(1,)]}
    assert {toggled(each) for each in repairs_of(text, facts, Fact("few", (1,)), repairs=2)} == {
        (Fact("e", (1,)),),
        (Fact("e", (2,)),),
    }
    assert toggled(repairs_of(text, facts, Fact("total", (2,)), repairs=1)[0]) == (Fact("e", (1,)),)
    assert len(repairs_of(text, facts, Fact("alone", (1,)), repairs=1)[0]) == 1


def test_equivalences_and_choices() -> None:
    text = ".decl e(x:number, y:number) .input e\n.decl same(x:number, y:number) eqrel\nsame(x, y) :- e(x, y). .output same"
    first, *_ = repairs_of(text, {"e": [(1, 2), (3, 4)]}, Fact("same", (1, 4)))
    assert len(first) == 1
    pick = (
        ".decl e(x:number, y:number) .input e\n.decl pick(x:number, y:number) choice-domain x\n"
        "pick(x, y) :- e(x, y). .output pick"
    )
    assert repairs_of(pick, {"e": [(1, 2), (1, 3)]}, Fact("pick", (1, 3))) == (Repair((), (Fact("e", (1, 2)),)),)


def test_values_that_nothing_has_are_made_up_where_they_are_needed() -> None:
    text = ".decl e(x:symbol, y:symbol) .input e\np(x) :- e(x, y), !e(y, y), y != x. .output p"
    (first,) = repairs_of(text, {"e": [("b", "b")]}, Fact("p", ("a",)), repairs=1)
    assert first == Repair((Fact("e", ("a", "new1")),), ())


def test_the_bound_that_ended_a_search_is_named() -> None:
    text = ".decl e(x:number) .input e\np(0) :- e(1), e(2), e(3). .output p"
    short = whynot(Session(load(text)), "p", (0,), effort=Effort(changes=2))
    assert (short.repairs, short.bound) == ((), "2 changes")
    full = whynot(Session(load(text)), "p", (0,))
    assert ([len(each) for each in full.repairs], full.bound) == ([3], "")
    never = whynot(Session(load(text)), "p", (1,))
    assert (never.repairs, never.bound) == ((), "")


def test_a_session_that_shows_few_relations_is_repaired_as_well() -> None:
    session = Session(load(LINES), facts={"link": LINKS, "down": [("L3",)]}, wanted=["safe"])
    assert whynot(session, "safe", ("a",)).repairs[0] == Repair((), (Fact("down", ("L3",)),))


def test_arguments_without_a_value_are_passed_over() -> None:
    text = ".decl e(x:number) .input e .decl f(x:number) .input f\np(x) :- f(x), e(10 / x). .output p"
    with pytest.warns(EvaluationWarning, match="division by zero"):
        answer = whynot(Session(load(text), facts={"f": [(0,)]}), "p", (0,))
    assert answer.repairs == ()
    (repair,) = repairs_of(text, {"f": [(5,)]}, Fact("p", (5,)))
    assert repair == Repair((Fact("e", (2,)),), ())


def test_what_single_changes_lead_to_is_not_looked_into_while_some_are_untried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many links could come, one of them is enough, and each state takes long to look into."""
    program = load(
        ".decl link(x:symbol, y:symbol, c:number) .input link .decl hop(x:symbol, y:symbol, d:number) "
        "hop(x, y, c) :- link(x, y, c). hop(x, z, d + c) :- best(x, y, d), link(y, z, c). "
        ".decl best(x:symbol, y:symbol, d:number) best(x, y, d) :- hop(x, y, _), d = min e : { hop(x, y, e) }. .output best"
    )
    session = Session(program, facts={"link": [("x", "y", 3), ("y", "z", 4), ("x", "z", 9), ("z", "x", 1)]})
    looked: list[int] = []
    look = Causes.changes

    def counted(causes: Causes) -> dict[Change, int]:
        looked.append(1)
        return look(causes)

    monkeypatch.setattr(Causes, "changes", counted)
    (found,) = whynot(session, "best", ("z", "q", 4), repairs=1).repairs
    assert len(found) == 1
    assert len(looked) == 1
