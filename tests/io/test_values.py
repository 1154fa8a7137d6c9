import pytest

from whence.io import format_value, parse_value
from whence.lang.types import (
    FLOAT,
    NUMBER,
    SYMBOL,
    UNSIGNED,
    AdtKind,
    Kind,
    ListKind,
    RecordKind,
    Types,
    Value,
    Variant,
)

PAIR = RecordKind("Pair")
NODE = RecordKind("Node")
EXPR = AdtKind("Expr")


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (-(2**63), NUMBER, "-9223372036854775808"),
        (2**64 - 1, UNSIGNED, "18446744073709551615"),
        (4.0, FLOAT, "4"),
        (0.5, FLOAT, "0.5"),
        (0.1, FLOAT, "0.1"),
        (1e20, FLOAT, "1e+20"),
        (float("-inf"), FLOAT, "-inf"),
        ("any, [text]", SYMBOL, "any, [text]"),
        ((1, "two words"), PAIR, "[1, two words]"),
        (None, PAIR, "nil"),
        (("a", ("b", None)), NODE, "[a, [b, nil]]"),
        (Variant("Unit"), EXPR, "$Unit"),
        (
            Variant("Add", (Variant("Literal", (2.0,)), Variant("Name", ("x",)))),
            EXPR,
            "$Add($Literal(2), $Name(x))",
        ),
        ((), ListKind(NUMBER), "[]"),
        (((1, 2), (), (3,)), ListKind(ListKind(NUMBER)), "[[1, 2], [], [3]]"),
    ],
)
def test_values_have_souffles_text(value: Value, kind: Kind, text: str, types: Types) -> None:
    assert format_value(value, kind, types) == text


@pytest.mark.parametrize(
    ("symbol", "in_record", "in_branch"),
    [
        ("a, b", '"a, b"', '"a, b"'),
        ("a]", '"a]"', "a]"),
        ("f(x)", "f(x)", '"f(x)"'),
        (" a", '" a"', '" a"'),
        ("a ", "a ", "a "),
        ('"a"', r'"\"a\""', r'"\"a\""'),
        ('a "b" \\ c', 'a "b" \\ c', 'a "b" \\ c'),
        ("a\tb\r\nc\\", r'"a\tb\r\nc\\"', r'"a\tb\r\nc\\"'),
        ("", "", ""),
    ],
)
def test_nested_symbols_are_quoted_where_they_would_be_misread(
    symbol: str, in_record: str, in_branch: str, types: Types
) -> None:
    assert format_value((1, symbol), PAIR, types) == f"[1, {in_record}]"
    assert format_value(Variant("Name", (symbol,)), EXPR, types) == f"$Name({in_branch})"
    assert parse_value(f"[1, {in_record}]", PAIR, types) == (1, symbol)
    assert parse_value(f"$Name({in_branch})", EXPR, types) == Variant("Name", (symbol,))


def test_a_list_of_one_empty_symbol_is_not_the_empty_list(types: Types) -> None:
    assert format_value(("",), ListKind(SYMBOL), types) == '[""]'
    assert parse_value('[""]', ListKind(SYMBOL), types) == ("",)
    assert parse_value("[]", ListKind(SYMBOL), types) == ()


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("0x1F", NUMBER, 31),
        ("-0x1f", NUMBER, -31),
        ("0b101", UNSIGNED, 5),
        ("+7", NUMBER, 7),
        (" 7 ", NUMBER, 7),
        ("007", NUMBER, 7),
        ("0" * 5000 + "7", NUMBER, 7),
        ("1e3", FLOAT, 1000.0),
        (".5", FLOAT, 0.5),
        ("INF", FLOAT, float("inf")),
        ("[ 1 ,two words ]", PAIR, (1, "two words ")),
        ('[1,"a\\"b"]', PAIR, (1, 'a"b')),
        ("  nil ", PAIR, None),
        ("$Unit()", EXPR, Variant("Unit")),
        ("$Add( $Unit , $Unit() )", EXPR, Variant("Add", (Variant("Unit"), Variant("Unit")))),
        ("[ 1,2 ]", ListKind(NUMBER), (1, 2)),
        ("[nil, [1, a]]", ListKind(PAIR), (None, (1, "a"))),
    ],
)
def test_other_spellings_are_read_too(text: str, kind: Kind, value: Value, types: Types) -> None:
    assert parse_value(text, kind, types) == value


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("abc", NUMBER, "'abc' is not a number"),
        ("", NUMBER, "'' is not a number"),
        ("1_000", NUMBER, "'1_000' is not a number"),
        ("٣", NUMBER, "'٣' is not a number"),
        ("0x", NUMBER, "'0x' is not a number"),
        ("3.01", NUMBER, "'3.01' is not a number"),
        ("-1", UNSIGNED, "'-1' is not an unsigned number"),
        (
            "9223372036854775808",
            NUMBER,
            "'9223372036854775808' is out of range: a number lies between -9223372036854775808 and 9223372036854775807",
        ),
        (
            "0x10000000000000000",
            UNSIGNED,
            "'0x10000000000000000' is out of range: an unsigned number lies between 0 and 18446744073709551615",
        ),
        (
            "9" * 5000,
            NUMBER,
            f"'{'9' * 59}…' is out of range: a number lies between -9223372036854775808 and 9223372036854775807",
        ),
        ("0.12e", FLOAT, "'0.12e' is not a float"),
        ("1_0.5", FLOAT, "'1_0.5' is not a float"),
        ("nan", FLOAT, "'nan' is not a float"),
        ("(1, a)", PAIR, "'(1, a)' is not a Pair: expected '[' or nil at character 1, found '('"),
        ("[1]", PAIR, "'[1]' is not a Pair: expected ',' and s: symbol at character 3, found ']'"),
        ("[1, a, b]", PAIR, "'[1, a, b]' is not a Pair: expected ']' at character 6, found ','"),
        ("[1, a", PAIR, "'[1, a' is not a Pair: its ']' is missing"),
        ('[1, "a]', PAIR, "'[1, \"a]' is not a Pair: the quote at character 5 is never closed"),
        ("[a, b]", PAIR, "'[a, b]' is not a Pair: 'a' is not a number"),
        ("[1, a] b", PAIR, "'[1, a] b' is not a Pair: it ends before 'b'"),
        ("", PAIR, "'' is not a Pair: expected '[' or nil at character 1, found the end"),
        ("Unit", EXPR, "'Unit' is not an Expr: expected '$' and the name of a branch at character 1, found 'U'"),
        ("$Mul", EXPR, "'$Mul' is not an Expr: it has no branch $Mul, only $Literal, $Name, $Add, $Unit"),
        ("$Name", EXPR, "'$Name' is not an Expr: expected '(' at character 6, found the end"),
        ("[1 2]", ListKind(NUMBER), "'[1 2]' is not a list<number>: '1 2' is not a number"),
        (
            "[[1]x]",
            ListKind(ListKind(NUMBER)),
            "'[[1]x]' is not a list<list<number>>: expected ']' or ',' at character 5, found 'x'",
        ),
        ("nil", ListKind(NUMBER), "'nil' is not a list<number>: expected '[' at character 1, found 'n'"),
    ],
)
def test_bad_text_is_refused_with_the_reason(text: str, kind: Kind, message: str, types: Types) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 -- the whole message is compared
        parse_value(text, kind, types)
    assert str(caught.value) == message


def test_a_record_may_nest_as_deep_as_a_long_list(types: Types) -> None:
    text = "[a, " * 50_000 + "nil" + "]" * 50_000
    assert format_value(parse_value(text, NODE, types), NODE, types) == text
