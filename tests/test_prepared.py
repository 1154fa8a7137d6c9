"""A program is planned once for any number of sessions, which have their words in common and nothing else."""

from __future__ import annotations

import gc
from random import Random

import pytest

from whence import Session, Update, load, reference
from whence.backends.local import assemble as assembling
from whence.plan import UnsuitableStrategy
from whence.plan import compile as compiling
from whence.prepared import STRATEGIES, prepare

ROUTES = load("""
.decl link(x:symbol, y:symbol, c:number) .input link
.decl down(x:symbol) .input down
.decl cost(x:symbol, y:symbol, c:number)
.decl best(x:symbol, y:symbol, c:number)
.output best, alone, reach
reach(x, y) :- link(x, y, _), !down(x).
reach(x, z) :- reach(x, y), link(y, z, _), !down(y).
cost(x, y, c) :- link(x, y, c).
cost(x, z, c + d) :- best(x, y, c), link(y, z, d), c + d < 40.
best(x, y, m) :- cost(x, y, _), m = min c : { cost(x, y, c) }.
alone(x) :- down(x), !reach(x, _).
""")


def test_a_thousand_sessions_plan_once(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[object] = []
    plan = compiling._plan_stratum
    monkeypatch.setattr(compiling, "_plan_stratum", lambda *args: planned.append(args) or plan(*args))
    prepared = prepare(ROUTES)
    once = len(planned)
    sessions = [Session(prepared) for _ in range(1000)]
    assert len(planned) == once
    assert all(session.plan is sessions[0].plan for session in sessions)
    assert len(prepared.shared.dictionary.holders) == 1000 + 1  # the constants of plans are held once for all
    del sessions
    gc.collect()
    assert set(prepared.shared.dictionary.holders) == {prepared.shared.assembler}


def test_plans_are_assembled_for_all_sessions_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assembled: list[object] = []
    assemble = assembling._Assembly.assemble
    monkeypatch.setattr(
        assembling._Assembly, "assemble", lambda self, plan: assembled.append(plan) or assemble(self, plan)
    )
    prepared = prepare(ROUTES)
    for _ in range(3):
        session = Session(prepared)
        session.apply([Update("+", "link", ("a", "b", 1)), Update("+", "link", ("b", "c", 1))])
        session.apply([Update("-", "link", ("a", "b", 1))])
        assert session.views() == reference.evaluate(ROUTES, {"link": {("b", "c", 1)}, "down": set()})
    assert len(assembled) == len(set(assembled)) > 0


def test_constants_of_assembled_plans_keep_their_words() -> None:
    program = load("""
    .decl p(x:symbol) .input p
    .decl q(x:symbol) .output q
    .decl seen(x:symbol) .output seen
    seen(x) :- p(x).
    q(x) :- p(x), x != "left out".
    """)
    prepared = prepare(program)
    first = Session(prepared)
    first.apply([Update("+", "p", ("a",))])
    del first
    gc.collect()
    prepared.shared.dictionary.reclaim()
    second = Session(prepared)
    second.apply([Update("+", "p", (name,)) for name in ("b", "c", "left out", "d")])
    assert second.views()["q"] == {("b",), ("c",), ("d",)}


def test_instructions_of_rules_that_are_gone_are_forgotten() -> None:
    session = Session(prepare(ROUTES))
    made = session.backend.shared.assembler.made
    session.apply([Update("+", "link", ("a", "a", 1))])
    before = len(made)
    for at in range(5):
        session.add_rule(f"extra{at}: alone(x) :- link(x, x, {at}).")
        session.apply([Update("+", "link", ("a", "a", at))])
        session.drop_rule(f"extra{at}")
    session.apply([Update("+", "link", ("b", "b", 1))])
    gc.collect()
    assert len(made) <= before


@pytest.mark.parametrize("strategy", ["support", "dred", "absorption", "recompute"])
def test_sessions_of_one_program_do_not_touch_each_other(strategy: str) -> None:
    source = Random(5)
    prepared = prepare(ROUTES, strategy=strategy)
    sessions = [Session(prepared, facts={"down": [(f"n{at}",)]}) for at in range(3)]
    facts: list[set[tuple[str, str, int]]] = [set(), set(), set()]
    for _ in range(40):
        at = source.randrange(3)
        link = (f"n{source.randrange(5)}", f"n{source.randrange(5)}", source.randint(1, 9))
        op = "-" if link in facts[at] else "+"
        (facts[at].add if op == "+" else facts[at].discard)(link)
        sessions[at].apply([Update(op, "link", link)])
    for at, session in enumerate(sessions):
        assert session.views() == reference.evaluate(ROUTES, {"link": facts[at], "down": {(f"n{at}",)}})


def test_values_are_the_same_words_in_all_of_them() -> None:
    prepared = prepare(ROUTES)
    one, other = Session(prepared, facts={"down": [("a",)]}), Session(prepared)
    rows = one.backend.encode("down", [("a",), ("b",)])
    assert other.backend.decode_keys("down", rows) == [("a",), ("b",)]
    assert Session(ROUTES).backend.dictionary is not one.backend.dictionary


def test_rules_that_one_of_them_gains_are_its_own() -> None:
    prepared = prepare(ROUTES)
    one, other = Session(prepared), Session(prepared)
    one.add_rule("alone(x) :- link(x, x, _).")
    for session in (one, other):
        session.apply([Update("+", "link", ("a", "a", 1))])
    assert (one.views()["alone"], other.views()["alone"]) == ({("a",)}, set())


def test_one_that_fails_leaves_the_others_alone() -> None:
    def fussy(x: int) -> int:
        if x == 13:
            raise ValueError("no")
        return x

    text = (
        ".functor fussy(x:number):number .decl p(x:number) .input p .decl q(x:number) .output q q(@fussy(x)) :- p(x)."
    )
    prepared = prepare(load(text, functions={"fussy": fussy}))
    one, other = Session(prepared), Session(prepared)
    for session in (one, other):
        session.apply([Update("+", "p", (1,))])
    with pytest.raises(reference.FunctionError):
        one.apply([Update("+", "p", (13,))])
    assert one.views()["q"] == other.views()["q"] == {(1,)}


def test_what_was_decided_is_not_asked_again() -> None:
    prepared = prepare(ROUTES, wanted=["best"], strategy="dred")
    assert Session(prepared).strategy == "dred"
    with pytest.raises(ValueError, match="has its wanted relations"):
        Session(prepared, wanted=["reach"])


def test_what_does_not_suit_is_refused_when_it_is_prepared() -> None:
    with pytest.raises(ValueError, match="there is no strategy luck; there are " + ", ".join(STRATEGIES)):
        prepare(ROUTES, strategy="luck")
    with pytest.raises(ValueError, match="there is no relation bset"):
        prepare(ROUTES, wanted=["bset"])
    with pytest.raises(UnsuitableStrategy):
        prepare(ROUTES, strategy="counting")


def test_a_session_goes_on_with_the_windows_of_an_earlier_one() -> None:
    program = load(".decl p(x:number) .input p .lifetime p 10 .decl q(x:number) .output q q(x) :- p(x).")
    first = Session(program)
    first.apply([Update("+", "p", (1,), 1.0), Update("+", "p", (2,), 5.0)])
    second = Session(program, facts=first.base(), windows=first.windows)
    assert second.views()["q"] == {(1,), (2,)}
    assert second.apply([], now=11.0).deleted == {"p": [(1,)], "q": [(1,)]}


def test_updates_read_by_the_programs_types_are_not_checked_twice() -> None:
    session = Session(load(".decl p(x:number) .input p"))
    with pytest.raises(ValueError, match="x"):
        session.apply([Update("+", "p", ("one",))])
    assert session.apply([Update("+", "p", (1,))], checked=True).inserted == {"p": [(1,)]}
