"""Rows read and written by column are the rows that are read and written one by one."""

import random
from pathlib import Path

import numpy as np
import pytest

from whence import Program, load
from whence import text_columns as by_column
from whence.backends.local import parallel, text_out
from whence.backends.local.text_in import LENGTH, LENGTH_BITS, WINDOW
from whence.backends.local.text_order import order_of_texts, sorted_keys
from whence.io import read_relation, read_rows, write_relation
from whence.io.plain_columns import Coded, PlainColumns, numbered_lines
from whence.lang.types import Tuple
from whence.session import evaluated
from whence.text_columns import read_columns, write_columns

TEXT = """.decl r(a:number, b:symbol, c:unsigned) .input r{}
.decl s(a:number, b:symbol, c:unsigned) .output s{}
s(a, b, c) :- r(a, b, c).
"""
ODD = ["", " ", "a b", "é", "\U0001f600", "x'y", 'x"y', "0x", "#", "\\", "0", "nil", "\x85", "\u2028", "z" * 300]


def program(reading: str = "", writing: str = "") -> Program:
    return load(TEXT.format(reading, writing))


def rows_of(columns: PlainColumns) -> set[Tuple]:
    numbers, texts, unsigned = columns.columns
    assert isinstance(texts, Coded)
    assert not isinstance(numbers, Coded)
    assert not isinstance(unsigned, Coded)
    found = [texts.values[at] for at in texts.places.tolist()]
    return set(zip(numbers.tolist(), found, unsigned.view(np.uint64).tolist(), strict=True))


def random_rows(seed: int) -> list[Tuple]:
    rng = random.Random(seed)
    edges = [0, 1, -1, 2**63 - 1, -(2**63), 7]
    return [
        (rng.choice([*edges, rng.randrange(-99, 99)]), rng.choice(ODD), rng.choice([0, 2**64 - 1, 2**63, 5]))
        for _ in range(rng.randrange(1, 60))
    ]


@pytest.mark.parametrize("seed", range(20))
def test_both_ways_read_and_write_the_same(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_column, "MANY_ROWS", 0)
    rows = random_rows(seed)
    loaded = program()
    text = "".join(f"{a}\t{b}\t{c}\n" for a, b, c in rows)
    (tmp_path / "r.facts").write_text(text, encoding="utf-8", newline="")
    transfer, relation = next(loaded.transfers_of("input")), loaded.relations["r"]
    columns = read_columns(transfer, relation, tmp_path)
    assert columns is not None
    assert rows_of(columns) == read_relation(transfer, relation, loaded.types, tmp_path) == set(rows)

    session = evaluated(loaded, {"r": columns}, wanted=["s"])
    assert session.views()["s"] == set(rows)
    output, relation = next(loaded.transfers_of("output")), loaded.relations["s"]
    written = session.relation("s").plain_columns()
    assert written is not None
    assert write_columns(output, relation, written, tmp_path / "columns")
    write_relation(output, relation, loaded.types, set(rows), tmp_path / "rows")
    assert (tmp_path / "columns/s.csv").read_bytes() == (tmp_path / "rows/s.csv").read_bytes()


@pytest.mark.parametrize(
    ("reading", "data"),
    [
        ("", b"1\ta\t2\r\n"),
        ("", b"\xef\xbb\xbf1\ta\t2\n"),
        ("", b"0x1\ta\t2\n"),
        ("", b"1\ta\n"),
        ("", b"1\ta\t2\t3\n"),
        ("", b"1\ta\t-2\n"),
        ("", b"1\t\xff\t2\n"),
        ("", b"1\ta\t\n"),
        ("", b"9223372036854775808\ta\t2\n"),
        ("(rfc4180=true)", b'1,"a,b",2\n'),
        ("(headers=true)", b"a\tb\tc\n1\ta\t2\n"),
        ('(columns="0:2:1")', b"1\t2\ta\n"),
    ],
)
def test_what_is_not_plain_is_left_to_the_other_way(reading: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / "r.facts").write_bytes(data)
    loaded = program(reading)
    assert read_columns(next(loaded.transfers_of("input")), loaded.relations["r"], tmp_path) is None


@pytest.mark.parametrize("text", ["a\tb", "a\nb", "a\rb", "\ud800", "\ufeffa"])
def test_texts_that_would_be_ambiguous_are_left_to_the_other_way(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_column, "MANY_ROWS", 0)
    loaded = program()
    one, place = np.array([1]), np.array([0], dtype=np.int32)
    columns = PlainColumns((one, Coded(place, [text]), one))
    output = next(loaded.transfers_of("output"))
    assert not write_columns(output, loaded.relations["s"], columns, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_few_rows_are_written_in_the_other_way(tmp_path: Path) -> None:
    loaded = program()
    one, place = np.array([1]), np.array([0], dtype=np.int32)
    columns = PlainColumns((one, Coded(place, ["a"]), one))
    assert not write_columns(next(loaded.transfers_of("output")), loaded.relations["s"], columns, tmp_path)


@pytest.mark.parametrize("span", [10, 2**62])
def test_lines_are_told_apart(span: int) -> None:
    rng = np.random.default_rng(1)
    lines = rng.integers(-span, span, (500, 3)) // (span // 5) * (span // 5)
    found = numbered_lines(lines)[0]
    assert len(found) < 500
    assert sorted(map(tuple, found.tolist())) == sorted(set(map(tuple, lines.tolist())))


PIECES = [
    "",
    "a",
    "b",
    "ab",
    "abcdefgh",
    "abcdefghi",
    "abcdefgh\0",
    "é",
    "\U0001f600",
    "\0",
    "a\0",
    "0x1",
    '"',
    " ",
    "z" * 40,
]
KINDS = ["number", "symbol", "unsigned"]


def random_number(rng: random.Random, kind: str) -> int:
    edges = [0, 1, 2**31, 2**32 - 1, 10**18, 2**63 - 1] + ([2**63, 2**64 - 1] if kind == "unsigned" else [])
    found = rng.choice([rng.randrange(12), rng.choice(edges), rng.randrange(10 ** rng.randrange(1, 19))])
    return found if kind == "unsigned" else rng.choice([found, -found, ~found])


def random_text(rng: random.Random) -> str:
    return "".join(rng.choice(PIECES) for _ in range(rng.randrange(3)))


def random_table(rng: random.Random) -> tuple[list[str], list[Tuple]]:
    kinds = [rng.choice(KINDS) for _ in range(rng.randrange(1, 5))]
    # Of columns with close values rows fit into a word; those of the others do not.
    pools = [
        [random_text(rng) if kind == "symbol" else random_number(rng, kind) for _ in range(rng.choice([1, 3, 30]))]
        for kind in kinds
    ]
    return kinds, [tuple(map(rng.choice, pools)) for _ in range(rng.randrange(1, 90))]


@pytest.fixture
def shared_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its size, in small pieces."""
    monkeypatch.setattr(by_column, "MANY_ROWS", 0)
    monkeypatch.setattr(parallel, "CORES", 3)
    monkeypatch.setattr(parallel, "LARGE", 2)
    monkeypatch.setattr(text_out, "ROWS", 7)


def program_of(kinds: list[str], delimiter: str) -> Program:
    columns = ", ".join(f"c{at}:{kind}" for at, kind in enumerate(kinds))
    shown = delimiter.replace("\t", "\\t")
    return load(
        f'.decl r({columns}) .input r(delimiter="{shown}") .decl s({columns}) .output s(delimiter="{shown}")'
        f"s({', '.join(f'c{at}' for at in range(len(kinds)))}) :- r({', '.join(f'c{at}' for at in range(len(kinds)))})."
    )


@pytest.mark.usefixtures("shared_by_threads")
@pytest.mark.parametrize("seed", range(300))
def test_random_tables_come_and_go_as_they_do_row_by_row(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    kinds, rows = random_table(rng)
    delimiter = rng.choice("\t\t,;| ")
    loaded = program_of(kinds, delimiter)
    text = "".join(delimiter.join(map(str, row)) + "\n" for row in rows)
    if rng.random() < 0.5 and rows[-1] != ("",):
        text = text.removesuffix("\n")
    (tmp_path / "r.facts").write_text(text, encoding="utf-8", newline="")
    transfer, relation = next(loaded.transfers_of("input")), loaded.relations["r"]
    columns = read_columns(transfer, relation, tmp_path)
    is_plain = not any(delimiter in each for row in rows for each in row if isinstance(each, str))
    assert (columns is not None) == is_plain
    if columns is None:
        return
    values = [
        [each.values[at] for at in each.places.tolist()]
        if isinstance(each, Coded)
        else each.view(np.uint64 if kind == "unsigned" else np.int64).tolist()  # type: ignore[union-attr]
        for each, kind in zip(columns.columns, kinds, strict=True)
    ]
    assert list(zip(*values, strict=True)) == rows == read_rows(transfer, relation, loaded.types, tmp_path)

    view = evaluated(loaded, {"r": columns}, wanted=["s"]).relation("s")
    assert set(view) == set(rows)
    written = view.plain_columns()
    assert written is not None
    output, relation = next(loaded.transfers_of("output")), loaded.relations["s"]
    assert write_columns(output, relation, written, tmp_path / "columns")
    write_relation(output, relation, loaded.types, set(rows), tmp_path / "rows")
    assert (tmp_path / "columns/s.csv").read_bytes() == (tmp_path / "rows/s.csv").read_bytes()


ODD_NUMBERS = [
    *("", "-", "--1", "1-", "+5", "1_0", "0x5", "0b1", "5\x0b", "٣", "1e3", "1.0", "1 2", "-0", "007", " 5 ", "- 5"),
    *(str(sign * (2**power + more)) for sign in (1, -1) for power in (31, 63, 64) for more in (-1, 0, 1)),
    *("18446744073709551619", "18446744073709551620", "99999999999999999999", "184467440737095516150", "0" * 30 + "1"),
]


@pytest.mark.parametrize("delimiter", ["\t", ",", " ", "-", "1", "x"])
@pytest.mark.parametrize("kind", ["number", "unsigned"])
@pytest.mark.parametrize("ending", ["\n", "", "\r\n", "\n\n"])
def test_odd_numbers_are_read_as_they_are_row_by_row(kind: str, delimiter: str, ending: str, tmp_path: Path) -> None:
    loaded = load(f'.decl r(a:{kind}, b:{kind}) .input r(delimiter="{delimiter}")'.replace("\t", "\\t"))
    transfer, relation = next(loaded.transfers_of("input")), loaded.relations["r"]
    read = 0
    for one in ODD_NUMBERS:
        for line in (f"{one}{delimiter}2", f"2{delimiter}{one}"):
            (tmp_path / "r.facts").write_text(f"1{delimiter}1\n{line}{ending}", encoding="utf-8", newline="")
            columns = read_columns(transfer, relation, tmp_path)
            if columns is not None:
                read += 1
                bits = np.uint64 if kind == "unsigned" else np.int64
                values = [each.view(bits).tolist() for each in columns.columns]  # type: ignore[union-attr]
                assert list(zip(*values, strict=True)) == read_rows(transfer, relation, loaded.types, tmp_path)
    assert (read > 0) == (delimiter not in "-1" and ending in ("\n", ""))


def test_texts_whose_digests_are_equal_are_told_apart(tmp_path: Path) -> None:
    # Of so many texts some have the same 32 bits.
    texts = [f"text {at * 7919 % 400_000}" for at in range(400_000)]
    loaded = load(".decl r(a:symbol) .input r")
    (tmp_path / "r.facts").write_text("\n".join(texts * 2), encoding="utf-8")
    columns = read_columns(next(loaded.transfers_of("input")), loaded.relations["r"], tmp_path)
    assert columns is not None
    (column,) = columns.columns
    assert isinstance(column, Coded)
    assert len(column.values) == len(texts)
    assert [column.values[at] for at in column.places.tolist()] == texts * 2


@pytest.mark.usefixtures("shared_by_threads")
@pytest.mark.parametrize("length", [1, WINDOW - 1, WINDOW, 3 * WINDOW])
def test_threads_share_what_has_very_long_lines(length: int, tmp_path: Path) -> None:
    loaded = load(".decl r(a:number, b:symbol) .input r")
    transfer, relation = next(loaded.transfers_of("input")), loaded.relations["r"]
    rows = [(at, chr(97 + at) * (length if at in {0, 3, 4} else 1)) for at in range(8)]
    (tmp_path / "r.facts").write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    columns = read_columns(transfer, relation, tmp_path)
    assert columns is not None
    numbers, texts = columns.columns
    assert isinstance(numbers, np.ndarray)
    assert isinstance(texts, Coded)
    assert list(zip(numbers.tolist(), [texts.values[at] for at in texts.places.tolist()], strict=True)) == rows


def test_texts_too_long_for_a_span_are_left_to_the_other_way(tmp_path: Path) -> None:
    loaded = load(".decl r(a:symbol) .input r .output r")
    transfer, relation = next(loaded.transfers_of("input")), loaded.relations["r"]
    for length in (LENGTH, LENGTH + 1):
        (tmp_path / "r.facts").write_text("x" * length + "\n", encoding="utf-8")
        assert (read_columns(transfer, relation, tmp_path) is not None) == (length == LENGTH)


@pytest.mark.parametrize("seed", range(60))
def test_texts_are_ordered_by_their_bytes(seed: int) -> None:
    rng = random.Random(seed)
    parts = [rng.choice([b"", b"a", b"\0", b"\0" * 8, b"abcdefgh", b"\xff", b"\x7f\x80", b"q" * 17]) for _ in range(4)]
    texts = list({b"".join(rng.choice(parts) for _ in range(rng.randrange(9))) for _ in range(200)})
    data = np.frombuffer(b"".join(texts) + bytes(8), np.uint8)
    lengths = np.array([*map(len, texts)])
    order = order_of_texts(data, (np.cumsum(lengths) - lengths) << LENGTH_BITS | lengths)
    assert [texts[at] for at in order.tolist()] == sorted(texts)


@pytest.mark.parametrize("bits", [1, 8, 9, 40, 61, 62])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_keys_are_sorted(bits: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "CORES", threads)
    monkeypatch.setattr(parallel, "LARGE", 2)
    rng = np.random.default_rng(bits)
    for size in (1, 2, 100, 9000):
        keys = rng.integers(0, 1 << bits, size)
        keys[-1] = (1 << bits) - 1
        keys[: size // 3] = keys[0]  # which makes shares that are empty
        assert sorted_keys(keys).tolist() == sorted(keys.tolist())
