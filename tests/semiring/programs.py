"""Random programs with facts, small enough to list all their derivations, and recursive more often than not."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import assume
from hypothesis import strategies as st

from whence import Program, ProgramError, load
from whence.lang.types import Tuple

BASE = {"e": 2, "f": 1}
DERIVED = {"p": 2, "q": 1, "r": 2}
# Every derived relation holds something, so that what the random rules ask for is there.
START = """
.decl e(x: number, y: number) .input e
.decl f(x: number) .input f
p(x, y) :- e(x, y).
q(x) :- f(x).
r(x, x) :- f(x).
"""
variable = st.sampled_from("xyz")


@dataclass(frozen=True)
class Annotatable:
    text: str
    program: Program = field(repr=False)
    facts: dict[str, set[Tuple]]


@st.composite
def atoms(draw: st.DrawFn, names: dict[str, int]) -> tuple[str, set[str]]:
    name = draw(st.sampled_from(sorted(names)))
    args = [draw(st.one_of(variable, variable, variable, st.just("_"))) for _ in range(names[name])]
    return f"{name}({', '.join(args)})", set(args) - {"_"}


@st.composite
def rules(draw: st.DrawFn, *, negation: bool) -> str:
    parts = draw(st.lists(atoms(BASE | DERIVED), min_size=1, max_size=3))
    body = [text for text, _ in parts]
    bound = sorted(set().union(*(names for _, names in parts)))
    assume(bound)
    one = st.sampled_from(bound)
    extra = draw(st.sampled_from(("none", "none", "comparison", "sum", *(["negation"] if negation else []))))
    if extra == "comparison":
        body.append(f"{draw(one)} <= {draw(one)}")
    elif extra == "sum":
        body.append(f"t = {draw(one)} + 1, t < 3")
        bound.append("t")
    elif extra == "negation":
        body.append(f"!{draw(st.sampled_from('pr'))}({draw(one)}, {draw(st.sampled_from([*bound, '_']))})")
    head = draw(st.sampled_from(sorted(DERIVED)))
    args = [draw(st.sampled_from(bound)) for _ in range(DERIVED[head])]
    return f"{head}({', '.join(args)}) :- {', '.join(body)}."


@st.composite
def programs(draw: st.DrawFn, *, negation: bool = False) -> Annotatable:
    text = START + "\n".join(draw(st.lists(rules(negation=negation), min_size=1, max_size=3))) + "\n"
    try:
        program = load(text)
    except ProgramError:  # not stratified
        assume(False)
    value = st.integers(0, 2)
    facts = {
        "e": draw(st.sets(st.tuples(value, value), min_size=1, max_size=3)),
        "f": draw(st.sets(st.tuples(value), min_size=1, max_size=2)),
    }
    return Annotatable(text, program, facts)
