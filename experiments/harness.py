"""What every experiment shares: several seeds, medians and spreads, a cut-off, tables, plots, claims beside what was measured.

An experiment is a file with an `Experiment` and `run(EXPERIMENT)` at its end; README.md shows one. Results go to `results/`: a
page of tables, a plot, and every single measurement as JSON.
"""

from __future__ import annotations

import argparse
import gc
import json
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

RESULTS = Path(__file__).parent / "results"
SEEDS = 5
Measure = Callable[[str, float, int], Mapping[str, float]]  # a scheme, a point, a seed -> a value for each metric


class CutOff(BaseException):
    """The time is up. Not an Exception: what is measured must not take it for an error of its own."""


@dataclass(frozen=True)
class Claim:
    """What somebody said, and what the results say to it: a number and how it is to be read."""

    said: str
    measured: Callable[[Results], str]


@dataclass(frozen=True)
class Experiment:
    """`schemes` are compared at each of the `points`, `across` which the plot goes; `metrics` are measured, in their units."""

    name: str
    title: str
    question: str
    schemes: Sequence[str]
    across: str
    points: Sequence[float]
    metrics: Mapping[str, str]
    measure: Measure
    claims: Sequence[Claim] = ()
    cut_off: float = 300.0  # seconds for one measurement
    of_processor: bool = False  # whether these are seconds of the processor: the same if others use the machine, too
    logarithmic: bool = True


@dataclass
class Results:
    """Every measurement: by scheme and point, a value of each metric for each seed. What was cut off has none."""

    experiment: Experiment
    points: Sequence[float]
    found: dict[tuple[str, float], list[Mapping[str, float]]] = field(default_factory=dict)
    cut: set[tuple[str, float]] = field(default_factory=set)

    def values(self, scheme: str, point: float, metric: str) -> list[float]:
        return [each[metric] for each in self.found.get((scheme, point), ())]

    def median(self, scheme: str, point: float, metric: str) -> float | None:
        values = self.values(scheme, point, metric)
        return statistics.median(values) if values and (scheme, point) not in self.cut else None

    def ratio(self, scheme: str, to: str, metric: str, point: float | None = None) -> str:
        """How many times more of a metric one scheme needs than another, at the last point unless told: `12.3x`."""
        point = self.points[-1] if point is None else point
        one, other = self.median(scheme, point, metric), self.median(to, point, metric)
        if one is None or other is None:
            return "cut off"
        return "-" if other == 0 else f"{one / other:,.3g}x"


def run(experiment: Experiment, arguments: Sequence[str] | None = None) -> Results:
    """Measures, prints and writes down. `--seeds N` and `--points P …` make it shorter, `--no-plot` does without matplotlib."""
    options = _options(experiment)
    asked = options.parse_args(arguments)
    if asked.plot and find_spec("matplotlib") is None:
        options.error(
            "matplotlib, which draws the plot, is not installed: make experiments has it, --no-plot does without"
        )
    results = Results(experiment, asked.points)
    print(f"# {experiment.title}\n", flush=True)
    for point in results.points:
        for scheme in experiment.schemes:
            _measure(results, scheme, point, range(1, asked.seeds + 1))
    asked.out.mkdir(parents=True, exist_ok=True)
    page = "\n\n".join(_page(results, asked.seeds, plot=asked.plot)) + "\n"
    (asked.out / f"{experiment.name}.md").write_text(page, encoding="utf-8")
    (asked.out / f"{experiment.name}.json").write_text(_as_json(results), encoding="utf-8")
    if asked.plot:
        _plot(results, asked.out / f"{experiment.name}.svg")
    print(page)
    return results


def _options(experiment: Experiment) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=experiment.title)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many seeds (default: %(default)s)")
    parser.add_argument("--points", type=float, nargs="+", default=list(experiment.points), help=experiment.across)
    parser.add_argument("--out", type=Path, default=RESULTS, help="where results go (default: %(default)s)")
    parser.add_argument("--no-plot", dest="plot", action="store_false", help="tables only: needs no matplotlib")
    return parser


# -- measuring ---------------------------------------------------------------------------------------------------------


def _measure(results: Results, scheme: str, point: float, seeds: Sequence[int]) -> None:
    """One seed after the other, until one is cut off: then the others would be, and so would all later points of the scheme."""
    experiment = results.experiment
    if any(cut == scheme and earlier <= point for cut, earlier in results.cut):
        results.cut.add((scheme, point))
        return
    found = results.found.setdefault((scheme, point), [])
    start = time.perf_counter()
    for seed in seeds:
        gc.collect()
        try:
            with _cut_off(experiment.cut_off, of_processor=experiment.of_processor):
                measured = experiment.measure(scheme, point, seed)
        except CutOff:
            results.cut.add((scheme, point))
            break
        if set(measured) != set(experiment.metrics):
            raise ValueError(f"{experiment.name} measures {', '.join(experiment.metrics)}, not {', '.join(measured)}")
        found.append(measured)
    what = "cut off" if (scheme, point) in results.cut else f"{time.perf_counter() - start:.1f} s"
    print(f"{experiment.across} {point:g}, {scheme}: {what}", flush=True)


@contextmanager
def _cut_off(seconds: float, *, of_processor: bool) -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise CutOff

    timer, rings = (signal.ITIMER_PROF, signal.SIGPROF) if of_processor else (signal.ITIMER_REAL, signal.SIGALRM)
    before = signal.signal(rings, stop)
    signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(rings, before)


# -- writing down ------------------------------------------------------------------------------------------------------


def _page(results: Results, seeds: int, *, plot: bool) -> Iterator[str]:
    experiment = results.experiment
    yield f"# {experiment.title}"
    yield experiment.question
    yield (
        f"{seeds} seed{'s' if seeds > 1 else ''}: the median, and in brackets the least and the greatest. "
        f"A measurement that takes more than {experiment.cut_off:g} s{' of the processor' if experiment.of_processor else ''} "
        "is cut off."
    )
    if plot:
        yield f"![{experiment.title}]({experiment.name}.svg)"
    for metric, unit in experiment.metrics.items():
        yield f"## {metric[0].upper()}{metric[1:]}{f' ({unit})' if unit else ''}"
        rows = [
            [f"{point:g}", *(_cell(results, scheme, point, metric) for scheme in experiment.schemes)]
            for point in results.points
        ]
        yield _table([experiment.across, *experiment.schemes], rows)
    if experiment.claims:
        yield "## Claims"
        yield _table(["claim", "measured"], [[claim.said, claim.measured(results)] for claim in experiment.claims])


def _cell(results: Results, scheme: str, point: float, metric: str) -> str:
    median = results.median(scheme, point, metric)
    if median is None:
        return "cut off"
    values = results.values(scheme, point, metric)
    return _number(median) if len(values) == 1 else f"{_number(median)} ({_number(min(values))}-{_number(max(values))})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *rows))


def _as_json(results: Results) -> str:
    measured = [
        {
            "scheme": scheme,
            "point": point,
            "cut_off": (scheme, point) in results.cut,
            "seeds": [dict(each) for each in found],
        }
        for (scheme, point), found in results.found.items()
    ]
    return json.dumps({"experiment": results.experiment.name, "measured": measured}, indent=1) + "\n"


def _plot(results: Results, path: Path) -> None:
    """For each metric a panel: the medians of each scheme as a line, from the least to the greatest as its shade."""
    import matplotlib as mpl  # noqa: PLC0415 - tables do without it

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = results.experiment.name  # the same results give the same file
    from matplotlib import pyplot as plt  # noqa: PLC0415

    experiment = results.experiment
    count = len(experiment.metrics)
    figure, panels = plt.subplots(1, count, figsize=(4.6 * count, 3.8), layout="constrained", squeeze=False)
    for axes, (metric, unit) in zip(panels[0], experiment.metrics.items(), strict=True):
        for scheme in experiment.schemes:
            drawn = [point for point in results.points if results.median(scheme, point, metric) is not None]
            lines = axes.plot(
                drawn, [results.median(scheme, point, metric) for point in drawn], marker="o", label=scheme
            )
            spreads = [results.values(scheme, point, metric) for point in drawn]
            low, high = [min(each) for each in spreads], [max(each) for each in spreads]
            axes.fill_between(drawn, low, high, color=lines[0].get_color(), alpha=0.2, linewidth=0)
        if experiment.logarithmic:
            axes.set_yscale("symlog", linthresh=1)
        axes.set_xlabel(experiment.across)
        axes.set_title(f"{metric}{f', {unit}' if unit else ''}")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0][0].legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
