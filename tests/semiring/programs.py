"""Random positive programs with facts, small enough to list all their derivations, most of them cyclic."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import assume
from hypothesis import strategies as st
from tests.properties.programs import BASE, DECLARATIONS, DERIVED, VARIABLES, atoms

from whence import Program, ProgramError, load
from whence.lang.types import Tuple


@dataclass(frozen=True)
class Annotatable:
    text: str
    program: Program = field(repr=False)
    facts: dict[str, set[Tuple]]


@st.composite
def rules(draw: st.DrawFn, *, negation: bool) -> str:
    everything = (*BASE, *DERIVED)
    body = draw(st.lists(atoms(everything), min_size=1, max_size=3))
    bound = sorted(
        {word for atom in body for word in atom.partition("(")[2].rstrip(")").split(", ") if word in VARIABLES}
    )
    assume(bound)
    extra = draw(st.sampled_from(("none", "none", "comparison", "sum", *(["negation"] if negation else []))))
    one = st.sampled_from(bound)
    if extra == "comparison":
        body.append(f"{draw(one)} <= {draw(one)}")
    elif extra == "sum":
        body.append(f"t = {draw(one)} + 1, t < 4")
        bound.append("t")
    elif extra == "negation":
        body.append("!" + draw(atoms(tuple(BASE))))
    head = draw(st.sampled_from(sorted(DERIVED)))
    args = draw(st.lists(st.sampled_from(bound), min_size=DERIVED[head], max_size=DERIVED[head]))
    return f"{head}({', '.join(args)}) :- {', '.join(body)}."


@st.composite
def programs(draw: st.DrawFn, *, negation: bool = False) -> Annotatable:
    text = DECLARATIONS + "\n".join(draw(st.lists(rules(negation=negation), min_size=1, max_size=5))) + "\n"
    try:
        program = load(text)
    except ProgramError:
        assume(False)
    value = st.integers(0, 2)
    facts = {
        name: draw(st.sets(st.tuples(*[value] * arity), max_size=4 if arity > 1 else 2)) for name, arity in BASE.items()
    }
    return Annotatable(text, program, facts)
