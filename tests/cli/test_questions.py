"""The commands that answer questions, as people type them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from whence import Update, load
from whence.cli import app
from whence.io.changes import Epoch
from whence.pipeline.keeper import ResidentKeeper
from whence.pipeline.parts.open import open_state
from whence.pipeline.store import WholeStore

PROGRAM = """\
.decl link(x:symbol, y:symbol)
.decl down(x:symbol)
link("a", "b"). link("b", "c"). link("a", "c"). link("c", "d"). down("z").
r1: reach(x, y) :- link(x, y), !down(y).
r2: reach(x, z) :- reach(x, y), link(y, z), !down(z).
.output reach
"""


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("net.dl").write_text(PROGRAM, encoding="utf-8")

    def asking(command: str, *args: str) -> Result:
        return CliRunner().invoke(app, [command, "net.dl", *args])

    return asking


def test_why_shows_the_smallest_proof_with_rules_and_lines(ask) -> None:
    assert ask("why", 'reach("a", "d")').output == (
        'reach("a", "d")  by r2\n'
        '├─ reach("a", "c")  by r1\n'
        '│  ├─ link("a", "c")\n'
        '│  └─ no down("c")\n'
        '├─ link("c", "d")\n'
        '└─ no down("d")\n'
        "\n"
        "r1  net.dl:4  reach(x, y) :- link(x, y), !down(y).\n"
        "r2  net.dl:5  reach(x, z) :- reach(x, y), link(y, z), !down(z).\n"
    )


def test_why_as_json_lists_steps_premises_first(ask) -> None:
    (proof,) = json.loads(ask("why", "reach(a, d)", "--json").output)["proofs"]
    assert proof["height"] == 2
    last = proof["steps"][-1]
    assert (last["text"], last["rule"], last["absent"]) == ('reach("a", "d")', "r2", ['down("d")'])
    assert [proof["steps"][at]["text"] for at in last["premises"]] == ['reach("a", "c")', 'link("c", "d")']


def test_why_with_k_shows_that_many_proofs_and_the_rules_once(ask) -> None:
    output = ask("why", "reach(a, d)", "-k", "2").output
    assert output.count('reach("a", "d")  by r2') == 2
    assert output.count("net.dl:5") == 1


def test_why_all_shows_every_derivation_and_what_was_cut_off(ask) -> None:
    result = ask("why", "reach(a, d)", "--all")
    assert '  by r2: reach("a", "b"), link("b", "c"), no down("c")\n' in result.output
    cut = ask("why", "reach(a, d)", "--all", "--depth", "1")
    assert 'reach("a", "c")  not looked into' in cut.output
    assert "cut off at depth 1" in cut.output
    graph = json.loads(ask("why", "reach(a, d)", "--all", "--json").output)
    assert len(graph["derivations"]) == 4
    assert graph["cut"] is None


@pytest.mark.parametrize(
    ("shape", "starts"), [("dot", "digraph"), ("svg", "<svg"), ("html", "<!DOCTYPE html>"), ("prov", "{")]
)
def test_why_in_other_formats(ask, shape: str, starts: str) -> None:
    result = ask("why", "reach(a, d)", "--format", shape)
    assert result.exit_code == 0
    assert result.output.startswith(starts)


@pytest.mark.parametrize(
    ("fact", "code", "says"),
    [
        ("reach(d, a)", 1, "does not hold; `whence whynot` says what is missing"),
        ("rech(a, d)", 2, "did you mean reach?"),
        ("reach(a)", 2, "does not fit"),
        ("reach(a, b, c)", 2, "does not fit"),
        ("(a, b)", 2, "is not a fact"),
    ],
)
def test_questions_that_cannot_be_answered_say_why(ask, fact: str, code: int, says: str) -> None:
    result = ask("why", fact)
    assert result.exit_code == code
    assert says in " ".join(result.output.replace("│", " ").split())


def test_how_sums_derivations_up(ask) -> None:
    output = ask("how", "reach(a, d)").output
    assert '{{link("a", "c"), link("c", "d")}, {link("a", "b"), link("b", "c"), link("c", "d")}}' in output
    least = ask("how", "reach(a, d)", "--semiring", "tropical", "-a", "link=2", "-a", 'link("a", "c")=9')
    assert least.output == 'reach("a", "d")\n  tropical  6\n'
    assert ask("how", "reach(a, d)", "--semiring", "nonsense").exit_code == 2
    assert ask("how", "reach(a, d)", "-a", "link=2").exit_code == 2


def test_whynot_suggests_what_was_tried_out(ask) -> None:
    result = ask("whynot", "reach(d, a)")
    assert 'it would hold with  + link("d", "a")' in result.output
    repairs = json.loads(ask("whynot", "reach(a, z)", "--json").output)["repairs"]
    assert repairs[0]["delete"] == [{"relation": "down", "tuple": ["z"], "text": 'down("z")'}]
    assert ask("whynot", "reach(a, b)").exit_code == 1


def test_whynot_says_when_nothing_was_found_within_the_bounds(ask) -> None:
    said = "no changes of base facts that would make it hold were found within the bounds"
    assert f"{said}; the search stopped at 1 change\n" in ask("whynot", "reach(y, z)", "--changes", "1").output
    assert said not in ask("whynot", "reach(y, z)", "-k", "0").output
    assert json.loads(ask("whynot", "reach(y, z)", "--changes", "1", "--json").stdout)["bound"] == "1 change"
    Path("net.dl").write_text(PROGRAM + "up(x) :- link(x, y), x > y, y > x.\n", encoding="utf-8")
    assert f"{said}\n" in ask("whynot", "up(a)").output


def test_whatif_shows_changes_of_views(ask) -> None:
    assert ask("whatif", "-e", "link(c, d)").output == (
        '- reach("a", "d")\n- reach("b", "d")\n- reach("c", "d")\n3 changes\n'
    )
    assert ask("whatif", "-i", "link(d, z)").output == "nothing would change\n"
    assert "2 changes" in ask("whatif", "-e", "link(b, c)").output


def test_whatif_ranks_base_facts(ask) -> None:
    assert ask("whatif", "--rank").output.splitlines()[:2] == [
        "lost  changed  base fact",
        '   3        0  link("c", "d")',
    ]
    listed = json.loads(ask("whatif", "--rank", "-n", "1", "--json").output)["facts"]
    assert [(each["text"], each["lost"]) for each in listed] == [('link("c", "d")', 3)]


def test_whatif_refuses_what_makes_no_sense(ask) -> None:
    for args in ([], ["--rank", "-i", "link(a, b)"], ["-e", "reach(a, b)"]):
        assert ask("whatif", *args).exit_code == 2
    assert "cannot go" in ask("whatif", "-e", "link(x, y)").output


def test_probability_exactly_and_within_bounds(ask) -> None:
    # link(c, d), and of the ways to c one of two: 0.5 * (1 - 0.5 * 0.75)
    assert ask("probability", "reach(a, d)", "-p", "link=0.5").output == 'reach("a", "d")  0.3125\n'
    bounds = json.loads(
        ask("probability", "reach(a, d)", "-p", "link=0.5", "--nodes", "2", "--timeout", "0", "--json").output
    )
    assert not bounds["exact"]
    assert bounds["low"] <= 0.3125 <= bounds["high"]
    assert ask("probability", "reach(a, d)", "-p", "link").exit_code == 2
    assert "not a probability" in ask("probability", "reach(a, d)", "-p", "link=2").output


def test_responsibility_shares_add_up(ask) -> None:
    found = json.loads(ask("responsibility", "reach(a, d)", "--among", "link", "--json").output)["contributions"]
    assert next((each["text"], each["responsibility"]) for each in found) == ('link("c", "d")', 1.0)
    assert sum(each["shapley"] for each in found) == pytest.approx(1)
    assert "take down for granted, and ask for contributions among link only" in ask(
        "responsibility", "reach(a, d)"
    ).output.replace("\n", " ")
    assert ask("responsibility", "reach(a, d)", "--among", "reach").exit_code == 2


def test_a_state_in_parts_is_asked_as_any_other(ask, tmp_path: Path) -> None:
    """The state of one program in parts, its facts partly in the program and partly from updates, beside the program itself."""
    program = load(PROGRAM + ".input link\n.input down\n", name="net.dl")
    running = ResidentKeeper(program, store=WholeStore.open(tmp_path / "state", program))
    running.apply([Epoch([Update("+", "link", ("d", "e")), Update("+", "down", ("y",))])])
    running.close()
    open_state(tmp_path / "state", program).in_parts(3, lambda *_: None).close()
    with Path("net.dl").open("a", encoding="utf-8") as file:
        file.write('.input link\n.input down\nlink("d", "e"). down("y").\n')
    Path("link.facts").touch()
    Path("down.facts").touch()
    questions = [
        ("why", 'reach("a", "e")'),
        ("why", 'reach("a", "e")', "-k", "2", "--json"),
        ("why", 'reach("a", "e")', "--all", "--format", "prov"),
        ("how", 'reach("a", "e")', "--semiring", "posbool"),
        ("how", 'reach("a", "e")', "--semiring", "tropical", "-a", 'link("d", "e")=3', "-a", "link=1"),
        ("probability", 'reach("a", "e")', "-p", "link=0.5"),
        ("probability", 'reach("a", "e")', "-p", 'link("z", "z")=0.5'),
        ("responsibility", 'reach("a", "e")', "--among", "link"),
        ("whynot", 'reach("e", "a")', "-k", "1"),
        ("whynot", 'reach("a", "y")', "-k", "1"),
        ("whatif", "-e", 'link("c", "d")', "-i", 'link("b", "d")'),
        ("whatif", "--rank"),
        ("why", "nobody(1)"),
    ]
    for command, *rest in questions:
        found = CliRunner().invoke(app, [command, "state", *rest])
        expected = ask(command, *rest)
        assert (found.exit_code, found.stdout) == (expected.exit_code, expected.stdout), (command, rest)


def test_a_state_can_be_asked_while_its_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = load(".decl link(x:symbol, y:symbol) .input link\nr1: reach(x, y) :- link(x, y).\n.output reach")
    running = ResidentKeeper(program, store=WholeStore.open(tmp_path / "state", program))
    running.apply([Epoch([Update("+", "link", ("a", "b"))])])
    found = CliRunner().invoke(app, ["why", "state", 'reach("a", "b")'])
    assert found.output.startswith('reach("a", "b")  by r1\n└─ link("a", "b")\n')
    running.apply([Epoch([Update("-", "link", ("a", "b"))])])
    assert "does not hold" in CliRunner().invoke(app, ["why", "state", 'reach("a", "b")']).output
