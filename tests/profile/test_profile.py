"""Profiles count what was done, and change nothing of it."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from whence import Program, Session, Update, load
from whence.cli import app
from whence.cli.shell_lines import Shell
from whence.profile import Profile, Report, report, to_html, to_json, to_text
from whence.profile.hints import hints_of

REACH = """
.decl link(src:symbol, dst:symbol) .input link
.decl closed(at:symbol) .input closed
direct: reach(x, y) :- link(x, y), !closed(y).
onward: reach(x, z) :- reach(x, y), link(y, z), !closed(z).
round: triangle(x, y, z) :- link(x, y), link(y, z), link(z, x), x < y.
.output reach, triangle
"""


def random_links(nodes: int, count: int) -> list[tuple[str, str]]:
    chosen = random.Random(7)
    return list({(f"n{chosen.randrange(nodes)}", f"n{chosen.randrange(nodes)}") for _ in range(count)})


def profiled(program: Program, facts: dict[str, list[tuple[str, ...]]]) -> tuple[Session, Session, Profile]:
    profile = Profile()
    return Session(program, facts=facts, profile=profile), Session(program, facts=facts), profile


@pytest.mark.parametrize("strategy", ["support", "dred", "counting", "absorption", "recompute"])
def test_views_changes_and_derivations_are_those_of_a_session_without(strategy: str) -> None:
    links = random_links(12, 30)
    text = REACH if strategy != "counting" else REACH.replace("reach(x, y), link(y, z)", "link(x, y), link(y, z)")
    program = load(text)
    profile = Profile()
    facts = {"link": links, "closed": [("n3",)]}
    watched = Session(program, facts=facts, strategy=strategy, profile=profile)
    plain = Session(program, facts=facts, strategy=strategy)
    for op, row in (("-", links[0]), ("-", links[5]), ("+", links[0]), ("-", links[9])):
        changes = watched.apply([Update(op, "link", row)])
        other = plain.apply([Update(op, "link", row)])
        assert {name: set(rows) for name, rows in changes.inserted.items()} == {
            name: set(rows) for name, rows in other.inserted.items()
        }
        assert watched.views() == plain.views()
    if strategy == "support":
        assert watched.stats()["derivations"] == plain.stats()["derivations"]


def test_derivations_and_new_rows_of_rules_add_up() -> None:
    session, _, profile = profiled(load(REACH), {"link": random_links(30, 120), "closed": [("n1",)]})
    told = report(profile, session)
    assert sum(rule.derivations for rule in told.rules) == told.derivations == session.stats()["derivations"]
    reach = [rule for rule in told.rules if rule.head == "reach"]
    assert sum(rule.new for rule in reach) == len(session.relation("reach"))


def test_the_sizes_of_a_join_are_those_that_brute_force_finds() -> None:
    links = random_links(20, 80)
    session, _, profile = profiled(load(REACH), {"link": links, "closed": []})
    (rule,) = (rule for rule in report(profile, session).rules if rule.name == "round")
    (driver,) = (driver for driver in rule.drivers if driver.derivations)
    starts = [(x, y) for x, y in links if x < y]
    pairs = [(x, y, z) for x, y in links for other, z in links if other == y]
    closing = set(links)
    found = [(x, y, z) for x, y, z in pairs if (z, x) in closing and x < y]
    assert driver.derivations == len(found)
    assert driver.rows == len(links)
    joined = [each for each in driver.literals if each.kind == "index"]
    assert [each.rows for each in joined] in (
        [len(pairs)],
        [sum(x < y for x, y, _ in pairs)],
        [sum(1 for _, y in starts for other, _ in links if other == y)],
    )


def test_what_is_off_is_not_in_the_way() -> None:
    session = Session(load(REACH))
    assert session._atomic.maintainer.backend is session.backend


def test_rules_may_change_under_a_profile() -> None:
    session, plain, profile = profiled(load(REACH), {"link": random_links(10, 25), "closed": []})
    for each in (session, plain):
        each.add_rule("loop: reach(x, x) :- link(x, _).")
        each.drop_rule("direct")
    assert session.views() == plain.views()
    assert "loop" in {rule.name for rule in report(profile, session).rules}


def first_hint(text: str, facts: dict[str, list[tuple[object, ...]]]) -> str:
    profile = Profile()
    program = load(text)
    Session(program, facts=facts)  # so that nothing is loaded while it counts
    session = Session(program, facts=facts, profile=profile)
    told = report(profile, session)
    # Times are the machine's: by derivations alone it is known what comes first.
    rules = {rule.name: float(rule.derivations) for rule in told.rules}
    return hints_of(_timed_by(told, rules))[0]


def _timed_by(told: Report, weights: dict[str, float]) -> Report:
    rules = tuple(
        replace(
            rule,
            drivers=tuple(
                replace(driver, finding=weights[rule.name] * (driver.rows + 1), storing=0.0) for driver in rule.drivers
            ),
        )
        for rule in told.rules
    )
    spent = sum(rule.seconds for rule in rules)
    return replace(
        told, rules=rules, seconds={"put back": spent}, strata=tuple(replace(s, seconds=0) for s in told.strata)
    )


def test_a_rule_that_derives_the_same_again_is_told_first() -> None:
    links = [(str(x), str(y)) for x in range(30) for y in range(30) if (x * y) % 3 == 0]
    hint = first_hint(REACH, {"link": links, "closed": []})
    assert hint.startswith("rule onward makes ")
    assert "declare reach magic" in hint


def test_a_rule_that_joins_its_view_with_itself_is_told_so() -> None:
    text = ".decl e(x:number, y:number) .input e p(x, y) :- e(x, y). twice: p(x, z) :- p(x, y), p(y, z). .output p"
    hint = first_hint(text, {"e": [(x, (x * 7 + k) % 40) for x in range(40) for k in range(3)]})
    assert "rule twice makes" in hint
    assert "it joins p with itself" in hint


def test_a_join_with_every_row_is_told() -> None:
    text = ".decl a(x:number) .input a .decl b(x:number) .input b pairs(x, y) :- a(x), b(y). .output pairs"
    hint = first_hint(text, {"a": [(x,) for x in range(60)], "b": [(x,) for x in range(60)]})
    assert "joins every row of" in hint


def test_what_is_evaluated_anew_is_told_with_its_reason() -> None:
    text = ".decl p(x:number, y:number) eqrel p(x, y) :- q(x, y). .decl q(x:number, y:number) .input q .output p"
    session, _, profile = profiled(load(text), {"q": [(1, 2), (2, 3)]})
    (stratum,) = (each for each in report(profile, session).strata if "p" in each.relations)
    assert stratum.why_anew


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else() -> None:
    text = '.decl p(x:symbol) p("<script>alert(1)</script>"). odd: q(x) :- p(x), x != "<b>&". .output q'
    session, _, profile = profiled(load(text), {})
    page = to_html(report(profile, session), "a < b")
    tags = _Tags()
    tags.feed(page)
    assert not tags.open
    assert "script" not in tags.seen
    assert "http" not in page
    assert "&lt;b&gt;&amp;amp;" in page or "&lt;b&gt;&amp;" in page
    assert json.loads(json.dumps(to_json(report(profile, session))))["rules"][0]["derivations"] == 1


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "reach.dl").write_text(REACH)
    (tmp_path / "link.facts").write_text("a\tb\nb\tc\nc\ta\n")
    (tmp_path / "closed.facts").write_text("")
    return tmp_path


def test_commands_tell_profiles(files: Path) -> None:
    program, facts = str(files / "reach.dl"), str(files)
    told = CliRunner().invoke(app, ["eval", program, "-F", facts, "-D", "-", "--profile"])
    assert told.exit_code == 0
    assert "hint:" in told.stderr
    assert "when reach(x, y) changes: 9 rows in" in told.stderr
    page = files / "profile.html"
    told = CliRunner().invoke(app, ["eval", program, "-F", facts, "-D", "-", "--profile-to", str(page), "-q"])
    assert told.exit_code == 0
    assert "onward" in page.read_text()
    told = CliRunner().invoke(app, ["explain-plan", program, "-F", facts, "--json"])
    assert {rule["name"]: rule["new"] for rule in json.loads(told.stdout)["rules"]} == {
        "direct": 3,
        "onward": 6,
        "round": 2,
    }


def test_a_run_tells_its_profile(files: Path) -> None:
    updates = files / "updates.jsonl"
    updates.write_text('{"op": "-", "relation": "link", "tuple": ["a", "b"]}\n')
    command = ["run", str(files / "reach.dl"), "-F", str(files), "--updates", str(updates), "--no-spark", "--quiet"]
    told = CliRunner().invoke(app, [*command, "--changes", str(files / "out"), "--profile-to", str(files / "p.json")])
    assert told.exit_code == 0, told.output
    found = json.loads((files / "p.json").read_text())
    assert found["epochs"] == 2
    assert {"updates", "sinks", "reading"} <= found["seconds"].keys()


def test_profiles_that_cannot_be_are_refused(files: Path) -> None:
    program = str(files / "reach.dl")
    for options in (["--engine", "reference", "--profile"], ["--profile-to", "profile.txt"]):
        told = CliRunner().invoke(app, ["eval", program, "-F", str(files), *options])
        assert told.exit_code == 2
        assert "--profile" in told.stderr


def test_the_shell_tells_what_an_update_would_cost() -> None:
    session = Session(load(REACH), facts={"link": [("a", "b"), ("b", "c")], "closed": []})
    shell = Shell(session)
    before = session.views()
    (whole,) = shell.execute(".profile")
    assert "3 derivations" in whole
    (update,) = shell.execute('.profile + link("c", "d")')
    assert "1 epoch," in update
    assert "3 derivations" in update
    assert session.views() == before


def test_text_has_a_line_for_each_rule() -> None:
    session, _, profile = profiled(load(REACH), {"link": [("a", "b")], "closed": []})
    text = to_text(report(profile, session))
    assert "direct  <program>:4" in text
