"""What types follow from a program, where it declares none."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest

from whence.lang import ProgramError, load
from whence.lang.program import Const, Program
from whence.lang.types import DECIMAL, PRIMITIVES, Kind, Nullable, Primitive, decimal_kind


def kinds(program: Program, relation: str) -> list[str]:
    return [str(each.kind) for each in program.relations[relation].fields]


def codes(text: str) -> list[str]:
    with pytest.raises(ProgramError) as caught:
        load(text)
    return [each.code for each in caught.value.diagnostics if each.severity == "error"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a(1, "x", 2.5, 3u).', ["number", "symbol", "float", "unsigned"]),
        ("a(1).\na(2.5).", ["float"]),
        ("a(1).\na(2u).", ["unsigned"]),
        ("b(2.5).\na(x) :- b(x).", ["float"]),
        ("b(2.5).\na(x + 1) :- b(x).", ["float"]),
        ("a(x) :- b(x).\nb(x) :- a(x).\nb(1u).", ["unsigned"]),
        ("b(1).\na(n) :- n = count : { b(_) }.", ["number"]),
        ("b(1).\na(n) :- n = mean x : { b(x) }.", ["float"]),
        ("b(1.5).\na(n) :- n = max x : { b(x) }.", ["float"]),
        ('b("x").\na(strlen(x), cat(x, x)) :- b(x).', ["number", "symbol"]),
        ("a(x) :- x = range(0, 3).", ["number"]),
        ("a([1, 2 | []]).", ["list<number>"]),
        ("a([1]).\na([1, 2]).", ["list<number>"]),
        ('a([1, "x"]).', ["[number, symbol]"]),
        ("b([1, 2 | []]).\na(x, r) :- b([x | r]).", ["number", "list<number>"]),
        ("a($f(1)).\na($g()).", ["$f"]),
        (".type T = A {x: number} | B {}\na($A(1)).", ["T"]),
        (".type P = [x: number, y: symbol]\n.decl b(p: P)\n.input b\na(y) :- b([_, y]).", ["symbol"]),
        (".decl b(x: float)\n.input b\na(as(x, number)) :- b(x).", ["number"]),
        (".decl e(x: number, y: symbol)\n.input e\na(x, y) :- e(x, y).", ["number", "symbol"]),
        ('.input e\na(x + 1, y) :- e(x, y), match(".*", y).', ["number", "symbol"]),
    ],
)
def test_columns_follow_from_any_rule_that_uses_them(text: str, expected: list[str]) -> None:
    assert kinds(load(text), "a") == expected


def test_an_integer_literal_takes_the_type_of_its_place() -> None:
    program = load(".decl a(f: float, u: unsigned, n: number)\na(1, 1, 1).")
    assert [(arg.value, type(arg.value)) for arg in program.rules[0].head.args if isinstance(arg, Const)] == [
        (1.0, float),
        (1, int),
        (1, int),
    ]


def test_undeclared_columns_are_named_after_variables() -> None:
    program = load(".decl b(x: number)\n.input b\na(x, x, _y, 3) :- b(x), b(_y).")
    assert [each.name for each in program.relations["a"].fields] == ["x", "c2", "_y", "c4"]


@pytest.mark.parametrize(
    ("declaration", "rule"),
    [
        (".type T <: number\n.decl a(x: T)\n.decl b(x: T)", "b(x + 1) :- a(x)."),
        (".type T <: number\n.type U <: T\n.decl a(x: U)\n.decl b(x: T)", "b(x) :- a(x)."),
        (".type T <: number\n.type U <: number\n.type V = T | U\n.decl a(x: T)\n.decl b(x: V)", "b(x) :- a(x)."),
        (".type T <: number\n.decl a(x: T)\n.decl b(x: number)", "b(x) :- a(x)."),
        (".type T = U\n.type U <: number\n.decl a(x: T)\n.decl b(x: U)", "b(x) :- a(x)."),
        (".type T <: number\n.type U <: number\n.decl a(x: T)\n.decl b(x: U)", "b(as(x, U)) :- a(x)."),
        (".type T <: number\n.decl a(x: number)\n.decl b(x: T)\n.decl c(x: T)\n.input c", "b(x) :- a(x), c(x)."),
    ],
)
def test_subtypes_go_where_their_values_are_included(declaration: str, rule: str) -> None:
    load(f"{declaration}\n.input a\n{rule}\n.output b\n")


@pytest.mark.parametrize(
    ("declaration", "rule", "code"),
    [
        (".type T <: number\n.decl a(x: number)\n.decl b(x: T)", "b(x) :- a(x).", "W0305"),
        (".type T <: number\n.type U <: number\n.decl a(x: T)\n.decl b(x: U)", "b(x) :- a(x).", "W0305"),
        (
            ".type T <: number\n.type U <: number\n.type V = T | U\n.decl a(x: V)\n.decl b(x: U)",
            "b(x) :- a(x).",
            "W0305",
        ),
        (
            ".type T <: number\n.type U <: number\n.decl a(x: T)\n.decl b(x: number)\n.decl c(x: U)\n.input c",
            "b(x) :- a(x), c(x).",
            "W0301",
        ),
    ],
)
def test_subtypes_do_not_go_elsewhere(declaration: str, rule: str, code: str) -> None:
    assert codes(f"{declaration}\n.input a\n{rule}\n.output b\n") == [code]


def test_one_conflict_is_one_error() -> None:
    assert codes(".decl a(x: symbol)\n.input a\nb(x * 2 + 1) :- a(x).\nc(y) :- b(y), y < 3.\n.output c") == ["W0304"]
    assert codes('.decl a(x: number)\n.input a\n.decl b(x: number)\nb(y) :- a(x), y = cat("n", x).') == [
        "W0301",
        "W0301",
    ]


def test_an_error_elsewhere_does_not_leave_types_open() -> None:
    assert codes("a(x) :- b(x).\n") == ["W0201"]
    assert codes("a(x, y) :- b(x).\nb(1).\n") == ["W0203"]
    assert codes("b(1).\na(y) :- b(x), y = round(x).\nc(y) :- a(y).\n") == ["W0204"]


@pytest.mark.parametrize(
    "cast", ["as(x, float)", "as(as(x, unsigned), number)", "as(x, T)", "as(1, unsigned)", "as(x + 1, T)"]
)
def test_numbers_can_be_cast_to_each_other(cast: str) -> None:
    load(f".type T <: number\n.decl a(x: number)\n.input a\nb({cast}) :- a(x).\n")


def test_a_list_of_itself_has_no_type() -> None:
    assert set(codes("a(x) :- b(x), b([x | _]).\nb(x) :- a(x).\n")) == {"W0302"}


def test_records_may_refer_to_themselves() -> None:
    program = load(".type L = [head: number, tail: L]\n.decl a(l: L)\na(nil).\na([1, l]) :- a(l).\n")
    assert kinds(program, "a") == ["L"]


@pytest.mark.parametrize(
    "kind", [*PRIMITIVES.values(), DECIMAL, decimal_kind(9, 2), Nullable(PRIMITIVES["symbol"])], ids=str
)
def test_kinds_are_the_same_wherever_they_come_from(kind: Kind) -> None:
    """Another process has them from a pickled program; a revision compares programs by copies of their parts."""
    for other in (pickle.loads(pickle.dumps(kind)), copy.deepcopy(kind), replace(kind)):
        assert other == kind
        assert hash(other) == hash(kind)
        assert (other is kind) == isinstance(kind, Primitive)
    assert decimal_kind(9, 2) != DECIMAL
