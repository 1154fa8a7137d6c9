"""Ten million rows of Parquet into tables that can be asked, beside DuckDB, which reads the same file into a table of its own.

    .venv-bench/bin/python bench/tables.py [--rows N]

Writes results/tables.md. Both are asked for a sum afterwards, and have to agree.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measure import Report

from whence import Session, load
from whence.text_columns import read_columns

PROGRAM = load(
    ".decl r(x:number, name:symbol, value:float) .input r .decl q(name:symbol) q(n) :- r(1, n, _). .output q"
)
RUNS = 3


def make(path: Path, rows: int) -> int:
    draw = np.random.default_rng(1)
    numbers = draw.integers(0, 1 << 40, rows)
    names = pa.array([f"n{at}" for at in range(50_000)]).take(pa.array(draw.integers(0, 50_000, rows)))
    pq.write_table(pa.table({"x": numbers, "name": names, "value": draw.random(rows)}), path)
    return int(numbers.sum())


def by_whence(folder: Path) -> int:
    columns = read_columns(PROGRAM.transfers[0], PROGRAM.relations["r"], folder)
    assert columns is not None
    session = Session(PROGRAM, facts={"r": columns})
    table = session.backend.table("r")
    return int(table.column(table.ids(), 0).sum())


def by_duckdb(folder: Path) -> int:
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE r AS SELECT * FROM '{folder / 'r.parquet'}'")
        found = database.execute("SELECT sum(x) FROM r").fetchone()
        assert found is not None
        return int(found[0])


def timed(work: Callable[[Path], int], folder: Path, expected: int) -> tuple[float, float]:
    started, used = time.perf_counter(), time.process_time()
    found = work(folder)
    taken = time.perf_counter() - started, time.process_time() - used
    assert found == expected, f"{work.__name__}: {found} instead of {expected}"
    return taken


def main() -> None:
    rows = int(sys.argv[sys.argv.index("--rows") + 1]) if "--rows" in sys.argv else 10_000_000
    with TemporaryDirectory() as name:
        folder = Path(name)
        expected = make(folder / "r.parquet", rows)
        by_whence(folder)  # loads loops
        runs = {work: [timed(work, folder, expected) for _ in range(RUNS)] for work in (by_whence, by_duckdb)}
    report = Report("tables", "Parquet into tables")
    report.write(f"{rows:,} rows of a number, one of 50,000 texts and a float; medians of {RUNS} runs.")
    ours, theirs = (statistics.median([taken for taken, _ in runs[work]]) for work in (by_whence, by_duckdb))
    used = {work: statistics.median([spent for _, spent in each]) for work, each in runs.items()}
    report.table(
        ["", "seconds", "of processor time", "of DuckDB's"],
        [
            ["Whence", f"{ours:.2f}", f"{used[by_whence]:.2f}", f"{ours / theirs:.1f}"],
            ["DuckDB", f"{theirs:.2f}", f"{used[by_duckdb]:.2f}", ""],
        ],
    )


if __name__ == "__main__":
    main()
