"""Rules that come and go: views follow exactly, and strata that the rule does not concern are left alone."""

from __future__ import annotations

import re

import pytest

from whence import ProgramError, Session, Update, load
from whence.lang.types import Tuple
from whence.reference import evaluate
from whence.session import STRATEGIES

TEXT = """
.decl link(x:number, y:number)
.decl blocked(x:number)
.decl reach(x:number, y:number)
.decl apart(x:number, y:number)
.decl degree(x:number, n:number)
.input link, blocked
.output reach, apart, degree
base: reach(x, y) :- link(x, y).
step: reach(x, z) :- reach(x, y), link(y, z).
apart: apart(x, y) :- link(x, _), link(y, _), !reach(x, y).
degree: degree(x, n) :- link(x, _), n = count : { reach(x, _) }.
"""
LINKS = {(1, 2), (2, 3), (3, 1), (3, 4), (5, 6)}


class Followed:
    """A session, and what it must equal after every step: the reference on its present program, and its summed changes."""

    def __init__(self, text: str, facts: dict[str, set[Tuple]], strategy: str = "support") -> None:
        self.facts = facts
        self.session = Session(load(text), facts=facts, strategy=strategy)
        self.total = self.session.views()

    def apply(self, *updates: Update) -> None:
        for op, relation, row, _ in updates:
            rows = self.facts.setdefault(relation, set())
            (rows.add if op == "+" else rows.discard)(row)
        self._check(self.session.apply(updates))

    def add(self, text: str) -> None:
        self._check(self.session.add_rule(text))

    def drop(self, name: str) -> None:
        self._check(self.session.drop_rule(name))

    def _check(self, changes: object) -> None:
        for op, relation, row, _ in changes:  # type: ignore[attr-defined]
            rows = self.total.setdefault(relation, set())
            assert (row in rows) == (op == "-")
            (rows.add if op == "+" else rows.remove)(row)
        expected = evaluate(self.session.program, self.facts)
        assert self.session.views() == expected
        assert {name: rows for name, rows in self.total.items() if rows} == {
            name: rows for name, rows in expected.items() if rows
        }


@pytest.fixture(params=[name for name in STRATEGIES if name != "counting"])  # the program is recursive
def followed(request: pytest.FixtureRequest) -> Followed:
    return Followed(TEXT, {"link": set(LINKS)}, request.param)


def test_rules_of_every_kind_come_and_go_between_updates(followed: Followed) -> None:
    followed.add("shortcut: reach(x, y) :- link(x, y), !blocked(x).")
    followed.apply(Update("-", "link", (3, 1)), Update("+", "blocked", (2,)))
    followed.drop("base")
    followed.apply(Update("+", "link", (4, 5)), Update("-", "blocked", (2,)))
    followed.add("back: reach(y, x) :- reach(x, y), link(x, y), !blocked(y).")
    followed.drop("step")
    followed.apply(Update("+", "link", (6, 1)), Update("+", "blocked", (6,)))
    followed.drop("back")
    followed.drop("shortcut")
    followed.apply(Update("-", "link", (1, 2)))


def test_a_rule_that_merges_strata_and_one_that_splits_them_again(followed: Followed) -> None:
    followed.drop("apart")
    followed.drop("degree")
    followed.add("apart(x, y) :- reach(x, y), blocked(y).")
    followed.add("merge: reach(y, x) :- apart(x, y).")
    followed.apply(Update("+", "blocked", (4,)), Update("+", "blocked", (6,)))
    followed.apply(Update("-", "link", (3, 1)))
    followed.drop("merge")
    followed.apply(Update("-", "blocked", (4,)))


def test_facts_count_as_rules(followed: Followed) -> None:
    followed.add("reach(9, 1).")
    followed.add("here: reach(9, 9).")
    followed.drop("here")
    followed.apply(Update("-", "link", (1, 2)))


def test_aggregates_and_relations_of_their_own_come_and_go(followed: Followed) -> None:
    followed.add(".decl top(n:number)\n.output top\ntop: top(n) :- n = max m : { degree(_, m) }.")
    followed.apply(Update("+", "link", (4, 5)))
    followed.add("twice: degree(x, 2 * n) :- blocked(x), n = count : { reach(_, x) }.")
    followed.apply(Update("+", "blocked", (1,)))
    followed.drop("degree")
    followed.drop("twice")
    followed.apply(Update("-", "blocked", (1,)))


def test_a_name_is_free_again_once_its_rule_is_gone(followed: Followed) -> None:
    followed.drop("base")
    followed.add("base: reach(x, y) :- link(y, x).")
    followed.drop("base")


def test_strata_that_are_evaluated_anew_follow_too(followed: Followed) -> None:
    followed.add(".decl same(x:number, y:number) eqrel\n.output same\none: same(x, y) :- link(x, y), blocked(x).")
    followed.apply(Update("+", "blocked", (1,)), Update("+", "blocked", (3,)))
    followed.add("two: same(x, y) :- link(x, y), x > 2.")
    followed.drop("one")
    followed.add("reach(x, y) :- same(x, y).")
    followed.apply(Update("-", "link", (5, 6)))


def test_a_relation_that_only_a_dropped_rule_knew_goes_with_it(followed: Followed) -> None:
    followed.add("only: extra(x) :- blocked(x).")
    followed.apply(Update("+", "blocked", (1,)))
    assert set(followed.session.relation("extra")) == {(1,)}
    followed.drop("only")
    with pytest.raises(ValueError, match="there is no relation extra"):
        followed.session.relation("extra")


def test_alternatives_of_a_rule_go_together_or_one_by_one(followed: Followed) -> None:
    followed.add("either: reach(x, y) :- x = 7, (blocked(y); link(y, _)).")
    followed.apply(Update("+", "blocked", (8,)))
    followed.drop("either/1")
    followed.add("other: reach(x, y) :- blocked(x), (y = 1; y = 2).")
    followed.drop("other")


def test_only_the_derivations_of_the_rule_and_what_follows_are_looked_at() -> None:
    chain = {(at, at + 1) for at in range(200)}
    text = ".decl link(x:number, y:number)\n.decl end(x:number)\n.input link, end\n.output reach, last\n"
    rules = "reach(x, y) :- link(x, y).\nreach(x, z) :- reach(x, y), link(y, z).\n.decl last(x:number)\n"
    session = Session(load(text + rules), facts={"link": chain, "end": {(200,), (300,)}})
    assert session.stats()["derivations"] == 200 + 199 * 200 // 2
    assert sorted(session.add_rule("last: last(x) :- end(y), reach(x, y).").inserted) == ["last"]
    assert session.last_epoch["derivations"] == 200
    session.drop_rule("last")
    assert session.last_epoch["derivations"] == 200
    session.add_rule("reach(0, y) :- end(y).")  # in the recursive stratum: only (0, 300) is new, and leads nowhere
    assert session.last_epoch["derivations"] == 2


def test_an_added_rule_is_kept_like_any_other() -> None:
    session = Session(load(TEXT), facts={"link": LINKS})
    session.add_rule("reach(x, x) :- link(x, _).")
    assert (5, 5) in session.relation("reach")
    assert (5, 5) in session.apply([Update("-", "link", (5, 6))]).deleted["reach"]


def test_a_wrong_rule_is_reported_at_its_place_and_changes_nothing() -> None:
    session = Session(load(TEXT), facts={"link": LINKS})
    before, program = session.views(), session.program
    with pytest.raises(ProgramError) as caught:
        session.add_rule("reach(x, y) :-\n  lnik(x, y).")
    assert "<added>:2:3: error[W0201]: relation lnik is not declared and no rule derives it" in str(caught.value)
    with pytest.raises(ProgramError, match="negat"):
        session.add_rule("reach(x, y) :- apart(x, y).")
    with pytest.raises(ProgramError, match="W0101"):
        session.add_rule("reach(x, y :- link(x, y).")
    assert session.program is program
    assert session.views() == before
    session.apply([Update("-", "link", (1, 2))])
    assert session.views() == evaluate(program, {"link": LINKS - {(1, 2)}})


def test_a_rule_that_others_need_cannot_go() -> None:
    session = Session(load("p(1).\nr: q(x) :- p(x).\nt(x) :- q(x).\n.output t\n"))
    with pytest.raises(ProgramError, match="W0201"):
        session.drop_rule("r")
    assert set(session.relation("t")) == {(1,)}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda session: session.drop_rule("bose"), "there is no rule bose; did you mean base?"),
        (
            lambda session: session.add_rule(".lifetime link 3"),
            "link has tuples already: its .window and .lifetime stay as they are",
        ),
    ],
)
def test_what_cannot_be_changed_is_refused(change: object, problem: str) -> None:
    session = Session(load(TEXT), facts={"link": LINKS})
    with pytest.raises(ValueError, match=re.escape(problem)):
        change(session)  # type: ignore[operator]


def test_a_column_does_not_change_its_type() -> None:
    session = Session(load(".decl f(x:float)\n.input f\np(1).\n.output p\n"), facts={"f": {(0.5,)}})
    with pytest.raises(ValueError, match="column c1 of p would hold float instead of number: declare p"):
        session.add_rule("p(x) :- f(x).")
    assert set(session.relation("p")) == {(1,)}


def test_a_relation_that_took_updates_goes_on_taking_them() -> None:
    session = Session(load(".decl p(x:number)\n.decl q(x:number)\n.output p, q\n"))
    session.apply([Update("+", "p", (1,)), Update("+", "q", (2,))])
    assert session.add_rule("p(x) :- q(x).").inserted == {"p": [(2,)]}
    assert session.apply([Update("-", "p", (1,))]).deleted == {"p": [(1,)]}


def test_windows_of_new_relations_slide() -> None:
    session = Session(load(".decl p(x:number)\n.output p\n"))
    session.add_rule(".decl s(x:number)\n.input s\n.lifetime s 5\np(x) :- s(x).")
    session.apply([Update("+", "s", (1,), 1.0)])
    assert session.apply([], now=6.0).deleted == {"s": [(1,)], "p": [(1,)]}


def test_rules_can_be_added_to_sql() -> None:
    text = "CREATE TABLE link(src TEXT, dst TEXT); CREATE VIEW back AS SELECT dst AS src, src AS dst FROM link;"
    session = Session(load(text, dialect="sql"), facts={"link": {("a", "b")}})
    assert session.add_rule("loop: back(x, x) :- link(x, _).").inserted == {"back": [("a", "a")]}
    assert session.drop_rule("loop").deleted == {"back": [("a", "a")]}


def test_a_session_shows_new_outputs_beside_those_it_was_asked_for() -> None:
    session = Session(load(TEXT), facts={"link": LINKS}, wanted=["apart"])
    changes = session.add_rule(".decl lonely(x:number)\n.output lonely\nlonely(x) :- link(x, _), !degree(x, 4).")
    assert {name: set(rows) for name, rows in changes.inserted.items()} == {"lonely": {(5,)}}
    assert session.views().keys() == {"apart", "lonely"}
    assert session.views() == {name: evaluate(session.program, {"link": LINKS})[name] for name in ("apart", "lonely")}
