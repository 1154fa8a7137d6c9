"""Tables by column: the same rows as row by row, or none, and then row by row says what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whence import Session, load
from whence.io import FactError
from whence.io.facts import is_large
from whence.io.frame_columns import columns_of_table
from whence.io.frames import rows_of_table, table_in
from whence.io.plain_columns import numbered_lines
from whence.text_columns import read_columns

KINDS = {
    "number": st.integers(-(2**63), 2**63 - 1),
    "unsigned": st.integers(0, 2**64 - 1),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "symbol": st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
}
TYPES = {"number": pa.int64(), "unsigned": pa.uint64(), "float": pa.float64(), "symbol": pa.string()}


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, pa.Table]:
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3))
    nullable = [draw(st.booleans()) for _ in kinds]
    values = [st.none() | KINDS[kind] if may else KINDS[kind] for kind, may in zip(kinds, nullable, strict=True)]
    rows = draw(st.lists(st.tuples(*values), max_size=8))
    rows += draw(st.lists(st.sampled_from(rows), max_size=3)) if rows else []
    columns = [pa.array([row[at] for row in rows], TYPES[kind]) for at, kind in enumerate(kinds)]
    pairs = zip(columns, kinds, strict=True)
    coded = [each.dictionary_encode() if kind == "symbol" and draw(st.booleans()) else each for each, kind in pairs]
    table = pa.table(coded, names=[f"c{at}" for at in range(len(kinds))])
    cut = draw(st.integers(0, len(rows)))
    chunked = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    marks = ["?" if may else "" for may in nullable]
    declared = ", ".join(f"c{at}:{kind}{mark}" for at, (kind, mark) in enumerate(zip(kinds, marks, strict=True)))
    return declared, chunked


@given(tables())
def test_a_session_has_the_rows_of_the_table(drawn: tuple[str, pa.Table]) -> None:
    declared, table = drawn
    program = load(f".decl r({declared}) .input r .output r")
    relation = program.relations["r"]
    if any(
        -(2**63) in table.column(at).to_pylist()
        for at, each in enumerate(relation.fields)
        if str(each.kind) == "number?"
    ):
        with pytest.raises(FactError, match="is the one number"):
            Session(program, facts={"r": table})
        return
    assert set(Session(program, facts={"r": table}).relation("r")) == set(rows_of_table(table, relation, "r"))
    is_reserved = any(
        (table.column(at).to_numpy().view("i8") == -(2**63)).any()
        for at, each in enumerate(relation.fields)
        if str(each.kind) in ("unsigned?", "float?") and not table.column(at).null_count
    )
    assert is_reserved or columns_of_table(table, relation, "r") is not None


@pytest.mark.parametrize(
    ("declared", "column", "problem"),
    [
        ("x:number", pa.array([1.5]), "do not fit number"),
        ("x:number", pa.array([1, None]), "row 2: column x is null"),
        ("x:symbol", pa.array([1]), "holds int64, not symbol"),
        ("x:number", pa.array([2**63], pa.uint64()), "do not fit number"),
        ("x:number?", pa.array([-(2**63)]), "is the one number"),
    ],
)
def test_what_does_not_fit_is_refused_as_ever(declared: str, column: pa.Array, problem: str) -> None:
    with pytest.raises(FactError, match=problem):
        Session(load(f".decl r({declared}) .input r .output r"), facts={"r": pa.table({"x": column})})


def test_a_parquet_file_beside_is_read_by_column(tmp_path: Path) -> None:
    program = load(".decl r(name:symbol, size:number) .input r .output r")
    transfer, relation = program.transfers[0], program.relations["r"]
    table = pa.table({"size": pa.array(range(200_000), pa.int32()), "name": [f"n{at % 9}" for at in range(200_000)]})
    pq.write_table(table, tmp_path / "r.parquet")
    assert not is_large(transfer, relation, tmp_path / "elsewhere")
    found = read_columns(transfer, relation, tmp_path)
    assert found is not None
    session = Session(program, facts={"r": found})
    assert set(session.relation("r")) == set(rows_of_table(table_in(tmp_path / "r.parquet", relation), relation, "r"))


@given(st.lists(st.tuples(st.integers(-2, 2), st.sampled_from([-(2**63), 0, 2**63 - 1])), max_size=30))
def test_lines_are_there_once_in_their_order(rows: list[tuple[int, int]]) -> None:
    lines = np.array(rows, dtype=np.int64).reshape(len(rows), 2)
    assert [tuple(each) for each in numbered_lines(lines)[0].tolist()] == list(dict.fromkeys(rows))
