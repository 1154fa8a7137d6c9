"""A million rows of text in and out, and the start of the command, against DuckDB.

    python bench/text.py

Whence reads a file, evaluates a rule that turns columns round, and writes all rows in order; DuckDB does the same to the same
file in one statement (`COPY (SELECT DISTINCT … FROM read_csv(…) ORDER BY ALL) TO …`), with two threads. The files are compared
byte by byte. `in process` is that alone, loaded and warm; `whole process` is `whence eval` and a Python that imports duckdb.
A first use has nothing compiled: compiled loops are looked for in an empty folder.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import ENVIRONMENT, Report, median_seconds

from whence import load_file
from whence.backends.local.compiling import compile_all
from whence.session import evaluated
from whence.text_columns import read_columns, write_columns

ROWS = 1_000_000
WHENCE = Path(sys.executable).with_name("whence")
EXAMPLE = Path(__file__).parents[1] / "examples/reachability"
KINDS = {"number": "BIGINT", "symbol": "VARCHAR"}
WORK = {
    "two numbers": ("number", "number"),
    "two texts and a number": ("symbol", "symbol", "number"),
}


def make(folder: Path, kinds: tuple[str, ...]) -> None:
    rng = random.Random(1)
    rows = set()
    while len(rows) < ROWS:
        rows.add((rng.randrange(300_000), rng.randrange(300_000)))
    forms = {2: "{0}\t{1}\n", 3: "n{0}\tname {2}\t{1}\n"}
    with (folder / "r.facts").open("w", encoding="utf-8") as file:
        file.writelines(forms[len(kinds)].format(one, other, other % 5000) for one, other in rows)
    columns = [f"c{at}:{kind}" for at, kind in enumerate(kinds)]
    names = [f"c{at}" for at in range(len(kinds))]
    (folder / "p.dl").write_text(
        f".decl r({', '.join(columns)}) .input r\n.decl o({', '.join(columns[::-1])}) .output o\n"
        f"o({', '.join(names[::-1])}) :- r({', '.join(names)}).\n"
    )


def whence(folder: Path) -> None:
    program = load_file(folder / "p.dl")
    columns = read_columns(next(program.transfers_of("input")), program.relations["r"], folder)
    assert columns is not None
    session = evaluated(program, {"r": columns}, wanted=["o"])
    found = session.relation("o").plain_columns()
    assert found is not None
    assert write_columns(next(program.transfers_of("output")), program.relations["o"], found, folder)


def statement(folder: Path, kinds: tuple[str, ...]) -> str:
    names = [f"c{at}" for at in range(len(kinds))]
    columns = ", ".join(f"'{name}': '{KINDS[kind]}'" for name, kind in zip(names, kinds, strict=True))
    read = f"read_csv('{folder}/r.facts', delim='\\t', header=false, quote='', columns={{{columns}}})"
    copied = f"SELECT DISTINCT {', '.join(names[::-1])} FROM {read} ORDER BY ALL"
    return f"COPY ({copied}) TO '{folder}/duckdb.csv' (DELIMITER '\\t', HEADER false)"


def duckdb(query: str) -> float:
    import duckdb as engine  # noqa: PLC0415

    connection = engine.connect()
    connection.execute("SET threads = 2")
    start = time.perf_counter()
    connection.execute(query.replace("\\t", "\t"))
    return time.perf_counter() - start


def process(*command: str | Path, **environment: str) -> float:
    start = time.perf_counter()
    subprocess.run(
        [*map(str, command)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT | environment,
    )
    return time.perf_counter() - start


def first_use(*command: str | Path) -> float:
    with TemporaryDirectory() as empty:
        return process(*command, NUMBA_CACHE_DIR=empty)


def main() -> None:
    for _ in compile_all():
        pass
    report = Report("text", "Text in and out, and the start")
    report.write(__doc__.split("\n\n", 2)[2].strip())
    rows = []
    for name, kinds in WORK.items():
        with TemporaryDirectory() as made:
            folder = Path(made)
            make(folder, kinds)
            query = statement(folder, kinds)
            inside = median_seconds(lambda folder=folder: whence(folder)), median_seconds(lambda q=query: duckdb(q))
            if (folder / "o.csv").read_bytes() != (folder / "duckdb.csv").read_bytes():
                raise SystemExit(f"{name}: the files differ")
            script = f"import duckdb; c = duckdb.connect(); c.execute('SET threads = 2'); c.execute({query!r})".replace(
                "\\\\t", "\\t"
            )
            whole = (
                median_seconds(lambda f=folder: process(WHENCE, "eval", f / "p.dl", "-F", f, "-D", f, "-q"), 3),
                median_seconds(lambda s=script: process(sys.executable, "-c", s), 3),
            )
            for kind, (own, other) in (("in process", inside), ("whole process", whole)):
                rows.append([f"{ROWS:,} rows of {name}, {kind}", f"{own:.2f}", f"{other:.2f}", f"{own / other:.2f}"])
                print(rows[-1], flush=True)
    example = (WHENCE, "eval", EXAMPLE / "program.dl", "-F", EXAMPLE / "facts", "-D", "-")
    starts = {
        "whence eval of the README's example": median_seconds(lambda: process(*example)),
        "the same by compiled loops": median_seconds(lambda: process(*example, "--engine", "local")),
        "the same by compiled loops, first use": median_seconds(lambda: first_use(*example, "--engine", "local")),
    }
    rows += [[name, f"{taken:.2f}", "-", "-"] for name, taken in starts.items()]
    report.table(["work", "Whence, s", "DuckDB, s", "ratio"], rows)


if __name__ == "__main__":
    main()
