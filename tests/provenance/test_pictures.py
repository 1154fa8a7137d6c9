"""The pictures of docs/why.md are what the commands beside them draw."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from whence.cli import app

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("picture", "options"), [("why-proof.svg", []), ("why-graph.svg", ["--all"])])
def test_picture_is_what_the_command_draws(picture: str, options: list[str]) -> None:
    sites = ROOT / "examples" / "sites"
    question = ["why", str(sites / "program.dl"), "-F", str(sites / "facts"), 'reach("office", "web")']
    drawn = CliRunner().invoke(app, [*question, "--format", "svg", *options]).stdout
    assert drawn == (ROOT / "docs" / picture).read_text(encoding="utf-8")
