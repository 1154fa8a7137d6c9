"""Random program trees: any that the parser could have made."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

from hypothesis import strategies as st

from whence.lang import tree

T = TypeVar("T")
names = st.sampled_from(["a", "edge", "path1", "r_2", "Graph", "_z", "x?"])
qualified = names | st.sampled_from(["g.edge", "g.inner.path1"])
variables = st.builds(tree.Variable, st.sampled_from(["x", "y1", "?v", "_z", "X"]))
functors = st.sampled_from(["cat", "strlen", "f", "ord", "g.f"])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
numbers = st.one_of(
    st.builds(tree.Number, st.integers(1 - 2**64, 2**64 - 1)),
    st.builds(tree.Number, st.integers(-3, 3)),
    st.builds(tree.Number, st.integers(0, 2**64 - 1), st.just("u")),
    st.builds(tree.Number, st.floats(allow_nan=False, allow_infinity=False), st.just(".")),
)
type_refs: st.SearchStrategy[tree.TypeRef] = st.deferred(
    lambda: st.builds(
        tree.TypeRef,
        st.sampled_from(["number", "symbol", "T", "Node", "list", "g.T"]),
        st.just(()) | st.lists(type_refs, min_size=1, max_size=2).map(tuple),
    )
)
BINARY = "+ - * / % ^ band bor bxor bshl bshr bshru land lor lxor".split()
UNARY = "- bnot lnot".split()
COMPARISONS = "= != < <= > >= match contains".split()
DEPTH = 3


def tuples(items: st.SearchStrategy[T], least: int = 0, most: int = 3) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(items, min_size=least, max_size=most).map(tuple)


# -- terms and formulas -----------------------------------------------------------------------------------------------


@cache
def terms(depth: int = DEPTH) -> st.SearchStrategy[tree.Term]:
    flat = st.one_of(
        variables,
        st.builds(tree.Wildcard),
        numbers,
        st.builds(tree.String, texts),
        st.builds(tree.Nil),
        st.builds(tree.Bool, st.booleans()),
    )
    if depth == 0:
        return flat
    inner = terms(depth - 1)
    return st.one_of(
        flat,
        st.builds(tree.Call, st.sampled_from(BINARY), st.tuples(inner, inner)),
        st.builds(tree.Call, st.sampled_from(UNARY), st.tuples(inner)),
        st.builds(tree.Call, functors, tuples(inner)),
        st.builds(tree.Call, st.sampled_from(["min", "max"]), st.tuples(inner, inner)),
        st.builds(tree.Call, names, tuples(inner), st.just(True)),
        st.builds(tree.Bracket, tuples(inner), st.none() | inner),
        st.builds(tree.Branch, qualified, tuples(inner)),
        st.builds(tree.Cast, inner, type_refs),
        st.builds(tree.Aggregate, st.just("count"), st.none(), formulas(depth - 1)),
        st.builds(tree.Aggregate, st.sampled_from(["sum", "min", "max", "mean"]), inner, formulas(depth - 1)),
    )


@st.composite
def located_atoms(draw: st.DrawFn) -> tree.Atom:
    args = draw(tuples(terms(1), most=2))
    whole = st.builds(tree.Number, st.integers(0, 9))
    place = draw(st.one_of(variables, st.builds(tree.Wildcard), st.builds(tree.String, texts), whole))
    at = draw(st.integers(0, len(args)))
    return tree.Atom(draw(qualified), (*args[:at], place, *args[at:]), at)


@cache
def atoms(depth: int = DEPTH) -> st.SearchStrategy[tree.Atom]:
    return st.builds(tree.Atom, qualified, tuples(terms(depth))) | located_atoms()


@cache
def formulas(depth: int = DEPTH) -> st.SearchStrategy[tree.Formula]:
    flat = st.one_of(
        atoms(max(0, depth - 1)),
        st.builds(tree.Constraint, st.sampled_from(COMPARISONS), terms(depth), terms(max(0, depth - 1))),
        st.builds(tree.Truth, st.booleans()),
    )
    if depth == 0:
        return flat
    inner = formulas(depth - 1)
    return st.one_of(
        flat,
        st.builds(tree.Not, inner),
        st.builds(tree.And, tuples(inner, least=2)),
        st.builds(tree.Or, tuples(inner, least=2)),
    )


# -- statements -------------------------------------------------------------------------------------------------------

columns = st.builds(tree.Attribute, names, type_refs)
located_columns = st.builds(tree.Attribute, names, type_refs, st.booleans())
durations = st.floats(min_value=0, allow_infinity=False) | st.integers(0, 1000).map(float)
plans = st.lists(st.lists(st.integers(1, 4), max_size=3), min_size=1, max_size=2).map(
    lambda orders: ", ".join(f"{at}:({', '.join(map(str, order))})" for at, order in enumerate(orders))
)

type_bodies = st.one_of(
    st.builds(tree.SubtypeOf, type_refs),
    st.builds(tree.UnionOf, tuples(type_refs, least=1)),
    st.builds(tree.RecordOf, tuples(columns)),
    st.builds(tree.BranchesOf, tuples(st.builds(tree.BranchDecl, names, tuples(columns)), least=1)),
)
windows = st.one_of(
    st.builds(tree.Window, qualified, time=durations),
    st.builds(tree.Window, qualified, rows=st.integers(0, 100), by=tuples(names)),
)
flat_statements = st.one_of(
    st.builds(tree.TypeDecl, names, type_bodies),
    st.builds(
        tree.RelationDecl,
        tuples(names, least=1),
        tuples(located_columns),
        tuples(st.sampled_from(["inline", "eqrel", "brie", "overridable", "input"])),
        tuples(tuples(names, least=1)),
    ),
    st.builds(tree.FunctorDecl, names, tuples(type_refs), type_refs, st.booleans()),
    st.builds(
        tree.Rule, tuples(atoms(), least=1, most=2), st.none() | formulas(), st.none() | names, st.none() | plans
    ),
    st.builds(tree.Subsumption, atoms(), atoms(), st.none() | formulas(), st.none() | names),
    st.builds(
        tree.Directive,
        st.sampled_from(["input", "output", "printsize", "limitsize"]),
        tuples(qualified, least=1),
        tuples(st.tuples(names, texts)),
    ),
    windows,
    st.builds(tree.Lifetime, qualified, durations),
    st.builds(tree.Pragma, texts, st.none() | texts),
    st.builds(tree.Init, names, type_refs),
    st.builds(tree.Override, names),
)
statements: st.SearchStrategy[tree.Statement] = st.deferred(
    lambda: flat_statements | st.builds(tree.Component, names, tuples(names), tuples(type_refs), tuples(statements))
)
modules = st.builds(tree.Module, tuples(statements, most=4))
