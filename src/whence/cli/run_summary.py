"""What a run did, in numbers."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from math import ceil
from statistics import median

from rich.table import Table

from whence.io.updates import DeadLetterFile
from whence.pipeline.keeper import Keeper
from whence.pipeline.report import EpochReport
from whence.session import SessionStats

_REMEMBERED = 100_000  # times of epochs: a run of months must not grow


@dataclass
class Totals:
    """The epochs of this run, added up."""

    counts: Counter[str] = field(default_factory=Counter)
    times: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    slowest: float = 0.0
    total: float = 0.0

    def start(self, inserted: int, seconds: float) -> None:
        """What was there before the first update."""
        self.counts["+"] += inserted
        self.total += seconds

    def add(self, report: EpochReport) -> None:
        self.times.append(report.seconds)
        self.slowest = max(self.slowest, report.seconds)
        self.total += report.seconds
        self.counts["updates"] += report.updates
        self.counts["no_ops"] += report.no_ops
        self.counts["+"] += report.inserted
        self.counts["-"] += report.deleted

    def seconds(self) -> dict[str, float]:
        times = sorted(self.times) or [0.0]
        p99 = times[ceil(len(times) * 0.99) - 1]
        return {"total": self.total, "median": median(times), "p99": p99, "max": self.slowest}


def as_json(totals: Totals, keeper: Keeper, letters: DeadLetterFile) -> dict[str, object]:
    return {
        "epochs": keeper.epoch,
        "updates": totals.counts["updates"],
        "no_ops": totals.counts["no_ops"],
        "dead_letters": letters.count,
        "changes": {op: totals.counts[op] for op in "+-"},
        "seconds": totals.seconds(),
        "tuples": dict(keeper.sizes),
        "work": keeper.stats(),
    }


def as_table(totals: Totals, keeper: Keeper, letters: DeadLetterFile) -> Table:
    table = Table(show_header=False)
    table.add_row("epochs", f"{keeper.epoch:,}")
    table.add_row("updates", f"{totals.counts['updates']:,}")
    table.add_row("no-ops", f"{totals.counts['no_ops']:,}")
    table.add_row("dead letters", f"{letters.count:,} in {letters.path}" if letters.count else "0")
    table.add_row("changes", f"+{totals.counts['+']:,} -{totals.counts['-']:,}")
    for name, seconds in totals.seconds().items():
        table.add_row("time in total" if name == "total" else f"{name} of an epoch", f"{seconds * 1000:,.2f} ms")
    for name, size in keeper.sizes.items():
        table.add_row(f"tuples of {name}", f"{size:,}")
    work = keeper.stats()
    table.add_row("derivations enumerated", f"{work['derivations']:,}")
    table.add_row("suspended, re-derived", f"{work['suspended']:,}, {work['rederived']:,}")
    table.add_row("time by phase", ", ".join(f"{name} {spent * 1000:,.1f} ms" for name, spent in _longest(work)))
    table.add_row("memory of the views", f"{sum(work['bytes'].values()) / 1e6:,.1f} MB")
    return table


def _longest(work: SessionStats) -> list[tuple[str, float]]:
    return sorted(work["seconds"].items(), key=lambda each: -each[1])[:3]
