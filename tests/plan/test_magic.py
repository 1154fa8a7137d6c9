"""What is derived on demand, and what is left alone."""

import pytest

from whence import Program, Session, load
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.plan import restrict
from whence.plan.needed import keep_needed
from whence.reference import evaluate

CLOSURE = ".decl e(x:number, y:number)\n.input e\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).\n"
ON_DEMAND = '.pragma "magic-transform" "*"\n'
CHAIN = {"e": [(at, at + 1) for at in range(30)]}


def derived(text: str) -> dict[str, set[Tuple]]:
    program = load(text)
    facts = {name: rows for name, rows in CHAIN.items() if name in program.relations}
    return evaluate(restrict(program, program.outputs), facts, limits=Limits(max_rounds=100, max_tuples=10_000))


def helpers(program: Program) -> set[str]:
    return {name for name in restrict(program, program.outputs).relations if "!" in name}


def test_only_what_is_asked_for_is_derived() -> None:
    views = derived(ON_DEMAND + CLOSURE + "q(y) :- p(25, y).\n.output q\n")
    assert views == {
        "e": set(CHAIN["e"]),
        "p!bf:asked": {(25,)},
        "p!bf": {(25, y) for y in range(26, 31)},
        "q": {(y,) for y in range(26, 31)},
    }


def test_what_stands_before_an_atom_tells_what_is_asked_for() -> None:
    text = ON_DEMAND + CLOSURE + "q(x, y) :- e(x, 3), x > 1, p(x, y), y < 6.\n.output q\n"
    assert derived(text)["p!bf:asked"] == {(2,)}


def test_questions_of_different_shape_do_not_mix() -> None:
    views = derived(ON_DEMAND + CLOSURE + "q(y) :- p(28, y).\nr(x) :- p(x, 1).\n.output q, r\n")
    assert (views["q"], views["r"]) == ({(29,), (30,)}, {(0,)})
    assert views["p!bf"] == {(28, 29), (28, 30)}
    assert (0, 1) in views["p!fb"]


def test_a_relation_asked_for_as_a_whole_is_derived_once() -> None:
    text = ON_DEMAND + CLOSURE + "q(y) :- p(1, y).\nr(x) :- p(x, y), x < y.\n.output q, r\n"
    assert not helpers(load(text))


def test_negation_and_aggregates_ask_for_what_they_need() -> None:
    text = "q(x) :- e(x, 29), !p(x, 28).\nn(c) :- e(x, 28), c = count : { p(x, _) }.\n.output q, n\n"
    views = derived(ON_DEMAND + CLOSURE + text)
    assert (views["q"], views["n"]) == ({(28,)}, {(3,)})
    assert (views["p!bb"], views["p!bf"]) == (set(), {(27, 28), (27, 29), (27, 30)} | {(28, 29), (28, 30)})


def test_given_tuples_of_a_derived_relation_are_asked_for_too() -> None:
    text = ON_DEMAND + CLOSURE + ".input p\np(7, 100). p(8, 100).\nq(y) :- p(7, y), y > 28.\n.output q\n"
    program = load(text)
    session = Session(program, facts=CHAIN | {"p": [(7, 200), (9, 200)]}, wanted=["q"])
    assert set(session.relation("q")) == {(29,), (30,), (100,), (200,)}
    session.apply([("-", "p", (7, 200)), ("-", "e", (28, 29))])
    assert set(session.relation("q")) == {(100,)}


@pytest.mark.parametrize(
    "rule",
    [
        "p(x, y) :- p(x - 1, y), e(x, _).",
        "p(x, y) :- e(x, _), z = x - 1, p(z, y).",
    ],
)
def test_asking_never_counts_on_without_end(rule: str) -> None:
    views = derived(f"{ON_DEMAND}{CLOSURE}{rule}\nq(y) :- p(20, y).\n.output q\n")
    assert views["q"] == {(y,) for y in range(1, 31)}


def test_asking_never_builds_values_without_end() -> None:
    text = (
        ON_DEMAND + ".type L = [head:number, tail:L]\n.decl s(l:L)\n.decl k(l:L)\ns([1, [2, nil]]).\n"
        "k(l) :- s(l).\nk(l) :- k([_, l]).\nk(l) :- s(l), k([1, l]).\n"
        "q(l) :- k(l), l = nil.\nr(x) :- k([x, nil]).\n.output q, r\n"
    )
    views = derived(text)
    assert (views["q"], views["r"]) == ({(None,)}, {(2,)})


def test_what_has_to_be_complete_first_is_not_asked_for() -> None:
    # n needs p complete; asking p for what c holds would make p wait for c, which waits for n.
    text = "n(x) :- e(1, x), p(x, _).\nc(x) :- e(x, _), !n(x).\nq(y) :- c(x), p(x, y).\n.output q\n"
    program = load(ON_DEMAND + CLOSURE + text)
    assert not any(name.startswith("p!") for name in helpers(program))
    assert derived(ON_DEMAND + CLOSURE + text)["q"] == evaluate(program, CHAIN)["q"]


@pytest.mark.parametrize(
    "special",
    [
        ".decl k(x:number, y:number) eqrel\nk(x, y) :- e(x, y).\n",
        ".decl k(x:number, y:number) choice-domain x\nk(x, y) :- e(x, y).\n",
        "k(x, y) :- e(x, y).\nk(x, y) <= k(x, z) :- y < z.\n",
        "k(x, y) :- e(x, y).\nk(x, z) :- k(x, y), e(y, z).\n.limitsize k(n=5)\n",
        "k(0, autoinc()) :- e(_, _).\n",
        "k(x, 0) :- e(x, _).\nk(x, t + 1) :- k(x, t), t < 3, !h(x, t).\nh(x, t + 1) :- k(x, t), x > 3.\n",
        "k(x, m) :- e(x, _), m = max y : { h(x, y) }.\nh(x, y) :- e(x, y).\nh(x, y) :- e(x, z), k(z, y).\n",
    ],
    ids=["eqrel", "choice", "subsumption", "limitsize", "autoinc", "stages", "recursive aggregate"],
)
def test_relations_with_a_life_of_their_own_are_left_alone(special: str) -> None:
    program = load(f"{ON_DEMAND}.decl e(x:number, y:number)\n.input e\n{special}q(y) :- k(1, y).\n.output q\n")
    assert not any(name.startswith(("k!", "h!")) for name in helpers(program))


@pytest.mark.parametrize(
    ("steering", "restricted"),
    [
        ('.pragma "magic-transform" "p"\n', True),
        ('.pragma "magic-transform" "a,p"\n', True),
        ('.pragma "magic-transform" "a"\n', False),
        ('.pragma "magic-transform" "*"\n.pragma "magic-transform-exclude" "p"\n', False),
        (".decl p(x:number, y:number) magic\n", True),
        ('.pragma "magic-transform" "*"\n.decl p(x:number, y:number) no_magic\n', False),
        ("", False),
    ],
)
def test_pragmas_and_qualifiers_say_which_relations(steering: str, *, restricted: bool) -> None:
    program = load(steering + CLOSURE + "a(x) :- e(x, _).\nq(y) :- a(1), p(1, y).\n.output q\n")
    assert ("p!bf" in helpers(program)) == restricted


def test_what_is_not_needed_goes_but_for_what_takes_updates() -> None:
    text = CLOSURE + ".decl f(x:number)\n.input f\na(x) :- f(x), p(x, _).\nf(x) :- a(x).\nq(x) :- e(x, x).\n.output q\n"
    program = keep_needed(load(text), frozenset({"q"}))
    assert (list(program.relations), [rule.name for rule in program.rules]) == (["e", "f", "q"], ["q#1"])


def test_a_session_shows_what_is_wanted() -> None:
    session = Session(load(CLOSURE + "q(y) :- p(1, y).\n"), wanted=["q"])
    changes = session.apply([("+", "e", (1, 2)), ("+", "e", (2, 3))])
    assert (session.views(), list(changes.inserted)) == ({"q": {(2,), (3,)}}, ["q"])
    with pytest.raises(ValueError, match="p is not among the relations that the session shows"):
        session.relation("p")
    with pytest.raises(ValueError, match="there is no relation nope"):
        Session(load(CLOSURE), wanted=["p", "nope"])
