"""Measuring, and writing down what was measured: medians, Markdown tables, plots."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
REPEATS = 5
SLOW = 4.0
VERY_SLOW = 15.0
# For processes that are started: Python keeps what it compiles of our sources, as of those of peers when they were installed.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def median_seconds(work: Callable[[], float | None], repeats: int = REPEATS) -> float:
    """The median of warm runs: of three if one takes seconds, and the first run alone if it takes many.

    `work` may say itself how long it took, if it does more.
    """
    start = time.perf_counter()
    told = work()
    first = time.perf_counter() - start
    if first > VERY_SLOW:
        return first if told is None else told
    times: list[float] = []
    for _ in range(repeats if first < SLOW else min(repeats, 3)):
        gc.collect()
        start = time.perf_counter()
        told = work()
        times.append(time.perf_counter() - start if told is None else told)
    return statistics.median(times)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:,.1f}"


class Report:
    """A Markdown page under `results/`, printed as it is written."""

    def __init__(self, name: str, title: str) -> None:
        self.path = RESULTS / f"{name}.md"
        self.lines: list[str] = []
        self.write(f"# {title}")

    def write(self, text: str) -> None:
        self.lines += [text, ""]
        print(text, end="\n\n", flush=True)
        RESULTS.mkdir(exist_ok=True)
        self.path.write_text("\n".join(self.lines), encoding="utf-8")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        lines = [header, ["---"] * len(header), *rows]
        self.write("\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines))


def plot_bars(
    name: str, title: str, labels: Sequence[str], series: dict[str, Sequence[float | None]], unit: str
) -> Path:
    """Groups of bars on a logarithmic scale, one group for each label."""
    import matplotlib as mpl  # noqa: PLC0415 - only some benchmarks draw

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(9, 0.6 + 0.55 * len(labels)), layout="constrained")
    width = 0.8 / len(series)
    for at, (who, values) in enumerate(series.items()):
        places = [row + at * width for row, value in enumerate(values) if value is not None]
        drawn = [value for value in values if value is not None]
        bars = axes.barh(places, drawn, height=width, label=who)
        axes.bar_label(
            bars, labels=[f" {value:,.0f}" if value >= 100 else f" {value:.2g}" for value in drawn], fontsize=8
        )
    axes.set_yticks([row + 0.4 - width / 2 for row in range(len(labels))], labels)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel(unit)
    axes.margins(x=0.15)
    axes.set_title(title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    path = RESULTS / f"{name}.svg"
    figure.savefig(path)
    plt.close(figure)
    return path
