"""JSON without recursion, compared with Python's own."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from whence.io.json_text import Json, _pieces, _Reader, read_json, write_json

DEEP = 50_000

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(values, st.sampled_from([None, 1]))
def test_what_is_read_is_what_python_reads(value: Json, indent: int | None) -> None:
    assert _Reader(json.dumps(value, indent=indent)).read() == value


@given(st.text(alphabet='[]{},:"1 a-nul\\', max_size=12))
def test_text_is_refused_where_python_refuses_it(text: str) -> None:
    try:
        expected: object = json.loads(text)
    except json.JSONDecodeError as error:
        expected = error.pos
    try:
        found: object = _Reader(text).read()
    except json.JSONDecodeError as error:
        found = error.pos
    assert found == expected


@given(values, st.booleans())
def test_what_is_written_is_what_python_writes(value: Json, ascii_only: bool) -> None:
    encoder = json.JSONEncoder(ensure_ascii=ascii_only, allow_nan=False)
    assert "".join(_pieces(value, encoder)) == encoder.encode(value) == write_json(value, ascii_only=ascii_only)


def test_json_may_be_nested_as_deep_as_it_is_long() -> None:
    text = '{"a": [' * DEEP + "1" + "]}" * DEEP
    assert write_json(read_json(text)) == text
