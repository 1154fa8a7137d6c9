"""What an epoch did to the routes of the network, as tables and as a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from rich.console import Console
from rich.table import Table

from whence import Changes
from whence.network import Epoch, Link, TransitStub, draw

Pair = tuple[str, str]


@dataclass(frozen=True)
class Route:
    """A view with the best value for each pair of nodes: what it is called, its unit, and whether less is better."""

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


ROUTES = (
    Route("fastest", "slower", "ms", less_is_better=True),
    Route("fewest_hops", "longer", "hops", less_is_better=True),
    Route("widest", "narrower", "Mbit/s", less_is_better=False),
)


@dataclass(frozen=True)
class Outcome:
    """An epoch of the stream, and what it changed."""

    number: int
    happened: Epoch
    changes: Changes
    ms: float

    @property
    def cut_off(self) -> list[Pair]:
        return [(src, dst) for src, dst in self.changes.deleted.get("reachable", ()) if src != dst]

    @property
    def damage(self) -> tuple[int, int]:
        """Pairs that lost each other count before routes that got worse."""
        return len(self.cut_off), sum(len(route.worsened(self.changes)) for route in ROUTES)

    def changed(self) -> int:
        """How many rows of the views came or went."""
        views = ("reachable", *(route.view for route in ROUTES))
        return sum(len(side.get(view, ())) for side in (self.changes.inserted, self.changes.deleted) for view in views)

    def __str__(self) -> str:
        return ", ".join(
            [f"{link} failed" for link in self.happened.failed]
            + [f"{link} repaired" for link in self.happened.repaired]
        )


def print_summary(console: Console, outcomes: list[Outcome]) -> None:
    times = sorted(outcome.ms for outcome in outcomes)
    changed = [outcome.changed() for outcome in outcomes]
    table = Table(title=f"{len(outcomes)} epochs", title_justify="left", title_style="bold")
    for heading in ("", "median", "95 %", "most"):
        table.add_column(heading, justify="right" if heading else "left")
    late = int(0.95 * (len(outcomes) - 1))
    table.add_row("latency, ms", f"{median(times):,.0f}", f"{times[late]:,.0f}", f"{times[-1]:,.0f}")
    table.add_row("changes of views", f"{median(changed):,.0f}", f"{sorted(changed)[late]:,}", f"{max(changed):,}")
    console.print()
    console.print(table)


def print_damage(console: Console, outcome: Outcome, nodes: int) -> None:
    table = Table(
        title=f"The worst failure: epoch {outcome.number}, {outcome}", title_justify="left", title_style="bold"
    )
    for heading in ("of all pairs", "how many", "on average", "the worst"):
        table.add_column(heading, justify="left" if heading == "of all pairs" else "right")
    lost = _cut_off_nodes(outcome, nodes)
    table.add_row("cut off", f"{len(outcome.cut_off):,}", "", _shown(sorted(lost)))
    for route in ROUTES:
        table.add_row(route.worse, *_worst(route, route.worsened(outcome.changes)))
    console.print()
    console.print(table)


def _worst(route: Route, worsened: Mapping[Pair, tuple[int, int]]) -> Iterator[str]:
    yield f"{len(worsened):,}"
    if not worsened:
        return
    before, after = (mean(values) for values in zip(*worsened.values(), strict=True))
    yield f"{before:,.0f} → {after:,.0f} {route.unit}"
    (src, dst), (old, new) = max(worsened.items(), key=lambda item: (abs(item[1][1] - item[1][0]), item[0]))
    yield f"{src} to {dst}: {old:,} → {new:,} {route.unit}"


def _shown(nodes: list[str]) -> str:
    return f"{len(nodes)} nodes: {nodes[0]} … {nodes[-1]}" if nodes else ""


def write_picture(path: Path, network: TransitStub, outcome: Outcome, down: set[Link]) -> None:
    cut_off = _cut_off_nodes(outcome, len(network.nodes))
    slower = Counter(src for route in ROUTES[:1] for src, _ in route.worsened(outcome.changes))
    pairs, _ = outcome.damage
    worse = ", ".join(f"{len(route.worsened(outcome.changes)):,} routes {route.worse}" for route in ROUTES)
    path.write_text(
        draw(
            network,
            title=f"Epoch {outcome.number}: " + ", ".join(f"{link} failed" for link in outcome.happened.failed),
            subtitle=f"{pairs:,} pairs cut off; {worse}",
            failed=outcome.happened.failed,
            down=down,
            cut_off=cut_off,
            detours={node: count / (len(network.nodes) - 1) for node, count in slower.items()},
        ),
        encoding="utf-8",
    )


def _cut_off_nodes(outcome: Outcome, nodes: int) -> set[str]:
    """Both sides of a cut lose each other; the nodes that lost more than half of the network are the cut off ones."""
    lost = Counter(src for src, _ in outcome.cut_off)
    return {node for node, count in lost.items() if count > nodes / 2}
