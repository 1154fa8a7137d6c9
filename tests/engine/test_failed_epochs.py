"""An epoch that fails, however it fails, leaves the session as it was before."""

from __future__ import annotations

import random
import warnings

import pytest

from whence import ProgramError, Session, Update, Variant, load
from whence.lang.calls import FunctionError
from whence.lang.types import Tuple
from whence.limits import Limits, RunawayError
from whence.reference import EvaluationWarning, evaluate
from whence.session import STRATEGIES

RECURSIVE = [strategy for strategy in STRATEGIES if strategy != "counting"]
PATHS = """
.decl link(x:number, y:number) .input link
.decl reach(x:number, y:number)
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
.decl count_up(x:number)
count_up(x) :- link(x, x).
count_up(x + 1) :- count_up(x).
.decl same(x:number, y:number) eqrel
same(x, y) :- reach(x, y).
.decl size(x:number, n:number)
size(x, n) :- link(x, _), n = count : { reach(x, _) }.
"""
LINKS = [(1, 2), (2, 3), (3, 1), (3, 4)]


def plus(*rows: Tuple) -> list[Update]:
    return [Update("+", "link", row) for row in rows]


@pytest.mark.parametrize("strategy", RECURSIVE)
def test_a_runaway_epoch_changes_nothing(strategy: str) -> None:
    program = load(PATHS)
    limits = Limits(max_rounds=50)
    session = Session(program, facts={"link": LINKS}, strategy=strategy, limits=limits)
    view = session.relation("reach")
    expected = evaluate(program, {"link": LINKS})
    for _ in range(2):
        with pytest.raises(RunawayError):
            session.apply([*plus((7, 7), (4, 5)), Update("-", "link", (1, 2))])
        assert set(view) == expected["reach"]
        assert session.views() == expected
        assert session.base() == {"link": set(LINKS)}
        assert session.epoch == 0
    changes = session.apply([*plus((4, 1)), Update("-", "link", (3, 1))])
    assert changes.inserted["link"] == [(4, 1)]
    assert session.views() == evaluate(program, {"link": {*LINKS, (4, 1)} - {(3, 1)}})
    with pytest.raises(RunawayError):  # the limits are still there
        session.apply(plus((7, 7)))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_function_that_raises(strategy: str) -> None:
    def fussy(x: int) -> int:
        if x == 13:
            raise KeyError("thirteen")
        return x + 1

    program = load(
        ".functor fussy(x:number):number .decl p(x:number) .input p .decl q(x:number) .decl r(x:number)"
        "q(@fussy(x)) :- p(x). r(x) :- p(x), !q(x).",
        functions={"fussy": fussy},
    )
    session = Session(program, facts={"p": [(1,), (5,)]}, strategy=strategy)
    before = session.views()
    with pytest.raises(FunctionError, match="thirteen"):
        session.apply([Update("+", "p", (2,)), Update("+", "p", (13,)), Update("-", "p", (5,))])
    assert session.views() == before == evaluate(program, {"p": [(1,), (5,)]})
    changes = session.apply([Update("+", "p", (2,))])
    assert (changes.inserted, changes.deleted) == ({"p": [(2,)], "q": [(3,)]}, {})
    assert session.views() == evaluate(program, {"p": [(1,), (2,), (5,)]})


def test_rows_that_do_not_fit_are_refused_together() -> None:
    program = load(".decl p(n:number, s:symbol) .input p .lifetime p 10 .output p")
    session = Session(program, facts={"p": [(1, "a")]})
    for row, why in (
        ((1.5, "a"), "p: column n cannot hold 1.5, which is not of type number"),
        (("1", "a"), "p: column n cannot hold '1', which is not of type number"),
        ((1 << 63, "a"), f"p: column n cannot hold {1 << 63}, which is out of range for number"),
        ((None, "a"), "p: column n cannot hold None, which is not of type number"),
        ((1, 2), "p: column s cannot hold 2, which is not of type symbol"),
        ((1,), r"p has 2 columns, not 1: \(1,\)"),
        ([1, "a"], r"p takes tuples, not \[1, 'a'\]"),
    ):
        with pytest.raises(ValueError, match=f"^{why}$"):
            session.apply([Update("+", "p", (2, "b"), 100.0), Update("+", "p", row)])  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=f"^{why}$"):
            Session(program, facts={"p": [(2, "b"), row]})  # type: ignore[list-item]
    with pytest.raises(TypeError, match="an epoch is a list of updates"):
        session.apply(Update("+", "p", (2, "b")))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"p is not an update: [+] inserts a fact, - deletes it"):
        session.apply(["p"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="nan is not a time"):
        session.apply([Update("+", "p", (2, "b"), float("nan"))])
    with pytest.raises(ValueError, match="'noon' is not a time"):
        session.apply([], now="noon")  # type: ignore[arg-type]
    assert (session.views(), session.windows.clock) == ({"p": {(1, "a")}}, 0.0)


def test_values_made_of_others_are_checked_as_well() -> None:
    program = load(
        ".type R = [a:number, next:R] .type A = X { n:number } | Y {} .decl p(r:R, a:A, l:list<float>) .input p .output p"
    )
    deep: Tuple | None = None
    for n in range(5_000):
        deep = (n, deep)
    session = Session(program, facts={"p": [(None, Variant("Y"), ()), (deep, Variant("X", (1,)), (1, 0.5))]})
    assert len(session.relation("p")) == 2
    for row in (
        ((1,), Variant("Y"), ()),
        ((1, ("x", None)), Variant("Y"), ()),
        (None, Variant("Z"), ()),
        (None, Variant("X"), ()),
        (None, Variant("X", ("one",)), ()),
        (None, "Y", ()),
        (None, Variant("Y"), [1.0]),
        (None, Variant("Y"), ("a",)),
        (None, Variant("Y"), (float("nan"),)),
    ):
        with pytest.raises(ValueError, match=r"p: column [ral] cannot hold"):
            session.apply([Update("+", "p", row)])


def test_an_integer_that_no_float_equals_is_refused() -> None:
    # Two integers that would become one float would be one row that was put in twice.
    program = load(".decl p(x:float) .input p .output p")
    session = Session(program, facts={"p": [(2**53,)]})
    with pytest.raises(ValueError, match=r"p: column x cannot hold 9007199254740993, which is not of type float"):
        session.apply([Update("+", "p", (2**53 + 1,))])
    with pytest.raises(ValueError, match=r"p: column x cannot hold 9007199254740993, which is not of type float"):
        Session(program, facts={"p": [(2**53,), (2**53 + 1,)]})
    assert set(session.relation("p")) == {(float(2**53),)}


def test_windows_and_clock_go_back_with_the_epoch() -> None:
    def fussy(x: int) -> int:
        if x == 13:
            raise ValueError("no")
        return x

    program = load(
        ".functor fussy(x:number):number .decl timed, rows, parts(k:number, x:number) .input timed, rows, parts "
        ".lifetime timed 10 .window rows(rows=3) .window parts(rows=2, by=k)"
        ".decl all(x:number) .output all all(@fussy(x)) :- timed(_, x) ; rows(_, x) ; parts(_, x).",
        functions={"fussy": fussy},
    )
    chance = random.Random(7)
    session, twin = Session(program), Session(program)
    for step in range(200):
        updates = [
            Update(
                chance.choice("++-"),
                chance.choice(["timed", "rows", "parts"]),
                (chance.randrange(2), chance.randrange(5)),
                step + chance.random() * 3,
            )
            for _ in range(chance.randrange(1, 6))
        ]
        if chance.random() < 0.5:
            with pytest.raises(FunctionError):
                session.apply([*updates, Update("+", "rows", (0, 13), step + 30.0)])
        if chance.random() < 0.3:
            session.trial([*updates, Update("+", "parts", (0, 14), step + 30.0)])
        assert sorted(session.apply(updates)) == sorted(twin.apply(updates))
        assert (session.views(), session.windows.clock) == (twin.views(), twin.windows.clock)
        assert session.windows.times("timed") == twin.windows.times("timed")
        assert list(session.windows.times("rows")) == list(twin.windows.times("rows"))
        assert [parts(session, k) for k in range(2)] == [parts(twin, k) for k in range(2)]


def parts(session: Session, k: int) -> list[Tuple]:
    """Oldest first."""
    return [row for row in session.windows.times("parts") if row[0] == k]


@pytest.mark.parametrize("strategy", RECURSIVE)
def test_rules_that_fail_are_as_if_they_had_not_been_added(strategy: str) -> None:
    program = load(PATHS)
    session = Session(program, facts={"link": LINKS}, strategy=strategy, limits=Limits(max_rounds=50))
    expected = evaluate(program, {"link": LINKS})
    with pytest.raises(RunawayError):
        session.add_rule("link(x, a) <= link(x, b) :- b < a. count_up(x) :- reach(x, 1).")
    assert session.views() == expected
    assert (session.program, session.base()) == (program, {"link": set(LINKS)})
    with pytest.raises(ProgramError):
        session.add_rule("reach(x, y) :- lnk(x, y).")
    with pytest.raises(ValueError, match="no rule"):
        session.drop_rule("nonsense")
    assert session.views() == expected
    assert session.add_rule("reach(x, x) :- link(_, x).").inserted["reach"] == [(4, 4)]  # the others are on the cycle


@pytest.mark.parametrize("strategy", RECURSIVE)
def test_tuples_from_outside_are_remembered_while_others_dominate_them(strategy: str) -> None:
    text = ".decl p(x:number, y:number) .input p .output p p(x, a) <= p(x, b) :- b < a."
    session = Session(load(text), strategy=strategy)
    first = session.apply([Update("+", "p", (1, 5)), Update("+", "p", (1, 3)), Update("+", "p", (1, 4))])
    assert first.inserted == {"p": [(1, 3)]}
    assert session.base() == {"p": {(1, 3), (1, 4), (1, 5)}}
    assert session.apply([Update("+", "p", (1, 5))]).ignored == 1
    assert session.apply([Update("-", "p", (1, 4))]).ignored == 0
    changes = session.apply([Update("-", "p", (1, 3))])
    assert (changes.deleted, changes.inserted) == ({"p": [(1, 3)]}, {"p": [(1, 5)]})
    assert session.add_rule("p(2, 2).").inserted == {"p": [(2, 2)]}
    assert session.base() == {"p": {(1, 5)}}
    session.apply([Update("-", "p", (1, 5))])
    assert session.views() == {"p": {(2, 2)}}


def test_warnings_that_are_errors_stop_an_epoch_as_well() -> None:
    program = load(".decl p(x:number) .input p .decl q(x:number) q(10 / x) :- p(x).")
    session = Session(program, facts={"p": [(1,)]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(EvaluationWarning):
            session.apply([Update("+", "p", (0,)), Update("+", "p", (2,))])
    assert session.views() == {"p": {(1,)}, "q": {(10,)}}


def test_numbers_given_out_stay_the_same() -> None:
    def fussy(x: int) -> int:
        if x == 13:
            raise ValueError("no")
        return x

    program = load(
        ".functor fussy(x:number):number .decl p(x:number) .input p .decl q(n:number, x:number) .decl r(x:number)"
        "q(autoinc(), x) :- p(x). r(@fussy(x)) :- q(_, x).",
        functions={"fussy": fussy},
    )
    session = Session(program)
    for x in (5, 3, 9, 1):
        session.apply([Update("+", "p", (x,))])
    before = session.views()
    with pytest.raises(FunctionError):
        session.apply([Update("+", "p", (13,))])
    assert session.views() == before


def test_a_function_cannot_look_at_the_session_in_the_middle_of_an_epoch() -> None:
    found: list[str] = []

    def peek(x: int) -> int:
        try:
            session.views()
        except RuntimeError as error:
            found.append(str(error))
        return x

    program = load(
        ".functor peek(x:number):number .decl p(x:number) .input p .decl q(x:number) q(@peek(x)) :- p(x).",
        functions={"peek": peek},
    )
    session = Session(program)
    session.apply([Update("+", "p", (1,))])
    assert found == ["an epoch is under way: the session can be looked at when it is over"]
    assert session.views() == {"p": {(1,)}, "q": {(1,)}}
