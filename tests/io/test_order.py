from collections.abc import Callable
from math import isnan, nan

import pytest

from whence.io.order import sort_rows
from whence.lang.program import Relation
from whence.lang.types import Value, Variant


@pytest.mark.parametrize(
    ("type_", "ordered"),
    [
        ("number", [-10, -9, 2, 10]),
        ("float", [float("-inf"), -1.5, 0.0, 1e3, float("inf")]),
        ("symbol", ["", "B", "a", "aa", "b", "é", "中", "😀"]),
        ("Node", [None, ("a", None), ("a", ("a", None)), ("b", None)]),
        ("numbers", [(), (1,), (1, 2), (1, 10), (2,), (10,)]),
        (
            "Expr",
            [
                Variant("Add", (Variant("Literal", (2.0,)), Variant("Unit"))),
                Variant("Add", (Variant("Unit"), Variant("Literal", (1.0,)))),
                Variant("Literal", (-1.0,)),
                Variant("Literal", (10.0,)),
                Variant("Unit"),
            ],
        ),
    ],
)
def test_each_kind_has_its_order(type_: str, ordered: list[Value], relation: Callable[..., Relation]) -> None:
    kind = relation(f"x: {type_}").fields[0].kind
    rows = [(value,) for value in ordered]
    assert sort_rows(reversed(rows), [kind]) == rows


def test_rows_are_ordered_by_their_first_differing_column(relation: Callable[..., Relation]) -> None:
    kinds = [each.kind for each in relation("x: Node, y: number").fields]
    rows = [(None, 10), (("a", None), 9), (("a", None), 10), (("b", None), 1)]
    assert sort_rows(set(rows), kinds) == rows


def test_nan_comes_last(relation: Callable[..., Relation]) -> None:
    kinds = [each.kind for each in relation("x: float, y: number").fields]
    first, second, third, fourth = sort_rows([(nan, 2), (1.0, 5), (nan, 1), (float("inf"), 0)], kinds)
    assert first == (1.0, 5)
    assert second == (float("inf"), 0)
    assert isnan(float(str(third[0])))
    assert (third[1], fourth[1]) == (1, 2)


def test_values_nested_deeper_than_the_stack_are_ordered(relation: Callable[..., Relation]) -> None:
    kinds = [each.kind for each in relation("x: Node").fields]
    short: Value = None
    for _ in range(20_000):
        short = ("a", short)
    assert sort_rows([(("a", short),), (short,)], kinds)[0][0] is short
