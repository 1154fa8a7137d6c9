"""`whence equivalent` and `whence check --redundant`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Whence

PROGRAM = """.decl R(x: number, y: number)
.input R
.decl P(x: number)
P(x) :- R(x, _).
.decl Q(x: number)
Q(x) :- R(x, _), R(x, _).
.decl N(x: number)
N(x) :- R(x, y), !R(y, x).
.output P, Q, N
"""


@pytest.fixture(autouse=True)
def program(folder: Path) -> None:
    (folder / "p.dl").write_text(PROGRAM)


def test_yes_no_and_not_decided_have_exit_codes(whence: Whence) -> None:
    assert whence("equivalent", "p.dl:P", "p.dl:Q").exit_code == 0
    assert whence("equivalent", "p.dl:P", "p.dl:Q", "--semiring", "natural").exit_code == 1
    assert whence("equivalent", "p.dl:P", "p.dl:Q", "--semiring", "natural", "--contained").exit_code == 0
    base = ".decl S(x: number)\n.input S\n.decl T(x: number)\n.input T\n.decl A()\n.decl B()\n"
    # s * t is at most s * s + t * t, which no mapping shows.
    Path("q.dl").write_text(base + "A() :- S(x), T(y).\nB() :- S(x), S(x).\nB() :- T(x), T(x).\n")
    open_ = whence("equivalent", "q.dl:A", "q.dl:B", "--semiring", "natural", "--contained")
    assert (open_.exit_code, open_.stdout[:12]) == (3, "not decided:")


def test_one_output_need_not_be_named(whence: Whence) -> None:
    Path("one.dl").write_text(PROGRAM.replace(".output P, Q, N", ".output P"))
    assert whence("equivalent", "one.dl", "p.dl:P", "--semiring", "polynomial").exit_code == 0
    several = whence("equivalent", "p.dl", "p.dl:P")
    assert several.exit_code == 2
    assert "has 3 outputs" in several.stderr


def test_json_has_mappings_and_counterexamples(whence: Whence) -> None:
    yes = json.loads(whence("equivalent", "p.dl:P", "p.dl:Q", "--json").stdout)
    assert yes["answer"] == "yes"
    assert {each["from"] for each in yes["mappings"]} == {"P#1", "Q#1"}
    no = json.loads(whence("equivalent", "p.dl:P", "p.dl:Q", "--semiring", "natural", "--json").stdout)
    assert no["counterexample"] == {
        "facts": [{"relation": "R", "row": [1, 1], "annotation": "2"}],
        "row": [1],
        "annotations": [{"relation": "P", "annotation": "2"}, {"relation": "Q", "annotation": "4"}],
    }


@pytest.mark.parametrize(
    ("left", "problem"),
    [
        ("p.dl:N", "p.dl:8: a rule with a literal of kind negation is not conjunctive"),
        ("p.dl:X", "there is no relation X"),
        ("p.dl:R", "R is a base relation"),
        ("nowhere.dl:P", "neither a program nor PROGRAM:RELATION"),
    ],
)
def test_questions_that_cannot_be_asked(whence: Whence, left: str, problem: str) -> None:
    result = whence("equivalent", left, "p.dl:P")
    assert result.exit_code == 2
    assert problem in " ".join(result.stderr.replace("│", " ").split())


def test_redundant_rules_are_named_and_in_json(whence: Whence) -> None:
    Path("r.dl").write_text(PROGRAM + "P(x) :- R(x, y), R(y, _).\n")
    result = whence("check", "r.dl", "--redundant")
    assert result.exit_code == 0
    assert "r.dl:10: rule P#2 can go: others make it superfluous\n" in result.stdout
    assert result.stdout.endswith(", 1 redundant rule\n")
    assert whence("check", "r.dl", "--redundant", "--semiring", "why").stdout.endswith(", 0 redundant rules\n")
    found = json.loads(whence("check", "r.dl", "--redundant", "--json").stdout)["redundant"]
    assert [(each["rule"], each["line"]) for each in found] == [("P#2", 10)]
    assert whence("check", "r.dl", "--redundant", "--semiring", "series").exit_code == 2


def test_commands_name_mappings(whence: Whence, folder: Path) -> None:
    peers = "peer A { R(x: number, y: number). }\npeer B { T(x: number, y: number). }\n"
    text = peers + "m1: R(x, y) -> T(x, y).\nm2: R(x, y), R(x, z) -> T(x, y)."
    (folder / "all.peers").write_text(text)
    checked = whence("exchange", "check", "all.peers", "--redundant")
    assert checked.stdout.splitlines()[0] == "mapping m2 can go: others make as much"
    assert checked.stdout.splitlines()[-1].endswith("1 redundant mapping")
    assert whence("equivalent", "all.peers:m1", "all.peers:m2").exit_code == 0
    assert whence("equivalent", "all.peers:m1", "all.peers:m2", "--semiring", "why").exit_code == 1
