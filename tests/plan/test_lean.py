"""What is derived of relations that nobody looks at, and parts of bodies that stand by themselves."""

import re
from itertools import pairwise

import pytest

from whence import Program, Session, load
from whence.lang.program import Anything, Atom, Const, Literal, Negation, Rule, Term, Var
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.plan import compile_plan, restrict
from whence.prepared import prepare
from whence.reference import evaluate
from whence.semiring import SEMIRINGS
from whence.session import evaluate as evaluate_locally

CHAIN = {"next": [(at, at + 1) for at in range(60)], "shown": [(at,) for at in range(0, 61, 20)]}
SKIP = """.decl next(x:number, y:number) .decl shown(x:number) .input next, shown
skip(x, y) :- next(x, y).
skip(x, y) :- next(x, v), !shown(v), skip(v, y).
"""


def lean(text: str) -> Program:
    program = load(text)
    return restrict(program, program.outputs, lean=True)


def shown(program: Program) -> list[str]:
    return sorted(_show(rule) for rule in program.rules)


def _show(rule: Rule) -> str:
    return re.sub(":[0-9a-f]{6}", "", f"{_literal(rule.head)} :- {', '.join(map(_literal, rule.body))}")


def _literal(literal: Literal) -> str:
    match literal:
        case Atom(relation=relation, args=args):
            return f"{relation}({', '.join(map(_term, args))})"
        case Negation(atom=atom):
            return f"!{_literal(atom)}"
        case _:
            return type(literal).__name__


def _term(term: Term) -> str:
    match term:
        case Var(name=name):
            return name
        case Const(value=value):
            return repr(value)
        case Anything():
            return "_"
        case _:
            raise AssertionError(term)


def derived(text: str, facts: dict[str, list[Tuple]]) -> dict[str, set[Tuple]]:
    """All relations of the lean program, whose wanted ones are those of the program itself."""
    program = load(text)
    views, whole = evaluate(lean(text), facts), evaluate(program, facts)
    for name in program.outputs:
        assert views[name] == whole[name]
    return views


# -- asked for ---------------------------------------------------------------------------------------------------------


def test_a_recursion_is_turned_round_to_begin_where_it_is_asked_for() -> None:
    text = SKIP + "after(x, y) :- shown(x), skip(x, y).\n.output after\n"
    assert shown(lean(text)) == [
        "after(x, y) :- shown(x), skip!bf(x, y)",
        "skip!bf(x, y) :- skip!bf(x, v), !shown(v), next(v, y)",
        "skip!bf(x, y) :- skip!bf:asked(x), next(x, y)",
        "skip!bf:asked(x) :- shown(x)",
    ]
    assert len(derived(text, CHAIN)["skip!bf"]) == 60


def test_a_recursion_whose_column_stays_is_not_turned() -> None:
    text = SKIP + "before(x, y) :- skip(x, y), shown(y).\n.output before\n"
    assert shown(lean(text)) == [
        "before(x, y) :- skip!fb(x, y), shown(y)",
        "skip!fb(x, y) :- next(x, v), !shown(v), skip!fb(v, y)",
        "skip!fb(x, y) :- skip!fb:asked(y), next(x, y)",
        "skip!fb:asked(y) :- shown(y)",
    ]
    assert len(derived(text, CHAIN)["skip!fb"]) == 60


def test_constants_ask() -> None:
    text = SKIP + "after(y) :- skip(20, y).\n.output after\n"
    views = derived(text, CHAIN)
    assert views["skip!bf:asked"] == {(20,)}
    assert len(views["skip!bf"]) == 20


def test_several_columns_go_together() -> None:
    text = """.decl next(a:number, b:symbol, c:number, d:symbol) .decl shown(a:number, b:symbol) .input next, shown
    skip(a, b, c, d) :- next(a, b, c, d).
    skip(a, b, e, f) :- next(a, b, c, d), !shown(c, d), skip(c, d, e, f).
    after(a, b, e, f) :- shown(a, b), skip(a, b, e, f).
    .output after
    """
    assert "skip!bbff(a, b, e, f) :- skip!bbff(a, b, c, d), !shown(c, d), next(c, d, e, f)" in shown(lean(text))
    chain = [(at, str(at), at + 1, str(at + 1)) for at in range(40)]
    assert len(derived(text, {"next": chain, "shown": [(0, "0"), (20, "20")]})["skip!bbff"]) == 40


@pytest.mark.parametrize(
    "rules",
    [
        # Goes along something else than it begins with: from the other end there may be more of it.
        "skip(x, y) :- last(x, y). skip(x, y) :- next(x, v), skip(v, y). .decl last(x:number, y:number) .input last",
        # Two beginnings.
        "skip(x, y) :- next(x, y). skip(x, y) :- next(y, x). skip(x, y) :- next(x, v), skip(v, y).",
        # The condition is on where a step comes from, not on where it goes.
        "skip(x, y) :- next(x, y). skip(x, y) :- next(x, v), shown(x), skip(v, y).",
        # The end has a say on the way.
        "skip(x, y) :- next(x, y). skip(x, y) :- next(x, v), v < y, skip(v, y).",
        # More is asked of a step than of a beginning.
        "skip(x, y) :- next(x, y), shown(x). skip(x, y) :- next(x, v), skip(v, y).",
    ],
)
def test_what_is_not_the_same_from_the_other_end_is_left(rules: str) -> None:
    text = f".decl next(x:number, y:number) .decl shown(x:number) .input next, shown {rules}\n"
    text += "after(x, y) :- shown(x), skip(x, y).\n.output after\n"
    assert not any(name.startswith("skip!") for name in lean(text).relations)


@pytest.mark.parametrize(
    "use",
    [
        "after(x, y) :- skip(x, y), x != y.",  # nobody says from where
        "after(x, y) :- shown(x), skip(x, y). other(x) :- shown(x), !skip(x, 3). .output other",
        "after(x, n) :- shown(x), n = count : { skip(x, _) }.",
        "after(x, y) :- shown(x), skip(x, y). after(x, y) :- skip(y, x), x = y + 0.",
        "after(x, y) :- after(y, x), skip(x, y). after(x, x) :- shown(x).",  # asked for by what it leads to
        "after(x, y) :- shown(x), skip(x, y). .output skip",
    ],
)
def test_what_is_not_asked_for_by_others_is_derived_as_a_whole(use: str) -> None:
    program = lean(SKIP + use + "\n.output after\n")
    assert "skip" in program.relations


# -- columns -----------------------------------------------------------------------------------------------------------


def test_a_column_that_nobody_looks_at_is_not_derived() -> None:
    text = """.decl edge(x:number, y:number) .input edge
    path(x, y) :- edge(x, y).
    path(x, z) :- edge(x, y), path(y, z).
    leads(x) :- path(x, _).
    .output leads
    """
    assert shown(lean(text)) == [
        "leads(x) :- path!only0(x)",
        "path!only0(x) :- edge(x, y)",
        "path!only0(x) :- edge(x, y), path!only0(y)",
    ]
    assert len(derived(text, {"edge": CHAIN["next"]})["path!only0"]) == 60


def test_columns_go_through_several_relations() -> None:
    text = """.decl e(x:number, y:number, z:number) .input e
    a(x, y, z) :- e(x, y, z).
    b(x, z, y) :- a(x, y, z), x > 3.
    c(x) :- b(x, _, w), !b(w, 1, _).
    .output c
    """
    program = lean(text)
    assert {name: len(program.relations[name].fields) for name in program.relations if "!" in name} == {}
    text = text.replace("w), !b(w, 1, _)", "w)")
    program = lean(text)
    assert [name for name in program.relations if "!" in name] == ["a!only0", "b!only0"]
    derived(text, {"e": [(x, y, x * y) for x in range(6) for y in range(3)]})


def test_a_rule_that_would_derive_a_row_from_itself_is_left_out() -> None:
    text = """.decl e(x:number, y:number) .input e
    p(x, y) :- e(x, y).
    p(x, z) :- p(x, y), e(_, z).
    q(x) :- p(x, _).
    .output q
    """
    assert shown(lean(text)) == ["p!only0(x) :- e(x, y)", "q(x) :- p!only0(x)"]
    derived(text, {"e": [(1, 2), (2, 3)]})


@pytest.mark.parametrize(
    "text",
    [
        "p(x, 10 / y) :- e(x, y). q(x) :- p(x, _).",  # has no value for 0, and no row then
        "p(x, y) :- e(x, y). q(n) :- n = count : { p(_, _) }.",
        "p(x, y) :- e(x, y). q(x) :- p(x, x).",
        "p(x, y) :- e(x, y). q(x) :- p(x, 1).",
        "p(x, y) :- e(x, y). p(x, y) <= p(x, z) :- y < z. q(x) :- p(x, _).",
        ".decl p(x:number, y:number) choice-domain y  p(x, y) :- e(x, y). q(x) :- p(x, _).",
        "p(x, y) :- e(x, y). q(x) :- p(x, _). .output p",
    ],
)
def test_columns_that_matter_stay(text: str) -> None:
    text = f".decl e(x:number, y:number) .input e\n{text}\n.output q\n"
    assert "p" in lean(text).relations


# -- parts that stand by themselves -------------------------------------------------------------------------------------

INDEPENDENT = """.decl b(x:number) .decl c(x:number) .decl d(x:number) .input b, c, d
a(x) :- b(x), c(y), d(y).
.output a
"""


def test_a_part_that_shares_nothing_is_evaluated_once() -> None:
    assert shown(compile_plan(load(INDEPENDENT)).program) == ["a(x) :- b(x), c!some()", "c!some() :- c(y), d(y)"]
    rows = {name: [(at,) for at in range(100)] for name in "bcd"}
    session = Session(load(INDEPENDENT), facts=rows)
    assert session.last_epoch["derivations"] == 200
    assert session.apply([("-", "d", (at,)) for at in range(99)]).deleted.keys() == {"d"}
    assert session.apply([("-", "c", (99,))]).deleted["a"] == rows["b"]
    assert session.apply([("+", "c", (3,)), ("+", "d", (3,))]).inserted["a"] == rows["b"]


def test_equal_parts_of_several_rules_are_evaluated_once() -> None:
    text = INDEPENDENT + "z(x, x) :- b(x), c(u), d(u). y(x) :- b(x), d(y), c(y). x(1) :- c(x), d(y), x = y + 1.\n"
    rules = shown(compile_plan(load(text)).program)
    assert "z(x, x) :- b(x), c!some()" in rules
    assert sum("!some" in rule.partition(" :- ")[0] for rule in rules) == 2


@pytest.mark.parametrize(
    "rule",
    [
        "a(1) :- c(y), d(y).",  # there is nothing else
        "a(x) :- b(x), c(y), d(z), y < z, z < x.",
        "a(x) :- b(x), a(y), c(y).",  # depends on what it is for
        "a(x) :- b(x), c(1).",
    ],
)
def test_parts_that_belong_together_stay_together(rule: str) -> None:
    text = ".decl b(x:number) .decl c(x:number) .decl d(x:number) .input b, c, d\na(x) :- d(x), x > 100.\n" + rule
    assert not any("!some" in name for name in compile_plan(load(text)).program.relations)


@pytest.mark.parametrize("semiring", ["natural", "tropical", "why", "polynomial"])
def test_annotations_are_the_same_with_parts_set_apart(semiring: str) -> None:
    from whence.annotated import evaluate_annotated  # noqa: PLC0415
    from whence.reference.annotated import evaluate_annotated as naive  # noqa: PLC0415

    facts = {name: {(1,), (2,), (3,)} for name in "bcd"}
    algebra = SEMIRINGS[semiring]

    def annotation(_name: str, row: Tuple) -> object:
        return row[0] if semiring in ("natural", "tropical") else None

    program = load(INDEPENDENT)
    expected = naive(program, facts, algebra, annotation)["a"]
    assert evaluate_annotated(program, facts, algebra, annotation)["a"] == expected


# -- in sessions -------------------------------------------------------------------------------------------------------


def test_a_lean_session_shows_what_is_wanted_and_follows_updates() -> None:
    program = load(SKIP + "after(x, y) :- shown(x), skip(x, y), shown(y).\n.output after\n")
    session = Session(prepare(program, wanted=["after"], lean=True), facts=CHAIN)
    assert set(session.views()) == {"after"}
    assert session.views()["after"] == {(0, 20), (20, 40), (40, 60)}
    changes = session.apply([("-", "shown", (20,)), ("+", "shown", (50,))])
    assert set(changes.inserted["after"]) == {(0, 40), (40, 50), (50, 60)}
    assert set(changes.deleted["after"]) == {(0, 20), (20, 40), (40, 60)}


def test_evaluating_once_is_lean() -> None:
    program = load(SKIP + "after(x, y) :- shown(x), skip(x, y), shown(y).\n.output after\n")
    marks = range(0, 100_001, 10_000)  # half a billion rows, if all were derived
    facts: dict[str, list[Tuple]] = {"next": [(at, at + 1) for at in range(100_000)], "shown": [(at,) for at in marks]}
    views = evaluate_locally(program, facts, wanted=["after"], limits=Limits(max_tuples=500_000))
    assert views["after"] == set(pairwise(marks))
