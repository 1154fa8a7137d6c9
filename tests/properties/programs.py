"""Random programs with random epochs, for engines to agree on.

Each derived relation has a level. A rule reads relations up to the level of its head and negates or aggregates relations below
it, so that every program is stratified; relations of one level may depend on each other in any way. Fixed shapes stand beside
these rules and share their relations: recursion through aggregates, aggregates asked for by a recursion, nested aggregates,
records, branches, lists and ranges. Values are small numbers, so that joins meet.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import assume
from hypothesis import strategies as st

from whence import Program, ProgramError, Update, load
from whence.lang.types import Tuple

BASE = {"e": 2, "f": 1, "g": 3, "w": 3}
DERIVED = {"p": 2, "q": 1, "r": 2, "s": 2, "t": 3}
ARITY = BASE | DERIVED
VARIABLES = ("x", "y", "z", "u")
DECLARATIONS = "".join(
    f".decl {name}({', '.join(f'c{at}:number' for at in range(arity))})\n" for name, arity in ARITY.items()
) + "".join(f".input {name}\n" for name in BASE)
VALUE = st.integers(0, 4)
COMPARISON = st.sampled_from(("<", "<=", "!=", "=", ">"))

# Rules that come together. BINARY, UNARY and TERNARY stand for relations that they read, OUT for one that reads them.
SHAPES = {
    "non-linear closure": "m1(x, y) :- BINARY(x, y).\nm1(x, z) :- m1(x, y), m1(y, z).\nOUT(x, y) :- m1(x, y).",
    "mutual recursion": (
        "odd(x, y) :- BINARY(x, y).\nodd(x, z) :- even(x, y), BINARY(y, z).\neven(x, z) :- odd(x, y), BINARY(y, z).\n"
        "OUT(x, y) :- even(x, y), !odd(x, y)."
    ),
    "shortest paths": (
        "way(x, y, c) :- TERNARY(x, y, c).\nway(x, z, c + d) :- dist(x, y, c), TERNARY(y, z, d).\n"
        "dist(x, y, c) :- way(x, y, _), c = min d : { way(x, y, d) }.\nOUT(x, c) :- dist(x, _, c), c < 9."
    ),
    "shortest paths from some": (
        "near(x, 0) :- UNARY(x).\nhop(y, c + d) :- near(x, c), TERNARY(x, y, d).\n"
        "near(y, c) :- hop(y, _), c = min d : { hop(y, d) }.\nOUT(x, c) :- near(x, c), c < 9."
    ),
    "widest paths": (
        "wide(x, y, c) :- TERNARY(x, y, c).\nwide(x, z, min(c, d)) :- widest(x, y, c), TERNARY(y, z, d).\n"
        "widest(x, y, c) :- wide(x, y, _), c = max d : { wide(x, y, d) }.\nOUT(x, c) :- widest(x, _, c)."
    ),
    "components": (
        "label(x, x) :- UNARY(x).\nseen(y, c) :- low(x, c), BINARY(x, y).\nseen(x, c) :- label(x, c).\n"
        "low(x, c) :- seen(x, _), c = min d : { seen(x, d) }.\nOUT(x, c) :- low(x, c)."
    ),
    "company control": (
        "holds(x, x, y, n) :- TERNARY(x, y, n).\nholds(x, z, y, n) :- rules_over(x, z), TERNARY(z, y, n), x != z.\n"
        "rules_over(x, y) :- holds(x, _, y, _), n = sum m : { holds(x, _, y, m) }, n > 4.\nOUT(x, y) :- rules_over(x, y)."
    ),
    "an aggregate that a recursion asks for": (
        "turn(0, 0).\nturn(k + 1, n) :- turn(k, _), k < 4, n = count : { UNARY(x), x <= k }.\nOUT(k, n) :- turn(k, n)."
    ),
    "an aggregate over a recursion that another uses": (
        "far(x, y) :- BINARY(x, y).\nfar(x, z) :- far(x, y), BINARY(y, z).\n"
        "size(x, n) :- UNARY(x), n = count : { far(x, _) }.\nbig(x) :- size(x, n), n > 1.\n"
        "big(y) :- big(x), far(y, x).\nOUT(x, x) :- big(x)."
    ),
    "nested aggregates": (
        "OUT(x, n) :- UNARY(x), n = sum m : { BINARY(x, y), m = count : { TERNARY(y, _, _) } }, n < 9.\n"
        "OUT(n, m) :- n = max y : { BINARY(_, y) }, m = min y : { BINARY(n, y), !UNARY(y) }."
    ),
    "records": (
        ".type Pair = [a:number, b:number]\n.decl pair(p:Pair)\n.decl twice(p:Pair, q:Pair)\n"
        "pair([x, y]) :- BINARY(x, y).\npair([y, x]) :- pair([x, y]), UNARY(x).\n"
        "twice(p, q) :- pair(p), pair(q), p = [x, y], q = [y, x].\nOUT(x, y) :- twice([x, _], [_, y]).\n"
        "OUT(x, x) :- pair([x, y]), !pair([y, x])."
    ),
    "branches": (
        ".type Tree = Leaf { n:number } | Node { l:Tree, n:number }\n.decl tree(t:Tree)\n"
        "tree($Leaf(x)) :- UNARY(x).\ntree($Node($Leaf(x), y)) :- tree($Leaf(x)), BINARY(x, y).\n"
        "OUT(x, y) :- tree($Node($Leaf(x), y)), !tree($Leaf(y))."
    ),
    "lists": (
        "path([y, x], y) :- BINARY(x, y).\npath([z | l], z) :- path(l, y), BINARY(y, z), length(l) < 4.\n"
        "OUT(x, length(l)) :- path(l, x)."
    ),
    "ranges": "OUT(x, n) :- BINARY(x, y), n = range(x, y), !UNARY(n).\nOUT(n, k) :- UNARY(k), n = range(k, 0, -2).",
    "existence": "OUT(x, 1) :- UNARY(x), BINARY(_, _).\nOUT(x, 2) :- UNARY(x), !BINARY(_, x).\nOUT(3, 3) :- !UNARY(_).",
    "equivalence": (
        ".decl same(x:number, y:number) eqrel\nsame(x, y) :- BINARY(x, y), UNARY(x).\nOUT(x, y) :- same(x, y), x < y."
    ),
}


@dataclass(frozen=True)
class Run:
    text: str
    program: Program
    epochs: tuple[tuple[Update, ...], ...]


@st.composite
def atoms(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    name = draw(st.sampled_from(names))
    term = st.one_of(*[st.sampled_from(VARIABLES)] * 4, VALUE.map(str), st.just("_"))
    return f"{name}({', '.join(draw(term) for _ in range(ARITY[name]))})"


def variables_in(literals: list[str]) -> list[str]:
    words = {word for each in literals for word in each.partition("(")[2].rstrip(")").split(", ")}
    return sorted(words & set(VARIABLES))


@st.composite
def rules(draw: st.DrawFn, levels: dict[str, int] | None = None) -> str:
    """A rule; without levels, one that may make a program wrong."""
    head = draw(st.sampled_from(sorted(DERIVED)))
    up_to = tuple(name for name in ARITY if levels is None or levels.get(name, -1) <= levels[head])
    below = tuple(name for name in ARITY if levels is None or levels.get(name, -1) < levels[head])
    body = draw(st.lists(atoms(up_to), min_size=1, max_size=3))
    bound = variables_in(body)
    assume(bound)
    one = st.sampled_from(bound)
    extra = draw(st.sampled_from(("none", "none", "negation", "negation", "comparison", "sum", "aggregate", "range")))
    if extra == "negation":
        body.append("!" + draw(atoms(below)).replace("u", draw(one)))
    elif extra == "comparison":
        body.append(f"{draw(one)} {draw(COMPARISON)} {draw(one)}")
    elif extra == "sum":
        body.append(f"t = {draw(one)} + 1, t < 6")
        bound.append("t")
    elif extra == "range":
        body.append(f"t = range({draw(one)}, {draw(VALUE)})")
        bound.append("t")
    elif extra == "aggregate":
        op = draw(st.sampled_from(("count : ", "sum v : ", "min v : ", "max v : ")))
        over = draw(st.sampled_from([name for name in below if ARITY[name] == 2]))
        more = draw(st.sampled_from(("", f", !f({draw(one)})", f", v {draw(COMPARISON)} {draw(one)}")))
        body.append(f"n = {op}{{ {over}({draw(st.sampled_from((*bound, '_')))}, v){more} }}, n < 9")
        bound.append("n")
    args = [draw(st.one_of(*[st.sampled_from(bound)] * 4, VALUE.map(str))) for _ in range(DERIVED[head])]
    return f"{head}({', '.join(args)}) :- {', '.join(body)}."


@st.composite
def shapes(draw: st.DrawFn, levels: dict[str, int]) -> str:
    """One of the shapes, reading relations of a lower level than the one that reads it."""
    out = draw(st.sampled_from([name for name in DERIVED if DERIVED[name] == 2]))
    text = SHAPES[draw(st.sampled_from(sorted(SHAPES)))].replace("OUT", out)
    for word, arity in (("BINARY", 2), ("UNARY", 1), ("TERNARY", 3)):
        names = [name for name in ARITY if ARITY[name] == arity and levels.get(name, -1) < levels[out]]
        text = text.replace(word, draw(st.sampled_from(names)))
    return text


@st.composite
def epochs(draw: st.DrawFn) -> tuple[tuple[Update, ...], ...]:
    """Deletions are of tuples that are there, more often than not."""
    present: set[tuple[str, Tuple]] = set()
    result = []
    for _ in range(draw(st.integers(1, 6))):
        epoch = []
        for _ in range(draw(st.integers(1, 8))):
            if present and draw(st.integers(0, 9)) < 4:
                name, row = draw(st.sampled_from(sorted(present)))
                op = "-"
            else:
                op, name, row = draw(updates())
            epoch.append(Update(op, name, row))
            (present.add if op == "+" else present.discard)((name, row))
        result.append(tuple(epoch))
    return tuple(result)


@st.composite
def updates(draw: st.DrawFn) -> tuple[str, str, Tuple]:
    name = draw(st.sampled_from(sorted(BASE)))
    return draw(st.sampled_from("+++-")), name, tuple(draw(VALUE) for _ in range(BASE[name]))


@st.composite
def runs(draw: st.DrawFn) -> Run:
    levels = {name: draw(st.integers(0, 2)) for name in DERIVED}
    parts = draw(st.lists(rules(levels), min_size=1, max_size=5))
    if draw(st.booleans()):
        parts.append(draw(shapes(levels)))
    text = DECLARATIONS + "\n".join(parts) + "\n"
    try:
        program = load(text)
    except ProgramError:
        assume(False)
    return Run(text, program, draw(epochs()))
