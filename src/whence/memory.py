"""How much memory this process holds and could still get: what the machine has left, or the container if it may have less."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

# The share of what the process holds and could get that it may hold: what tables need to grow comes out of the rest.
SHARE = 0.75
_SECONDS_BETWEEN_LOOKS = 0.05


class Memory(NamedTuple):
    """In bytes."""

    held: int
    available: int

    @property
    def is_low(self) -> bool:
        return self.held > SHARE * (self.held + self.available)

    @property
    def allowed(self) -> int:
        return int(SHARE * (self.held + self.available))


def look_at_memory(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> Memory | None:
    """None where the system does not tell."""
    try:
        held = int((proc / "self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        found = [_kilobytes(proc / "meminfo", "MemAvailable:")]
        found += _left_in_groups((proc / "self/cgroup").read_text(), groups)
    except (OSError, ValueError, IndexError):
        return None
    available = [each for each in found if each is not None]
    return Memory(held, max(0, min(available))) if available else None


def _left_in_groups(listed: str, groups: Path) -> list[int | None]:
    """What is left of the limit of each control group that the process is in, of version 2 or 1."""
    found: list[int | None] = []
    for line in listed.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, names = groups, ("memory.max", "memory.current", "inactive_file ")
        elif "memory" in controllers.split(","):
            root = groups / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
        else:
            continue
        own = root / path.lstrip("/")
        # Inside a container the path may be one of the host, which is not there.
        for folder in (own, *own.parents) if own.is_dir() else (root,):
            if not folder.is_relative_to(root):
                break
            found.append(_left_in_group(folder, *names))
    return found


def _left_in_group(folder: Path, limit: str, usage: str, unused: str) -> int | None:
    try:
        most, used = (folder / limit).read_text().strip(), int((folder / usage).read_text())
        if most == "max":
            return None
        # Files that nobody has touched lately are given up first.
        return int(most) - used + (_number(folder / "memory.stat", unused) or 0)
    except (OSError, ValueError):
        return None


def _kilobytes(path: Path, name: str) -> int | None:
    number = _number(path, name)
    return None if number is None else 1024 * number


def _number(path: Path, name: str) -> int | None:
    for line in path.read_text().splitlines():
        if line.startswith(name):
            return int(line[len(name) :].split()[0])
    return None


class MemoryWatch:
    """Looks at memory, but not too often."""

    def __init__(self) -> None:
        self._looked = 0.0

    def look(self) -> Memory | None:
        """What there is, if it has become too little."""
        now = time.monotonic()
        if now - self._looked < _SECONDS_BETWEEN_LOOKS:
            return None
        self._looked = now
        memory = look_at_memory()
        return memory if memory is not None and memory.is_low else None
