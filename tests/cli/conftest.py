from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from whence.backends.local.compiling import compile_all
from whence.cli import app

Whence = Callable[..., Result]


@pytest.fixture(autouse=True, scope="session")
def compiled_loops() -> None:
    """Commands that take long say so, which no test here expects."""
    list(compile_all())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def whence(folder: Path) -> Whence:
    """Runs the command line in the folder."""

    def whence(*arguments: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, arguments, input=stdin, catch_exceptions=False)

    return whence
