"""Which way a stratum runs on Spark, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from whence.backends.spark.options import Mode
from whence.lang.program import Program, Stratum
from whence.plan.decompose import Decomposition, NotDecomposable, decompose, field_name


class ModeError(ValueError):
    """A mode was asked for that a stratum does not allow; the message says why."""


# Bytes of input below which a second task costs more than it saves.
SMALL = 1 << 16
# Bytes of input that one task takes.
TASK_LIMIT = 1 << 28


@dataclass(frozen=True)
class Choice:
    """How a stratum runs: in a `mode`, or as a plain DataFrame plan if there is none."""

    relations: tuple[str, ...]
    mode: Mode | None
    reason: str
    decomposition: Decomposition | None = None
    parts: int = 1

    def lines(self) -> list[str]:
        proof = () if self.decomposition is None else self.decomposition.proof
        title = f"{', '.join(self.relations)}: {self.mode or 'DataFrame plan'}"
        return [f"{title}: {self.reason}" if self.reason else title, *(f"  {line}" for line in proof)]


@dataclass(frozen=True)
class Sizes:
    """Bytes of base data below each relation, and how many tasks run at a time."""

    below: Mapping[str, int]
    parallelism: int
    task_limit: int = TASK_LIMIT

    def of(self, *names: str) -> int:
        return sum(self.below[name] for name in names)


def choose(
    program: Program, stratum: Stratum, obstacle: str, asked: Mode, sizes: Sizes, *, in_parts: bool = True
) -> Choice:
    """How to run a recursive stratum. `obstacle` says why it cannot be DataFrame joins, if it cannot; `in_parts` whether tasks
    may still have a part of it each. Raises `ModeError`."""
    names = stratum.relations
    if asked == Mode.IN_TASK:
        return Choice(names, Mode.IN_TASK, "asked for")
    found, why_not = _apart(program, stratum) if in_parts else (None, obstacle)
    if asked == Mode.SHUFFLED:
        if obstacle:
            raise ModeError(_impossible(asked, stratum, obstacle))
        return Choice(names, Mode.SHUFFLED, "asked for")
    if asked == Mode.DECOMPOSED:
        if found is None:
            raise ModeError(_impossible(asked, stratum, why_not))
        return _decomposed(program, stratum, found, sizes, "asked for")
    size = max(sizes.of(name) for name in names)
    if not in_parts:
        return Choice(names, Mode.IN_TASK, f"in one task, because {obstacle}")
    if size <= SMALL:
        return Choice(names, Mode.IN_TASK, f"its input, {_bytes(size)}, is small enough for one task")
    if found is not None and sizes.of(*found.whole) <= sizes.task_limit:
        return _decomposed(program, stratum, found, sizes, "")
    why_not = why_not or "what every part needs is too large"
    if obstacle:
        return Choice(names, Mode.IN_TASK, f"in one task, because {obstacle}, and {why_not}")
    if size <= sizes.task_limit:
        return Choice(names, Mode.IN_TASK, f"{why_not}; its input, {_bytes(size)}, fits one task")
    return Choice(names, Mode.SHUFFLED, f"its input, {_bytes(size)}, is too large for one task, and {why_not}")


def _apart(program: Program, stratum: Stratum) -> tuple[Decomposition | None, str]:
    try:
        return decompose(program, stratum), ""
    except NotDecomposable as reason:
        return None, str(reason)


def _decomposed(program: Program, stratum: Stratum, found: Decomposition, sizes: Sizes, prefix: str) -> Choice:
    parts = max(sizes.parallelism, -(-max(sizes.of(name) for name in stratum.relations) // sizes.task_limit))
    by = ", ".join(f"{name}.{field_name(program, name, found.columns)}" for name in stratum.relations)
    shared = f"; every part gets all of {', '.join(found.whole)}" if found.whole else ""
    reason = f"{prefix + ', ' if prefix else ''}{parts} parts by {by}{shared}"
    return Choice(stratum.relations, Mode.DECOMPOSED, reason, found, parts)


def _impossible(asked: Mode, stratum: Stratum, reason: str) -> str:
    return f"mode={asked} is not possible for {', '.join(stratum.relations)}: {reason}. Leave the mode to 'auto'"


def _bytes(size: int) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1024:
            return f"{size} {unit}"
        size = -(-size // 1024)
    return f"{size} TB"
