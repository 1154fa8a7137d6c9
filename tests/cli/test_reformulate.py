"""`whence reformulate`, rules with a minus in `whence equivalent`, and plans with `--simplify`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Whence

PROGRAM = """.decl r(x:number, y:number)
.input r
.decl both(x:number, y:number)
both(x, y) :- r(x, z), r(z, y).
both(x, y) :- r(x, z), r(z, w), r(w, y).
.decl three(x:number, y:number)
.output three
three(x, y) :- r(x, z), r(z, w), r(w, y).
"""


@pytest.fixture(autouse=True)
def program(folder: Path) -> None:
    (folder / "p.dl").write_text(PROGRAM)


def test_a_view_is_used_and_what_is_too_much_taken_away(whence: Whence) -> None:
    found = whence("reformulate", "p.dl", "--view", "both")
    assert found.stdout.splitlines()[:2] == ["three(x, y) :- both(x, y).", "-three(x, y) :- r(x, z), r(z, y)."]
    assert found.stdout.splitlines()[3] == "right for bags: the query takes nothing away"


def test_sets_are_not_subtracted(whence: Whence) -> None:
    found = json.loads(whence("reformulate", "p.dl", "--view", "both", "--for", "sets", "--json").stdout)
    assert found["rules"] == ["three(x, y) :- r(x, z), r(z, u), r(u, y)."]
    assert found["holds"] is True


def test_costs_by_facts(whence: Whence) -> None:
    Path("facts").mkdir()
    Path("facts/r.facts").write_text("".join(f"{x}\t{x + 1}\n" for x in range(50)))
    found = json.loads(whence("reformulate", "p.dl", "--view", "both", "-F", "facts", "--json").stdout)
    assert found["rules"] == [
        "three(x, y) :- r(x, z), r(z, u), r(u, y)."
    ]  # 97 rows of both and 99 of r joined are more
    assert found["cost"] == found["cost_without_views"]


def test_a_redefinition(whence: Whence) -> None:
    Path("new.dl").write_text(PROGRAM.replace("r(w, y).\n.decl three", "r(w, y).\n.decl three").replace(
        "three(x, y) :- r(x, z), r(z, w), r(w, y).", "three(x, y) :- r(x, z), r(z, w), r(w, y), x < 10."
    ))  # fmt: skip
    found = whence("reformulate", "new.dl", "--was", "p.dl:three")
    assert found.stdout.splitlines()[0] == "-three(x, y) :- three(x, y), 10 <= x."
    same = whence("reformulate", "p.dl", "--was", "p.dl:three")
    assert same.stdout.splitlines()[0] == "nothing changes: three stays as it is"
    assert whence("reformulate", "new.dl", "--was", "p.dl:three", "--for", "sets").exit_code == 1


def test_rules_of_maintenance(whence: Whence) -> None:
    found = whence("reformulate", "p.dl:three", "--changing", "r")
    assert len([line for line in found.stdout.splitlines() if "r.change" in line]) == 3


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["p.dl:three", "--changing", "q"], "three does not rest on a base relation q"),
        (["p.dl:three", "--changing", "r", "--view", "both"], "goes with neither --was nor --view"),
        (["p.dl:three", "--view", "r"], "r is a base relation"),
        (["p.dl:three", "--view", "three"], "three is what is asked for"),
        (["nowhere.dl"], "is neither a program nor PROGRAM:RELATION"),
    ],
)
def test_questions_that_cannot_be_asked(whence: Whence, arguments: list[str], problem: str) -> None:
    asked = whence("reformulate", *arguments)
    assert asked.exit_code == 2
    assert problem in " ".join(asked.stderr.replace("│", " ").split())


def test_differences_are_compared(whence: Whence) -> None:
    minus = "three(x, y) :- both(x, y).\n-three(x, y) :- r(x, z), r(z, y)."
    less = PROGRAM.replace("three(x, y) :- r(x, z), r(z, w), r(w, y).", minus)
    Path("less.dl").write_text(less)
    assert whence("equivalent", "less.dl", "p.dl", "--semiring", "integer").exit_code == 0
    assert whence("equivalent", "less.dl", "p.dl", "--semiring", "integer-polynomial").exit_code == 0
    refused = whence("equivalent", "less.dl", "p.dl")
    assert refused.exit_code == 1
    assert "rules that take away have a meaning in integer and integer-polynomial only" in refused.stderr
    assert whence("eval", "less.dl").exit_code == 1


def test_plans_say_what_they_leave_out(whence: Whence) -> None:
    Path("more.dl").write_text(
        PROGRAM + "three(x, y) :- both(x, y), r(x, _).\nboth(x, y) :- r(x, z), r(z, y), r(x, x).\n"
    )
    shown = whence("explain-plan", "more.dl", "--simplify").stdout
    assert shown.startswith("simplified for sets: rule both#3 is left out: both#1 derives as much\n")
    assert "simplified" not in whence("explain-plan", "more.dl").stdout
    Path("r.facts").write_text("1\t2\n2\t3\n3\t4\n")
    assert whence("eval", "more.dl", "-D", "-", "--simplify").stdout == whence("eval", "more.dl", "-D", "-").stdout
