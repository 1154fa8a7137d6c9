"""Tables of updates: what their columns mean, places to go on from, and what a sink wrote read again."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from whence import load
from whence.io import FactError
from whence.io.changes import Changes, Epoch, Update
from whence.io.updates import DeadLetter, Schema
from whence.pipeline.feeds import FeedLines, is_feed
from whence.pipeline.sinks.named import NamedSink
from whence.pipeline.sources.named import NamedSource

PROGRAM = load(
    """.decl link(x:symbol, y:symbol, cost:number) .input link
    .decl at(time:number, op:symbol) .input at
    .decl reach(x:symbol, y:symbol) .output reach
    reach(x, y) :- link(x, y, _)."""
)


def epochs(source: str, begin: dict[str, object] | None = None) -> tuple[list[Epoch], list[DeadLetter]]:
    letters: list[DeadLetter] = []
    opened = NamedSource(source).opened(
        PROGRAM, lambda letter, _: letters.append(letter), size=None, follow=False, stopped=lambda: False
    )
    return list(opened.epochs(begin or {})), letters


def updates(source: str) -> list[list[Update]]:
    return [list(each.updates) for each in epochs(source)[0]]


def test_columns_are_found_by_name_and_op_and_epoch_are_not_among_them(tmp_path: Path) -> None:
    (tmp_path / "link.csv").write_text("op,Epoch,cost,y,x\n+,1,7,b,a\n+,1,8,c,b\ndelete,2,7,b,a\n")
    first, second = updates(str(tmp_path / "link.csv"))
    assert first == [Update("+", "link", ("a", "b", 7)), Update("+", "link", ("b", "c", 8))]
    assert second == [Update("-", "link", ("a", "b", 7))]


def test_without_op_rows_come_and_other_names_go_by_place(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("from,to,km,time\na,b,7,2.5\n")
    assert updates(f"{tmp_path / 'links.csv'}#relation=link") == [[Update("+", "link", ("a", "b", 7), 2.5)]]


def test_a_relation_may_have_columns_called_time_and_op(tmp_path: Path) -> None:
    (tmp_path / "at.csv").write_text("time,op\n5,+\n6,minus\n")
    assert updates(str(tmp_path / "at.csv")) == [[Update("+", "at", (5, "+")), Update("+", "at", (6, "minus"))]]


def test_a_column_names_relations(tmp_path: Path) -> None:
    rows = [("+", "link", "a", "b", 7), ("+", "at", "a", "b", 8)]
    table = pa.table(dict(zip(("op", "relation", "x", "y", "cost"), map(list, zip(*rows, strict=True)), strict=True)))
    feather.write_feather(table, tmp_path / "all.arrow")
    found, letters = epochs(str(tmp_path / "all.arrow"))
    assert [list(each.updates) for each in found] == [[Update("+", "link", ("a", "b", 7))]]
    assert "at(time: number, op: symbol)" in letters[0].reason
    assert letters[0].line == 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("+,a,b,x7", 'cost: "x7" is not a number'),
        ("*,a,b,7", 'op: "*" is neither "+" nor "-"'),
        ("+,a,b", "link(x: symbol, y: symbol, cost: number)"),
        ("+,a,b,99999999999999999999", "cost"),
    ],
)
def test_rows_that_cannot_be_applied_are_dead_letters_with_their_number(tmp_path: Path, line: str, reason: str) -> None:
    (tmp_path / "link.csv").write_text(f"op,x,y,cost\n+,a,b,1\n{line}\n+,b,c,2\n")
    found, letters = epochs(str(tmp_path / "link.csv"))
    assert [each.tuple[2] for each in found[0].updates] == [1, 2]
    assert [each.line for each in letters] == [2]
    assert reason in letters[0].reason


def test_quoted_cells_may_hold_anything(tmp_path: Path) -> None:
    (tmp_path / "link.csv").write_text('op,x,y,cost\n+,"a\nb","c"",d",1\n')
    assert updates(str(tmp_path / "link.csv")) == [[Update("+", "link", ("a\nb", 'c",d', 1))]]


def test_a_run_goes_on_after_the_rows_that_it_has(tmp_path: Path) -> None:
    path = tmp_path / "link.csv"
    path.write_text("epoch,x,y,cost\n1,a,b,1\n2,b,c,2\n3,c,d,3\n")
    whole, _ = epochs(str(path))
    for at, each in enumerate(whole):
        rest, _ = epochs(str(path), dict(each.source))
        assert [one.updates for one in rest] == [one.updates for one in whole[at + 1 :]]
    place = dict(whole[1].source)
    path.write_text("epoch,x,y,cost\n1,a,b,1\n2,b,c,9\n3,c,d,3\n")
    with pytest.raises(FactError, match="its rows up to 2 have changed"):
        epochs(str(path), place)
    path.write_text("epoch,x,y,cost\n1,a,b,1\n")
    with pytest.raises(FactError, match="has 1 rows, of which 2 were read before"):
        epochs(str(path), place)


def test_what_a_parquet_sink_wrote_is_a_feed(tmp_path: Path) -> None:
    sink = NamedSink(f"parquet:{tmp_path}").opened(PROGRAM)
    sink.write(7, Changes({"reach": [("of", "another run")]}, {}))
    sink.write(0, Changes({"reach": [("a", "b")]}, {}))
    sink.write(1, Changes({"reach": [("b", "c"), ("c", "d")]}, {"reach": [("a", "b")]}))
    reader = load(".decl reach(x:symbol, y:symbol) .input reach .output reach")
    lines = FeedLines(tmp_path / "reach", {}, Schema.of(reader))
    found = [None if line is None else json.loads(line) for line in lines]
    assert [each and (each["op"], *each["tuple"]) for each in found] == [
        ("+", "a", "b"), None, ("-", "a", "b"), ("+", "b", "c"), ("+", "c", "d"), None
    ]  # fmt: skip


def test_what_is_wrong_with_a_table_is_said(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": ["a"], "z": [1]}), tmp_path / "link.parquet")
    with pytest.raises(FactError, match=r"link\.parquet has no column y"):
        updates(str(tmp_path / "link.parquet"))
    (tmp_path / "other.csv").write_text("x,y\na,b\n")
    with pytest.raises(FactError, match="has no column relation, and there is no relation other"):
        updates(str(tmp_path / "other.csv"))
    with pytest.raises(FactError, match="there is no relation wrong"):
        updates(f"{tmp_path / 'other.csv'}#relation=wrong")
    (tmp_path / "link.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(FactError, match=r"link\.parquet"):
        updates(str(tmp_path / "link.parquet"))
    (tmp_path / "link.csv").write_bytes(b"x,y,cost\n\xff,b,1\n")
    with pytest.raises(FactError, match="after row 0"):
        updates(str(tmp_path / "link.csv"))


def test_only_tables_name_their_relation_behind(tmp_path: Path) -> None:
    (tmp_path / "updates.jsonl").write_text("")
    assert not is_feed(tmp_path / "updates.jsonl")
    with pytest.raises(ValueError, match="its records name their relations"):
        NamedSource(f"{tmp_path / 'updates.jsonl'}#relation=link")


@pytest.mark.parametrize(
    ("text", "reason"),
    [("out", "names no kind"), ("csv:out", "there is no sink csv"), ("parquet:", "does not say where")],
)
def test_sinks_that_there_are_not(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        NamedSink(text)
