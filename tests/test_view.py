"""A relation as Arrow table, DataFrame and collection says what its tuples say."""

from __future__ import annotations

import pyarrow as pa
import pytest

from whence import Session, Update, load

TEXT = """
.type Point = [x:number, y:float]
.type Shape = Circle { centre:Point, radius:float } | Dot { at:Point } | Nothing {}
.type Chain = [head:number, tail:Chain]
.decl plain(n:number, u:unsigned, f:float, s:symbol)
.decl made(p:Point, s:Shape, c:Chain, l:list<Point>)
.decl flag()
.input plain, made
.output plain, made, flag
flag() :- plain(_, _, _, _).
"""
PLAIN = [(-1, 2**64 - 1, 0.5, "é"), (2**63 - 1, 0, -2.0, ""), (0, 1, 1e300, "é")]


@pytest.fixture
def session() -> Session:
    return Session(load(TEXT), facts={"plain": PLAIN})


def test_primitive_columns_keep_their_values_and_get_their_types(session: Session) -> None:
    table = session.relation("plain").arrow()
    assert table.schema == pa.schema([("n", pa.int64()), ("u", pa.uint64()), ("f", pa.float64()), ("s", pa.string())])
    assert sorted(tuple(row.values()) for row in table.to_pylist()) == sorted(PLAIN)


def test_records_branches_and_lists_become_structs_and_lists() -> None:
    text = """
    .type Point = [x:number, y:float]
    .type Shape = Circle { centre:Point, radius:float } | Nothing {}
    .type Chain = [head:number, tail:Chain]
    made([1, 0.5], $Circle([2, 1.0], 3.0), [1, [2, nil]], [[7, 0.0], nil]).
    made(nil, $Nothing(), nil, []).
    .decl made(p:Point, s:Shape, c:Chain, l:list<Point>)
    .output made
    """
    point = pa.struct([("x", pa.int64()), ("y", pa.float64())])
    table = Session(load(text)).relation("made").arrow()
    shape = pa.struct(
        [
            ("$", pa.string()),
            ("Circle", pa.struct([("centre", point), ("radius", pa.float64())])),
            ("Nothing", pa.struct([])),
        ]
    )
    assert table.schema == pa.schema([("p", point), ("s", shape), ("c", pa.string()), ("l", pa.list_(point))])
    assert sorted(table.to_pylist(), key=lambda row: row["c"]) == [
        {
            "p": {"x": 1, "y": 0.5},
            "s": {"$": "Circle", "Circle": {"centre": {"x": 2, "y": 1.0}, "radius": 3.0}, "Nothing": None},
            "c": "[1, [2, nil]]",
            "l": [{"x": 7, "y": 0.0}, None],
        },
        {"p": None, "s": {"$": "Nothing", "Circle": None, "Nothing": {}}, "c": "nil", "l": []},
    ]


def test_a_relation_without_columns_keeps_its_one_tuple(session: Session) -> None:
    flag = session.relation("flag")
    assert (flag.arrow().num_rows, len(flag.pandas()), list(flag), () in flag) == (1, 1, [()], True)
    session.apply(Update("-", "plain", row) for row in PLAIN)
    assert (flag.arrow().num_rows, len(flag.pandas()), list(flag), () in flag) == (0, 0, [], False)


def test_an_empty_relation_has_its_columns() -> None:
    frame = Session(load(TEXT)).relation("plain").pandas()
    assert (list(frame.columns), len(frame)) == (["n", "u", "f", "s"], 0)


def test_pandas_has_the_same_rows(session: Session) -> None:
    frame = session.relation("plain").pandas()
    assert sorted(frame.itertuples(index=False, name=None)) == sorted(PLAIN)


@pytest.mark.parametrize(
    ("row", "there"),
    [
        (PLAIN[0], True),
        (list(PLAIN[0]), False),
        ((-1, 2**64 - 1, 0.5, "e"), False),
        ((-1, 2**64 - 1, 0.5, ["é"]), False),
        ((-1, 2**64, 0.5, "é"), False),
        ((2**63, 0, 0.5, "é"), False),
        (("-1", 0, 0.5, "é"), False),
        ((0, 1, "1e300", "é"), False),
        ((0, 1), False),
    ],
)
def test_membership_of_any_object_has_an_answer(session: Session, row: object, there: bool) -> None:
    assert (row in session.relation("plain")) == there


def test_a_view_shows_the_relation_as_it_is_now(session: Session) -> None:
    view = session.relation("plain")
    session.apply([Update("-", "plain", PLAIN[0])])
    assert (len(view), set(view), PLAIN[0] in view) == (2, set(PLAIN[1:]), False)
    assert repr(view) == "<plain(n:number, u:unsigned, f:float, s:symbol), 2 tuples>"


def test_an_unknown_relation_is_named_with_those_there_are(session: Session) -> None:
    with pytest.raises(ValueError, match="there is no relation plan; there are plain, made, flag"):
        session.relation("plan")
