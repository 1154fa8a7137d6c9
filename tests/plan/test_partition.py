"""Which programs can be maintained in parts, and that their parts together make the views."""

from __future__ import annotations

import os
import random
import warnings
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from tests.properties.excuses import LIMITS, ends
from tests.properties.programs import Run, runs

from whence import load, reference
from whence.lang.program import Program
from whence.lang.types import Tuple, Variant
from whence.plan.describe_parts import describe_partitioning
from whence.plan.partition import NotPartitionable, Partitioning, part_of, partition

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "60"))
PARTS = 3
LINK = ".decl link(src: number, dst: number) .input link "
REACH = (
    LINK
    + """
.decl reach(src: number, dst: number)
base: reach(x, y) :- link(x, y).
step: reach(x, z) :- reach(x, y), link(y, z).
.output reach
"""
)


def how(text: str) -> Partitioning:
    program = load(text)
    return partition(program, [each.relation for each in program.transfers_of("output")])


def reason(text: str) -> str:
    with pytest.raises(NotPartitionable) as raised:
        how(text)
    return str(raised.value)


def views_of_parts(found: Partitioning, base: dict[str, set[Tuple]]) -> dict[str, set[Tuple]]:
    """What the parts derive: each row in its part alone, and what is whole in all of them alike."""
    names = found.program.relations
    derived = []
    for part in range(PARTS):
        own = {
            name: {row for row in rows if found.part(name, row, PARTS) in (None, part)} for name, rows in base.items()
        }
        derived.append(reference.evaluate(found.program_of(part, PARTS), own, limits=LIMITS))
    for name in found.columns:
        for part, views in enumerate(derived):
            assert all(found.part(name, row, PARTS) == part for row in views[name]), name
    for name in found.whole:
        assert all(views[name] == derived[0][name] for views in derived), name
    return {name: set().union(*(views[name] for views in derived)) for name in names}


def check(program: Program, found: Partitioning, base: dict[str, set[Tuple]]) -> None:
    expected = reference.evaluate(program, base, limits=LIMITS)
    assert views_of_parts(found, base) == {name: expected[name] for name in found.program.relations}


def numbers(arity: int, count: int, *, seed: int) -> set[Tuple]:
    source = random.Random(seed)
    return {tuple(source.randrange(8) for _ in range(arity)) for _ in range(count)}


@pytest.mark.parametrize(
    ("text", "columns", "whole"),
    [
        (REACH, {"reach": 0}, {"link"}),
        # All that is read with the head's value is split.
        (
            LINK + ".decl mark(x: number) .input mark .decl r(x: number, y: number, z: number) .output r "
            "r(x, y, z) :- link(x, y), link(x, z), mark(x), y < z.",
            {"r": 0, "link": 0, "mark": 0},
            set(),
        ),
        # Negation and aggregates over the own part, a derived relation that every part needs.
        (
            REACH + ".decl up(src: number, dst: number) up(y, x) :- link(x, y). "
            ".decl lone(x: number) lone(x) :- up(x, _), !reach(x, x). .output lone "
            ".decl most(x: number, n: number) most(x, n) :- reach(x, _), n = max y : { reach(x, y) }. .output most "
            ".decl back(x: number, y: number) back(x, y) :- reach(x, z), up(z, y). .output back",
            {"reach": 0, "lone": 0, "most": 0, "back": 0},
            {"link", "up"},
        ),
        # Recursion through an aggregate.
        (
            LINK + ".decl d(x: number, y: number, n: number) d(x, y, 1) :- link(x, y). .output best "
            "d(x, z, n + 1) :- best(x, y, n), link(y, z), n < 9. .decl best(x: number, y: number, n: number) "
            "best(x, y, n) :- d(x, y, _), n = min m : { d(x, y, m) }.",
            {"d": 0, "best": 0},
            {"link"},
        ),
        # Facts and constants belong to one part.
        (REACH + "reach(1, 100). fixed: reach(2, y) :- link(_, y).", {"reach": 0}, {"link"}),
        # A relation that reads its own column is only split by the other one.
        (LINK + ".decl r(x: number, y: number) .output r r(x, y) :- link(x, y). r(x, y) :- r(z, y), link(x, z).",
         {"r": 1}, {"link"}),
        # Subsumption inside a part.
        (
            LINK + ".decl r(x: number, y: number) .output r r(x, y) :- link(x, y). r(x, y) <= r(x, z) :- y < z.",
            {"r": 0, "link": 0},
            set(),
        ),
    ],
)  # fmt: skip
def test_parts_together_make_the_views(text: str, columns: dict[str, int], whole: set[str]) -> None:
    found = how(text)
    assert (found.columns, set(found.whole)) == (columns, whole)
    for seed in range(5):
        base = {"link": numbers(2, 14, seed=seed), "mark": numbers(1, 4, seed=seed)}
        given = {name: rows for name, rows in base.items() if name in found.program.relations}
        check(load(text), found, given)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            LINK + ".decl r(x: number, y: number) .output r r(x, y) :- link(x, y). two: r(x, z) :- r(x, y), r(y, z).",
            "r cannot be split by x or y, since rule two derives r from any r",
        ),
        (
            REACH + ".decl total(n: number) all: total(n) :- n = count : { reach(_, _) }. .output total",
            "reach cannot be split by src, since rule all derives total from any reach; "
            "by dst, since rule step derives reach from any reach",
        ),
        (
            REACH + ".decl both(x: number) round: both(x) :- reach(x, y), reach(y, x). .output both",
            "reach cannot be split by src, since rule round derives both from any reach; "
            "by dst, since rule step derives reach from any reach",
        ),
        (
            LINK + ".decl one(x: number, y: number) choice-domain x .output one one(x, y) :- link(x, y).",
            "one has a choice-domain: parts would choose each for itself",
        ),
        (
            LINK + ".decl n(x: number, i: number) .output n number: n(x, autoinc()) :- link(x, _).",
            "rule number has autoinc(): parts would count each for itself",
        ),
        (LINK + ".decl any() .output any any() :- link(_, _).", "any has no columns to be split by"),
        (
            LINK + ".decl c(n: number) .output c all: c(n) :- n = count : { link(_, _) }.",
            "c cannot be split by n, since rule all computes it",
        ),
        (LINK + ".output link", "nothing that is wanted is derived"),
    ],
)
def test_what_cannot_be_split_is_refused_with_the_rule(text: str, expected: str) -> None:
    assert reason(text) == expected


def test_an_equivalence_is_never_split() -> None:
    text = LINK + ".decl same(x: number, y: number) eqrel same(x, y) :- link(x, y). "
    assert reason(text + ".output same") == "same cannot be split by x or y, since same is an eqrel"
    found = how(text + ".decl r(x: number, y: number) .output r r(x, y) :- link(x, z), same(z, y).")
    assert (found.columns, set(found.whole)) == ({"r": 0}, {"link", "same"})


def test_a_window_of_rows_is_split_only_by_what_it_counts_by() -> None:
    copy = ".decl r(x: number, y: number) .output r r(x, y) :- link(x, y)."
    assert how(LINK + copy).columns == {"r": 0, "link": 0}
    assert how(LINK + ".window link(rows=3) " + copy).whole == ("link",)
    assert how(LINK + ".window link(rows=3, by=dst) " + copy).columns == {"r": 1, "link": 1}


def test_what_nobody_wants_does_not_matter() -> None:
    text = REACH + ".decl total(n: number) total(n) :- n = count : { reach(_, _) }."
    assert how(text).columns == {"reach": 0}
    assert "total" not in how(text).program.relations


def test_the_part_of_a_value_stays_the_same() -> None:
    """States on disk rely on it."""
    values = [0, -7, 2**63, 1.5, "", "a", "süß", "\ud800", None, (1, "x"), Variant("Leaf", (3,))]
    assert [part_of(value, 1000) for value in values] == [209, 383, 887, 338, 801, 994, 653, 788, 41, 811, 999]
    assert part_of(-0.0, 1000) == part_of(0.0, 1000)


def test_it_is_described() -> None:
    assert describe_partitioning(load(REACH), ["reach"]) == [
        "state: in parts by reach.src",
        "  every part holds all of link",
    ]
    assert describe_partitioning(load(LINK + ".output link"), ["link"]) == [
        "state: in one piece, because nothing that is wanted is derived"
    ]


@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(run=runs())
def test_random_programs_in_parts(run: Run) -> None:
    """As many relations are looked at as can be split."""
    base: dict[str, set[Tuple]] = {}
    for epoch in run.epochs:
        for op, relation, row, _ in epoch:
            (base.setdefault(relation, set()).add if op == "+" else base.setdefault(relation, set()).discard)(row)
    derived = [name for name in run.program.relations if name not in run.program.base_relations]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not ends(run.program, base):
            return
        for name in derived:
            with suppress(NotPartitionable):
                check(run.program, partition(run.program, [name]), base)
