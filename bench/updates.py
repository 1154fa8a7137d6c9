"""Keeping views up to date, against engines that recompute and one that is incremental.

python bench/updates.py
"""

from __future__ import annotations

import gc
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence

from evaluation import CLOSURE, CLOSURE_SQL
from graphs import Edges, gnm
from measure import Report, median_seconds, milliseconds, percentile, plot_bars
from peers import DuckDB

from whence import Session, Update, load
from whence.topology.transit import transit_stub

RECOMPUTED, PASSES = 20, 5
REACHABILITY = """.decl link(x:symbol, y:symbol) .input link
reach(x, y) :- link(x, y).
reach(x, z) :- link(x, y), reach(y, z).
.output reach
"""
SHORTEST_PATHS = """.decl link(x:symbol, y:symbol, ms:number) .input link
path(x, y, ms) :- link(x, y, ms).
path(x, z, c + ms) :- cost(x, y, c), link(y, z, ms).
cost(x, y, m) :- path(x, y, _), m = min c : { path(x, y, c) }.
.decl path(x:symbol, y:symbol, c:number) .decl cost(x:symbol, y:symbol, c:number)
.output cost
"""


def timed(session: Session, updates: Iterable[Update]) -> float:
    start = time.perf_counter()
    session.apply(updates)
    return time.perf_counter() - start


def single_links(report: Report) -> None:
    """One link goes, then it comes back, on the closure of 500 nodes and 1,000 edges."""
    edges = gnm(500, 1000)
    session = Session(load(CLOSURE), facts={"link": edges})
    rows = len(session.relation("reach"))
    rng = random.Random(7)
    times: dict[str, list[float]] = {"-": [], "+": []}
    work: dict[str, list[tuple[int, int]]] = {"-": [], "+": []}
    for edge in [rng.choice(edges) for _ in range(320)]:
        for op in "-+":
            changes_before = time.perf_counter()
            changes = session.apply([Update(op, "link", edge)])
            times[op].append(time.perf_counter() - changes_before)
            work[op].append((len(changes), session.last_epoch["derivations"]))
    duckdb = DuckDB({"link": edges})
    recompute = median_seconds(lambda: duckdb.count(CLOSURE_SQL) and None)
    marginal = {op: pathway_marginal(edges, op) for op in "-+"}
    report.write(
        f"## One link of the closure, {rows:,} rows\n\n300 random links, each deleted and restored; milliseconds."
    )
    report.table(
        [
            "update",
            "p50",
            "p90",
            "p99",
            "tuples changed (median)",
            "derivations (median)",
            "DuckDB recomputes",
            "Pathway",
        ],
        [
            [
                {"-": "delete", "+": "restore"}[op],
                *(f"{percentile(times[op][20:], share) * 1000:.2f}" for share in (0.5, 0.9, 0.99)),
                f"{statistics.median(changed for changed, _ in work[op][20:]):,.0f}",
                f"{statistics.median(met for _, met in work[op][20:]):,.0f}",
                milliseconds(recompute),
                milliseconds(marginal[op]),
            ]
            for op in "-+"
        ],
    )
    series = {
        "Whence": [percentile(times[op][20:], 0.5) * 1000 for op in "-+"],
        "DuckDB recomputes": [recompute * 1000] * 2,
        "Pathway": [None if marginal[op] is None else marginal[op] * 1000 for op in "-+"],
    }
    title = f"One link, closure of {rows:,} rows"
    plot_bars("updates", title, ["delete", "restore"], series, "milliseconds, median (less is better)")


def pathway_marginal(edges: Edges, op: str, updates: int = 100) -> float:
    """What one update costs in Pathway: a run with updates less a run without, divided by their number; of three runs.

    Each run is a process of its own, since Pathway keeps what was computed before.
    """
    rng = random.Random(9)
    chosen = rng.sample(edges, updates)
    runs = []
    for _ in range(3):
        took = [_pathway_seconds(edges, chosen[:count], op) for count in (0, updates)]
        runs.append((took[1] - took[0]) / updates)
    return statistics.median(runs)


def _pathway_seconds(edges: Edges, chosen: Edges, op: str) -> float:
    text = repr((edges, chosen, op))
    done = subprocess.run(
        [sys.executable, "pathway_closure.py"], input=text, capture_output=True, text=True, check=True, cwd=sys.path[0]
    )
    return float(done.stdout.split()[-1])


def mixed_epochs(report: Report) -> None:
    """Epochs of 50 deletions and 50 insertions on the closure of 2,000 nodes and 5,000 edges."""
    edges = set(gnm(2000, 5000))
    session = Session(load(CLOSURE), facts={"link": edges})
    rows = len(session.relation("reach"))
    rng = random.Random(11)
    times = []
    for _ in range(12):
        gone = rng.sample(sorted(edges), 50)
        come = [(rng.randrange(2000), rng.randrange(2000)) for _ in range(50)]
        updates = [Update("-", "link", edge) for edge in gone] + [Update("+", "link", edge) for edge in come]
        edges = (edges - set(gone)) | set(come)
        times.append(timed(session, updates))
    duckdb = DuckDB({"link": sorted(edges)})
    recompute = median_seconds(lambda: duckdb.count(CLOSURE_SQL) and None)
    here = statistics.median(times[2:])
    report.write(f"## Epochs of 100 mixed updates, closure of {rows:,} rows\n\nMedian of 10 epochs; milliseconds.")
    report.table(
        ["Whence", "DuckDB recomputes", "ratio"],
        [[milliseconds(here), milliseconds(recompute), f"{here / recompute:.2f}"]],
    )


def failing_links(report: Report) -> None:
    """Reachability and shortest paths between all pairs of 100 nodes, each link tuple deleted and restored in turn."""
    links = [row for link in transit_stub(seed=1).links for row in link.tuples()]
    report.write(
        f"## Views of a network, {len(links)} link tuples on 100 nodes\n\nEach tuple deleted and restored in turn, "
        f"{2 * len(links)} epochs; medians of {PASSES} passes, the strategies in turn. Recomputing was done for {RECOMPUTED} "
        "tuples, and scaled."
    )
    costs, ends = [(x, y, ms) for x, y, ms, _ in links], [(x, y) for x, y, _, _ in links]
    rows = _each_in_turn("reachability", REACHABILITY, ends) + _each_in_turn("shortest paths", SHORTEST_PATHS, costs)
    report.table(["view", "strategy", "seconds", "times support", "derivations"], rows)


def _each_in_turn(view: str, rules: str, links: Sequence[tuple[str | int, ...]]) -> list[list[str]]:
    """Medians of passes over all links, each by both strategies in turn, after one in which loops are loaded."""
    program = load(rules)
    sessions = {each: Session(program, facts={"link": links}, strategy=each) for each in ("support", "dred")}
    times: dict[str, list[float]] = {each: [] for each in sessions}
    met: dict[str, str] = {"recompute": "-"}
    for _ in range(1 + PASSES):
        for strategy, session in sessions.items():
            before = session.stats()["derivations"]
            start = time.perf_counter()
            for row in links:
                session.apply([Update("-", "link", row)])
                session.apply([Update("+", "link", row)])
            times[strategy].append(time.perf_counter() - start)
            met[strategy] = f"{session.stats()['derivations'] - before:,}"
    seconds = {strategy: statistics.median(each[1:]) for strategy, each in times.items()}
    start = time.perf_counter()
    for gone in links[:RECOMPUTED]:
        Session(program, facts={"link": [row for row in links if row != gone]})
        Session(program, facts={"link": links})
    seconds["recompute"] = (time.perf_counter() - start) * len(links) / RECOMPUTED
    return [
        [view, strategy, f"{spent:.2f}", f"{spent / seconds['support']:.1f}", met[strategy]]
        for strategy, spent in seconds.items()
    ]


def growth(report: Report) -> None:
    """The same change beside more and more rows that have nothing to do with it."""
    rows = []
    for copies in (1, 10, 100):
        part = gnm(100, 200)
        edges = [(one + 100 * copy, other + 100 * copy) for copy in range(copies) for one, other in part]
        session = Session(load(CLOSURE), facts={"link": edges})
        times = [
            timed(session, [Update(op, "link", edge)]) for edge in random.Random(5).choices(part, k=120) for op in "-+"
        ]
        rows.append([copies, len(session.relation("reach")), statistics.median(times[40:])])
    report.write(
        "## Growth\n\nThe same links deleted and restored in one of several copies of a graph; milliseconds, medians of 200."
    )
    report.table(
        ["copies", "rows of the closure", "median", "times the first"],
        [[copies, f"{count:,}", f"{took * 1000:.3f}", f"{took / rows[0][2]:.2f}"] for copies, count, took in rows],
    )


def memory(report: Report) -> None:
    """Bytes for each row of a closure, after updates have made all the indexes that maintenance needs."""
    report.write("## Memory\n\nBytes a row of the closure, base relation and indexes included.")
    dense, rng = gnm(2000, 5000), random.Random(4)
    scattered = [rng.randrange(1 << 31) for _ in range(2000)]
    kinds = {
        "dense": dense,
        "few successors, 200,000 nodes": gnm(200_000, 190_000),
        "nodes with numbers of 31 bits": [(scattered[x], scattered[y]) for x, y in dense],
    }
    rows = [_memory_of(name, edges) for name, edges in kinds.items()]
    report.table(["closure", "rows", "Whence", "DuckDB, table and two indexes"], rows)


def _memory_of(name: str, edges: Edges) -> list[str]:
    session = Session(load(CLOSURE), facts={"link": edges})
    for op in "-+":
        session.apply([Update(op, "link", edges[0])])
    rows = len(session.relation("reach"))
    size = sum(session.stats()["bytes"].values())
    duckdb = DuckDB({"link": edges})
    duckdb.connection.execute(f"CREATE TABLE reach AS {CLOSURE_SQL.replace('count(*)', '*')}")
    duckdb.connection.execute("CREATE UNIQUE INDEX reach_key ON reach (x, y); CREATE INDEX reach_y ON reach (y)")
    used = duckdb.connection.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchone()
    assert used is not None
    return [name, f"{rows:,}", f"{size / rows:.1f}", f"{used[0] / rows:.1f}"]


def start(report: Report) -> None:
    """A process that imports Whence, evaluates ten lines and ends, with compiled code cached."""
    text = (
        "from whence import Session, load\nSession(load('''"
        + CLOSURE.replace("\n", "\\n")
        + "'''), facts={'link': [(1, 2), (2, 3)]})"
    )
    seconds = median_seconds(lambda: subprocess.run([sys.executable, "-c", text], check=True) and None)
    report.write(f"## Start\n\nImport and first result: {seconds:.2f} s.")


def main(chosen: Sequence[str]) -> None:
    report = Report("updates", "Keeping views up to date")
    for part in (start, single_links, mixed_epochs, failing_links, growth, memory):
        if not chosen or part.__name__ in chosen:
            part(report)
            gc.collect()


if __name__ == "__main__":
    main(sys.argv[1:])
