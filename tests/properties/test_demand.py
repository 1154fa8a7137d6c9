"""What is wanted is the same whether the rest is derived as a whole, on demand, or not at all."""

from __future__ import annotations

import os
import warnings

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from tests.properties.programs import DERIVED, VALUE, Run, runs

from whence import ProgramError, Session, load
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.plan import restrict
from whence.reference import evaluate

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "80"))
LIMITS = Limits(max_rounds=200, max_tuples=20_000)
QUESTIONS = (
    "ask(y) :- {name}({value}, y).\n",
    "ask(y) :- f(x), {name}(x, y).\n",
    "ask(x) :- g(x, y, z), z > 0, {name}(z, y).\n",
    "ask(x) :- f(x), !{name}(x, _).\n",
    "ask(n) :- f(x), n = count : {{ {name}(x, y), e(y, z) }}.\n",
)


@st.composite
def facts_of_derived_relations(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(sorted(DERIVED)))
    return f"{name}({', '.join(str(draw(VALUE)) for _ in range(DERIVED[name]))}).\n"


@st.composite
def questions(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from([name for name, arity in DERIVED.items() if arity == 2]))
    return draw(st.sampled_from(QUESTIONS)).format(name=name, value=draw(VALUE))


@st.composite
def special_relations(draw: st.DrawFn) -> str:
    """Relations that have to be left alone, in the middle of the others."""
    return draw(
        st.sampled_from(
            (
                "",
                ".decl k(x:number, y:number) eqrel\nk(x, y) :- p(x, y).\nq(x) :- k(x, 1).\n",
                "p(x, y) <= p(x, z) :- y < z.\n",
                "k(x, m) :- f(x), m = max y : { r(x, y) }.\nr(x, y) :- k(x, y), f(y).\n",
                ".input s\n",
                "k(x, y) :- s(x, y), !q(x).\nr(x, y) :- k(y, x), p(x, y).\n",
                "k(x, n) :- e(x, _), n = count : { p(x, y), s(y, z), !q(z) }.\n",
                "s(x, y) :- e(x, y), [x, z] = [y, w], r(z, w), p(y, z).\n",
                "k([x, y]) :- e(x, y), !f(x).\nq(x) :- k([x, z]), p(z, y), y > x.\n",
            )
        )
    )


@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(
    run=runs(),
    facts=st.lists(facts_of_derived_relations(), max_size=2),
    special=special_relations(),
    asking=st.lists(questions(), min_size=1, max_size=2),
    also=st.sets(st.sampled_from(sorted(DERIVED)), max_size=1),
)
def test_wanted_relations_are_the_same(
    run: Run, facts: list[str], special: str, asking: list[str], also: set[str]
) -> None:
    text = run.text + special + "".join(facts + asking) + '.pragma "magic-transform" "*"\n'
    wanted = {"ask"} | also
    try:
        program = load(text)
    except ProgramError:
        assume(False)
    base: dict[str, set[Tuple]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = Session(program, wanted=wanted, limits=LIMITS)
        for epoch in run.epochs:
            for op, relation, row, _ in epoch:
                rows = base.setdefault(relation, set())
                (rows.add if op == "+" else rows.discard)(row)
            everything = evaluate(program, base)
            expected = {name: everything[name] for name in wanted}
            session.apply(epoch)
            assert session.views() == expected
        restricted = restrict(program, wanted)
        event(
            "something is asked for" if any(name.endswith(":asked") for name in restricted.relations) else "nothing is"
        )
        views = evaluate(restricted, base, limits=LIMITS)
        assert {name: views[name] for name in wanted} == expected
