"""Values at the borders: what is written as text, JSON, Arrow, SQLite, a state or a message is read back as it was."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whence import Program, Session, load
from whence.io.facts import read_relation, write_relation
from whence.io.json_rows import fields_from_json, fields_to_json
from whence.io.json_text import read_json, write_json
from whence.io.updates import AS_LISTS
from whence.io.values import format_value, parse_value
from whence.lang.program import Transfer
from whence.lang.tree import NOWHERE
from whence.lang.types import Tuple, Value
from whence.network.codec import Codec, Reader
from whence.pipeline.columns import decode_rows, encode_rows

SETTINGS = settings(max_examples=25, deadline=None)
LEAST, MOST = -(2**63), 2**63 - 1
TEXTS = st.one_of(
    st.sampled_from(["", "nil", '"', '"nil"', "true", "a,b", "1", " x ", "\\"]), st.text(max_size=4)
).filter(lambda text: not set(text) & set("\t\n\r") and text.isprintable())
KINDS: dict[str, st.SearchStrategy[Value]] = {
    "number": st.integers(LEAST + 1, MOST),
    "unsigned": st.integers(0, 2**64 - 1).filter(lambda number: number != 2**63),
    "float": st.floats(allow_nan=False).map(lambda number: number + 0.0),
    "symbol": TEXTS,
    "bool": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(),
    "decimal(5,2)": st.integers(-99999, 99999).map(lambda units: Decimal(units) / 100),
    "decimal(18,0)": st.integers(-(10**18) + 1, 10**18 - 1).map(Decimal),
    "decimal(18,18)": st.integers(-(10**18) + 1, 10**18 - 1).map(lambda units: Decimal(units).scaleb(-18)),
}
TYPES = [*KINDS, *(f"{name}?" for name in KINDS)]


def program_of(*types: str) -> Program:
    columns = ", ".join(f"c{at}:{each}" for at, each in enumerate(types))
    fields = ", ".join(f"f{at}:{each}" for at, each in enumerate(types))
    return load(f".type All = [{fields}]\n.decl r({columns}, p:All)\n.input r\n.output r\n")


PROGRAM = program_of(*TYPES)
RELATION = PROGRAM.relations["r"]


def values(name: str) -> st.SearchStrategy[Value]:
    return st.one_of(st.none(), KINDS[name[:-1]]) if name.endswith("?") else KINDS[name]


CELLS = st.tuples(*map(values, TYPES))
ROWS = st.lists(st.tuples(CELLS, st.one_of(st.none(), CELLS)).map(lambda pair: (*pair[0], pair[1])), max_size=4)


@SETTINGS
@given(ROWS)
def test_text_of_values_reads_back(rows: list[Tuple]) -> None:
    for row in rows:
        for value, field in zip(row, RELATION.fields, strict=True):
            text = format_value(value, field.kind, PROGRAM.types)
            assert parse_value(text, field.kind, PROGRAM.types) == value


@pytest.mark.parametrize(
    "params", [{}, {"rfc4180": "true"}, {"IO": "jsonfile"}, {"IO": "jsonfile", "format": "object"}, {"IO": "sqlite"}]
)
def test_files_read_back(params: dict[str, str]) -> None:
    @SETTINGS
    @given(ROWS)
    def follows(rows: list[Tuple]) -> None:
        with TemporaryDirectory() as folder:
            params_with_name = {**params, "filename": "r.data"}
            write_relation(
                Transfer("output", "r", params_with_name, NOWHERE), RELATION, PROGRAM.types, rows, Path(folder)
            )
            transfer = Transfer("input", "r", params_with_name, NOWHERE)
            assert read_relation(transfer, RELATION, PROGRAM.types, Path(folder)) == set(rows)

    follows()


@SETTINGS
@given(ROWS)
def test_json_and_states_and_messages_read_back(rows: list[Tuple]) -> None:
    types, fields = PROGRAM.types, RELATION.fields
    for row in rows:
        text = write_json(fields_to_json(row, fields, AS_LISTS, types))
        assert fields_from_json(read_json(text), fields, types) == row
    assert decode_rows(encode_rows(rows, fields, types), fields, types) == rows
    codec = Codec(types, [tuple(each.kind for each in fields)])
    for row in rows:
        assert codec.read_row(0, Reader(codec.row(0, row, {}))) == row


@SETTINGS
@given(ROWS)
def test_sessions_give_back_what_they_take(rows: list[Tuple]) -> None:
    session = Session(PROGRAM, facts={"r": rows})
    assert set(session.relation("r")) == set(rows)
    assert all(row in session.relation("r") for row in rows)
    flat = load(f".decl r({', '.join(f'c{at}:{each}' for at, each in enumerate(TYPES))})\n.input r\n.output r\n")
    cells = {row[:-1] for row in rows}
    table = Session(flat, facts={"r": cells}).relation("r").arrow()
    assert set(Session(flat, facts={"r": table}).relation("r")) == cells
    assert table.num_rows == len(cells)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("number?", LEAST),
        ("unsigned?", 2**63),
        ("bool", 1),
        ("date", datetime(2024, 1, 1)),  # noqa: DTZ001
        ("timestamp", date(2024, 1, 1)),
        ("date", "2024-01-01"),
        ("number", None),
        ("decimal(4,2)", Decimal("1.234")),
        ("decimal(4,2)", Decimal(100)),
        ("decimal(4,2)", 1.5),
        ("decimal(4,2)", Decimal("nan")),
    ],
)
def test_what_is_no_value_of_the_type_is_refused(type_: str, value: Value) -> None:
    program = load(f".decl r(x:{type_})\n.input r\n.output r\n")
    with pytest.raises(ValueError, match="column x cannot hold"):
        Session(program, facts={"r": [(value,)]})
