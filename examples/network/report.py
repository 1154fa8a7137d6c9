"""What epochs did to the routes of a network: lines and tables to read, and a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from statistics import mean, median

from rich.console import Console
from rich.table import Table

from whence import Changes
from whence.topology import Link, LinkChanges, TransitStub, draw

Pair = tuple[str, str]


@dataclass(frozen=True)
class Route:
    """A view that gives each pair of nodes its best value: what a worse one is called, the unit, and whether less is better."""

    view: str
    worse: str
    unit: str
    less_is_better: bool

    def worsened(self, changes: Changes) -> dict[Pair, tuple[int, int]]:
        """The pairs whose value got worse, with the value before and after."""
        before = {(src, dst): value for src, dst, value in changes.deleted.get(self.view, ())}
        after = {(src, dst): value for src, dst, value in changes.inserted.get(self.view, ())}
        both = {pair: (before[pair], after[pair]) for pair in before.keys() & after.keys()}
        return {pair: (old, new) for pair, (old, new) in both.items() if (new > old) == self.less_is_better}


FASTEST = Route("fastest", "slower", "ms", less_is_better=True)
ROUTES = (
    FASTEST,
    Route("fewest_hops", "longer", "hops", less_is_better=True),
    Route("widest", "narrower", "Mbit/s", less_is_better=False),
)


@dataclass(frozen=True)
class Outcome:
    """An epoch of the stream, and what it changed."""

    number: int
    happened: LinkChanges
    changes: Changes
    ms: float

    @property
    def cut_off(self) -> list[Pair]:
        return [(src, dst) for src, dst in self.changes.deleted.get("reachable", ()) if src != dst]

    @property
    def damage(self) -> tuple[int, ...]:
        """Pairs that lost each other count before routes that got worse."""
        return len(self.cut_off), *(len(route.worsened(self.changes)) for route in ROUTES)

    def __str__(self) -> str:
        failed = [f"{link} failed" for link in self.happened.failed]
        return ", ".join(failed + [f"{link} repaired" for link in self.happened.repaired])


class Report:
    """Prints a line for each epoch as it comes, and at the end what there is to say about all of them."""

    def __init__(self, console: Console, network: TransitStub) -> None:
        self.console = console
        self.network = network
        self.outcomes: list[Outcome] = []

    def print_network(self, seed: int) -> None:
        core, stubs = len(self.network.transit), len(self.network.stubs)
        self.console.print(
            f"A network of {len(self.network.nodes)} nodes and {len(self.network.links)} links: {core} transit nodes and {stubs} "
            f"stubs (seed {seed}).\nViews: who reaches whom, and each pair's fastest, shortest and widest way.",
            soft_wrap=True,
        )

    def add(self, outcome: Outcome) -> None:
        if not self.outcomes:
            self.console.print("epoch       ms   changes")
        self.outcomes.append(outcome)
        what = str(outcome) if outcome.happened.failed else f"{len(outcome.happened.repaired)} links come up"
        self.console.print(
            f"{outcome.number:5}  {outcome.ms:7,.1f}   {len(outcome.changes):7,}   {what}", soft_wrap=True
        )

    def print_summary(self, batches: Sequence[float]) -> None:
        failures = self._failures()
        self.console.print()
        self.console.print(
            _latencies([each.ms for each in failures], batches, [len(each.changes) for each in failures])
        )
        self.console.print(_most_harmful(failures))
        for name, outcome in self._worst().items():
            self.console.print(_details(f"The worst {name}", outcome, self._cut_off_nodes(outcome)))

    def draw_worst(self, folder: Path) -> None:
        for name, outcome in self._worst().items():
            path = folder / f"worst_{name}.svg"
            path.write_text(self._picture(outcome), encoding="utf-8")
            self.console.print(f"Picture of the worst {name}: {path}", soft_wrap=True)

    def _picture(self, outcome: Outcome) -> str:
        slower = Counter(src for src, _ in FASTEST.worsened(outcome.changes))
        kinds = ("cut off", *(route.worse for route in ROUTES))
        harm = [f"{count:,} {kind}" for count, kind in zip(outcome.damage, kinds, strict=True) if count]
        return draw(
            self.network,
            title=f"Epoch {outcome.number}: {', '.join(map(str, outcome.happened.failed))} failed",
            subtitle=f"routes: {', '.join(harm)}" if harm else "no route got worse",
            failed=outcome.happened.failed,
            down=self._down_before(outcome) - set(outcome.happened.repaired),
            cut_off=self._cut_off_nodes(outcome),
            detours={node: count / (len(self.network.nodes) - 1) for node, count in slower.items()},
        )

    def _failures(self) -> list[Outcome]:
        return [each for each in self.outcomes if each.happened.failed]

    def _worst(self) -> dict[str, Outcome]:
        """The failure that did most harm, and the one that sent most routes another way, if that is another one."""
        failure = max(self._failures(), key=lambda each: each.damage)
        detour = max(self._failures(), key=lambda each: each.damage[1:])
        return {"failure": failure} | ({} if failure is detour else {"detour": detour})

    def _cut_off_nodes(self, outcome: Outcome) -> set[str]:
        """Both sides of a cut lose each other; the nodes that lost more than half of the network are the cut off ones."""
        lost = Counter(src for src, _ in outcome.cut_off)
        return {node for node, count in lost.items() if count > len(self.network.nodes) / 2}

    def _down_before(self, outcome: Outcome) -> set[Link]:
        down: set[Link] = set()
        for each in self._failures():
            if each.number >= outcome.number:
                break
            down = (down - set(each.happened.repaired)) | set(each.happened.failed)
        return down


def _latencies(engine: Sequence[float], batches: Sequence[float], changes: Sequence[int]) -> Table:
    table = _table(f"{len(engine)} epochs with a failure", "", "median", "95 %", "most")
    rows = (("ms to bring the views up to date", engine), ("ms for the whole micro-batch on Spark", batches))
    for name, values in (*rows, ("rows of views that came or went", changes)):
        ranked = sorted(values)
        late = ranked[int(0.95 * (len(ranked) - 1))]
        table.add_row(name, f"{median(ranked):,.0f}", f"{late:,.0f}", f"{ranked[-1]:,.0f}")
    return table


def _most_harmful(failures: Sequence[Outcome], count: int = 5) -> Table:
    table = _table(
        "The failures that did most harm", "epoch", "link", "pairs cut off", *(route.worse for route in ROUTES)
    )
    for each in nlargest(count, failures, key=lambda each: each.damage):
        links = ", ".join(map(str, each.happened.failed))
        table.add_row(str(each.number), links, *(f"{number:,}" for number in each.damage))
    return table


def _details(title: str, outcome: Outcome, cut_off: set[str]) -> Table:
    table = _table(f"{title}: epoch {outcome.number}, {outcome}", "routes", "how many", "on average", "worst of them")
    if outcome.cut_off:
        table.add_row("cut off", f"{len(outcome.cut_off):,}", "", _some(sorted(cut_off)))
    for route in ROUTES:
        worsened = route.worsened(outcome.changes)
        if worsened:
            table.add_row(route.worse, f"{len(worsened):,}", *_worsening(route, worsened))
    return table


def _worsening(route: Route, worsened: Mapping[Pair, tuple[int, int]]) -> tuple[str, str]:
    before, after = (mean(values) for values in zip(*worsened.values(), strict=True))
    (src, dst), (old, new) = max(worsened.items(), key=lambda item: (abs(item[1][1] - item[1][0]), item[0]))
    unit = route.unit
    return f"{before:,.1f} to {after:,.1f} {unit}", f"{src} to {dst}: {old:,} to {new:,} {unit}"


def _some(nodes: Sequence[str]) -> str:
    return f"{len(nodes)} nodes lost all others: {nodes[0]} … {nodes[-1]}" if nodes else ""


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("", "link", "routes", "worst of them") else "right")
    return table
