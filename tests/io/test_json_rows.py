import sys
from collections.abc import Callable

import pytest

from whence.lang.deep import compound
from whence.lang.types import Tuple, Value, Variant

Read = Callable[..., set[Tuple]]
Write = Callable[..., str]
Refusal = Callable[..., str]

COLUMNS = "x: number, p: Pair"


def test_rows_are_lists_or_objects(write: Write) -> None:
    rows = {(1, (2, "a")), (0, None)}
    assert write(rows, COLUMNS, IO="jsonfile", file="r.json") == '[[0, null],\n[1, [2, "a"]]]\n'
    assert write(rows, COLUMNS, IO="jsonfile", format="object", file="r.json") == (
        '[{"x": 0, "p": null},\n{"x": 1, "p": {"x": 2, "s": "a"}}]\n'
    )
    assert write(set(), COLUMNS, IO="jsonfile", file="r.json") == "[]\n"


def test_json_is_printed_without_a_frame(printed: Write) -> None:
    assert printed({(1,)}, "x: number", IO="json") == "[[1]]\n"


@pytest.mark.parametrize("content", ['[[0, null], [1, [2, "a"]]]', '[{"p": null, "x": 0}, {"x": 1, "p": [2, "a"]}]'])
def test_lists_and_objects_are_read(content: str, read: Read) -> None:
    assert read(content, COLUMNS, IO="jsonfile", file="r.json") == {(0, None), (1, (2, "a"))}


def test_what_json_has_no_form_for_is_text(write: Write, read: Read) -> None:
    rows = {(float("inf"), Variant("Name", ("é",)), ("a",)), (4.0, Variant("Unit"), ())}
    columns = "f: float, e: Expr, l: symbols"
    text = write(rows, columns, IO="jsonfile", file="r.json")
    assert text == '[[4, "$Unit", []],\n["inf", "$Name(é)", ["a"]]]\n'
    assert read(text, columns, IO="jsonfile", file="r.json") == rows


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "[[1, null],\n[2}",
            "r.json:2:3: this is not JSON: Expecting ',' delimiter\n"
            "  hint: the file holds a list of rows, each a list or an object",
        ),
        ('{"x": 1}', 'r.json: expected a list of rows, found {"x": 1}\n  hint: put the rows into [ and ]'),
        (
            "[" * 100_000,
            "r.json:1:100001: this is not JSON: Expecting value\n"
            "  hint: the file holds a list of rows, each a list or an object",
        ),
        (
            '[[1, null], 2, [3], ["a", null], [true, null], [1.0, null], [1, "nil"], [1, [1]], [1, [1, 2]]]',
            "r.json: row 2: expected a list or an object, found 2\n"
            "r.json: row 3: 1 values, but 2 expected\n"
            'r.json: row 4: x: "a" is not a number\n'
            "r.json: row 5: x: true is not a number\n"
            "r.json: row 6: x: 1.0 is not a number\n"
            'r.json: row 7: p: "nil" is not a Pair\n'
            "r.json: row 8: 1 values, but 2 expected\n"
            "r.json: row 9: s: 2 is not a symbol\n"
            "  hint: r has the columns x: number, p: Pair",
        ),
        (
            '[{"x": 1}, {"x": 1, "p": null, "q": 2}, {"x": 9223372036854775808, "p": null}]',
            "r.json: row 1: p is missing\n"
            "r.json: row 2: there is no attribute q\n"
            "r.json: row 3: x: '9223372036854775808' is out of range: "
            "a number lies between -9223372036854775808 and 9223372036854775807\n"
            "  hint: r has the columns x: number, p: Pair",
        ),
        (
            f'[[1, null],\n [{"7" * 4301}, ["{"8" * 5000}", 1]]]',
            "r.json:2:3: this number has too many digits\n  hint: no column can hold it",
        ),
    ],
)
def test_bad_json_is_reported_row_by_row(content: str, message: str, refusal: Refusal) -> None:
    assert refusal(content, COLUMNS, IO="jsonfile", file="r.json") == message


def test_values_of_any_depth_are_read_and_written(read: Read, write: Write) -> None:
    node: Value = None
    for _ in range(10 * sys.getrecursionlimit()):
        node = compound(("a", node))
    for objects in ("list", "object"):
        text = write([(node,)], "n: Node", IO="jsonfile", file="r.json", format=objects)
        assert read(text, "n: Node", IO="jsonfile", file="r.json", format=objects) == {(node,)}


def test_a_whole_number_that_no_float_can_hold_is_reported(refusal: Refusal) -> None:
    content = f"[[1], [{'9' * 400}], [1{'0' * 300}]]"
    assert refusal(content, "x: float", IO="jsonfile", file="r.json") == (
        f"r.json: row 2: x: '{'9' * 59}…' is out of range for a float\n  hint: r has the columns x: float"
    )


def test_nan_is_no_value_and_there_is_one_zero(read: Read, refusal: Refusal) -> None:
    assert refusal("[[NaN]]", "x: float", IO="jsonfile", file="r.json").startswith(
        "r.json: row 1: x: nan is not a value\n"
    )
    ((zero,),) = read("[[-0.0]]", "x: float", IO="jsonfile", file="r.json")
    assert str(zero) == "0.0"
