"""Queries: what is read, what types are, and mistakes shown where they are."""

from __future__ import annotations

import pytest

from whence.lang import ProgramError
from whence.semiring import Access, Natural
from whence.trees import evaluate_query, load_query, parse_document
from whence.trees.render import one_line

NATURAL = Natural()
DOCUMENT = parse_document("<a><b>1</b><b>2</b><c><b>1</b></c></a>", NATURAL).forest


def answer(text: str) -> list[str]:
    found = evaluate_query(load_query(text, NATURAL), {"d": DOCUMENT}, NATURAL)
    return sorted(f"{one_line(tree, NATURAL)} {value}" for tree, value in found.items())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("$d/b", ["b[1] 1", "b[2] 1"]),
        ("$d//b", ["b[1] 2", "b[2] 1"]),
        ("$d/self::a/child::c/descendant::b", ["b[1] 1"]),
        ("$d/self::b", []),
        ("for $x in $d/b where $x = 1 return $x", ["b[1] 1"]),
        ("for $x in $d/*, $y in $d/c/b where $x = $y and name($x) = b return <p>{ $x }</p>", ["p[b[1]] 1"]),
        ("let $x := $d/b, $y := ($x, $x) return $y/*", ["1 2", "2 2"]),
        (
            "let $n := b return for $x in $d/* return if (name($x) = $n) then $x else <other/>",
            ["b[1] 1", "b[2] 1", "other 1"],
        ),
        ("(: both :) element 'a b' { \"t\", name(<z/>) }", ["a b[t, z] 1"]),
        ("for $x in $d/b return element name($x) { annot 3 x }", ["b[x^3] 2"]),
        ("<p>{}<q/>{ $d/c }</>", ["p[c[b[1]], q] 1"]),
        ("annot 0 $d", []),
        ("()", []),
        ("for $for in $d/b return $for/1", ["1 1"]),
    ],
)
def test_what_queries_mean(query: str, expected: list[str]) -> None:
    assert answer(query) == expected


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("for $x in $d", "<query>:1:13: error[W1401]: unexpected the end of the text"),
        ("for $x in $d retrun $x", "<query>:1:14: error[W1401]: unexpected retrun"),
        ("$d/descendent::b", "error[W1401]: unexpected descendent"),
        ("<a>{ $d }</b>", "<query>:1:12: error[W1405]: <a> is closed by </b>"),
        ("<a>text</a>", "error[W1401]: unexpected text"),
        (
            "if ($d = a) then $d else ()",
            "<query>:1:5: error[W1403]: this is a set of trees, and a label is needed here",
        ),
        ("name($d)", "error[W1403]: this is a set of trees, and a tree is needed here"),
        ("element $d { () }", "error[W1403]"),
        ("annot many $d", "<query>:1:7: error[W1404]: 'many' is not a whole number"),
        ("for $x in $d return $y", "error[W1402]: nothing binds $y\n    1 | for $x in $d return $y\n"),
        ("(" * 3000 + "$d" + ")" * 3000, "error[W1406]"),
        ("$d/b $d", "unexpected $d"),
        ("#", "unexpected #"),
    ],
)
def test_mistakes_are_shown_where_they_are(query: str, said: str) -> None:
    with pytest.raises(ProgramError) as error:
        load_query(query, NATURAL, documents=["d"])
    assert said in str(error.value)


def test_all_mistakes_of_a_query_are_reported() -> None:
    with pytest.raises(ProgramError) as error:
        load_query("for $x in $e return annot hidden (name($d), $dd)", Access(), documents=["d", "docs"])
    assert [each.code for each in error.value.diagnostics] == ["W1402", "W1404", "W1403", "W1402"]
    assert "did you mean $d" in str(error.value)
