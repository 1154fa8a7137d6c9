"""The script runs with a PATH of our making, so that it sees only the commands that a test gives it."""

import shutil
from pathlib import Path

import pytest
from tests.tools.commands import add, run

SKIPPED = "No PostgreSQL 14 or newer was found or could be installed: its tests will be SKIPPED.\n"


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """A machine whose user is not root, with an old PostgreSQL."""
    add(tmp_path, "id", "echo 1000")
    add_postgres(tmp_path, "13.22")
    (tmp_path / "env").symlink_to(str(shutil.which("env")))
    return tmp_path


def add_postgres(commands: Path, version: str) -> None:
    add(commands, "postgres", f"echo 'postgres (PostgreSQL) {version} (Debian {version}-1)'")


def ensure(commands: Path) -> tuple[int, str, str]:
    return run("ensure_postgres.sh", commands)


@pytest.mark.parametrize(("version", "major"), [("14.0", "14"), ("15.18", "15"), ("18beta1", "18")])
def test_a_new_enough_server_is_used(commands: Path, version: str, major: str) -> None:
    add_postgres(commands, version)
    assert ensure(commands) == (0, f"PostgreSQL {major}: {commands / 'postgres'}\n", "")


def test_an_old_server_that_cannot_be_replaced_is_no_failure(commands: Path) -> None:
    assert ensure(commands) == (0, "", SKIPPED)


def test_root_installs_it(commands: Path) -> None:
    add(commands, "id", "echo 0")
    add(commands, "apt-get", f"[[ $* != install*postgresql ]] || echo > '{commands}/installed'")
    add(commands, "postgres", f"[ -e '{commands}/installed' ] && echo 'postgres (PostgreSQL) 15.1'")
    assert ensure(commands) == (
        0,
        f"PostgreSQL 15: {commands / 'postgres'}\n",
        "Installing postgresql.\n",
    )


def test_an_install_that_fails_is_no_failure(commands: Path) -> None:
    add(commands, "id", "echo 0")
    add(commands, "apt-get", "[ $1 = update ]")
    assert ensure(commands) == (0, "", f"Installing postgresql.\n{SKIPPED}")
