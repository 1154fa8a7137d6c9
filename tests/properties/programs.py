"""Random programs with random epochs, for engines to agree on.

Programs are put together from atoms over a handful of base and derived relations; those that the checks refuse (unsafe,
not stratified) are thrown away. Values are small numbers, so that joins meet.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import assume
from hypothesis import strategies as st

from whence import Program, ProgramError, Update, load

BASE = {"e": 2, "f": 1, "g": 3}
DERIVED = {"p": 2, "q": 1, "r": 2, "s": 2}
VARIABLES = ("x", "y", "z", "w")
DECLARATIONS = "".join(
    f".decl {name}({', '.join(f'c{at}:number' for at in range(arity))})\n" for name, arity in (BASE | DERIVED).items()
) + "".join(f".input {name}\n" for name in BASE)
VALUE = st.integers(0, 4)
variable = st.sampled_from(VARIABLES)


@dataclass(frozen=True)
class Run:
    text: str
    program: Program
    epochs: tuple[tuple[Update, ...], ...]


@st.composite
def atoms(draw: st.DrawFn, names: tuple[str, ...], *, wildcards: bool = True) -> str:
    name = draw(st.sampled_from(names))
    term = st.one_of(variable, variable, variable, VALUE.map(str), *([st.just("_")] if wildcards else []))
    args = draw(st.lists(term, min_size=(BASE | DERIVED)[name], max_size=(BASE | DERIVED)[name]))
    return f"{name}({', '.join(args)})"


@st.composite
def rules(draw: st.DrawFn) -> str:
    everything = (*BASE, *DERIVED)
    body = draw(st.lists(atoms(everything), min_size=1, max_size=3))
    bound = sorted(
        {word for atom in body for word in atom.partition("(")[2].rstrip(")").split(", ") if word in VARIABLES}
    )
    assume(bound)
    one = st.sampled_from(bound)
    extra = draw(st.sampled_from(("none", "none", "negation", "comparison", "sum", "aggregate", "record")))
    if extra == "negation":
        body.append("!" + draw(atoms(everything)))
    elif extra == "comparison":
        body.append(f"{draw(one)} {draw(st.sampled_from(('<', '<=', '!=', '=', '>')))} {draw(one)}")
    elif extra == "sum":
        body.append(f"t = {draw(one)} + 1, t < 6")
        bound.append("t")
    elif extra == "aggregate":
        op = draw(st.sampled_from(("count : ", "sum v : ", "min v : ", "max v : ")))
        body.append(f"n = {op}{{ {draw(st.sampled_from(('e', 'p', 'r', 's')))}({draw(one)}, v) }}, n < 9")
        bound.append("n")
    elif extra == "record":
        body.append(f"[a, b] = [{draw(one)}, {draw(one)}], b >= a")
        bound.append("b")
    head = draw(st.sampled_from(sorted(DERIVED)))
    args = draw(
        st.lists(st.one_of(st.sampled_from(bound), VALUE.map(str)), min_size=DERIVED[head], max_size=DERIVED[head])
    )
    return f"{head}({', '.join(args)}) :- {', '.join(body)}."


@st.composite
def updates(draw: st.DrawFn) -> Update:
    name = draw(st.sampled_from(sorted(BASE)))
    row = tuple(draw(VALUE) for _ in range(BASE[name]))
    return Update(draw(st.sampled_from("++-")), name, row)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    text = DECLARATIONS + "\n".join(draw(st.lists(rules(), min_size=1, max_size=6))) + "\n"
    try:
        program = load(text)
    except ProgramError:
        assume(False)
    epochs = draw(st.lists(st.lists(updates(), min_size=1, max_size=8), min_size=1, max_size=6))
    return Run(text, program, tuple(tuple(epoch) for epoch in epochs))
