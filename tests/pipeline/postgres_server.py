"""A PostgreSQL server of our own, started for the tests in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


def find_programs() -> Path | None:
    """The folder with initdb and pg_ctl: on the PATH, or where Debian keeps the newest."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return debian[-1].parent if debian else None


@contextmanager
def server() -> Iterator[str]:
    """The URL of a fresh server that listens on a socket in a folder of its own."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: tools/ensure_postgres.sh does that")
    # Not below pytest's folders: the path of a socket has to be short, and others cannot enter those of root.
    with TemporaryDirectory(prefix="whence-postgres-") as name:
        folder = Path(name)
        as_user = _unprivileged(folder)
        data = folder / "data"
        _run([*as_user, str(programs / "initdb"), "-D", str(data), "-A", "trust", "-U", "whence", "--no-sync"])
        options = f"-k {folder} -c listen_addresses= -c fsync=off -c max_prepared_transactions=4"
        control = [*as_user, str(programs / "pg_ctl"), "-D", str(data), "-w"]
        _run([*control, "start", "-l", str(folder / "log"), "-o", options])
        try:
            yield f"postgresql://whence@/postgres?host={folder}"
        finally:
            _run([*control, "stop", "-m", "immediate"])


def _unprivileged(folder: Path) -> list[str]:
    """The server refuses to run as root: for root, words that run a command as somebody else who owns the folder."""
    if os.geteuid() != 0:
        return []
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
