"""Rows read and written by column are the rows that are read and written one by one."""

import random
from pathlib import Path

import numpy as np
import pytest

from whence import Program, load
from whence.io import read_relation, write_relation
from whence.io import text_columns as by_column
from whence.io.plain_columns import Coded, PlainColumns, numbered_lines
from whence.io.text_columns import read_columns, write_columns
from whence.lang.types import Tuple
from whence.session import evaluated

TEXT = """.decl r(a:number, b:symbol, c:unsigned) .input r{}
.decl s(a:number, b:symbol, c:unsigned) .output s{}
s(a, b, c) :- r(a, b, c).
"""
ODD = ["", " ", "a b", "é", "\U0001f600", "x'y", "#", "\\", "0", "nil", "\x85", "\u2028", "z" * 300]


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


@pytest.mark.parametrize("text", ["a\tb", "a\nb", 'a"b', "a\rb", "\ud800"])
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
