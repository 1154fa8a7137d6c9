"""What the system refuses: space, and a folder that is in use."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.workload import write_workload
from typer.testing import CliRunner

from whence.cli import app

WHENCE = [sys.executable, "-c", "from whence.cli import main; main()"]
RUN = [
    "run",
    "program.dl",
    "--no-spark",
    "--updates",
    "updates.jsonl",
    "--state",
    "state",
    "--changes",
    "changes.jsonl",
]
# As a full disk: writing fails where a file would become larger than this.
LIMITED = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); " + (
    "resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); from whence.cli import main; main()"
)


def whence(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command], cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_a_full_disk_ends_the_run_with_an_error_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("whole", "full"):
        write_workload(tmp_path / name, 60, seed=21)
    monkeypatch.chdir(tmp_path / "whole")
    assert CliRunner().invoke(app, [*RUN, "--quiet"]).exit_code == 0
    # The changes outgrow the limit half-way; then with more room, a snapshot or the log may; then there is enough.
    for size in (3_000, 6_000):
        limited = [sys.executable, "-c", LIMITED.format(size=size)]
        result = whence(tmp_path / "full", *limited, *RUN, "--quiet", "--snapshot-every", "10")
        assert result.returncode == 1
        assert "file too large" in result.stderr
        assert result.stderr.startswith("cannot write ")
    monkeypatch.chdir(tmp_path / "full")
    assert CliRunner().invoke(app, [*RUN, "--quiet"]).exit_code == 0
    for name in ("changes.jsonl", "program.dead.jsonl"):
        assert (tmp_path / "full" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert CliRunner().invoke(app, ["state", "verify", "state"]).exit_code == 0


def test_a_second_run_on_a_state_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    write_workload(tmp_path, 5, seed=1)
    command = [*WHENCE, *RUN, "--follow", "--json"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as first:
        while not (tmp_path / "state" / "metrics.json").exists():
            assert first.poll() is None
        second = whence(tmp_path, *WHENCE, *RUN)
        assert second.returncode == 1
        assert second.stderr.startswith(f"state is in use by process {first.pid} on ")
        first.send_signal(signal.SIGTERM)
        assert first.wait(60) == 0
        assert first.stderr is not None
        assert json.loads(first.stderr.read())["epochs"] == 5
