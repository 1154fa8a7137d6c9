"""Which recursion through negation and aggregates is accepted, and what is said of the rest."""

from __future__ import annotations

import pytest

from whence.lang import ProgramError, load
from whence.lang.diagnostics import Diagnostic
from whence.lang.program import Stratum

GRAPH = ".decl node(x: number)\n.input node\n.decl e(x: number, y: number)\n.input e\n"
WEIGHTS = ".decl e(x: number, y: number, w: number)\n.input e\n"
LOGIC_H = """
.decl g(x: number, y: number)
.input g
h(0, 0, 0).
h(0, x, 1) :- g(0, x).
h1(y, d + 1) :- h(_, y, e), d + 1 > e, h(_, x, d), g(x, y).
h(x, y, d + 1) :- g(x, y), h(_, x, d), !h1(y, d + 1).
"""
LOGIC_J = """
.decl g(x: number, y: number)
.input g
h(0, 0, 0).
h(0, x, 1) :- g(0, x).
j(y, d) :- h(_, y, d).
h1(y, d + 1) :- j(y, e), d + 1 > e, j(x, d), g(x, y).
h(x, y, d + 1) :- g(x, y), j(x, d), !h1(y, d + 1).
"""
SHORTEST = """
path(x, y, w) :- e(x, y, w).
path(x, z, d + w) :- best(x, y, d), e(y, z, w).
best(x, y, d) :- path(x, y, _), d = min c : { path(x, y, c) }.
"""


def strata(text: str) -> dict[str, Stratum]:
    return {name: stratum for stratum in load(text).strata for name in stratum.relations}


def refusal(text: str) -> Diagnostic:
    with pytest.raises(ProgramError) as caught:
        load(text)
    (error,) = (each for each in caught.value.diagnostics if each.severity == "error")
    return error


# -- negation ---------------------------------------------------------------------------------------------------------


def test_a_negated_relation_is_complete_before_it_is_asked() -> None:
    program = load(
        GRAPH + "r(x, y) :- e(x, y).\nr(x, z) :- r(x, y), e(y, z).\nu(x, y) :- node(x), node(y), !r(x, y).\n"
    )
    order = [stratum.relations for stratum in program.strata]
    assert order.index(("r",)) < order.index(("u",))
    assert strata(GRAPH + "r(x, y) :- e(x, y).\nr(x, z) :- r(x, y), e(y, z).\n")["r"].recursive


def test_relations_that_depend_on_each_other_share_a_stratum() -> None:
    assert strata(GRAPH + "a(x) :- node(x).\na(x) :- b(x).\nb(y) :- a(x), e(x, y).\n")["a"].relations == ("a", "b")


def test_win_move_is_refused_with_the_cycle() -> None:
    error = refusal(GRAPH + "win(x) :- e(x, y), !win(y).\n")
    assert (error.code, error.text) == ("W0401", "win depends on its own negation: win <- !win (win#1)")


def test_definitions_from_each_others_negation_are_refused() -> None:
    error = refusal(GRAPH + "p: a(x) :- node(x), !b(x).\nq: b(x) :- node(x), !a(x).\n")
    assert error.text == "a depends on its own negation: a <- !b (p) <- !a (q)"
    assert [note for _, note in error.related] == ["b depends on !a in rule q"]


def test_definitions_from_each_others_negation_at_one_stage_are_refused() -> None:
    error = refusal(GRAPH + "p: a(x, d) :- e(x, d), !b(x, d).\nq: b(x, d) :- e(x, d), !a(x, d).\n")
    assert error.text == "a depends on its own negation: a <- !b (p) <- !a (q)"


def test_negation_inside_an_aggregate_is_negation() -> None:
    error = refusal(GRAPH + "a(x) :- node(x), 0 = count : { e(x, y), !a(y) }.\n")
    assert error.text == "a depends on its own negation: a <- !a (a#1)"


def test_a_long_cycle_is_shortened() -> None:
    rules = "".join(f"r{at}(x) :- r{at + 1}(x).\n" for at in range(40))
    error = refusal(GRAPH + rules + "r40(x) :- node(x), !r0(x).\n")
    assert error.text.count(" <- ") == 11
    assert " <- … <- " in error.text


# -- stages -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", [LOGIC_H, LOGIC_J], ids=["logicH", "logicJ"])
def test_the_programs_of_spec_003_are_accepted_by_their_stage(program: str) -> None:
    stratum = strata(program)["h"]
    assert (stratum.stages["h"], stratum.stages["h1"]) == (2, 1)
    groups = list(stratum.groups)
    assert groups.index(("h1",)) < groups.index(("h",))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (" d + 1 > e,", ""),
        ("d + 1 > e", "d + 1 < e"),
        ("!h1(y, d + 1)", "!h1(y, d + 2)"),
        ("h(x, y, d + 1) :-", "h(x, y, d) :-"),
    ],
    ids=["no guard", "wrong way", "later stage", "no progress"],
)
def test_logic_h_with_a_flaw_in_its_stages_is_refused(right: str, wrong: str) -> None:
    assert right in LOGIC_H
    error = refusal(LOGIC_H.replace(right, wrong))
    assert error.text == "h depends on its own negation: h <- !h1 (h#3) <- h (h1#1)"
    assert error.advice.endswith("or count stages in an argument so that each stage only negates earlier ones")


@pytest.mark.parametrize(
    "rule",
    [
        "s(x, t + 1) :- s(x, t), t < 9, !s(x + 1, t).",
        "s(x, u) :- s(x, t), u = t + 1, u < 9, !s(x + 1, t).",
        "s(x, u) :- s(x, t), u = range(0, 9), u > t, !s(x + 1, t).",
        "s(x, t) :- e(x, t), !s(x, t - 1).",
        "s(x, t + 1) :- s(x, t), t < 9, n = count : { s(_, t) }, n < 3.",
        "s(x, t) :- e(x, t), n = sum y : { s(y, u), u < t }, n < 3.",
    ],
)
def test_stages_that_grow_are_accepted(rule: str) -> None:
    assert strata(GRAPH + f"s(x, 0) :- node(x).\n{rule}\n")["s"].stages == {"s": 1}


@pytest.mark.parametrize(
    "rule",
    [
        "s(x, t) :- s(x, t), !s(x + 1, t).",
        "s(x, u) :- s(x, t), e(t, u), !s(x + 1, t).",
        "s(x, u) :- s(x, t), e(_, u), u >= t, !s(x + 1, u).",
        "s(x, u) :- s(x, t), e(_, u), n = count : { node(z), u > t, z > x }, n < 3, !s(x + 1, t).",
        "s(x, t * 2) :- s(x, t), t < 9, !s(x + 1, t).",
    ],
)
def test_stages_that_may_not_grow_are_refused(rule: str) -> None:
    assert refusal(GRAPH + f"s(x, 0) :- node(x).\n{rule}\n").code == "W0401"


# -- aggregates -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rules",
    [
        SHORTEST,
        SHORTEST.replace("min", "max"),
        # widest path
        "w(x, y, b) :- e(x, y, b).\nw(x, z, min(b, c)) :- best(x, y, b), e(y, z, c).\n"
        "best(x, y, b) :- w(x, y, _), b = max c : { w(x, y, c) }.\n",
        # company control
        "share(x, x, y, s) :- e(x, y, s).\nshare(x, z, y, s) :- controls(x, z), e(z, y, s).\n"
        "controls(x, y) :- share(x, _, y, _), t = sum s : { share(x, z, y, s) }, t > 50.\n",
        # enough friends
        "comes(x) :- e(x, x, _).\ncomes(x) :- e(x, _, _), n = count : { e(x, y, _), comes(y) }, n >= 2.\n",
        "comes(x) :- e(x, x, _).\ncomes(x) :- e(x, _, _), 2 <= count : { e(x, y, _), comes(y) }.\n",
        # the distance itself is tested, the way it goes
        SHORTEST + "near(x, y) :- best(x, y, d), d < 100.\npath(x, y, 1) :- near(x, y).\n",
        # scaled by a constant and by what is known not to be negative
        SHORTEST.replace("d + w", "d * 2 + w / 3"),
        SHORTEST.replace("d + w) :- best(x, y, d), e(y, z, w)", "d * w) :- best(x, y, d), e(y, z, w), w >= 1"),
    ],
)
def test_monotone_aggregates_are_accepted(rules: str) -> None:
    assert any(stratum.monotone for stratum in load(WEIGHTS + rules).strata)


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        (
            SHORTEST + "path(x, y, 1) :- best(x, y, d), e(y, d, _).\n",
            "d, which falls as the recursion goes on, is joined with e",
        ),
        (
            SHORTEST + "path(x, y, 1) :- best(x, y, d), best(y, x, d).\n",
            "d, which falls as the recursion goes on, is joined on",
        ),
        (
            SHORTEST + "path(x, y, 1) :- best(x, y, 7).\n",
            "column 3 of best falls as the recursion goes on and is matched with a fixed value",
        ),
        (
            SHORTEST + "path(x, y, 1) :- best(x, y, d), d > 100.\n",
            "the test > on d can turn false again as the recursion goes on",
        ),
        (
            SHORTEST + "path(x, y, 1) :- best(x, y, d), d != 100.\n",
            "a value that changes as the recursion goes on is compared with !=",
        ),
        (
            SHORTEST.replace("d + w", "d * w"),
            "multiplying by w is monotone only if it is not negative: add w >= 0 to the rule",
        ),
        (
            SHORTEST.replace("d + w", "w - d"),
            "a min of a value that rises as the recursion goes on is not monotone",
        ),
        (
            SHORTEST + "path(x, y, 0 - d) :- best(x, y, d).\n",
            "column 3 of path both rises and falls as the recursion goes on",
        ),
        (
            SHORTEST.replace("d + w", "d % w"),
            "% of a value that changes as the recursion goes on may not be monotone",
        ),
        (
            SHORTEST + "up(x, y, 0 - d) :- best(x, y, d).\n"
            "path(x, y, m) :- e(x, y, _), m = min c : { up(x, y, c) ; best(x, y, c) }.\n",
            "a min of a value that rises as the recursion goes on is not monotone",
        ),
        (
            SHORTEST + "up(x, y, 0 - d) :- best(x, y, d).\n"
            "path(x, y, m) :- e(x, y, _), m = min c : { best(x, y, c) ; up(x, y, c) }.\n",
            "a min of a value that rises as the recursion goes on is not monotone",
        ),
        (
            SHORTEST + "path(x, y, 1) :- e(x, y, _), d = max c : { best(x, _, c) }, d > 5.\n",
            "a max of a value that falls as the recursion goes on is not monotone",
        ),
        (
            SHORTEST + "path(x, y, 1) :- e(x, y, _), 3 < count : { best(x, z, c), c < 5 }.\n",
            "count counts rows with c, a value that changes as the recursion goes on",
        ),
        (
            "comes(x) :- e(x, x, _).\ncomes(x) :- e(x, _, _), 2 = count : { e(x, y, _), comes(y) }.\n",
            "the result of count is compared for equality",
        ),
        (
            "comes(x) :- e(x, x, _).\ncomes(x) :- e(x, _, n), n = count : { e(x, y, _), comes(y) }.\n",
            "the result of count is compared for equality",
        ),
        (
            "comes(x) :- e(x, x, _).\ncomes(x) :- e(x, _, _), count : { e(x, y, _), comes(y) } < 2.\n",
            "the test < on count can turn false again as the recursion goes on",
        ),
        (
            "mass(x, 1) :- e(x, _, _).\nmass(x, m) :- e(x, _, _), m = sum w : { e(x, y, _), mass(y, w) }.\n",
            "sum counts rows with w, a value that changes as the recursion goes on",
        ),
        (
            "level(x, 1.0) :- e(x, _, _).\nlevel(x, m) :- e(x, _, _), m = mean w : { e(x, y, _), level(y, w) }.\n",
            "mean can rise and fall as the recursion goes on; min, max, count and sum can be used",
        ),
    ],
)
def test_other_aggregates_are_refused_with_the_reason(rules: str, reason: str) -> None:
    error = refusal(WEIGHTS + rules)
    assert (error.code, error.advice) == ("W0402", reason)
    assert " depends on an aggregate of itself: " in error.text


def test_a_refused_aggregate_is_named_with_its_cycle() -> None:
    error = refusal(WEIGHTS + SHORTEST.replace("d + w", "d % w").replace("best(x, y, d) :-", "r: best(x, y, d) :-"))
    assert error.text == "best depends on an aggregate of itself: best <- min of path (r) <- best (path#2)"
    assert [note for _, note in error.related] == ["path depends on best in rule path#2"]


# -- what does not go together ----------------------------------------------------------------------------------------


def test_a_choice_cannot_be_taken_back_by_a_recursive_aggregate() -> None:
    error = refusal(WEIGHTS + ".decl best(x: number, y: number, d: number) choice-domain x\n" + SHORTEST)
    assert (error.code, error.text) == (
        "W0404",
        "the choice-domain of best does not go together with a recursive aggregate",
    )


def test_a_choice_cannot_be_taken_back_by_subsumption() -> None:
    error = refusal(
        GRAPH + ".decl c(x: number, y: number) choice-domain x\nc(x, y) :- e(x, y).\nc(x, y) <= c(x, z) :- y < z.\n"
    )
    assert (error.code, error.text) == ("W0404", "the choice-domain of c does not go together with subsumption")


def test_autoinc_counts_outside_recursion_only() -> None:
    load(GRAPH + "n(x, autoinc()) :- node(x).\nm(x, n) :- n(x, n).\nm(y, n) :- m(x, n), e(x, y).\n")
    assert refusal(GRAPH + "n(x, 0) :- node(x).\nn(y, autoinc()) :- n(x, _), e(x, y).\n").code == "W0403"
