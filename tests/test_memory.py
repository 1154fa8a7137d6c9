"""What the system tells of memory: the machine's, or less in a container."""

from __future__ import annotations

from pathlib import Path

import pytest

from whence.memory import Memory, look_at_memory

PAGE = 4096


def proc(folder: Path, groups: str) -> Path:
    (folder / "proc" / "self").mkdir(parents=True)
    (folder / "proc" / "self" / "statm").write_text("9999 1000 200 1 0 500 0\n")
    (folder / "proc" / "self" / "cgroup").write_text(groups)
    (folder / "proc" / "meminfo").write_text("MemTotal: 64 kB\nMemFree: 1 kB\nMemAvailable:   8000000 kB\n")
    return folder / "proc"


def group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def available(folder: Path, groups: str) -> int:
    memory = look_at_memory(proc(folder, groups), folder / "groups")
    assert memory is not None
    return memory.available


@pytest.fixture(autouse=True)
def _pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sysconf", lambda _: PAGE)


def test_a_machine_has_what_is_available(tmp_path: Path) -> None:
    memory = look_at_memory(proc(tmp_path, "0::/\n"), tmp_path / "groups")
    assert memory == Memory(1000 * PAGE, 8_000_000 * 1024)


def test_a_container_has_what_its_limit_leaves(tmp_path: Path) -> None:
    limits = {
        "memory__max": "5000000\n",
        "memory__current": "4000000\n",
        "memory__stat": "anon 7\ninactive_file 250000\n",
    }
    group(tmp_path / "groups" / "one" / "two", **limits)
    assert available(tmp_path, "0::/one/two\n") == 1_250_000


def test_a_group_around_may_leave_less(tmp_path: Path) -> None:
    group(tmp_path / "groups" / "one", memory__max="3000\n", memory__current="1000\n", memory__stat="inactive_file 0\n")
    group(tmp_path / "groups" / "one" / "two", memory__max="max\n", memory__current="1000\n", memory__stat="")
    assert available(tmp_path, "0::/one/two\n") == 2000


def test_a_path_of_the_host_is_not_looked_for(tmp_path: Path) -> None:
    group(tmp_path / "groups", memory__max="3000\n", memory__current="1000\n", memory__stat="inactive_file 0\n")
    assert available(tmp_path, "0::/docker/abc\n") == 2000


def test_the_first_version_of_control_groups_is_known(tmp_path: Path) -> None:
    (tmp_path / "groups" / "memory").mkdir(parents=True)
    for name, text in (("limit_in_bytes", "3000"), ("usage_in_bytes", "1000")):
        (tmp_path / "groups" / "memory" / f"memory.{name}").write_text(text)
    (tmp_path / "groups" / "memory" / "memory.stat").write_text("inactive_file 900\ntotal_inactive_file 500\n")
    assert available(tmp_path, "5:cpu:/\n4:memory:/docker/abc\n") == 2500


def test_where_nothing_is_told_nothing_is_known(tmp_path: Path) -> None:
    assert look_at_memory(tmp_path, tmp_path) is None


@pytest.mark.parametrize(("held", "left", "is_low"), [(74, 26, False), (76, 24, True), (1, 0, True)])
def test_a_process_may_hold_three_quarters_of_what_it_could_get(held: int, left: int, is_low: bool) -> None:
    assert Memory(held, left).is_low == is_low
