"""kill -9 at any instant: after a restart nothing is missing and nothing is there twice."""

from __future__ import annotations

import os
import random
import shutil
import signal
from pathlib import Path

import pytest
from tests.faults.victims import run, run_in_parts
from tests.faults.workload import PROGRAM, TOGETHER, write_workload

from whence import load_file, reference
from whence.lang.types import Tuple
from whence.pipeline.parts.open import read_state
from whence.pipeline.parts.store import PartedStore
from whence.pipeline.store import WholeStore

LONG = "WHENCE_LONG" in os.environ


def results(folder: Path) -> tuple[bytes, bytes, dict[str, set[Tuple]]]:
    """The changes, the dead letters, and the views as the state has them after the last epoch."""
    store = read_state(folder / "state")
    views = {name: store.view_at(name, store.last_epoch) for name in store.outputs}
    letters = folder / "program.dead.jsonl"
    return (folder / "changes.jsonl").read_bytes(), letters.read_bytes() if letters.exists() else b"", views


def uninterrupted(folder: Path, *options: str) -> tuple[bytes, bytes, dict[str, set[Tuple]]]:
    assert run(folder, *options)[0] == 0
    found = results(folder)
    base = WholeStore.read(folder / "state").recover().base
    expected = reference.evaluate(load_file(folder / "program.dl"), base.rows)
    assert found[2] == {name: expected[name] for name in found[2]}
    return found


@pytest.mark.parametrize("seed", range(8) if LONG else [1])
def test_25_kills_in_200_epochs(seed: int, tmp_path: Path) -> None:
    options = ("--snapshot-every", "15", "--retain", "40")
    write_workload(tmp_path / "whole", 200, seed=seed)
    expected = uninterrupted(tmp_path / "whole", *options)
    write_workload(tmp_path / "killed", 200, seed=seed)
    source = random.Random(seed)
    kills = 0
    while kills < 25:
        code, _ = run(tmp_path / "killed", *options, kill_at=source.randrange(1, 120), halve=source.random() < 0.5)
        if code == 0:
            # It came to its end: begin again, until there have been 25.
            assert results(tmp_path / "killed") == expected
            shutil.rmtree(tmp_path / "killed")
            write_workload(tmp_path / "killed", 200, seed=seed)
        else:
            assert code == -signal.SIGKILL
            kills += 1
    assert run(tmp_path / "killed", *options)[0] == 0
    assert results(tmp_path / "killed") == expected


def was_killed(ended: tuple[int, int], at: int) -> bool:
    """How often views are published depends on the machine, so that a run may come to its end before its last instants."""
    code, instants = ended
    return code == -signal.SIGKILL if instants >= at else code == 0


def test_a_kill_at_every_instant_of_a_short_run(tmp_path: Path) -> None:
    """At every 31st, unless there is time."""
    options = ("--snapshot-every", "3", "--retain", "2")
    write_workload(tmp_path / "whole", 8, seed=5)
    expected = uninterrupted(tmp_path / "whole", *options)
    _, instants = run(_fresh(tmp_path / "counted"), *options)
    assert instants > 50
    for at in range(1, instants + 1, 1 if LONG else 31):
        for halve in (False, True):
            folder = _fresh(tmp_path / f"killed{at}{halve}")
            assert was_killed(run(folder, *options, kill_at=at, halve=halve), at)
            assert run(folder, *options)[0] == 0, at
            assert results(folder) == expected, at


@pytest.mark.parametrize("program", [PROGRAM, TOGETHER], ids=["apart", "together"])
def test_a_kill_at_every_instant_of_a_short_run_in_parts(program: str, tmp_path: Path) -> None:
    """In the driver's work and in that of tasks, at every 60th instant, unless there is time."""
    write_workload(tmp_path / "whole", 8, seed=5, program=program)
    changes, _, views = uninterrupted(tmp_path / "whole")
    code, instants = run_in_parts(_fresh(tmp_path / "counted", program))
    assert (code, results(tmp_path / "counted")[0::2]) == (0, (changes, views))
    assert instants > 200
    for at in range(1, instants + 1, 1 if LONG else 60):
        folder = _fresh(tmp_path / f"killed{at}", program)
        assert was_killed(run_in_parts(folder, kill_at=at, halve=bool(at % 2)), at)
        assert run_in_parts(folder)[0] == 0, at
        assert results(folder)[0::2] == (changes, views), at


@pytest.mark.parametrize(
    ("program", "way", "epochs", "kills"),
    [(PROGRAM, (), 200, 25), (PROGRAM, ("--partitions", "2"), 60, 20), (TOGETHER, ("--partitions", "2"), 12, 4)]
    if LONG
    else [(PROGRAM, (), 50, 1), (PROGRAM, ("--partitions", "2"), 30, 1)],
)
def test_kills_of_a_run_on_spark(program: str, way: tuple[str, ...], epochs: int, kills: int, tmp_path: Path) -> None:
    """One kill, or more if there is time: of the driver, and with it of Java and of the workers that have the state."""
    options = ("--snapshot-every", "15", "--retain", "40")
    write_workload(tmp_path / "whole", epochs, seed=6, program=program)
    expected = uninterrupted(tmp_path / "whole", *options)
    write_workload(tmp_path / "killed", epochs, seed=6, program=program)
    source = random.Random(6)
    killed = 0
    while killed < kills:
        at = source.randrange(30, 80)
        code, _ = run(tmp_path / "killed", *options, *way, kill_at=at, halve=source.random() < 0.5, on_spark=True)
        assert code in (0, -signal.SIGKILL)
        killed += code != 0
        if code == 0:
            assert results(tmp_path / "killed") == expected
            shutil.rmtree(tmp_path / "killed")
            write_workload(tmp_path / "killed", epochs, seed=6, program=program)
    assert run(tmp_path / "killed", *options, *way, on_spark=True)[0] == 0
    assert results(tmp_path / "killed") == expected
    assert isinstance(read_state(tmp_path / "killed" / "state"), PartedStore if way else WholeStore)


def _fresh(folder: Path, program: str = PROGRAM) -> Path:
    write_workload(folder, 8, seed=5, program=program)
    return folder
