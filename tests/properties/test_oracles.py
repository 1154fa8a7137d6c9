"""Against evaluators that share nothing with ours: clingo on random programs, and plain Python on what is evaluated anew.

A stratum that is evaluated anew is evaluated by the reference, so comparing it with the reference says nothing. Each shape of
such a stratum has an oracle of its own here: clingo where it has the same rules, or the definition written down in Python.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import HealthCheck, assume, given, settings
from tests.properties.asp import Untranslatable, solve, to_asp
from tests.properties.excuses import LOOSE, ends, follow
from tests.properties.programs import BASE, DECLARATIONS, SHAPES, Run, epochs, runs
from tests.properties.test_recursive_aggregates import PROGRAMS, UPDATES

from whence import Session, Update, load
from whence.lang.types import Tuple
from whence.reference import evaluate

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "40"))
SETTINGS = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
Facts = dict[str, set[Tuple]]


@SETTINGS
@given(run=runs())
def test_random_programs_have_clingos_model(run: Run) -> None:
    try:
        text = to_asp(run.program)
    except Untranslatable:
        assume(False)
    arities = {name: relation.arity for name, relation in run.program.relations.items()}
    base: Facts = {name: set() for name in BASE}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = Session(run.program, limits=LOOSE)
        for epoch in run.epochs:
            follow(base, epoch)
            assume(ends(run.program, base))
            session.apply(epoch)
        expected = solve(text, base, arities)
        assert session.views() == expected
        assert evaluate(run.program, base) == expected


# -- what is evaluated anew


def by_clingo(text: str, *outputs: str) -> Callable[[Facts], Facts]:
    def expected(base: Facts) -> Facts:
        names = {
            name.removeprefix("r_"): 0
            for name in text.replace("(", " ").replace(":", " ").split()
            if name.startswith("r_")
        }
        found = solve(text, base, {**dict.fromkeys(base, 0), **names})
        return {name: found[name] for name in outputs}

    return expected


def chosen(base: Facts) -> Facts:
    """Smaller rows first; a row is taken if neither of its values is."""
    taken: set[Tuple] = set()
    for x, y in sorted(base["e"]):
        if all(x != left and y != right for left, right in taken):
            taken.add((x, y))
    return {"pick": taken}


def chosen_tree(base: Facts) -> Facts:
    """Round by round: what follows from the rows of before, smaller rows first, one for each second value."""
    tree: set[Tuple] = {(0, 0)} if (0,) in base["f"] else set()
    while True:
        reached = {y for _, y in tree}
        before = set(tree)
        for x, y in sorted((x, y) for x, y in base["e"] if x in reached and y != 0):
            if y not in {end for _, end in tree}:
                tree.add((x, y))
        if tree == before:
            return {"tree1": tree}


def cheapest(base: Facts) -> Facts:
    """Costs of the cheapest ways, by trying every stop in between (Floyd and Warshall)."""
    cost: dict[tuple[int, int], int] = {}
    for x, y, c in base["w"]:
        cost[x, y] = min(c, cost.get((x, y), c))
    for middle, x, y in product(range(4), repeat=3):
        if (x, middle) in cost and (middle, y) in cost:
            through = cost[x, middle] + cost[middle, y]
            cost[x, y] = min(through, cost.get((x, y), through))
    return {"cost": {(x, y, c) for (x, y), c in cost.items()}}


def undominated(base: Facts) -> Facts:
    rows = base["w"]
    best = {
        (x, y, c)
        for x, y, c in rows
        if not any((a, b) == (x, y) and d > c for a, b, d in rows)
        and not any(b == y and a < x and (a,) in base["f"] for a, b, _ in rows)
    }
    return {"best": best, "s": {(x, y) for x, y, _ in best if (x, y) not in base["e"]}}


def counted(base: Facts) -> Facts:
    return {"turn": {(0, 0), *((k + 1, sum(x <= k for (x,) in base["f"])) for k in range(4))}}


CLOSED = "r_{0}(X, X) :- r_{0}(X, Y). r_{0}(Y, X) :- r_{0}(X, Y). r_{0}(X, Z) :- r_{0}(X, Y), r_{0}(Y, Z). "
ORACLES: dict[str, Callable[[Facts], Facts]] = {
    "equivalence": by_clingo("r_same(X, Y) :- r_e(X, Y), r_f(X). " + CLOSED.format("same"), "same"),
    "equivalence inside a recursion": by_clingo(
        "r_alike(X, Y) :- r_step(X, Y), r_f(X). r_step(X, Y) :- r_e(X, Y). r_step(X, Y) :- r_alike(X, Z), r_w(Z, Y, _). "
        + CLOSED.format("alike"),
        "alike",
        "step",
    ),
    "company control": by_clingo(
        "r_holds(X, X, Y, N) :- r_w(X, Y, N). r_holds(X, Z, Y, N) :- r_rules_over(X, Z), r_w(Z, Y, N), X != Z. "
        "r_rules_over(X, Y) :- r_holds(X, _, Y, _), #sum { M, Z : r_holds(X, Z, Y, M) } > 4. ",
        "rules_over",
        "holds",
    ),
    "an aggregate that a recursion asks for": counted,
    "stages": by_clingo(
        "r_wave(X, 0) :- r_f(X). r_wave(Y, S + 1) :- r_wave(X, S), r_e(X, Y), S < 5, not r_wet(Y, S). "
        "r_wet(X, S) :- r_wave(X, S). r_wet(X, S + 1) :- r_wet(X, S), S < 5. ",
        "wave",
        "wet",
    ),
    "subsumption": cheapest,
    "several dominations": undominated,
    "choice": chosen,
    "choice inside a recursion": chosen_tree,
}


def program_of(shape: str) -> str:
    text = SHAPES[shape]
    for word, name in {"OUT": "s", "BINARY": "e", "UNARY": "f", "TERNARY": "w"}.items():
        text = text.replace(word, name)
    return DECLARATIONS + text


def test_every_shape_that_is_evaluated_anew_has_an_oracle() -> None:
    anew = {
        shape for shape in SHAPES if not all(stratum.native for stratum in Session(load(program_of(shape))).plan.strata)
    }
    assert anew == ORACLES.keys()


@pytest.mark.parametrize("shape", ORACLES)
@settings(SETTINGS, max_examples=max(25, EXAMPLES // 20))
@given(updates=epochs(("e", "f", "w")))
def test_what_is_evaluated_anew_is_what_others_make_of_it(shape: str, updates: tuple[tuple[Update, ...], ...]) -> None:
    program = load(program_of(shape))
    base: Facts = {name: set() for name in BASE}
    session = Session(program)
    for epoch in updates:
        follow(base, epoch)
        session.apply(epoch)
        expected = ORACLES[shape](base)
        views = session.views()
        assert {name: views[name] for name in expected} == expected


Step = Callable[[dict[int, int]], list[tuple[int, int]]]


def improved(better: Callable[[int, int], int], step: Step) -> Facts:
    """The best value of each node, from candidates that the best values so far give, until none gets better."""
    best: dict[int, int] = {}
    while True:
        found: dict[int, int] = {}
        for node, value in step(best):
            found[node] = better(value, found.get(node, value))
        if found == best:
            return {"sp": set(best.items())}
        best = found


def capped(base: Facts) -> Facts:
    links = base["link"]
    first = [(x, w) for x, _, w in links]
    return improved(max, lambda best: first + [(y, min(best[x] + w, 6)) for x, y, w in links if x in best])


def threshold(base: Facts) -> Facts:
    links = base["link"]
    first = [(x, w + 2) for x, _, w in links]
    return improved(min, lambda best: first + [(y, 1) for x, y, _ in links if best.get(x, 5) < 5])


def projected(base: Facts) -> Facts:
    links = base["link"]
    first = [(x, w + 2) for x, _, w in links]
    return improved(min, lambda best: first + [(y, 1) for x, y, _ in links if x in best])


RECURSIVE: dict[str, Callable[[Facts], Facts]] = {
    "control": by_clingo(
        "r_share(X, X, Y, W) :- r_link(X, Y, W). r_share(X, Z, Y, W) :- r_sp(X, Z), r_link(Z, Y, W). "
        "r_sp(X, Y) :- r_share(X, _, Y, _), #sum { S, Z : r_share(X, Z, Y, S) } > 4. ",
        "sp",
        "share",
    ),
    "party": by_clingo(
        "r_sp(X) :- r_link(X, X, _). r_sp(X) :- r_link(X, _, _), #count { Y : r_link(X, Y, _), r_sp(Y) } >= 2. ", "sp"
    ),
    "capped": capped,
    "threshold": threshold,
    "projected": projected,
}


@pytest.mark.parametrize("name", RECURSIVE)
@settings(SETTINGS, max_examples=max(25, EXAMPLES // 20))
@given(updates=UPDATES)
def test_recursion_through_aggregates_is_what_others_make_of_it(name: str, updates: list) -> None:
    session = Session(load(PROGRAMS[name]))
    base: Facts = {"link": set()}
    for epoch in updates:
        listed = [Update(op, "link", row) for op, row in epoch]
        follow(base, listed)
        session.apply(listed)
        views = session.views()
        expected = RECURSIVE[name](base)
        assert {each: views[each] for each in expected} == expected
