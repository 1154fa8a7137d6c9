"""Analyses of programs, from files to the number of rows, whole processes: Whence beside DuckDB, Nemo and clingo.

    python bench/analyses.py [--small] [NAME ...]

Souffle takes part if there is a `souffle` on the path: it is in no package repository that the others are from. It runs as an
interpreter and as a compiled program, made before anything is measured; what that takes is told beside it.

Each engine is started anew, reads its facts, evaluates, and prints how many rows the view has; all have to agree. The rules are
ours, of the kinds that such analyses are made of: what pointers may point to (Andersen; with fields; by flows and aliases of
expressions), where values that may be missing flow to, who is of the same generation in a random graph, which loans are still
out where they are broken, and which characters of an edited text follow each other. Inputs are such that the best peer works for
about a second or more. A peer that takes over half a minute is given up, one that is not installed is left out. `--small` takes
smaller inputs, to see that it works, and writes nothing down.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from graphs import gnm, points_to
from measure import ENVIRONMENT, Report

from whence import load

Rows = Sequence[tuple[int, ...]]
Timing = tuple[float, int] | None  # the median time and the number of rows; None if it took too long
# Whence runs as often and no longer than the others; of what takes over SLOW seconds the better of two runs counts.
PATIENCE, SLOW, REPEATS = 30.0, 10.0, 3
COMPILED = "Souffle compiled"
ENGINES = ("Whence", "DuckDB", "Nemo", "clingo", "Souffle", COMPILED)
PEERS = {"DuckDB": "duckdb", "Nemo": "nmo_python", "clingo": "clingo"}


@dataclass(frozen=True)
class Analysis:
    """Rules as all but DuckDB take them, with small letters for variables; `view` is what is counted."""

    name: str
    view: str
    rules: str
    facts: Callable[[float], dict[str, Rows]]
    duckdb: str = ""


ANDERSEN = """
pt(v, o) :- alloc(v, o).
pt(v, o) :- assign(v, w), pt(w, o).
pt(v, o) :- load(v, w), pt(w, p), heap(p, o).
heap(p, o) :- store(v, w), pt(v, p), pt(w, o).
"""
FIELDS = """
holds(v, o) :- new(v, o).
holds(v, o) :- copy(v, w), holds(w, o).
holds(v, o) :- passed(v, w), holds(w, o).
holds(v, o) :- get(v, w, f), holds(w, p), inside(p, f, o).
inside(p, f, o) :- put(v, f, w), holds(v, p), holds(w, o).
passed(p, a) :- call(t, a, r), holds(t, m), body(m, p, q).
passed(r, q) :- call(t, a, r), holds(t, m), body(m, p, q).
"""
ALIASES = """
flows(x, y) :- assigned(y, x).
flows(x, z) :- flows(x, y), assigned(z, y).
flows(x, z) :- flows(x, y), reaches(y, z).
reaches(x, y) :- read(u, x), alias(u, v), read(v, y).
alias(x, y) :- flows(z, x), flows(z, y).
alias(x, y) :- flows(x, y).
alias(y, x) :- flows(x, y).
alias(x, y) :- flows(u, x), reaches(u, v), flows(v, y).
"""
MISSING = """
missing(s, v) :- empty(s, v).
missing(s, w) :- missing(s, v), moved(v, w).
"""
GENERATION = """
same(x, y) :- edge(p, x), edge(p, y), x != y.
same(x, y) :- edge(p, x), same(p, q), edge(q, y).
"""
LOANS = """
within(a, b, p) :- outlives(a, b, p).
within(a, c, p) :- within(a, b, p), within(b, c, p).
within(a, b, q) :- within(a, b, p), step(p, q), alive(a, q), alive(b, q).
needs(a, l, p) :- lent(a, l, p).
needs(b, l, p) :- needs(a, l, p), within(a, b, p).
needs(a, l, q) :- needs(a, l, p), step(p, q), alive(a, q), not ended(l, p).
out(l, p) :- needs(a, l, p), alive(a, p).
broken(l, p) :- breaks(p, l), out(l, p).
"""
EDITING = """
skip(x, y) :- next(x, y).
skip(x, y) :- next(x, v), skip(v, y), not shown(v).
after(x, y) :- shown(x), skip(x, y), shown(y).
"""
MISSING_SQL = """WITH RECURSIVE missing(s, v) AS (
  SELECT c0, c1 FROM empty UNION SELECT missing.s, moved.c1 FROM missing JOIN moved ON missing.v = moved.c0)
SELECT count(*) FROM missing"""
GENERATION_SQL = """WITH RECURSIVE same(x, y) AS (
  SELECT a.c1, b.c1 FROM edge a JOIN edge b ON a.c0 = b.c0 WHERE a.c1 != b.c1
  UNION SELECT a.c1, b.c1 FROM same JOIN edge a ON a.c0 = same.x JOIN edge b ON b.c0 = same.y)
SELECT count(*) FROM same"""


def andersen(scale: float) -> dict[str, Rows]:
    return dict(points_to(modules=max(1, round(16 * scale))))


def fields(scale: float, seed: int = 5) -> dict[str, Rows]:
    """Modules with variables, objects, fields, functions with a parameter and a result, and calls of them through variables."""
    rng = random.Random(seed)
    found: dict[str, set[tuple[int, ...]]] = {name: set() for name in ("new", "copy", "get", "put", "call", "body")}
    variables, objects = 3_000, 600
    for module in range(max(1, round(128 * scale))):
        first = module * 10_000

        def near(one: int, first: int = first) -> int:
            return first + (one - first + rng.randint(1, 30)) % variables

        names = range(first, first + variables)
        for number in range(objects):
            found["new"].add((rng.choice(names), first + 5_000 + number))
            if number % 10 == 0:
                found["body"].add((first + 5_000 + number, rng.choice(names), rng.choice(names)))
        found["copy"] |= {(near(one), one) for one in names if rng.random() < 0.9}
        for one in rng.sample(names, variables // 40):
            found["get"].add((near(one), one, rng.randrange(5)))
            found["put"].add((near(one), rng.randrange(5), one))
            found["call"].add((one, rng.choice(names), rng.choice(names)))
    return {name: sorted(rows) for name, rows in found.items()}


def expressions(scale: float, seed: int = 7) -> dict[str, Rows]:
    """Functions whose expressions are assigned to each other in short chains, some of them read through pointers."""
    rng = random.Random(seed)
    assigned, read = set(), set()
    for function in range(max(1, round(600 * scale))):
        first = function * 100
        size = rng.randint(20, 60)
        for at in range(1, size):
            assigned.add((first + at, first + max(0, at - rng.randint(1, 4))))
        for at in range(size // 3):
            read.add((first + rng.randrange(size), first + 60 + at))
            assigned.add((first + rng.randrange(size), first + 60 + at))
    return {"assigned": sorted(assigned), "read": sorted(read)}


def flows(scale: float, seed: int = 11) -> dict[str, Rows]:
    """Long chains of statements with few branches, and places where a value may be missing at first."""
    rng = random.Random(seed)
    moved, empty = set(), set()
    for function in range(max(1, round(800 * scale))):
        first, length = function * 1_000, 600
        moved |= {(first + at, first + at + 1) for at in range(length)}
        moved |= {(first + at, first + min(length, at + rng.randint(2, 40))) for at in rng.sample(range(length), 60)}
        empty |= {(first + at, first + at) for at in rng.sample(range(length), 30)}
    return {"moved": sorted(moved), "empty": sorted(empty)}


def generation(scale: float) -> dict[str, Rows]:
    return {"edge": gnm(round(4_000 * scale**0.5), round(6_000 * scale**0.5))}


def loans(scale: float, seed: int = 13) -> dict[str, Rows]:
    """Functions as chains of points with loops; regions that are alive for a while, loans that flow between them."""
    rng = random.Random(seed)
    names = ("step", "alive", "outlives", "lent", "ended", "breaks")
    found: dict[str, set[tuple[int, ...]]] = {name: set() for name in names}
    for function in range(max(1, round(600 * scale))):
        first, length = function * 1_000, 150
        found["step"] |= {(first + at, first + at + 1) for at in range(length)}
        found["step"] |= {(first + at, first + at - rng.randint(5, 30)) for at in rng.sample(range(40, length), 4)}
        for region in range(first, first + 40):
            start = rng.randrange(length)
            for at in range(start, min(length, start + rng.randint(20, 90))):
                found["alive"].add((region, first + at))
            other = first + rng.randrange(40)
            found["outlives"].add((region, other, first + start))
            found["lent"].add((region, region, first + start))
            found["breaks"].add((first + rng.randrange(length), region))
            if rng.random() < 0.5:
                found["ended"].add((region, first + rng.randrange(length)))
    return {name: sorted(rows) for name, rows in found.items()}


def editing(scale: float, seed: int = 17) -> dict[str, Rows]:
    """A text as its editors left it: characters in order, most of them deleted again, in long runs."""
    rng = random.Random(seed)
    length = max(1_000, round(200_000 * scale))
    shown, at = {0, length}, 0
    while at < length:
        shown.add(at)
        at += 1 if rng.random() < 0.9 else rng.randint(20, 200)
    return {"next": [(at, at + 1) for at in range(length)], "shown": [(at,) for at in sorted(shown)]}


ANALYSES = (
    Analysis("Andersen", "pt", ANDERSEN, andersen),
    Analysis("points-to with fields and calls", "holds", FIELDS, fields),
    Analysis("flows and aliases (like CSPA)", "alias", ALIASES, expressions),
    Analysis("missing values (like CSDA)", "missing", MISSING, flows, MISSING_SQL),
    Analysis("same generation on Gnm", "same", GENERATION, generation, GENERATION_SQL),
    Analysis("loans (like a borrow checker)", "broken", LOANS, loans),
    Analysis("text editing (what follows what)", "after", EDITING, editing),
)


# -- the engines -------------------------------------------------------------------------------------------------------


def whence_program(work: Analysis, facts: dict[str, Rows]) -> str:
    rules = work.rules.replace("not ", "!")
    declared = "".join(
        f".decl {name}({', '.join(f'c{at}:number' for at in range(len(rows[0])))}) .input {name}\n"
        for name, rows in facts.items()
    )
    text = f"{declared}{rules}.printsize {work.view}\n"
    load(text)  # as a check of the rules, before anything is measured
    return text


def souffle_program(work: Analysis, facts: dict[str, Rows]) -> str:
    """The same with what follows declared, too, as Souffle wants it."""
    heads = dict(re.findall(r"^(\w+)\(([^)]*)\) :-", work.rules, re.MULTILINE))
    declared = "".join(
        f".decl {name}({', '.join(f'c{at}:number' for at in range(columns.count(',') + 1))})\n"
        for name, columns in heads.items()
    )
    return declared + whence_program(work, facts)


def compile_souffle(folder: Path) -> float:
    """Makes a program of the rules, and says how long that took."""
    start = time.perf_counter()
    command = ["souffle", "-w", "-j2", "-o", "compiled", "souffle.dl"]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return time.perf_counter() - start


def upper(rules: str) -> str:
    """Variables as clingo wants them."""
    return re.sub(r"\b([a-z])\b", lambda found: found[1].upper(), rules)


def questioned(rules: str) -> str:
    """Variables and negation as Nemo wants them."""
    return re.sub(r"\b([a-z])\b", r"?\1", rules).replace("not ", "~").replace(".\n", " .\n")


def as_text(facts: dict[str, Rows], end: str) -> str:
    return "".join(f"{name}({', '.join(map(str, row))}){end}\n" for name, rows in facts.items() for row in rows)


DUCKDB = """import duckdb, sys
connection = duckdb.connect()
connection.execute("SET threads = 2")
for name in sys.argv[2:]:
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM read_csv('{name}.facts', delim='\\t', header=false)")
    for at, column in enumerate(connection.execute(f"SELECT * FROM {name} LIMIT 0").description):
        connection.execute(f'ALTER TABLE {name} RENAME "{column[0]}" TO c{at}')
print(connection.execute(open(sys.argv[1]).read()).fetchone()[0])
"""
NEMO = """import sys, nmo_python as nemo
engine = nemo.NemoEngine(nemo.load_string(open("program.rls").read()))
engine.reason()
print(sum(1 for _ in engine.result(sys.argv[1])))
"""
CLINGO = """import sys, clingo
control = clingo.Control()
control.load("program.lp")
control.ground([("base", [])])
print(sum(1 for each in control.symbolic_atoms if each.symbol.name == sys.argv[1]))
"""


def commands(work: Analysis, facts: dict[str, Rows], folder: Path) -> dict[str, list[str]]:
    """What runs each engine, in a folder with its files."""
    for name, rows in facts.items():
        (folder / f"{name}.facts").write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    written = {
        "program.dl": whence_program(work, facts),
        "souffle.dl": souffle_program(work, facts),
        "program.lp": as_text(facts, ".") + upper(work.rules),
        "program.rls": as_text(facts, " .") + questioned(work.rules),
        "query.sql": work.duckdb,
        "duckdb_.py": DUCKDB,
        "nemo_.py": NEMO,
        "clingo_.py": CLINGO,
    }
    for name, text in written.items():
        (folder / name).write_text(text)
    python = sys.executable
    found = {
        "Whence": [python, "-m", "whence", "eval", "program.dl", "-q"],
        "DuckDB": [python, "duckdb_.py", "query.sql", *facts],
        "Nemo": [python, "nemo_.py", work.view],
        "clingo": [python, "clingo_.py", work.view],
        "Souffle": ["souffle", "-w", "-j2", "souffle.dl"],
        COMPILED: ["./compiled", "-j2"],
    }
    left_out = {who for who, module in PEERS.items() if find_spec(module) is None}
    if shutil.which("souffle") is None:
        left_out |= {"Souffle", COMPILED}
    return {who: each for who, each in found.items() if who not in left_out and (who != "DuckDB" or work.duckdb)}


def measure(commands: dict[str, list[str]], folder: Path, repeats: int) -> dict[str, Timing]:
    """All engines in turn, as often as is asked: a machine that is slow for a while is so for all of them."""
    times: dict[str, list[float]] = {who: [] for who in commands}
    counts: dict[str, int] = {}
    given_up = set()
    for _ in range(repeats):
        for who, command in commands.items():
            if who in given_up or (len(times[who]) == 2 and max(times[who]) > SLOW):
                continue
            start = time.perf_counter()
            try:
                counts[who] = run(command, folder)
            except subprocess.TimeoutExpired:
                given_up.add(who)
            times[who].append(time.perf_counter() - start)
    return {who: None if who in given_up else (_middle(each), counts[who]) for who, each in times.items()}


def run(command: list[str], folder: Path) -> int:
    """The number of rows that it prints."""
    ran = subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    if ran.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{ran.stderr}")
    return int(ran.stdout.split()[-1])


def _middle(times: list[float]) -> float:
    return min(times) if len(times) == 2 else statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true")
    parser.add_argument("names", nargs="*", help="some of the analyses, by the beginning of their names")
    asked = parser.parse_args()
    subprocess.run([sys.executable, "-m", "whence", "warm"], env=ENVIRONMENT, capture_output=True, check=True)
    rows = []
    for work in ANALYSES:
        if asked.names and not any(work.name.startswith(each) for each in asked.names):
            continue
        facts = work.facts(0.04 if asked.small else 1.0)
        with TemporaryDirectory() as made:
            folder = Path(made)
            asked_of = commands(work, facts, folder)
            compiling = compile_souffle(folder) if COMPILED in asked_of else 0.0
            found = measure(asked_of, folder, 1 if asked.small else REPEATS)
        counts = {each[1] for each in found.values() if each is not None}
        if len(counts) != 1:
            raise SystemExit(f"{work.name}: the engines differ: {found}")
        sizes = f"{sum(map(len, facts.values())):,}", f"{counts.pop():,}"
        rows.append([work.name, *sizes, *told(found, compiling)])
        print(rows[-1], flush=True)
    if asked.small or asked.names:
        return
    report = Report("analyses", "Analyses of programs")
    report.write(
        f"Seconds from the start of a process to its end, medians of {REPEATS} (over {SLOW:.0f} s: the better of 2), facts "
        "read from files, loops compiled before. DuckDB with 2 threads, where the recursion is one that its SQL has; Souffle "
        "with two, if there is one on the path (it is in no package repository that the rest is from): as an interpreter, and "
        "compiled, where the C++ of each program takes what stands behind the plus and counts in the comparison with the "
        "best peer. The last column compares with the compiled program alone."
    )
    report.table(["analysis", "facts", "rows", *ENGINES, "Whence / best peer", "/ compiled alone"], rows)


def told(found: dict[str, Timing], compiling: float) -> list[str]:
    """The cells of a row, from Whence's time on."""
    shown = ["-" if who not in found else _seconds(found[who]) for who in ENGINES]
    own, alone = found["Whence"], found.get(COMPILED)
    assert own is not None
    if alone is not None:
        shown[-1] += f" + {compiling:.0f}"
    spent = {who: each[0] + compiling * (who == COMPILED) for who, each in found.items() if each is not None}
    peers = [seconds for who, seconds in spent.items() if who != "Whence"]
    ratio = f"{own[0] / min(peers):.2f}" if peers else "-"
    return [*shown, ratio, "-" if alone is None else f"{own[0] / alone[0]:.2f}"]


def _seconds(found: Timing) -> str:
    return f"over {PATIENCE:.0f}" if found is None else f"{found[0]:.2f}"


if __name__ == "__main__":
    main()
