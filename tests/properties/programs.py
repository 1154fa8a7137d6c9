"""Random programs with random epochs, for engines to agree on.

Each derived relation has a level. A rule reads relations up to the level of its head and negates or aggregates relations below
it, so that every program is stratified; relations of one level may depend on each other in any way. Only relations that have
rules are read, and the first rule of each reads what lies below, so that most views are not empty. Fixed shapes stand beside
these rules and share their relations: recursion through aggregates, aggregates asked for by a recursion, nested aggregates,
records, branches, lists, ranges, strings and all else that the rules do not draw. Values are few, and the first epoch fills a
good part of the base relations, so that joins meet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

from hypothesis import assume
from hypothesis import strategies as st

from whence import Program, ProgramError, Update, load
from whence.lang.program import Atom
from whence.lang.tree import walk
from whence.lang.types import Tuple

BASE = {"e": 2, "f": 1, "g": 3, "w": 3}
DERIVED = {"p": 2, "q": 1, "r": 2, "s": 2, "t": 3}
ARITY = BASE | DERIVED
VARIABLES = ("x", "y", "z", "u")
DECLARATIONS = "".join(
    f".decl {name}({', '.join(f'c{at}:number' for at in range(arity))})\n" for name, arity in ARITY.items()
) + "".join(f".input {name}\n" for name in BASE)
DOMAIN = 4
VALUE = st.integers(0, DOMAIN - 1)
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
    "lists taken apart": (
        ".decl trail(p:list<number>, n:number)\ntrail([x, y], 0) :- BINARY(x, y).\n"
        "trail([x | p], n + 1) :- trail(p, n), p = [y | _], BINARY(x, y), n < 2.\n"
        "OUT(x, z) :- trail([x, _, z | _], _).\nOUT(x, y) :- trail([x, y], _), !trail([y, x], _).\n"
        "OUT(n, x) :- trail([x, _, _], n)."
    ),
    "ranges": "OUT(x, n) :- BINARY(x, y), n = range(x, y), !UNARY(n).\nOUT(n, k) :- UNARY(k), n = range(k, 0, -2).",
    "existence": "OUT(x, 1) :- UNARY(x), BINARY(_, _).\nOUT(x, 2) :- UNARY(x), !BINARY(_, x).\nOUT(3, 3) :- !UNARY(_).",
    "equivalence": (
        ".decl same(x:number, y:number) eqrel\nsame(x, y) :- BINARY(x, y), UNARY(x).\nOUT(x, y) :- same(x, y), x < y."
    ),
    "equivalence inside a recursion": (
        ".decl alike(x:number, y:number) eqrel\nalike(x, y) :- step(x, y), UNARY(x).\n"
        "step(x, y) :- BINARY(x, y).\nstep(x, y) :- alike(x, z), TERNARY(z, y, _).\nOUT(x, y) :- alike(x, y)."
    ),
    "subsumption": (
        ".decl cost(x:number, y:number, c:number)\ncost(x, y, c) :- TERNARY(x, y, c).\n"
        "cost(x, z, c + d) :- cost(x, y, c), TERNARY(y, z, d), c < 12.\n"
        "cost(x, y, c) <= cost(x, y, d) :- d < c.\nOUT(x, c) :- cost(x, _, c)."
    ),
    "several dominations": (
        "best(x, y, c) :- TERNARY(x, y, c).\nbest(x, y, c) <= best(x, y, d) :- d > c.\n"
        "best(x, y, _) <= best(z, y, _) :- z < x, UNARY(z).\nOUT(x, y) :- best(x, y, _), !BINARY(x, y)."
    ),
    "choice": (
        ".decl pick(x:number, y:number) choice-domain x, y\npick(x, y) :- BINARY(x, y).\nOUT(x, y) :- pick(x, y), !UNARY(x)."
    ),
    "choice inside a recursion": (
        ".decl tree1(x:number, y:number) choice-domain y\ntree1(0, 0) :- UNARY(0).\n"
        "tree1(x, y) :- tree1(_, x), BINARY(x, y), y != 0.\nOUT(x, y) :- tree1(x, y)."
    ),
    "stages": (
        "wave(x, 0) :- UNARY(x).\nwave(y, s + 1) :- wave(x, s), BINARY(x, y), s < 5, !wet(y, s).\n"
        "wet(x, s) :- wave(x, s).\nwet(x, s + 1) :- wet(x, s), s < 5.\nOUT(x, s) :- wave(x, s)."
    ),
    "strings": (
        'word(cat("n", to_string(x)), y) :- BINARY(x, y).\n'
        'word(w, y) :- word(v, x), BINARY(x, y), w = cat(v, "+"), strlen(w) < 5.\n'
        'OUT(strlen(w), x) :- word(w, x), match("n[0-2].*", w), w > "n1".\n'
        "OUT(x, to_number(t)) :- w = max v : { word(v, x) }, UNARY(x), t = substr(w, 1, 1).\n"
        'OUT(x, y) :- word(v, x), word(w, y), v < w, !contains("+", w).'
    ),
    "several heads": (
        "OUT(x, y), turned(y, x) :- BINARY(x, y), (UNARY(x) ; x < y, !UNARY(y)).\nOUT(y, x) :- turned(x, y), TERNARY(x, y, _)."
    ),
    "negated alternatives": "OUT(x, y) :- UNARY(x), UNARY(y), !(BINARY(x, y) ; BINARY(y, _), TERNARY(y, _, x)), x <= y.",
    "no columns": (
        ".decl any()\n.decl none()\nany() :- BINARY(x, x).\nnone() :- !any().\n"
        "OUT(x, 1) :- UNARY(x), any().\nOUT(x, 2) :- UNARY(x), none()."
    ),
    "floats": (
        "half(x, to_float(y) / 2.0) :- BINARY(x, y).\nOUT(x, to_number(m)) :- UNARY(x), m = mean h : { half(x, h) }.\n"
        "OUT(x, 9) :- s = sum h : { half(_, h) }, UNARY(x), s > to_float(x) * 1.5."
    ),
    "float sums by group": (
        "weigh(x, to_float(y) / 4.0 - 0.25) :- BINARY(x, y).\n"
        "heavy(x, s) :- weigh(x, _), s = sum h : { weigh(x, h) }.\nOUT(x, to_number(s * 4.0)) :- heavy(x, s).\n"
        "OUT(x, 7) :- UNARY(x), s = sum h : { weigh(x, h) }, s <= 0.0."
    ),
    "unsigned groups": (
        "summed(x, s) :- BINARY(x, _), s = sum u : { BINARY(x, y), u = itou(y) }.\nOUT(x, utoi(s)) :- summed(x, s).\n"
        "OUT(x, utoi(m)) :- UNARY(x), m = max u : { BINARY(x, y), u = itou(y) bxor 3u }."
    ),
    "arithmetic": (
        "OUT(x, 6 / y) :- BINARY(x, y).\nOUT(x % 3, (x - y) band 7) :- BINARY(x, y), x * y != 4.\n"
        "OUT(to_number(u), x) :- UNARY(x), u = itou(x) bshl 1u, u < 5u.\n"
        "OUT(x, y) :- BINARY(x, x + 1), UNARY(y), y = max(x, 2) - 1."
    ),
    "witnesses": (
        "OUT(x, m) :- m = max y : { BINARY(x, y) }.\n"
        "OUT(y, n) :- UNARY(y), n = count : { BINARY(y, z), !UNARY(z) ; TERNARY(y, z, y) }."
    ),
    "terms": (
        "made($pair(x, y), x) :- BINARY(x, y).\nmade($more(t, z), z) :- made(t, x), BINARY(x, z), t = $pair(_, _).\n"
        "OUT(x, n) :- UNARY(x), n = count : { made(_, x) }.\nOUT(y, z) :- made($more($pair(_, y), z), _)."
    ),
    "largest of records": (
        ".type Mark = [v:number, w:number]\n.decl mark(x:number, m:Mark)\nmark(x, [c, y]) :- TERNARY(x, y, c).\n"
        "mark(x, nil) :- UNARY(x).\nOUT(x, y) :- mark(x, [c, y]), c = max d : { mark(x, [d, _]) }.\n"
        "OUT(x, x) :- mark(x, nil), !mark(x, [_, x])."
    ),
}


@dataclass(frozen=True)
class Run:
    text: str
    program: Program = field(repr=False)
    epochs: tuple[tuple[Update, ...], ...]


@st.composite
def atoms(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    name = draw(st.sampled_from(names))
    term = st.sampled_from((*VARIABLES * 4, "_", "0", "1"))
    return f"{name}({', '.join(draw(term) for _ in range(ARITY[name]))})"


def variables_in(literals: list[str]) -> list[str]:
    words = {word for each in literals for word in each.partition("(")[2].rstrip(")").split(", ")}
    return sorted(words & set(VARIABLES))


@st.composite
def rules(
    draw: st.DrawFn, levels: dict[str, int] | None = None, head: str | None = None, *, is_first: bool = False
) -> str:
    """A rule; without levels, one that may make a program wrong. The first of a relation reads what lies below it."""
    head = head or draw(st.sampled_from(sorted(DERIVED if levels is None else levels)))
    names = [name for name in ARITY if levels is None or name in BASE or name in levels]
    below = tuple(name for name in names if levels is None or levels.get(name, -1) < levels[head])
    up_to = (
        below if is_first else tuple(name for name in names if levels is None or levels.get(name, -1) <= levels[head])
    )
    body = draw(st.lists(atoms(up_to), min_size=1, max_size=3))
    bound = variables_in(body)
    assume(bound)
    one = st.sampled_from(bound)
    extra = draw(
        st.sampled_from(("none", "none", "none", *["negation"] * 3, "comparison", "sum", "aggregate", "range"))
    )
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
        target = draw(st.sampled_from(("n", "n", draw(one))))  # a variable of its own, or one that has a value
        body.append(f"{target} = {op}{{ {over}({draw(st.sampled_from((*bound, '_')))}, v){more} }}, {target} < 9")
        bound.append(target)
    args = [draw(st.one_of(*[st.sampled_from(bound)] * 4, VALUE.map(str))) for _ in range(DERIVED[head])]
    return f"{head}({', '.join(args)}) :- {', '.join(body)}."


@st.composite
def shapes(draw: st.DrawFn, levels: dict[str, int]) -> str:
    """One of the shapes, reading relations of a lower level than the one that reads it."""
    out = draw(st.sampled_from([name for name in DERIVED if DERIVED[name] == 2]))
    text = SHAPES[draw(st.sampled_from(sorted(SHAPES)))].replace("OUT", out)
    for word, arity in (("BINARY", 2), ("UNARY", 1), ("TERNARY", 3)):
        names = [
            name
            for name in ARITY
            if ARITY[name] == arity and levels.get(name, -1 if name in BASE else 9) < levels.get(out, 3)
        ]
        text = text.replace(word, draw(st.sampled_from(names)))
    return text


@st.composite
def epochs(draw: st.DrawFn, names: tuple[str, ...]) -> tuple[tuple[Update, ...], ...]:
    """The first one fills the base relations. Deletions are of tuples that are there, more often than not."""
    present = {(name, row) for name in names for row in draw(some_rows(BASE[name]))}
    result = [tuple(Update("+", name, row) for name, row in sorted(present))]
    for _ in range(draw(st.integers(1, 6))):
        epoch = []
        for _ in range(draw(st.integers(1, 8))):
            if present and draw(st.integers(0, 9)) < 5:
                name, row = draw(st.sampled_from(sorted(present)))
                op = "-"
            else:
                op, name, row = draw(updates(names))
            epoch.append(Update(op, name, row))
            (present.add if op == "+" else present.discard)((name, row))
        result.append(tuple(epoch))
    return tuple(result)


@st.composite
def some_rows(draw: st.DrawFn, arity: int) -> list[Tuple]:
    """About half of all rows with one or two columns, and some with three."""
    rows = list(product(range(DOMAIN), repeat=arity))
    at_least = draw(st.sampled_from((0, 2, 3, 3))) * 2 ** (arity - 1)
    return draw(st.lists(st.sampled_from(rows), min_size=at_least, max_size=3 * 2**arity, unique=True))


@st.composite
def updates(draw: st.DrawFn, names: tuple[str, ...] = tuple(BASE)) -> tuple[str, str, Tuple]:
    name = draw(st.sampled_from(names))
    return draw(st.sampled_from("+++-")), name, tuple(draw(VALUE) for _ in range(BASE[name]))


@st.composite
def runs(draw: st.DrawFn) -> Run:
    heads = draw(st.lists(st.sampled_from(sorted(DERIVED)), min_size=1, max_size=4, unique=True))
    levels = {name: draw(st.integers(0, 2)) for name in heads}
    parts = [draw(rules(levels, head, is_first=True)) for head in heads]
    parts += draw(st.lists(rules(levels), max_size=4))
    if draw(st.booleans()):
        parts.append(draw(shapes(levels)))
    text = DECLARATIONS + "\n".join(parts) + "\n"
    try:
        program = load(text)
    except ProgramError:
        assume(False)
    read = {part.relation for rule in program.rules for part in walk(rule.body) if isinstance(part, Atom)}
    return Run(text, program, draw(epochs(tuple(name for name in BASE if name in read) or tuple(BASE))))
