"""The script runs with a PATH of our making, so that it sees only the commands that a test gives it."""

import shutil
from pathlib import Path

import pytest
from tests.tools.commands import BASH, add, run

SKIPPED = "No Chromium was found or could be installed: the tests in a browser will be SKIPPED.\n"


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """A machine without a browser, whose user is root."""
    add(tmp_path, "id", "echo 0")
    (tmp_path / "env").symlink_to(str(shutil.which("env")))
    return tmp_path


def ensure(commands: Path) -> tuple[int, str, str]:
    return run("ensure_chromium.sh", commands)


@pytest.mark.parametrize("name", ["chromium", "google-chrome"])
def test_a_browser_on_the_path_is_used(commands: Path, name: str) -> None:
    add(commands, name, "")
    assert ensure(commands) == (0, f"Browser: {commands / name}\n", "")


def test_root_installs_one(commands: Path) -> None:
    made = f"printf '#!{BASH}' > '{commands}/chromium'; \"$(type -P env)\" chmod +x '{commands}/chromium'"
    (commands / "chmod").symlink_to(str(shutil.which("chmod")))
    add(commands, "apt-get", f"[[ $* != install*chromium ]] || {{ {made}; }}")
    assert ensure(commands) == (0, f"Browser: {commands / 'chromium'}\n", "Installing chromium.\n")


def test_an_install_that_fails_is_no_failure(commands: Path) -> None:
    add(commands, "apt-get", "[ $1 = update ]")
    assert ensure(commands) == (0, "", f"Installing chromium.\n{SKIPPED}")


def test_without_apt_there_is_none(commands: Path) -> None:
    assert ensure(commands) == (0, "", SKIPPED)
