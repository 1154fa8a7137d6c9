"""`_` and variables in every question, answers narrowed to relations, and what losing a base fact costs."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest
from typer.testing import CliRunner

from whence import Session, Update, load
from whence.cli import app
from whence.provenance import Fact, rank_dependence
from whence.provenance.matching import FactPattern, parse_pattern
from whence.provenance.whynot import closest_absent

PROGRAM = """
.decl link(x:symbol, y:symbol, km:number) .input link
.decl open(x:symbol) .input open
reach(x, y) :- link(x, y, _), open(y).
reach(x, z) :- reach(x, y), link(y, z, _), open(z).
.decl way(x:symbol, y:symbol, km:number)
way(x, y, d) :- link(x, y, d).
way(x, z, d + e) :- far(x, y, d), link(y, z, e).
.decl far(x:symbol, y:symbol, km:number)
far(x, y, d) :- way(x, y, _), d = min e : { way(x, y, e) }.
.output reach, far
"""
LINKS = [("a", "b", 1), ("b", "c", 2), ("a", "c", 9), ("c", "d", 4)]


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "link.facts").write_text("".join("\t".join(map(str, row)) + "\n" for row in LINKS))
    (tmp_path / "open.facts").write_text("b\nc\nd\n")
    return [str(tmp_path / "p.dl"), "-F", str(tmp_path)]


def asked(command: str, program: list[str], *options: str) -> str:
    done = CliRunner().invoke(app, [command, program[0], *options, *program[1:]])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("far(a, b, 1)", Fact("far", ("a", "b", 1))),
        ("far(a, b, km)", FactPattern("far", {0: "a", 1: "b"}, {})),
        ('far("a", x, _)', FactPattern("far", {0: "a"}, {})),
        ("far(_x, _x, _)", FactPattern("far", {}, {1: 0})),
        ('far("a", x, x)', FactPattern("far", {0: "a"}, {2: 1})),
        ("open(nil)", Fact("open", ("nil",))),
    ],
)
def test_variables_are_told_from_texts(text: str, expected: FactPattern | Fact) -> None:
    assert parse_pattern(text, load(PROGRAM)) == expected


def test_every_question_takes_a_pattern(program: list[str]) -> None:
    assert asked("why", program, 'reach("a", x)').count("by ") >= 3
    assert asked("how", program, 'reach("a", _)', "--semiring", "lineage").count("reach(") == 3
    assert asked("probability", program, 'reach("a", x)', "-p", "link=0.5").splitlines() == [
        'reach("a", "b")  0.5',
        'reach("a", "c")  0.625',
        'reach("a", "d")  0.3125',
    ]
    shares = asked("responsibility", program, 'reach(x, "d")', "--among", "link", "-n", "2")
    assert [line for line in shares.splitlines() if line.startswith("reach")] == ['reach("a", "d")', 'reach("b", "d")']
    assert asked("whynot", program, 'reach("d", _)').count("does not hold") == 3


def test_answers_about_patterns_are_one_object(program: list[str]) -> None:
    for command in ("why", "how", "probability", "responsibility"):
        found = json.loads(asked(command, program, 'reach("a", _)', "--json", "-n", "2"))
        assert len(found["answers"]) == 2
        assert found["more"] == 1
        single = json.loads(asked(command, program, 'reach("a", "b")', "--json"))
        assert "answers" not in single
        assert found["answers"][0] == single
    found = json.loads(asked("whynot", program, 'reach("d", x)', "--json", "-n", "1"))
    assert len(found["answers"]) == 1


def test_a_picture_has_all_proofs_of_a_pattern(program: list[str]) -> None:
    drawn = asked("why", program, 'reach("a", _)', "--format", "dot")
    assert all(f'reach(\\"a\\", \\"{to}\\")' in drawn for to in "bcd")


def test_how_is_narrowed_to_relations(program: list[str]) -> None:
    whole = asked("how", program, 'reach("b", "c")', "--semiring", "posbool")
    narrow = asked("how", program, 'reach("b", "c")', "--semiring", "posbool", "--among", "open")
    assert 'link("b", "c", 2)' in whole
    assert narrow.splitlines()[1].split(None, 1)[1] == '{{open("c")}}'


def test_repairs_are_narrowed_to_relations(program: list[str]) -> None:
    told = asked("whynot", program, 'reach("d", "b")', "--among", "link")
    assert "it would hold with  + link(" in told
    done = CliRunner().invoke(app, ["whynot", program[0], 'reach("d", "b")', "--among", "reach", *program[1:]])
    assert done.exit_code == 2
    assert "there is no base relation reach" in done.stderr
    only_open = asked("whynot", program, 'reach("d", "b")', "--among", "open")
    assert "it would hold with" not in only_open


def test_what_is_not_there_is_found_among_known_values() -> None:
    session = Session(load(PROGRAM), facts={"link": LINKS, "open": [("b",), ("c",), ("d",)]})
    found = closest_absent(session, FactPattern("reach", {}, {}), 100)
    known = "abcd"
    absent = {Fact("reach", (x, y)) for x, y in product(known, known)} - {
        Fact("reach", row) for row in session.relation("reach")
    }
    assert set(found.facts) == absent
    assert found.is_all
    nearest = closest_absent(session, FactPattern("reach", {}, {}), 3)
    assert nearest.facts == found.facts[:3]
    assert not nearest.is_all


def test_all_that_could_fit_may_be_there(program: list[str]) -> None:
    done = CliRunner().invoke(app, ["whynot", program[0], "open(_x)", *program[1:]])
    assert done.exit_code == 0  # a is not open
    assert 'open("a")' in done.stdout


def test_ranking_tells_lost_rows_from_changed_values() -> None:
    session = Session(load(PROGRAM), facts={"link": LINKS, "open": []})
    found = {each.fact: each for each in rank_dependence(session, of=["far"])}
    for row in LINKS:
        rest = [each for each in LINKS if each != row]
        other = Session(load(PROGRAM), facts={"link": rest, "open": []})
        before = {each[:2]: each[2] for each in session.relation("far")}
        after = {each[:2]: each[2] for each in other.relation("far")}
        told = found[Fact("link", row)]
        assert told.lost == len(before.keys() - after.keys())
        assert told.changed == sum(before[key] != after[key] for key in before.keys() & after.keys())


def test_ranking_by_weights_costs_what_is_lost_and_how_far_values_move(program: list[str]) -> None:
    session = Session(load(PROGRAM), facts={"link": LINKS, "open": []})

    def weight(fact: Fact) -> float | None:
        return float(str(fact.tuple[2])) if fact.relation == "far" else None

    for told in rank_dependence(session, of=["far"], weight=weight):
        changes = [each for each in session.trial([Update("-", *told.fact)]) if each.relation == "far"]
        gone = {each.tuple[:2]: each.tuple[2] for each in changes if each.op == "-"}
        come = {each.tuple[:2]: each.tuple[2] for each in changes if each.op == "+"}
        assert told.cost == sum(abs(come[key] - km) if key in come else km for key, km in gone.items())
    lines = asked("whatif", program, "--rank", "--of", "far", "-w", "far=@km", "-e", "link(_, _, _)").splitlines()
    assert lines[0].split() == ["cost", "lost", "changed", "base", "fact"]
    costs = [float(line.split()[0]) for line in lines[1:]]
    assert costs == sorted(costs, reverse=True)
    assert len(costs) == len(LINKS)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rank", "-w", "far=x"], "is not a weight"),
        (["--rank", "-w", "nothing=1"], "there is no relation"),
        (["-e", "open(_)", "-w", "far=1"], "it is for --rank"),
        (["--rank", "-i", 'open("z")'], "leave -i out"),
    ],
)
def test_what_cannot_be_ranked_is_said(program: list[str], options: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["whatif", program[0], *options, *program[1:]], env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_word_that_fits_nothing_may_have_been_meant_as_a_variable(program: list[str]) -> None:
    done = CliRunner().invoke(app, ["why", program[0], "reach(x, _)", *program[1:]])
    assert "x is taken for a text there, and _x for a variable" in done.stderr
