import io
import json
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whence.io import FactError, updates
from whence.io.changes import Update
from whence.io.updates import (
    Commit,
    DeadLetter,
    DeadLetterFile,
    Record,
    Schema,
    Tick,
    format_changes,
    parse_record,
    read_lines,
    reported_writing,
)
from whence.lang import load
from whence.lang.fit import check_rows
from whence.lang.types import Tuple, Variant

PROGRAM = load("""
.type Pair = [x: number, s: symbol]
.type Expr = Name { name: symbol } | Unit {}
.decl link(src: symbol, dst: symbol)
.input link
.decl cost(place: symbol, value: float)
.input cost
.decl odd(n: number, u: unsigned, p: Pair, e: Expr)
.input odd
.decl up()
.input up
.decl reach(src: symbol, dst: symbol)
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
.output reach
""")
SCHEMA = Schema.of(PROGRAM)


def parsed(line: str | bytes, number: int = 7) -> Record | None:
    return parse_record(line.encode() if isinstance(line, str) else line, number, SCHEMA)


# -- records ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "record"),
    [
        (
            '{"op": "+", "relation": "link", "tuple": ["a", "b"], "time": 12.5}',
            Update("+", "link", ("a", "b"), 12.5),
        ),
        ('{"op": "-", "relation": "link", "tuple": {"dst": "b", "src": "a"}}', Update("-", "link", ("a", "b"))),
        ('{"op": "+", "relation": "link", "tuple": ["a", "b"], "time": null}', Update("+", "link", ("a", "b"))),
        ('{"op": "+", "relation": "link", "tuple": ["a", "b"], "time": -3}', Update("+", "link", ("a", "b"), -3)),
        (
            '{"op": "+", "relation": "odd", "tuple": [-1, 18446744073709551615, [2, "s"], "$Name(n)"]}',
            Update("+", "odd", (-1, 2**64 - 1, (2, "s"), Variant("Name", ("n",)))),
        ),
        ('{"op": "+", "relation": "cost", "tuple": ["é", 1]}', Update("+", "cost", ("é", 1.0))),
        ('{"op": "+", "relation": "up", "tuple": []}', Update("+", "up", ())),
        ('{"commit": true}', Commit()),
        ('{"commit": true}\r\n', Commit()),
        ('{"tick": 7}', Tick(7.0)),
    ],
)
def test_a_line_is_an_update_a_commit_or_a_tick(line: str, record: Record) -> None:
    assert parsed(line) == record


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(["1", "-0.0", "1e400", "inf", "nan", "\\ud800", 2**53 + 1, 2**63, -(2**63)]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "$Some", "y"]), inner, max_size=2)
    ),
    max_leaves=4,
)
_ANYTHING = load("""
.type Pair = [x: number, y: symbol]
.type Maybe = None {} | Some { x: float }
.decl n(x: number) .input n
.decl u(x: unsigned) .input u
.decl f(x: float) .input f
.decl s(x: symbol) .input s
.decl r(x: Pair) .input r
.decl m(x: Maybe) .input m
""")


@settings(max_examples=int(os.environ.get("WHENCE_EXAMPLES", "300")), deadline=None)
@given(st.sampled_from(sorted(_ANYTHING.base_relations)), _JSON)
def test_what_a_record_says_is_never_in_need_of_another_check(name: str, value: object) -> None:
    line = json.dumps({"op": "+", "relation": name, "tuple": [value]}).encode()
    record = parse_record(line, 1, Schema.of(_ANYTHING))
    if isinstance(record, Update):
        check_rows(_ANYTHING.relations[name], [record.tuple], _ANYTHING.types)


def test_attributes_without_a_meaning_are_ignored_so_that_changes_read_as_updates() -> None:
    change = '{"epoch": 3, "op": "-", "relation": "link", "tuple": ["a", "c"]}'
    assert parsed(change) == Update("-", "link", ("a", "c"))


@pytest.mark.parametrize("line", ["", "  ", "\t\r\n"])
def test_blank_lines_say_nothing(line: str) -> None:
    assert parsed(line) is None


def test_a_byte_order_mark_is_skipped_on_the_first_line_only() -> None:
    line = b'\xef\xbb\xbf{"commit": true}'
    assert parsed(line, number=1) == Commit()
    assert isinstance(parsed(line, number=2), DeadLetter)


LINK = '{"op": "+", "relation": "link", "tuple": %s}'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{op: +}", "this is not JSON: Expecting property name enclosed in double quotes at character 2"),
        ('{"commit": true} {"commit": true}', "this is not JSON: Extra data at character 18"),
        ("[" * 100_000, "this is not JSON: Expecting value at character 100001"),
        ('{"tick": ' + "1" * 5000 + "}", "a number has too many digits"),
        (b'{"op": "caf\xe9"}', "byte 0xe9 at offset 11 is not UTF-8"),
        ('["+", "link", ["a", "b"]]', 'expected an object, found ["+", "link", ["a", "b"]]'),
        ("null", "expected an object, found null"),
        ('{"commit": false}', "commit: false is not true"),
        ('{"commit": 1}', "commit: 1 is not true"),
        ('{"tick": "noon"}', 'tick: "noon" is not a finite number'),
        ('{"tick": null}', "tick: null is not a finite number"),
        ("{}", "op is missing"),
        ('{"op": "+"}', "relation is missing"),
        ('{"op": "+", "relation": "link"}', "tuple is missing"),
        ('{"op": "*", "relation": "link", "tuple": []}', 'op: "*" is neither "+" nor "-"'),
        ('{"op": ["+"], "relation": "link", "tuple": []}', 'op: ["+"] is neither "+" nor "-"'),
        ('{"op": "+", "relation": 3, "tuple": []}', "relation: 3 is not a name"),
        ('{"op": "+", "relation": "lnk", "tuple": []}', "there is no relation lnk; did you mean link?"),
        ('{"op": "+", "relation": "zzz", "tuple": []}', "there is no relation zzz"),
        (
            '{"op": "+", "relation": "reach", "tuple": ["a", "b"]}',
            "reach is derived by rules: only base relations take updates",
        ),
        (LINK % '["a"]', "link(src: symbol, dst: symbol): 1 values, but 2 expected"),
        (LINK % '"ab"', 'link(src: symbol, dst: symbol): expected a list or an object, found "ab"'),
        (LINK % '["a", 2]', "link(src: symbol, dst: symbol): dst: 2 is not a symbol"),
        (LINK % '["a", null]', "link(src: symbol, dst: symbol): dst: null is not a symbol"),
        (LINK % '{"src": "a"}', "link(src: symbol, dst: symbol): dst is missing"),
        (LINK % '{"src": "a", "dst": "b", "via": "c"}', "link(src: symbol, dst: symbol): there is no attribute via"),
        (
            '{"op": "+", "relation": "cost", "tuple": ["a", ' + "9" * 400 + "]}",
            f"cost(place: symbol, value: float): value: '{'9' * 59}…' is out of range for a float",
        ),
        (
            '{"op": "+", "relation": "odd", "tuple": [1, -1, null, "$Unit"]}',
            "odd(n: number, u: unsigned, p: Pair, e: Expr): u: '-1' is not an unsigned number",
        ),
        (
            '{"op": "+", "relation": "odd", "tuple": [9223372036854775808, 1, null, "$Unit"]}',
            "odd(n: number, u: unsigned, p: Pair, e: Expr): n: '9223372036854775808' is out of range: "
            "a number lies between -9223372036854775808 and 9223372036854775807",
        ),
        (LINK % '["a", "b"], "time": "noon"', 'time: "noon" is not a finite number'),
        (LINK % '["a", "b"], "time": true', "time: true is not a finite number"),
        (LINK % '["a", "b"], "time": NaN', "time: NaN is not a finite number"),
        (LINK % '["a", "b"], "time": 1e999', "time: Infinity is not a finite number"),
        (LINK % f'["a", "b"], "time": {10**400}', f"time: '{10**58}…' is not a finite number"),
    ],
)
def test_a_line_that_cannot_be_applied_is_a_dead_letter(line: str | bytes, reason: str) -> None:
    found = parsed(line)
    assert isinstance(found, DeadLetter)
    assert (found.line, found.reason) == (7, reason)


def test_a_dead_letter_keeps_the_line_with_other_bytes_escaped() -> None:
    found = parsed(b'{"op": "caf\xe9 \xc3\xa9"}\r\n')
    assert isinstance(found, DeadLetter)
    assert found.record == '{"op": "caf\\xe9 é"}'


# -- lines ------------------------------------------------------------------------------------------------------------


def never() -> bool:
    return False


def test_the_last_line_needs_no_end() -> None:
    assert list(read_lines(io.BytesIO(b"a\n\nb"), "s", follow=False, stopped=never)) == [b"a", b"", b"b"]


def test_lines_longer_than_a_portion_stay_whole() -> None:
    long = b"x" * 200_000
    assert list(read_lines(io.BytesIO(long + b"\n" + long), "s", follow=False, stopped=never)) == [long, long]


def test_nothing_is_read_after_a_stop() -> None:
    asked = iter([False, False, True, True])
    assert list(read_lines(io.BytesIO(b"a\nb\nc\n"), "s", follow=False, stopped=lambda: next(asked))) == [b"a", b"b"]


def test_a_pipe_that_says_nothing_can_be_stopped() -> None:
    reader, writer = os.pipe()
    began = time.monotonic()
    with os.fdopen(reader, "rb") as stream, os.fdopen(writer, "wb"):
        assert list(read_lines(stream, "s", follow=False, stopped=lambda: time.monotonic() > began + 0.3)) == []
    assert time.monotonic() - began < 5


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "POLL", 0.01)
    monkeypatch.setattr(updates, "IDLE", 0.1)


@pytest.mark.usefixtures("hasty")
def test_a_growing_file_is_followed_and_pauses_are_told_once(tmp_path: Path) -> None:
    path = tmp_path / "grows"
    path.write_bytes(b"a\nhal")
    deadline = time.monotonic() + 10
    got: list[bytes | None] = []
    with path.open("rb") as stream:
        for line in read_lines(stream, "grows", follow=True, stopped=lambda: time.monotonic() > deadline):
            got.append(line)
            if got == [b"a", None]:
                # What comes now completes the line that was cut off.
                with path.open("ab") as file:
                    file.write(b"f\nb\n")
            if got[-1] is None and len(got) > 2:
                break
    assert got == [b"a", None, b"half", b"b", None]


@pytest.mark.usefixtures("hasty")
def test_a_followed_file_must_not_shrink(tmp_path: Path) -> None:
    path = tmp_path / "shrinks"
    path.write_bytes(b"a\nb\n")
    threading.Timer(0.05, path.write_bytes, [b"c\n"]).start()
    with path.open("rb") as stream, pytest.raises(FactError) as caught:
        list(read_lines(stream, "shrinks", follow=True, stopped=never))
    assert str(caught.value).startswith("shrinks became shorter while it was followed: ")


# -- changes ----------------------------------------------------------------------------------------------------------


def written(deleted: Iterable[Tuple], inserted: Iterable[Tuple], relation: str) -> str:
    outputs = [PROGRAM.relations[relation]]
    lines = format_changes(3, {relation: deleted}, {relation: inserted}, outputs, PROGRAM.types)
    return b"".join(lines).decode()


def test_deletions_come_before_insertions_and_both_are_sorted() -> None:
    assert written([("b", "é"), ("a", "c")], [("z", "z"), ("a", "z")], "reach") == (
        '{"epoch": 3, "op": "-", "relation": "reach", "tuple": ["a", "c"]}\n'
        '{"epoch": 3, "op": "-", "relation": "reach", "tuple": ["b", "é"]}\n'
        '{"epoch": 3, "op": "+", "relation": "reach", "tuple": ["a", "z"]}\n'
        '{"epoch": 3, "op": "+", "relation": "reach", "tuple": ["z", "z"]}\n'
    )


def test_relations_that_are_not_output_are_left_out() -> None:
    assert list(format_changes(1, {"link": [("a", "b")]}, {}, [PROGRAM.relations["reach"]], PROGRAM.types)) == []


@pytest.mark.parametrize(
    ("relation", "row"),
    [
        ("odd", (-1, 2**64 - 1, (2, "s"), Variant("Name", ("n",)))),
        ("odd", (0, 0, None, Variant("Unit"))),
        ("cost", ("a", float("inf"))),
        ("cost", ("a", 0.1)),
        ("link", ("\ud800", 'quote " and\nline')),
        ("up", ()),
    ],
)
def test_changes_read_back_as_updates(relation: str, row: Tuple) -> None:
    assert parsed(written([], [row], relation)) == Update("+", relation, row)


# -- dead letters -----------------------------------------------------------------------------------------------------


def test_the_file_of_dead_letters_begins_with_the_first(tmp_path: Path) -> None:
    path = tmp_path / "new" / "dead.jsonl"
    letters = DeadLetterFile(path)
    assert not path.parent.exists()
    letters.add(DeadLetter(1, "why", "é\ud800"))
    letters.add(DeadLetter(2, "why", '"'))
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert found == [
        {"line": 1, "reason": "why", "record": "é\ud800"},
        {"line": 2, "reason": "why", "record": '"'},
    ]
    DeadLetterFile(path).add(DeadLetter(3, "why", "x"))
    assert path.read_text() == '{"line": 3, "reason": "why", "record": "x"}\n'


def test_what_cannot_be_written_is_named() -> None:
    with pytest.raises(FactError, match=r"^cannot write a/b: no space left on device$"), reported_writing(Path("a/b")):
        raise OSError(28, "No space left on device")
    with pytest.raises(BrokenPipeError), reported_writing(Path("a/b")):
        raise BrokenPipeError
