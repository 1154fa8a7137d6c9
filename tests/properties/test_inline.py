"""A program with inline relations means what it means without the word."""

from __future__ import annotations

import os
import warnings

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from tests.properties.programs import BASE, DERIVED, Run, runs

from whence import Session, load
from whence.lang.types import Tuple
from whence.limits import Limits, RunawayError
from whence.reference import evaluate

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "60"))
LIMITS = Limits(max_rounds=200, max_tuples=20_000)
# Each of them reads two relations, so that some read inline ones in every place where an atom can stand.
QUESTIONS = (
    "ask(x, y) :- {0}(x, z), {1}(z, y).\n",
    "ask(x, 1) :- f(x), !{0}(x, x), {1}(_, x).\n",
    "ask(x, n) :- f(x), n = count : {{ {0}(x, y), {1}(y, z) }}.\n",
    "ask(n, m) :- n = sum y : {{ {0}(_, y) }}, m = max y : {{ {1}(x, y), !{0}(y, x) }}.\n",
    "ask(x, y) :- {0}(x + 1, y), {1}(y, x).\n",
    "ask(2, x) :- {0}(x, 3), {1}(0, x).\n",
)
# Inline relations of more than one atom and one rule; `undefined` has no value for some rows.
HELPERS = {
    "h": ".decl h(x:number, y:number) inline\nh(x, y) :- {0}(x, z), {1}(z, y).\nh(x, x) :- f(x).\n",
    "k": ".decl k(x:number, y:number) inline\nk(x, 6 / y) :- {0}(x, y), !f(y).\n",
    "d": ".decl d(x:number, y:number) inline\nd(x, y) :- {0}(x, y), x != y.\nd(x, y) :- f(x), {1}(y, x).\n",
    "a": ".decl a(x:number, n:number) inline\na(x, n) :- f(x), n = count : {{ {0}(x, y), {1}(y, x) }}.\n",
}
BINARY = sorted(name for name, arity in (BASE | DERIVED).items() if arity == 2)


@st.composite
def helpers(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from(sorted(HELPERS)), min_size=1, max_size=3, unique=True))
    known = list(BINARY)
    text = ""
    for name in names:
        text += HELPERS[name].format(draw(st.sampled_from(known)), draw(st.sampled_from(known)))
        known += [name] * 4
    questions = draw(st.lists(st.sampled_from(QUESTIONS), min_size=1, max_size=3))
    return text + "".join(each.format(draw(st.sampled_from(known)), draw(st.sampled_from(known))) for each in questions)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(run=runs(), helped=helpers(), chosen=st.sets(st.sampled_from(sorted(DERIVED))))
def test_inline_relations_change_nothing(run: Run, helped: str, chosen: set[str]) -> None:
    text = run.text + ".decl ask(x:number, y:number)\n" + helped
    plain = load(text.replace(" inline\n", "\n"))
    lines = (
        f"{line} inline" if line.startswith(tuple(f".decl {name}(" for name in chosen)) else line
        for line in text.splitlines()
    )
    inlined = load("\n".join(lines))
    event(f"{len(plain.relations) - len(inlined.relations)} written out")
    facts: dict[str, set[Tuple]] = {name: set() for name in BASE}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = Session(inlined)
        for epoch in run.epochs:
            for update in epoch:
                (facts[update.relation].add if update.op == "+" else facts[update.relation].discard)(update.tuple)
            try:
                expected = evaluate(plain, facts, limits=LIMITS)
            except RunawayError:
                assume(False)
            session.apply(epoch)
            for name in inlined.relations:
                assert set(session.relation(name)) == expected[name], name
        assert evaluate(inlined, facts) == {name: expected[name] for name in inlined.relations}
