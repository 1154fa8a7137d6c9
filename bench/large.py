"""The closure of a grid: rows by the hundred million, and the memory that they take.

    python bench/large.py [side] [duckdb]

A node of the grid is linked to the one on its right and the one below, so the closure of a grid with sides of n nodes has
(n (n + 1) / 2) ** 2 - n ** 2 rows. DuckDB evaluates the same in a process of its own, if asked to.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

from evaluation import CLOSURE, CLOSURE_SQL
from graphs import Edges
from peers import DuckDB

from whence import Session, load


def grid(side: int) -> Edges:
    right = [(row * side + at, row * side + at + 1) for row in range(side) for at in range(side - 1)]
    return right + [(node, node + side) for node in range(side * (side - 1))]


def gigabytes() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    arguments = sys.argv[1:] or ["151"]
    side, expected = int(arguments[0]), (int(arguments[0]) * (int(arguments[0]) + 1) // 2) ** 2 - int(arguments[0]) ** 2
    facts = {"link": grid(side)}
    if "only-duckdb" in arguments:
        duckdb = DuckDB(facts)
        started = time.perf_counter()
        rows, size = duckdb.count(CLOSURE_SQL), 0.0
        seconds = time.perf_counter() - started
    else:
        Session(load(CLOSURE), facts={"link": grid(20)})  # has the loops compiled
        session = Session(load(CLOSURE), facts=facts)
        seconds = sum(spent for phase, spent in session.last_epoch["seconds"].items() if phase != "collect")
        table = session.backend.table("reach")
        rows, size = len(table), table.nbytes / len(table)
    if rows != expected:
        raise SystemExit(f"there should be {expected:,} rows, and {rows:,} were found")
    who = "DuckDB" if "only-duckdb" in arguments else f"Whence, {size:.1f} bytes a row"
    print(f"{side} x {side}: {rows:,} rows, {seconds:.2f} s, at most {gigabytes():.2f} GB ({who})", flush=True)
    if "duckdb" in arguments:
        subprocess.run([sys.executable, __file__, arguments[0], "only-duckdb"], check=True)


if __name__ == "__main__":
    main()
