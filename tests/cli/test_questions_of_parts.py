"""Questions about a state whose parts need each other: the same answers as about the facts themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.pipeline.parts.carrier import InProcess
from typer.testing import CliRunner

from whence import Update, load
from whence.cli import app
from whence.io.changes import Epoch
from whence.pipeline.options import RunOptions
from whence.pipeline.parts import host
from whence.pipeline.parts.keeper import PartedKeeper
from whence.pipeline.parts.open import open_state
from whence.pipeline.parts.rounds import Rounds

TEXT = """
.decl link(x: symbol, y: symbol)
.input link
.decl reach(x: symbol, y: symbol)
.output reach
direct: reach(x, y) :- link(x, y).
joined: reach(x, z) :- reach(x, y), reach(y, z).
"""
LINKS = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]


@pytest.fixture
def subjects(tmp_path: Path) -> tuple[Path, list[str]]:
    """The folder of a state in three parts, and the options for the program with the same facts."""
    keeper = PartedKeeper(
        open_state(tmp_path / "state", load(TEXT)).in_parts(3, lambda *_: None),
        Rounds(InProcess()),
        RunOptions(),
        tasks=2,
    )
    keeper.apply([Epoch([Update("+", "link", row) for row in LINKS])])
    keeper.close()
    host._houses.clear()
    (tmp_path / "program.dl").write_text(TEXT)
    (tmp_path / "link.facts").write_text("".join(f"{x}\t{y}\n" for x, y in LINKS))
    return tmp_path / "state", [str(tmp_path / "program.dl"), "-F", str(tmp_path)]


@pytest.mark.parametrize(
    "question",
    [
        ["why", 'reach("a", "d")', "--all"],
        ["whynot", 'reach("d", "a")'],
        ["how", 'reach("a", "d")'],
        ["whatif", "--except", 'link("b", "c")'],
        ["probability", 'reach("a", "d")'],
        ["responsibility", 'reach("a", "d")'],
    ],
    ids=lambda question: question[0],
)
def test_answers_are_those_about_the_facts(question: list[str], subjects: tuple[Path, list[str]]) -> None:
    state, facts = subjects
    command, *rest = question
    answers = [CliRunner().invoke(app, [command, *subject, *rest, "--json"]) for subject in ([str(state)], facts)]
    assert [each.exit_code for each in answers] == [0, 0], answers[0].output
    about_parts, about_facts = (json.loads(each.stdout) for each in answers)
    for each in (about_parts, about_facts):
        each.pop("rules", None)  # they name the file they are in
    assert about_parts == about_facts
