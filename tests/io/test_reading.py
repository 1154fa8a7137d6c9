import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from whence.io import FactError, read_relation
from whence.lang.program import Relation, Transfer
from whence.lang.tree import NOWHERE
from whence.lang.types import Tuple, Types, Variant
from whence.memory import Memory

Read = Callable[..., set[Tuple]]
Refusal = Callable[..., str]


def test_columns_are_separated_by_tabs(read: Read) -> None:
    assert read("1\ta b\n-2\t\n", "x: number, y: symbol") == {(1, "a b"), (-2, "")}


@pytest.mark.parametrize("content", ["1\t2\r\n3\t4\r\n", "1\t2\n3\t4", "\ufeff1\t2\n3\t4\n", "0x1\t2\n3\t0b100\n"])
def test_line_ends_byte_order_mark_and_bases_do_not_matter(content: str, read: Read) -> None:
    assert read(content, "x: number, y: number") == {(1, 2), (3, 4)}


def test_only_line_ends_end_a_row(read: Read) -> None:
    assert read("a\u2028b\x0cc\x85d\re\n", "x: symbol") == {("a\u2028b\x0cc\x85d\re",)}


def test_an_empty_line_is_an_empty_symbol(read: Read) -> None:
    assert read("\n", "x: symbol") == {("",)}
    assert read("", "x: symbol") == set()


def test_duplicates_are_read_once(read: Read) -> None:
    assert read("1\n1\n01\n", "x: number") == {(1,)}


def test_all_kinds_are_read(read: Read) -> None:
    row = "18446744073709551615\t1e-3\t[1, a]\t$Add($Unit, $Literal(2))\t[1, 2]\n"
    assert read(row, "u: unsigned, f: float, p: Pair, e: Expr, l: numbers") == {
        (2**64 - 1, 0.001, (1, "a"), Variant("Add", (Variant("Unit"), Variant("Literal", (2.0,)))), (1, 2))
    }


@pytest.mark.parametrize(
    ("content", "holds"),
    [("()\n", True), ("()", True), ("", False), ("()\r\n()\r\n", True), ("\n", True), ("\r\n", True)],
)
def test_a_relation_without_columns_holds_or_not(content: str, holds: bool, read: Read) -> None:
    assert read(content, "") == ({()} if holds else set())


@pytest.mark.parametrize("delimiter", [",", ", ", "BOB", "|", "\\t"])
def test_the_delimiter_may_be_any_text(delimiter: str, read: Read) -> None:
    separator = delimiter.replace("\\t", "\t")
    assert read(f"1{separator}a\n", "x: number, y: symbol", delimiter=delimiter) == {(1, "a")}


@pytest.mark.parametrize("delimiter", [",", ", ", " , ", ";", " "])
def test_a_delimiter_inside_of_a_value_does_not_count(delimiter: str, read: Read) -> None:
    row = delimiter.join(['[1, "a;b"]', "$Add($Unit, $Name(n))", "$Unit", "[1, 2]", "nil"])
    assert read(f"{row}\n", "p: Pair, e: Expr, u: Expr, l: numbers, n: Node", delimiter=delimiter) == {
        ((1, "a;b"), Variant("Add", (Variant("Unit"), Variant("Name", ("n",)))), Variant("Unit"), (1, 2), None)
    }


def test_columns_are_found_by_the_names_of_the_header(read: Read) -> None:
    assert read("x\ty\n1\t2\n", "x: number, y: number", headers="true") == {(1, 2)}
    assert read("y\tx\n1\t2\n", "x: number, y: number", headers="true") == {(2, 1)}
    assert read("z, y,x\n$Unit,[1, 2],a\n", "x: symbol, y: numbers, z: Expr", headers="true", delimiter=",") == {
        ("a", (1, 2), Variant("Unit"))
    }
    assert read('"y","x"\r\n1,"a"\r\n', "x: symbol, y: number", headers="true", rfc4180="true") == {("a", 1)}


def test_picked_columns_are_picked_by_their_places_whatever_they_are_called(read: Read) -> None:
    assert read("y\tx\tz\n1\t2\t3\n", "x: number, y: number", headers="true", columns="0:2") == {(1, 3)}


def test_an_empty_file_needs_no_header(read: Read) -> None:
    assert read("", "x: number, y: number", headers="true") == set()


def test_columns_are_picked(read: Read) -> None:
    assert read("a\t1\tb\n", "x: number, y: symbol", columns="1:0") == {(1, "a")}


def test_quoted_fields_hold_delimiters_line_ends_and_quotes(read: Read) -> None:
    content = '"a,b",1\r\n"line 1\r\nline 2",2\r\n"say ""hi""",3\r\nplain "x",4\r\n"",5\r\n'
    assert read(content, "x: symbol, y: number", rfc4180="true") == {
        ("a,b", 1),
        ("line 1\r\nline 2", 2),
        ('say "hi"', 3),
        ('plain "x"', 4),
        ("", 5),
    }


def test_quoted_records_are_read(read: Read) -> None:
    assert read('"[1, ""a,b""]",2\n', "p: Pair, y: number", rfc4180="true") == {((1, "a,b"), 2)}


def test_compressed_files_are_recognized(read: Read) -> None:
    compressed = gzip.compress(b"1\n")
    assert read(compressed, "x: number") == {(1,)}
    assert read(compressed, "x: number", file="r.facts.gz", compress="true") == {(1,)}
    assert read(b"1\n", "x: number", file="r.facts.gz", compress="true") == {(1,)}


def test_a_compressed_file_that_holds_more_than_there_is_memory_is_refused(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("whence.io.files.look_at_memory", lambda: Memory(0, 1_000_000))
    with pytest.raises(FactError, match="decompressed it has more than 250,000 bytes"):
        read(gzip.compress(b"1\n" * 200_000), "x: number")


def test_the_standard_input_is_read(
    monkeypatch: pytest.MonkeyPatch, relation: Callable[..., Relation], types: Types
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1\n2\n")))
    transfer = Transfer("input", "r", {"IO": "stdin"}, NOWHERE)
    assert read_relation(transfer, relation("x: number"), types, Path("nowhere")) == {(1,), (2,)}


# -- what is wrong ----------------------------------------------------------------------------------------------------


def refused(path: Path, relation: Relation, types: Types, **params: str) -> str:
    with pytest.raises(FactError) as caught:
        read_relation(Transfer("input", "r", params, NOWHERE), relation, types, path)
    return str(caught.value)


def test_a_missing_file_is_named_with_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relation: Callable[..., Relation], types: Types
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refused(Path("facts"), relation("x: number"), types) == (
        "cannot read facts/r.facts: there is no such file\n"
        "  hint: .input r asks for it; -F sets the folder to look in, which is facts now"
    )
    assert refused(Path("facts"), relation("x: number"), types, filename="/nowhere/r") == (
        "cannot read /nowhere/r: there is no such file\n  hint: .input r asks for it"
    )


def test_a_folder_is_not_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relation: Callable[..., Relation], types: Types
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.facts").mkdir()
    assert refused(Path(), relation("x: number"), types) == (
        "cannot read r.facts: is a directory\n"
        "  hint: .input r asks for it; -F sets the folder to look in, which is . now"
    )


NUMBER_HINT = "columns of type number hold whole numbers from -9223372036854775808 to 9223372036854775807"


@pytest.mark.parametrize(
    ("content", "columns", "params", "message"),
    [
        (
            "1\t2\n1\ttwo\n",
            "x: number, y: number",
            {},
            f"r.facts:2: column 2 (y: number): 'two' is not a number\n  hint: {NUMBER_HINT}",
        ),
        (
            "0\n9223372036854775808\n",
            "x: number",
            {},
            "r.facts:2: column 1 (x: number): '9223372036854775808' is out of range: "
            "a number lies between -9223372036854775808 and 9223372036854775807\n"
            f"  hint: {NUMBER_HINT}",
        ),
        (
            "1\n-1\n",
            "x: unsigned",
            {},
            "r.facts:2: column 1 (x: unsigned): '-1' is not an unsigned number\n"
            "  hint: columns of type unsigned hold whole numbers from 0 to 18446744073709551615",
        ),
        (
            "1\n1,5\n",
            "x: float",
            {},
            "r.facts:2: column 1 (x: float): '1,5' is not a float\n  hint: a float is written 4, 0.5 or 1e-3",
        ),
        (
            "1\nNaN\n",
            "x: float",
            {},
            "r.facts:2: column 1 (x: float): 'NaN' is not a float\n  hint: a float is written 4, 0.5 or 1e-3",
        ),
        (
            "nil\n[1]\n",
            "x: Pair",
            {},
            "r.facts:2: column 1 (x: Pair): "
            "'[1]' is not a Pair: expected ',' and s: symbol at character 3, found ']'\n"
            "  hint: a Pair is written nil or [x: number, s: symbol]",
        ),
        (
            "$Unit\n$Units\n",
            "x: Expr",
            {},
            "r.facts:2: column 1 (x: Expr): '$Units' is not an Expr: it has no branch $Units, "
            "only $Literal, $Name, $Add, $Unit\n"
            "  hint: an Expr is written $Literal(value: float) or $Name(name: symbol) or "
            "$Add(left: Expr, right: Expr) or $Unit",
        ),
        (
            "[]\n1\n",
            "x: numbers",
            {},
            "r.facts:2: column 1 (x: numbers): "
            "'1' is not a list<number>: expected '[' at character 1, found '1'\n"
            "  hint: a list<number> is written [] or [number, number, …]",
        ),
        (
            "1\t2\n1\n1\t2\t3\n",
            "x: number, y: number",
            {},
            "r.facts:2: 1 column, but r(x: number, y: number) has 2\n"
            "r.facts:3: 3 columns, but r(x: number, y: number) has 2\n"
            '  hint: columns are separated by a tab; .input r(delimiter="…") sets another text',
        ),
        (
            "1,2\n",
            "x: number, y: number",
            {},
            "r.facts:1: 1 column, but r(x: number, y: number) has 2\n"
            '  hint: if "," separates the columns, write .input r(delimiter=",")',
        ),
        (
            "1\t2\n",
            "x: number, y: number",
            {"delimiter": ";"},
            "r.facts:1: 1 column, but r(x: number, y: number) has 2\n"
            '  hint: if "\\t" separates the columns, write .input r(delimiter="\\t")',
        ),
        (
            "1\t2\n\n3\t4\n",
            "x: number, y: number",
            {},
            "r.facts:2: an empty line, but r(x: number, y: number) has 2\n  hint: remove the empty line",
        ),
        (
            "x\ty\n1\t2\n",
            "x: number, y: number",
            {},
            "r.facts:1: column 1 (x: number): 'x' is not a number\n"
            "r.facts:1: column 2 (y: number): 'y' is not a number\n"
            f"  hint: {NUMBER_HINT}\n"
            "  hint: if the first line names the columns, write .input r(headers=true)",
        ),
        (
            "a\t1\n2\n",
            "x: number",
            {"columns": "1"},
            "r.facts:2: 1 column, but r(x: number) reads column 2\n"
            '  hint: columns are separated by a tab; .input r(delimiter="…") sets another text',
        ),
        (
            "x\n1\nx\n",
            "x: number",
            {"headers": "true"},
            f"r.facts:3: column 1 (x: number): 'x' is not a number\n  hint: {NUMBER_HINT}",
        ),
        (
            "x\tq\tx\n1\t2\t3\n",
            "x: number, y: number",
            {"headers": "true"},
            "r.facts:1: no column is called y\n"
            "r.facts:1: r has no column 'q'\n"
            "r.facts:1: two columns are called x\n"
            "  hint: with headers=true the first line names the columns of r, in any order: x, y\n"
            '  hint: columns="0:1" takes columns by their places instead',
        ),
        (
            "y,x\n1,2\n",
            "x: number, y: number",
            {"headers": "true"},
            "r.facts:1: no column is called x\n"
            "r.facts:1: no column is called y\n"
            "r.facts:1: r has no column 'y,x'\n"
            '  hint: if "," separates the columns, write .input r(delimiter=",")\n'
            '  hint: columns="0:1" takes columns by their places instead',
        ),
        (
            "y\tx\na\t2\n",
            "x: number, y: number",
            {"headers": "true"},
            f"r.facts:2: column 1 (y: number): 'a' is not a number\n  hint: {NUMBER_HINT}",
        ),
        (
            "y\tx\n1\t2\t3\n",
            "x: number, y: number",
            {"headers": "true"},
            "r.facts:2: 3 columns, but r(y: number, x: number) has 2\n"
            '  hint: columns are separated by a tab; .input r(delimiter="…") sets another text',
        ),
        (
            '"a\nb",1\n"c",x\n',
            "x: symbol, y: number",
            {"rfc4180": "true"},
            f"r.facts:3: column 2 (y: number): 'x' is not a number\n  hint: {NUMBER_HINT}",
        ),
        (
            'a,1\n"b,2\n',
            "x: symbol, y: number",
            {"rfc4180": "true"},
            "r.facts:2: the quote that starts here is never closed\n"
            "  hint: a quote inside of a quoted field is doubled",
        ),
        (
            '"a\n"b,2\n',
            "x: symbol, y: number",
            {"rfc4180": "true"},
            "r.facts:2: expected ',' or the line's end after a quoted field, found 'b'\n"
            "  hint: a quote inside of a quoted field is doubled",
        ),
        (
            "()\ntrue\n",
            "",
            {},
            "r.facts:2: expected (), found 'true'\n"
            "  hint: r has no columns: the line () says that it holds, and so does an empty one",
        ),
        (
            b"caf\xe9\n",
            "x: symbol",
            {},
            "r.facts:1: byte 0xe9 at offset 3 is not UTF-8\n"
            "  hint: convert the file, for instance with: iconv -f LATIN1 -t UTF-8 r.facts",
        ),
        (
            b"\x1f\x8b\x08",
            "x: symbol",
            {},
            "cannot decompress r.facts: Compressed file ended before the end-of-stream marker was reached\n"
            "  hint: compress it again with gzip",
        ),
    ],
)
def test_bad_rows_are_reported_with_their_place(
    content: str | bytes, columns: str, params: dict[str, str], message: str, refusal: Refusal
) -> None:
    assert refusal(content, columns, **params) == message


def test_all_bad_rows_are_counted_and_twenty_are_shown(refusal: Refusal) -> None:
    content = "".join(f"{at}\n" if at % 2 else f"x{at}\n" for at in range(1, 101))
    lines = refusal(content, "x: number").split("\n")
    assert lines[0] == "r.facts:2: column 1 (x: number): 'x2' is not a number"
    assert lines[19] == "r.facts:40: column 1 (x: number): 'x40' is not a number"
    assert lines[20:] == ["and 30 more", f"  hint: {NUMBER_HINT}"]
