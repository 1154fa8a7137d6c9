"""The engine as a source: what a run tells of itself, read by another as rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from whence import Session, Update, load
from whence.engine.profile import Profile
from whence.pipeline.sources.figures import from_metrics, from_profile
from whence.pipeline.sources.named import NamedSource
from whence.profile.file import ProfileFile

RULES = """
.decl link(x:symbol, y:symbol) .input link
.decl reach(x:symbol, y:symbol) .output reach
direct: reach(x, y) :- link(x, y).
onward: reach(x, z) :- reach(x, y), link(y, z).
"""
READER = load(
    """.decl rule(rule:symbol, view:symbol, derivations:number, text:symbol) .input rule
    .decl operator(rule:symbol, on:symbol, step:number, operator:symbol, rows_in:number, rows_out:number) .input operator
    .output rule, operator"""
)


def rows(path: Path, relation: str) -> set[tuple[object, ...]]:
    source = NamedSource(f"poll+file:{path}#relation={relation}&format=profile").opened(
        READER, lambda letter, _: pytest.fail(letter.reason), size=None, follow=False, stopped=lambda: False
    )
    return {update.tuple for epoch in source.epochs({}) for update in epoch.updates}


def test_rules_and_operators_are_rows(tmp_path: Path) -> None:
    profile = Profile()
    session = Session(load(RULES), profile=profile)
    session.apply([Update("+", "link", (str(at), str(at + 1))) for at in range(20)])
    ProfileFile(tmp_path, profile).after_epoch(session)
    rules = rows(tmp_path / "profile.json", "rule")
    assert {row[:3] for row in rules} == {("direct", "reach", 20), ("onward", "reach", 190)}
    operators = rows(tmp_path / "profile.json", "operator")
    # Of the rows of reach that came, each went into the look-up of link, and what came out are the derivations.
    [looked] = [row for row in operators if row[:3] == ("onward", "reach(x, y)", 1)]
    assert looked[3:] == ("index link(y, z)", 210, 190)
    assert ("onward", "reach(x, y)", 0, "changes of reach(x, y)", 210, 210) in operators


def test_there_is_nothing_before_the_first_epoch(tmp_path: Path) -> None:
    assert rows(tmp_path / "profile.json", "rule") == set()


def test_it_is_told_once_a_second_at_most(tmp_path: Path) -> None:
    profile = Profile()
    session = Session(load(RULES), profile=profile)
    told = ProfileFile(tmp_path, profile)
    told.after_epoch(session)
    (tmp_path / "profile.json").unlink()
    told.after_epoch(session)
    assert not (tmp_path / "profile.json").exists()


@pytest.mark.parametrize("text", ["[]", json.dumps({"last": {}})])
def test_other_files_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="figures of a run"):
        from_metrics(text, {"view"})
    with pytest.raises(ValueError, match="profile of a run"):
        from_profile(text, {"rule"})
