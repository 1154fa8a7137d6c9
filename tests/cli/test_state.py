"""`whence state`: what a state holds, and whether it is right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from tests.faults.workload import write_workload

from whence import load_file
from whence.pipeline import log
from whence.pipeline.store import WholeStore

Whence = Callable[..., Result]


@pytest.fixture
def state(folder: Path, whence: Whence) -> Path:
    write_workload(folder, 30, seed=3)
    options = ("--updates", "updates.jsonl", "--state", "state", "--snapshot-every", "8", "--retain", "10")
    assert whence("run", "program.dl", *options, "--no-spark", "--quiet").exit_code == 0
    return folder / "state"


def test_ls_says_what_is_there(state: Path, whence: Whence) -> None:
    shown = whence("state", "ls", "state").stdout
    rows = dict([part.strip() for part in line.split("│")[1:3]] for line in shown.splitlines() if "│" in line)
    found = json.loads(whence("state", "ls", "state", "--json").stdout)
    assert (rows["program"], rows["epochs"]) == ("program.dl", "8 to 30")
    assert found["epochs"] == {"oldest": 8, "last": 30}
    assert [each["epoch"] for each in found["snapshots"]] == [8, 16, 24]
    assert rows["tuples of reach"] == str(found["tuples"]["reach"]) != "0"


@pytest.mark.parametrize("options", [(), ("--reference",)])
def test_verify_finds_nothing_wrong_with_a_sound_state(options: tuple[str, ...], state: Path, whence: Whence) -> None:
    result = whence("state", "verify", "state", *options)
    assert (result.exit_code, result.stdout) == (0, "ok: epochs 8 to 30, reach, lonely, cheapest\n")


def test_verify_finds_a_view_that_the_base_tuples_do_not_make(state: Path, whence: Whence) -> None:
    """An epoch of the log is written again, whole, with a change that never was."""
    program = load_file(Path("program.dl"))
    newest = log.list_segments(state / "log")[-1]
    (entry,) = log.read_segment(state / "log", newest, program)
    (state / "log" / newest.name).unlink()
    entry.changes.inserted.setdefault("reach", []).append(("x", "y"))  # type: ignore[attr-defined]
    log.write_segment(state / "log", [entry], program)
    result = whence("state", "verify", "state")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        f"{state.relative_to(Path.cwd()) / 'current'}: reach after epoch 30 lacks ('x', 'y')",
        "reach after epoch 30 holds without reason ('x', 'y')",
    ]


def test_verify_names_damaged_files(state: Path, whence: Whence) -> None:
    base = state / "snapshots/000000000016/base/node.parquet"
    pq.write_table(pa.table({"name": ["z"], "whence.time": [0.0]}), base)
    newest = max((state / "log").iterdir())
    newest.write_bytes(newest.read_bytes()[:-1])
    result = whence("state", "verify", "state")
    assert result.exit_code == 1
    assert [line.partition(": ")[0] for line in result.stdout.splitlines()] == [
        "state/snapshots/000000000016/base/node.parquet",
        f"state/log/{newest.name}",
    ]


def test_compact_leaves_one_segment_and_the_same_views(state: Path, whence: Whence) -> None:
    before = WholeStore.read(state).view_at("reach", 30)
    assert whence("state", "compact", "state", "--retain", "0").exit_code == 0
    found = json.loads(whence("state", "ls", "state", "--json").stdout)
    assert [each["epoch"] for each in found["snapshots"]] == [24, 30]
    assert found["log"]["segments"] == 1
    assert WholeStore.read(state).view_at("reach", 30) == before
    assert whence("state", "verify", "state").exit_code == 0


def test_a_state_in_use_is_not_touched(state: Path, whence: Whence) -> None:
    store = WholeStore.open(state, load_file(Path("program.dl")))
    for command in ("verify", "compact"):
        result = whence("state", command, "state")
        assert (result.exit_code, result.stderr.startswith("state is in use by process ")) == (1, True)
    assert whence("state", "ls", "state").exit_code == 0
    store.close()


def test_other_folders_are_refused(folder: Path, whence: Whence) -> None:
    Path("other").mkdir()
    assert whence("state", "ls", "other").stderr == "other is not a state folder: it has no manifest.json\n"
    assert whence("state", "ls", "nowhere").exit_code == 2
