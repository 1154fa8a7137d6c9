"""The language of confederations: what can be written, and what is said about mistakes, all at once."""

from __future__ import annotations

import pytest
from tests.exchange.vectors import confederation, null, put

from whence.exchange.compile import compile_confederation
from whence.exchange.instance import Instance
from whence.lang.diagnostics import ProgramError

PEERS = "peer A { R(x: number, y: symbol) key (x). }\npeer B { S(x: number, y: symbol). V(x: number). }\n"


def codes(text: str) -> list[tuple[str, int]]:
    with pytest.raises(ProgramError) as caught:
        compile_confederation(confederation(PEERS, text))
    error = caught.value
    return [
        (each.code, error.source.place(each.span).line - 2) for each in error.diagnostics if each.severity == "error"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m: R(x, y) S(x, y).", [("W1001", 1)]),
        ("m: R(x, y) -> S(x y).", [("W0101", 1)]),
        ("m: R(x, y), -> S(x, y).", [("W0101", 1)]),
        ("peer C { Q(x) }", [("W1001", 1)]),
        ("peer C { Q(x: text). }", [("W1001", 1)]),
        ("m: R(x, y) -> Q(x).\nn: A.V(x) -> V(x).", [("W1002", 1), ("W1002", 2)]),
        ("peer C { R(x: number). }\nm: R(x) -> V(x).", [("W1003", 2)]),
        ("m: R(x, _) -> V(x).\nm: V(x) -> V(x).", [("W1004", 2)]),
        ("peer A { T(x: number, x: number). }", [("W1004", 1), ("W1004", 1)]),
        ("m: R(x) -> V(x, x).", [("W1005", 1), ("W1005", 1)]),
        ("m: R(x, y) -> V(y).", [("W1006", 1)]),
        ('m: R("one", y) -> S(1, y).', [("W1006", 1)]),
        ("m: R(x, y) -> V(z).", [("W1007", 1)]),
        ("m: R(x, y) -> exists z, x. V(x).", [("W1007", 1), ("W1007", 1)]),
        ("m: R(x, y) -> V(_).", [("W1007", 1)]),
        ("m: R(x, y), !V(x) -> V(x).", [("W1007", 1)]),
        ("m: R(x + 1, y) -> V(x).", [("W1007", 1)]),
        ("m: R(x, y), x > 1 <-> V(x).", [("W1007", 1)]),
        ("m: V(x), y = x + 1 -> V(y).", [("W1008", 1)]),
        ("m: V(x) -> exists y. S(x, y).\nn: S(x, y) -> exists z. R(z, y).\no: R(x, y) -> V(x).", [("W1008", 1)]),
        ("B distrusts R(x, y) from A.", [("W1009", 1)]),
        ("B distrusts V(x) if y = 1.", [("W1009", 1)]),
        ("B distrusts V(x) if S(x, y).", [("W1009", 1), ("W1009", 1)]),
        ("B accepts deletions of A.", [("W1009", 1)]),
        ("B trusts A.", [("W1001", 1)]),
        ("B charges A much.", [("W1001", 1)]),
        ("B charges V(x, y) 2.", [("W1005", 1)]),
        ("B charges V(x) 2 if y > 1.", [("W1009", 1)]),
        ("B charges V(x) if x > 1.", [("W1001", 1)]),
        ("B charges Q(x) 2.", [("W1002", 1)]),
        ("B prefers A over D.", [("W1002", 1)]),
        ("B prefers A B.", [("W1001", 1)]),
        ('m: R(x, y), x < "a" -> V(x).', [("W0301", 1)]),
        ("function f(number): symbol.\nm: R(x, y), y = @f(x) -> V(x).", [("W0211", 1)]),
    ],
)
def test_mistakes_have_codes_and_places(text: str, expected: list[tuple[str, int]]) -> None:
    assert codes(text) == expected


def test_all_mistakes_are_reported_at_once() -> None:
    text = "m: Q(x) -> V(x).\nB distrusts D.\nn: R(x, y) V(x).\no: R(x, y) -> V(z).\n"
    assert codes(text) == [("W1002", 1), ("W1002", 2), ("W1001", 3), ("W1007", 4)]


def test_several_atoms_constants_conditions_and_functions() -> None:
    text = """
    function shout(symbol): symbol.
    m1: R(x, y), V(x), y != "no", z = @shout(y) -> exists n. S(x, z), S(n, z), V(7).
    """
    edits = put("A.R", (1, "a"), (2, "no"), (3, "c")) + put("B.V", (1,), (2,))
    instance = Instance(confederation(PEERS, text), edits, functions={"shout": str.upper})
    made = null(1, "A", of="m1_n")
    assert instance.relation("B.S") == {(1, "A"), (made, "A")}
    assert instance.relation("A.R") == {(1, "a"), (2, "no"), (3, "c")}
    assert instance.relation("B.V") == {(1,), (2,), (7,)}


def test_an_invented_value_passes_through_columns_but_meets_no_condition() -> None:
    text = """
    peer C { T(x: number, y: number). W(x: number). }
    m1: R(x, y) -> exists n. T(n, x).
    m2: T(n, x) -> W(n).
    m3: W(n), n >= 0 -> V(n).
    m4: T(x, y), W(y) -> V(y).
    C distrusts W(n) if n = 5.
    """
    edits = put("A.R", (1, "a")) + put("C.T", (5, 5), (6, 9)) + put("C.W", (1,))
    instance = Instance(confederation(PEERS, text), edits)
    made = null(1, of="m1_n")
    assert instance.relation("C.T") == {(made, 1), (5, 5), (6, 9)}
    assert instance.relation("C.W") == {(made,), (6,), (1,)}
    assert instance.relation("B.V") == {(6,), (1,)}


def test_floats_and_unsigned_numbers_may_be_invented_too() -> None:
    text = "peer C { F(x: float, u: unsigned). }\nm: R(x, y) -> exists f, u. F(f, u)."
    instance = Instance(confederation(PEERS, text), put("A.R", (1, "a")) + put("C.F", (0.5, 3)))
    assert instance.relation("C.F") == {(0.5, 3), (null(of="m_f"), null(of="m_u"))}
