"""What is written reads back as what it was."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whence.io import format_value, parse_value, read_relation, write_relation
from whence.lang.program import Relation, Transfer
from whence.lang.tree import NOWHERE
from whence.lang.types import (
    FLOAT,
    NUMBER,
    SYMBOL,
    UNSIGNED,
    AdtKind,
    Field,
    Kind,
    ListKind,
    RecordKind,
    Tuple,
    Types,
    Value,
    Variant,
)

NODE = RecordKind("Node")
TERM = AdtKind("Term")
TYPES = Types(
    records={
        "Empty": (),
        "Node": (Field("label", "symbol", SYMBOL), Field("weight", "float", FLOAT), Field("next", "Node", NODE)),
        "Mixed": (Field("term", "Term", TERM), Field("words", "words", ListKind(SYMBOL))),
    },
    adts={
        "Term": {
            "Zero": (),
            "Word": (Field("text", "symbol", SYMBOL),),
            "Pair": (Field("left", "Term", TERM), Field("node", "Node", NODE)),
        }
    },
)

kinds = st.recursive(
    st.sampled_from([NUMBER, UNSIGNED, FLOAT, SYMBOL, NODE, TERM, RecordKind("Empty"), RecordKind("Mixed")]),
    lambda inner: inner.map(ListKind),
    max_leaves=3,
)
# Weighted towards what has a meaning in a cell.
symbols = st.text(st.sampled_from('ab1 ,;[]()"\\$\n\r\t\0\x0b\x0c\x1c\x85\u2028\ufeffé中😀'), max_size=6)


def values(kind: Kind, depth: int = 3) -> st.SearchStrategy[Value]:
    match kind:
        case ListKind(element):
            return st.lists(values(element, depth - 1), max_size=3).map(tuple) if depth else st.just(())
        case RecordKind(name):
            return st.none() | records(name, depth) if depth else st.none()
        case AdtKind(name):
            branches = TYPES.adts[name].items()
            usable = [(branch, fields) for branch, fields in branches if depth or not fields]
            return st.one_of(variants(branch, fields, depth) for branch, fields in usable)
    if kind == SYMBOL:
        return symbols
    if kind == FLOAT:
        return st.floats(allow_nan=False)
    return st.integers(0, 2**64 - 1) if kind == UNSIGNED else st.integers(-(2**63), 2**63 - 1)


def records(name: str, depth: int) -> st.SearchStrategy[Value]:
    return st.tuples(*(values(each.kind, depth - 1) for each in TYPES.records[name]))


def variants(branch: str, fields: tuple[Field, ...], depth: int) -> st.SearchStrategy[Value]:
    return st.tuples(*(values(each.kind, depth - 1) for each in fields)).map(lambda args: Variant(branch, args))


@given(st.data())
def test_a_value_reads_back_from_its_text(data: st.DataObject) -> None:
    kind = data.draw(kinds)
    value = data.draw(values(kind))
    assert parse_value(format_value(value, kind, TYPES), kind, TYPES) == value


@st.composite
def relations(draw: st.DrawFn) -> tuple[Relation, set[Tuple]]:
    fields = [Field(f"c{at}", str(kind), kind) for at, kind in enumerate(draw(st.lists(kinds, max_size=3)))]
    rows = draw(st.sets(st.tuples(*(values(each.kind, 2) for each in fields)), max_size=5))
    return Relation("r", tuple(fields), NOWHERE), rows


FORMATS: list[dict[str, str]] = [
    {"rfc4180": "true"},
    {"rfc4180": "true", "delimiter": "; "},
    {"rfc4180": "true", "headers": "true", "compress": "true"},
    {"IO": "jsonfile"},
    {"IO": "jsonfile", "format": "object"},
]


@pytest.mark.parametrize("params", FORMATS)
@given(written=relations())
def test_a_relation_reads_back_from_its_file(params: dict[str, str], written: tuple[Relation, set[Tuple]]) -> None:
    assert _through_a_file(*written, {**params, "filename": "r"}) == written[1]


@pytest.mark.parametrize("delimiter", ["\t", ",", ", ", " "])
@given(written=relations())
def test_a_relation_without_ambiguous_symbols_reads_back_from_plain_lines(
    delimiter: str, written: tuple[Relation, set[Tuple]]
) -> None:
    relation, rows = written
    clear = {row for row in rows if not any(_ambiguous(value, delimiter) for value in row)}
    assert _through_a_file(relation, clear, {"delimiter": delimiter, "filename": "r"}) == clear


def _ambiguous(value: Value, delimiter: str) -> bool:
    return isinstance(value, str) and any(each in value for each in (delimiter, "\n", "\r"))


def _through_a_file(relation: Relation, rows: set[Tuple], params: dict[str, str]) -> set[Tuple]:
    with tempfile.TemporaryDirectory() as folder:
        write_relation(Transfer("output", "r", params, NOWHERE), relation, TYPES, rows, Path(folder))
        return read_relation(Transfer("input", "r", params, NOWHERE), relation, TYPES, Path(folder))
