import pytest
from hypothesis import given, settings
from tests.lang.trees import BINARY, modules

from whence.lang import tree
from whence.lang.parser import parse
from whence.lang.printer import print_module, print_node
from whence.lang.source import Source
from whence.lang.tree import Aggregate, And, Atom, Call, Constraint, Not, Number, Or, Rule, TypeRef, Variable

X, Y, Z = (Variable(name) for name in "xyz")
NUMBER, SYMBOL = TypeRef("number"), TypeRef("symbol")
A, B, C = (Atom(name, (X,)) for name in "abc")


def parsed(text: str) -> tree.Module:
    result = parse(Source.of(text))
    assert not result.errors, text
    return result.module


@settings(deadline=None)  # the first example pays for building the parser
@given(modules)
def test_printing_then_parsing_gives_the_same_tree(module: tree.Module) -> None:
    assert parsed(print_module(module)) == module


@pytest.mark.parametrize("outer", [*BINARY, "-", "bnot"])
@pytest.mark.parametrize("inner", [*BINARY, "-", "bnot"])
def test_nested_operators_keep_their_grouping(outer: str, inner: str) -> None:
    def applied(op: str, first: tree.Term, second: tree.Term) -> list[Call]:
        return [Call(op, (first, second))] * (op in BINARY) + [Call(op, (first,))] * (op in ("-", "bnot"))

    for term in applied(inner, X, Number(5)):
        for nested in applied(outer, term, Y) + applied(outer, Number(-5), term):
            rule = Rule((A,), Constraint("=", Z, nested))
            assert parsed(print_node(rule)).statements == (rule,)


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (Number(-5), "-5"),
        (Number(5, "u"), "5u"),
        (Number(1.0, "."), "1.0"),
        (Number(1e20, "."), "1e20"),
        (Number(1e-7, "."), "1e-07"),
        (tree.String('a "b"\\\n\t\r'), r'"a \"b\"\\\n\t\r"'),
        (tree.Nil(), "nil"),
        (tree.Bracket(()), "[]"),
        (tree.Bracket((X, Number(1)), Y), "[x, 1 | y]"),
        (tree.Branch("Leaf", ()), "$Leaf()"),
        (tree.Branch("Node", (X, tree.Wildcard())), "$Node(x, _)"),
        (tree.Cast(X, TypeRef("list", (SYMBOL,))), "as(x, list<symbol>)"),
        (Call("cat", (X, Y)), "cat(x, y)"),
        (Call("f", (X,), registered=True), "@f(x)"),
        (Call("*", (Call("+", (X, Y)), Number(2))), "(x + y) * 2"),
        (Call("+", (X, Call("*", (Y, Number(2))))), "x + y * 2"),
        (Call("-", (X, Call("-", (Y, Z)))), "x - (y - z)"),
        (Call("-", (Call("-", (X, Y)), Z)), "x - y - z"),
        (Call("^", (X, Call("^", (Y, Z)))), "x ^ y ^ z"),
        (Call("^", (Call("^", (X, Y)), Z)), "(x ^ y) ^ z"),
        (Call("-", (Call("^", (X, Number(2))),)), "-x ^ 2"),
        (Call("^", (Call("-", (X,)), Number(2))), "(-x) ^ 2"),
        (Call("^", (Number(-5), Number(2))), "(-5) ^ 2"),
        (Call("-", (Number(5),)), "-(5)"),
        (Call("-", (Call("^", (Number(5), X)),)), "-(5 ^ x)"),
        (Call("bnot", (Call("band", (X, Y)),)), "bnot (x band y)"),
        (Aggregate("count", None, A), "count : { a(x) }"),
        (Aggregate("sum", Call("+", (X, Number(1))), A), "sum x + 1 : { a(x) }"),
        (Aggregate("sum", Call("*", (Call("+", (X, Y)), Number(2))), A), "sum ((x + y) * 2) : { a(x) }"),
        (Aggregate("max", Aggregate("count", None, A), B), "max (count : { a(x) }) : { b(x) }"),
        (Call("+", (Number(1), Aggregate("count", None, A))), "1 + (count : { a(x) })"),
    ],
)
def test_terms_are_printed_with_the_parentheses_that_they_need(term: tree.Term, text: str) -> None:
    assert print_node(term) == text


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (Atom("r", (X, Y), location=1), "r(x, @y)"),
        (Constraint("<=", X, Y), "x <= y"),
        (Constraint("match", X, Y), "match(x, y)"),
        (tree.Truth(False), "false"),
        (And((A, B)), "a(x), b(x)"),
        (Or((And((A, B)), C)), "a(x), b(x) ; c(x)"),
        (And((Or((A, B)), C)), "(a(x) ; b(x)), c(x)"),
        (And((And((A, B)), C)), "(a(x), b(x)), c(x)"),
        (Or((A, Or((B, C)))), "a(x) ; (b(x) ; c(x))"),
        (Not(A), "!a(x)"),
        (Not(Or((A, B))), "!(a(x) ; b(x))"),
    ],
)
def test_formulas_keep_their_grouping(formula: tree.Formula, text: str) -> None:
    assert print_node(formula) == text


@pytest.mark.parametrize(
    "text",
    [
        ".decl a, b(@x:number, y:list<symbol>) inline choice-domain x, (x, y)",
        ".decl a()",
        ".type T <: number",
        ".type U = A | B",
        ".type R = [a:number, b:symbol]",
        ".type A = Leaf {} | Node {l:A, v:number}",
        ".functor f(number, symbol):float stateful",
        '.input R(IO="file", filename="x")',
        ".output R, S",
        '.limitsize R(n="10")',
        '.pragma "k" "v"',
        '.pragma "k"',
        ".init x = C<number>",
        ".override r",
        ".window R(time=30)",
        ".window R(rows=4, by=a)",
        ".window R(rows=4, by=(a, b))",
        ".lifetime R 0.5",
        "h(1).",
        "name: h1(x), h2(x) :- body(x, y), y > 1.",
        "h(x) :- a(x), b(x). .plan 0:(2, 1)",
        "name: a(x) <= a(y) :- x < y.",
        "a(x) <= a(y).",
        ".comp C<T> : D<T>, E {\n    .decl r(x:T)\n    .comp Inner {\n        r(1).\n    }\n}",
    ],
)
def test_a_statement_in_the_house_style_is_printed_as_it_was_written(text: str) -> None:
    (statement,) = parsed(text).statements
    assert print_node(statement) == text


def test_every_statement_of_a_module_is_on_its_own_line() -> None:
    assert print_module(parsed("a(1).b(2).")) == "a(1).\nb(2).\n"
