"""What is wanted is the same when everything else is derived only as far as it is needed for that."""

from __future__ import annotations

import os
import warnings

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from tests.properties.programs import BASE, DERIVED, VALUE, Run, runs

from whence import ProgramError, Session, load
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.plan import restrict
from whence.prepared import prepare
from whence.reference import evaluate

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "60"))
LIMITS = Limits(max_rounds=200, max_tuples=20_000)
# Recursions of every kind, along a relation of the random program, and questions about them.
RECURSIONS = (
    "c(x, y) :- {along}(x, y).\nc(x, y) :- {along}(x, v), {condition}c(v, y).\n",
    "c(x, y) :- {along}(x, y).\nc(x, z) :- c(x, y), {condition_y}{along}(y, z).\n",
    "c(x, y) :- {along}(x, y), f(x).\nc(x, y) :- {along}(x, v), f(x), {condition}c(v, y).\n",
    "c(y, x) :- {along}(x, y), e(y, u), u != x.\nc(y, x) :- {along}(v, y), e(y, u), u != v, {condition}c(v, x).\n",
    "c(x, y) :- {along}(x, y).\nc(x, y) :- e(x, v), {condition}c(v, y).\n",
    "c(x, y) :- {along}(x, y).\nc(x, y) :- c(x, v), {condition}c(v, y).\n",
    "c(x, y) :- {along}(x, y).\nc(x, y) :- w(x, y, _).\nc(x, y) :- e(x, u), c(u, v), {condition}c(v, y).\n",
    "c(x, y) :- {along}(x, y), w(y, _, _).\nd(x, y) :- e(u, v), c(u, x), {condition}c(v, y).\n"
    "c(x, y) :- w(_, x, u), c(u, v), d(v, y).\n",
    "c(x, y) :- {along}(x, y).\nc(x, y) :- c(u, x), c(u, v), c(v, y).\n",
    "c(x, y) :- {along}(x, y).\nd(x, y) :- c(u, x), e(v, u), {condition}c(v, y).\n"
    "c(x, y) :- d(y, u), c(_, u), d(v, u), c(v, x).\nd(x, 1) :- c(x, u), d(u, v), d(2, v).\n",
)
# How many rows relations may be said to have: only some are kept by themselves where few ask for them.
SIZES = st.sampled_from([{}, *({name: 5 if name in few else 5_000 for name in BASE} for few in ("e", "ef", "w"))])
QUESTIONS = (
    "ask(y) :- c({value}, y).\n",
    "ask(y) :- f(x), c(x, y).\n",
    "ask(y) :- c(x, y), f(x), !e(x, y).\n",
    "ask(x) :- f(x), c(x, _).\n",
    "ask(x) :- c(x, y), f(y), g(y, x, _).\n",
    "ask(x) :- f(x), c(y, z), e(z, y).\n",
    "ask(x) :- f(x), !c(x, _).\n",
    "ask(x) :- f(x), c(y, _), !f(y).\n",
    "ask(n) :- f(x), n = count : {{ c(x, _) }}.\n",
    "mid(x, y, z) :- c(x, y), e(y, z).\nask(x) :- mid(x, _, _).\n",
    "mid(x, y, z) :- c(x, y), e(y, z).\nmid(x, z, y) :- mid(z, x, y).\nask(x) :- mid(x, _, y), f(y).\n",
    "mid(x, z, y) :- c(x, y), w(y, z, _).\nmid(x, 1, y) :- w(x, y, _), f(x).\nask(x) :- mid(x, y, _), mid2(y, x).\n"
    "mid2(x, y) :- low(y, x), w(x, _, u), u != y.\nlow(x, y) :- c(x, y), w(y, x, _).\nask(x) :- low2(x, y), e(y, x).\n"
    "low2(x, y) :- low3(y, x), w(x, _, _).\nlow3(x, y) :- c(x, _), w(y, x, _).\nlow3(x, 2) :- w(x, _, _).\n",
)


@st.composite
def closures(draw: st.DrawFn) -> str:
    along = draw(st.sampled_from(["e", "w1", *(name for name, arity in DERIVED.items() if arity == 2)]))
    condition = draw(st.sampled_from(("", "!f(v), ", "f(v), ", "v > 0, ", "g(v, u, _), u != 1, ", "v != y, ")))
    text = draw(st.sampled_from(RECURSIONS)).format(
        along=along,
        condition=condition,
        condition_y=condition.replace("(v", "(y").replace("v >", "y >").replace("v !", "y !"),
    )
    asking = draw(st.lists(st.sampled_from(QUESTIONS), min_size=1, max_size=2, unique=True))
    text = "w1(x, y) :- w(x, y, _).\n.decl d(x:number, y:number)\n" + text
    return text + "".join(each.format(value=draw(VALUE)) for each in asking)


@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(run=runs(), asking=closures(), also=st.sets(st.sampled_from(sorted(DERIVED)), max_size=1), sizes=SIZES)
def test_wanted_relations_are_the_same(run: Run, asking: str, also: set[str], sizes: dict[str, int]) -> None:
    wanted = {"ask"} | also
    try:
        program = load(run.text + asking)
    except ProgramError:
        assume(False)
    base: dict[str, set[Tuple]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = Session(prepare(program, wanted=wanted, sizes=sizes, lean=True), limits=LIMITS)
        for epoch in run.epochs:
            for op, relation, row, _ in epoch:
                rows = base.setdefault(relation, set())
                (rows.add if op == "+" else rows.discard)(row)
            everything = evaluate(program, base)
            expected = {name: everything[name] for name in wanted}
            session.apply(epoch)
            assert session.views() == expected
        leaner = restrict(program, wanted, lean=True)
        event("narrow" if any("!near" in name for name in session.plan.program.relations) else "as wide as ever")
        event("two steps" if any("!by" in name for name in session.plan.program.relations) else "one step")
        event("early" if any(name.endswith("!asked") for name in session.plan.program.relations) else "late")
        event("asked for" if any(name.endswith(":asked") for name in leaner.relations) else "nothing is asked for")
        event("columns go" if any("!only" in name for name in leaner.relations) else "no columns go")
        views = evaluate(leaner, base, limits=LIMITS)
        assert {name: views[name] for name in wanted} == expected
