"""Joins as they come in programs that look for patterns: cyclic bodies, wide ones, parts that rules have in common, values that
only have to exist, joins that several rules have. Any atom that may be joined with instead of another one is, however short its
lists are, and joins that may have sieves use them from the first epoch on."""

from __future__ import annotations

import os
import re
import warnings

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.properties.excuses import follow
from tests.properties.programs import ARITY, BASE, DECLARATIONS, DERIVED, Run, epochs
from tests.properties.test_maintenance import check_run

from whence import Session, load
from whence.backends.local import blocks, choices, sieving
from whence.lang.types import Tuple
from whence.prepared import prepare
from whence.reference import evaluate

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "60"))
NAMES = ("x", "y", "z", "u", "v")
# The columns of each pattern are variables; BINARY stands for any relation of two columns.
PATTERNS = (
    "BINARY(x, y), BINARY(y, z), BINARY(z, x)",
    "BINARY(x, y), BINARY(y, z), BINARY(x, z)",
    "BINARY(x, y), BINARY(y, z), BINARY(z, u), BINARY(u, x)",
    "BINARY(x, y), BINARY(y, z), BINARY(z, u), BINARY(u, v), BINARY(v, x)",
    "UNARY(x), BINARY(x, y), TERNARY(y, x, z), TERNARY(u, z, v), TERNARY(u, x, v)",
    "BINARY(1, x), BINARY(x, y), BINARY(y, z), BINARY(z, 2)",
    "BINARY(x, y), BINARY(x, z), BINARY(x, u), BINARY(y, z), BINARY(y, u), BINARY(z, u)",
    "BINARY(x, y), BINARY(y, z), TERNARY(x, y, z)",
    "TERNARY(x, y, z), TERNARY(y, z, u), BINARY(u, x), UNARY(y)",
    "BINARY(x, y), BINARY(y, z), BINARY(z, u), UNARY(u)",
    "UNARY(x), BINARY(x, y), BINARY(x, z), BINARY(x, u)",
    "BINARY(x, y), BINARY(y, x), BINARY(0, y), BINARY(x, 1)",
)


@st.composite
def bodies(draw: st.DrawFn, names: tuple[str, ...]) -> tuple[str, list[str]]:
    """A body and its variables: a pattern, at times with more that hangs on it."""
    body = draw(st.sampled_from(PATTERNS))
    if draw(st.booleans()):
        body += f", BINARY({draw(st.sampled_from('xy'))}, v)"
    if draw(st.booleans()):
        body += draw(st.sampled_from((", x != y", ", !UNARY(x)", ", x <= y", ", !BINARY(y, x)")))
    while (
        at := min((place for word in ("BINARY", "UNARY", "TERNARY") if (place := body.find(word)) >= 0), default=-1)
    ) >= 0:
        word = body[at : body.index("(", at)]
        arity = {"UNARY": 1, "BINARY": 2, "TERNARY": 3}[word]
        is_negated = body[:at].endswith("!")
        among = [name for name in names if ARITY[name] == arity and (name in BASE or not is_negated)]
        body = body[:at] + draw(st.sampled_from(among)) + body[at + len(word) :]
    return body, [name for name in NAMES if name in body.replace("(", " ").replace(")", " ").replace(",", " ").split()]


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Some rules read what they derive, and some have the body of another one, or a part of it."""
    names = (*BASE, "p", "q", "t")
    given_bodies = [draw(bodies(tuple(BASE))), *draw(st.lists(bodies(names), min_size=1, max_size=3))]
    rules = ["p(x, y) :- e(x, y)."]
    for body, variables in given_bodies:
        for _ in range(draw(st.sampled_from((1, 1, 2)))):
            head = draw(st.sampled_from(("p", "q", "r", "s", "t")))
            args = ", ".join(draw(st.sampled_from(variables)) for _ in range(DERIVED[head]))
            rules.append(f"{head}({args}) :- {body}.")
    text = DECLARATIONS + "\n".join(rules) + "\n"
    return Run(text, load(text), draw(epochs(tuple(BASE))))


@pytest.mark.parametrize("tables", ["", "rows", "blocks"])
def test_patterns_are_found_whatever_is_joined_with(tables: str) -> None:
    @settings(
        max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
    )
    @given(run=runs())
    def match(run: Run) -> None:
        with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
            warnings.simplefilter("ignore")
            patch.setattr(blocks, "FORCED", tables)
            patch.setattr(choices, "LONG", 0)
            patch.setattr(sieving, "SHARE", -1)
            patch.setattr(sieving, "TEST", 1 << 20)
            check_run(run)

    match()


@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(run=runs(), wanted=st.sampled_from(("p", "q", "r", "s", "t")))
def test_what_only_has_to_exist_is_found_as_well_beforehand(run: Run, wanted: str) -> None:
    facts: dict[str, set[tuple[int, ...]]] = {name: set() for name in BASE}
    for _, name, row, _ in run.epochs[0]:
        facts[name].add(row)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = Session(prepare(run.program, wanted=[wanted], lean=True), facts=facts)
        assert set(session.relation(wanted)) == evaluate(run.program, facts)[wanted]


ROUND = (
    "BINARY(x, y), BINARY(y, x)",
    "BINARY(x, y), BINARY(y, z), BINARY(z, x)",
    "BINARY(x, y), BINARY(y, z), BINARY(x, z), x != z",
    "BINARY(x, y), BINARY(y, z), BINARY(z, u), BINARY(u, x)",
    "BINARY(x, y), BINARY(x, z), BINARY(x, u), BINARY(y, z), BINARY(y, u), BINARY(z, u)",
    "BINARY(x, y), g(x, y, z), BINARY(z, y), !e(z, x), v = x + z",
)
BESIDE = ("f(x)", "f(y)", "e(x, w)", "d(y, x)", "c(w, x)", "x < y", "!f(x)", "x = 1", "e(y, x), e(x, w), e(w, y)")


@st.composite
def sharing(draw: st.DrawFn) -> Run:
    """Bodies that go round, each in several rules: with variables of other names, in another order, with more beside it."""
    rules = [
        ".decl c(x:number, y:number) .decl d(x:number, y:number)",
        "c(x, y) :- e(x, y), f(y).",
        "d(x, y) :- e(y, x).",
    ]
    for _ in range(draw(st.integers(1, 2))):
        body = draw(st.sampled_from(ROUND))
        while "BINARY" in body:
            body = body.replace("BINARY", draw(st.sampled_from(("e", "e", "d"))), 1)
        for _ in range(draw(st.integers(2, 4))):
            beside = draw(st.lists(st.sampled_from(BESIDE), max_size=2))
            literals = [*re.findall(r"[^ (]+\(.*?\)|[^ ]+ [!=<]+ [^,]+", body), *beside]
            bound = [name for name in "xyzuw" if any(f"({name}" in each or f", {name}" in each for each in literals)]
            head = draw(st.sampled_from(("c", "p", "r", "s", "t")))
            args = ", ".join(draw(st.sampled_from(bound)) for _ in range(2 if head == "c" else DERIVED[head]))
            rule = f"{head}({args}) :- {', '.join(draw(st.permutations(literals)))}."
            other = dict(zip("xyzuvw", draw(st.permutations("xyzuvw")), strict=True))
            rules.append(re.sub(r"\b[x-zu-w]\b", lambda found, other=other: other[found[0]], rule))
    text = DECLARATIONS + "\n".join(rules) + "\n"
    return Run(text, load(text), draw(epochs(tuple(BASE))))


@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(run=sharing())
def test_joins_that_rules_share_are_found_as_well_once(run: Run) -> None:
    facts: dict[str, set[Tuple]] = {name: set() for name in BASE}
    prepared = prepare(run.program, wanted=run.program.relations, lean=True)
    event(f"{sum('!shared' in name for name in prepared.plan.program.relations)} shared")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = Session(prepared)
        for epoch in run.epochs:
            session.apply(epoch)
            follow(facts, epoch)
            expected = evaluate(run.program, facts)
            assert all(set(session.relation(name)) == expected[name] for name in expected)
