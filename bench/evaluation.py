"""Full evaluation: one program on one set of facts, against engines that evaluate.

    python bench/evaluation.py [part of a name]

With a part of a name, only the work whose name has it, and nothing is written down. DuckDB has its tables loaded and answers
with the number of rows; Whence has its facts collected and encoded and keeps all it needs to maintain the views; Nemo and clingo
have read their text.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from graphs import gnm, hubs, points_to, sold, tree, weighted
from measure import Report, median_seconds, milliseconds, plot_bars
from peers import Clingo, DuckDB, Facts, Nemo

from whence import Session, load
from whence.prepared import prepare


@dataclass
class Workload:
    name: str
    rules: str
    view: str
    facts: Facts
    duckdb: str = ""
    nemo: str = ""
    clingo: str = ""
    expected: int | None = None  # where no other engine is asked
    once: bool = False  # planned as for `whence eval`, where nobody asks why
    times: dict[str, float] = field(default_factory=dict)
    rows: int = 0


CLOSURE = """.decl link(x:number, y:number) .input link
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
.output reach
"""
CLOSURE_SQL = """WITH RECURSIVE reach(x, y) AS (
  SELECT c0, c1 FROM link UNION SELECT reach.x, link.c1 FROM reach JOIN link ON reach.y = link.c0)
SELECT count(*) FROM reach"""
NON_LINEAR = CLOSURE.replace("reach(x, y), link(y, z)", "reach(x, y), reach(y, z)")
NON_LINEAR_SQL = """WITH RECURSIVE reach(x, y) USING KEY (x, y) AS (
  SELECT c0, c1 FROM link UNION (
    SELECT d.x, r.y FROM reach d JOIN recurring.reach r ON d.y = r.x
      WHERE NOT EXISTS (SELECT 1 FROM recurring.reach o WHERE o.x = d.x AND o.y = r.y)
    UNION SELECT r.x, d.y FROM reach d JOIN recurring.reach r ON r.y = d.x
      WHERE NOT EXISTS (SELECT 1 FROM recurring.reach o WHERE o.x = r.x AND o.y = d.y)))
SELECT count(*) FROM reach"""
SAME_GENERATION = """.decl parent(x:number, y:number) .input parent
sg(x, y) :- parent(x, p), parent(y, p).
sg(x, y) :- parent(x, p), sg(p, q), parent(y, q).
.output sg
"""
SAME_GENERATION_SQL = """WITH RECURSIVE sg(x, y) AS (
  SELECT a.c0, b.c0 FROM parent a JOIN parent b ON a.c1 = b.c1
  UNION SELECT a.c0, b.c0 FROM sg JOIN parent a ON a.c1 = sg.x JOIN parent b ON b.c1 = sg.y)
SELECT count(*) FROM sg"""
SHORTEST = """.decl link(x:number, y:number, w:number) .input link
path(0, 0).
path(y, d + w) :- sp(x, d), link(x, y, w).
sp(y, m) :- path(y, _), m = min d : { path(y, d) }.
.decl path(y:number, d:number) .decl sp(y:number, d:number)
.output sp
"""
SHORTEST_SQL = """WITH RECURSIVE sp(y, d) USING KEY (y) AS (
  SELECT 0::BIGINT, 0::BIGINT UNION (
    SELECT l.c1, min(s.d + l.c2) FROM sp s JOIN link l ON s.y = l.c0 LEFT JOIN recurring.sp r ON r.y = l.c1
    WHERE r.d IS NULL OR s.d + l.c2 < r.d GROUP BY l.c1))
SELECT count(*) FROM sp"""
COMPONENTS = """.decl link(x:number, y:number) .input link
edge(x, y) :- link(x, y).
edge(y, x) :- link(x, y).
label(x, x) :- edge(x, _).
label(y, l) :- component(x, l), edge(x, y).
component(x, m) :- label(x, _), m = min l : { label(x, l) }.
.decl label(x:number, l:number) .decl component(x:number, l:number)
.output component
"""
COMPONENTS_SQL = """WITH RECURSIVE component(x, l) USING KEY (x) AS (
  SELECT DISTINCT c0, c0 FROM (SELECT c0 FROM link UNION SELECT c1 FROM link) UNION (
    SELECT e.y, min(c.l) FROM component c JOIN (
      SELECT c0 AS x, c1 AS y FROM link UNION SELECT c1, c0 FROM link) e ON c.x = e.x
    JOIN recurring.component r ON r.x = e.y WHERE c.l < r.l GROUP BY e.y))
SELECT count(*) FROM component"""
TOTALS = """.decl sold(place:number, order:number, amount:number) .input sold
total(p, t) :- sold(p, _, _), t = sum a : { sold(p, _, a) }.
.decl total(p:number, t:number)
.output total
"""
TOTALS_SQL = "SELECT count(*) FROM (SELECT c0, sum(c2) AS t FROM sold GROUP BY c0) WHERE t IS NOT NULL"
TOTALS_OF_ORDERS = TOTALS.replace("(p, _, _)", "(_, p, _)").replace("(p, _, a)", "(_, p, a)")
COUNTING = """.decl b(x:number) .decl c(y:number) .decl d(y:number) .input b, c, d
a(x) :- b(x), c(y), d(y).
b(x + 1) :- a(x), x < 1000000.
.output a
"""
TRIANGLES = """.decl link(x:number, y:number) .input link
triangle(x, y, z) :- link(x, y), link(y, z), link(z, x).
.output triangle
"""
TRIANGLES_SQL = """SELECT count(*) FROM link a JOIN link b ON a.c1 = b.c0 JOIN link c ON b.c1 = c.c0 AND c.c1 = a.c0"""
FOUR_RULES = """.decl link(x:number, y:number) .decl red(x:number) .input link, red
.decl found(rule:number, x:number, y:number)
found(1, x, y) :- link(x, y), link(y, z), link(z, x).
found(2, x, z) :- link(x, y), link(y, z), link(z, x), red(x), red(z).
found(3, y, z) :- link(x, y), link(y, z), link(z, x), red(x), !red(y).
found(4, x, y) :- link(x, y), link(y, z), link(z, x), link(x, z).
.output found
"""
FOUR_RULES_SQL = """WITH triangle AS MATERIALIZED (
  SELECT a.c0 AS x, a.c1 AS y, b.c1 AS z FROM link a JOIN link b ON a.c1 = b.c0 JOIN link c ON b.c1 = c.c0 AND c.c1 = a.c0)
SELECT count(*) FROM (
  SELECT 1, x, y FROM triangle
  UNION SELECT 2, x, z FROM triangle JOIN red a ON a.c0 = x JOIN red b ON b.c0 = z
  UNION SELECT 3, y, z FROM triangle JOIN red ON c0 = x WHERE y NOT IN (SELECT c0 FROM red)
  UNION SELECT 4, x, y FROM triangle JOIN link ON c0 = x AND c1 = z)"""
CLIQUES = TRIANGLES.replace(
    "triangle(x, y, z) :- link(x, y), link(y, z), link(z, x).",
    "clique(w, x, y, z) :- link(w, x), link(w, y), link(w, z), link(x, y), link(x, z), link(y, z).",
).replace("triangle", "clique")
CLIQUES_SQL = """SELECT count(*) FROM link a JOIN link b ON b.c0 = a.c0 JOIN link c ON c.c0 = a.c0
  JOIN link d ON d.c0 = a.c1 AND d.c1 = b.c1 JOIN link e ON e.c0 = a.c1 AND e.c1 = c.c1
  JOIN link f ON f.c0 = b.c1 AND f.c1 = c.c1"""
CYCLES = """.decl link(x:number, y:number) .decl start(x:number) .input link, start
cycle(w, x, y, z) :- start(w), link(w, x), link(x, y), link(y, z), link(z, w).
.output cycle
"""
CYCLES_SQL = """SELECT count(*) FROM start s JOIN link a ON a.c0 = s.c0 JOIN link b ON a.c1 = b.c0 JOIN link c ON b.c1 = c.c0
  JOIN link d ON d.c0 = c.c1 AND d.c1 = s.c0"""
POINTS_TO = """.decl alloc(v:number, o:number) .decl assign(v:number, w:number) .decl load(v:number, w:number)
.decl store(v:number, w:number) .input alloc, assign, load, store
pt(v, o) :- alloc(v, o).
pt(v, o) :- assign(v, w), pt(w, o).
pt(v, o) :- load(v, w), pt(w, p), heap(p, o).
heap(p, o) :- store(v, w), pt(v, p), pt(w, o).
.output pt
"""


POINTS_TO_SQL = """WITH RECURSIVE pt(k, v, o) USING KEY (k, v, o) AS (
  SELECT 0, c0, c1 FROM alloc UNION (
    SELECT * FROM (
      SELECT 0 AS k, a.c0 AS v, d.o AS o FROM pt d JOIN assign a ON d.k = 0 AND a.c1 = d.v
      UNION SELECT 0, l.c0, h.o FROM pt d JOIN load l ON d.k = 0 AND l.c1 = d.v
        JOIN recurring.pt h ON h.k = 1 AND h.v = d.o
      UNION SELECT 0, l.c0, d.o FROM pt d JOIN recurring.pt p ON d.k = 1 AND p.k = 0 AND p.o = d.v
        JOIN load l ON l.c1 = p.v
      UNION SELECT 1, d.o, q.o FROM pt d JOIN store s ON d.k = 0 AND s.c0 = d.v
        JOIN recurring.pt q ON q.k = 0 AND q.v = s.c1
      UNION SELECT 1, q.o, d.o FROM pt d JOIN store s ON d.k = 0 AND s.c1 = d.v
        JOIN recurring.pt q ON q.k = 0 AND q.v = s.c0) n
    WHERE NOT EXISTS (SELECT 1 FROM recurring.pt r WHERE r.k = n.k AND r.v = n.v AND r.o = n.o)))
SELECT count(*) FROM pt WHERE k = 0"""


def workloads() -> list[Workload]:
    small, large, tiny = {"link": gnm(1000, 2000)}, {"link": gnm(2000, 5000)}, {"link": gnm(300, 600)}
    sales = {"sold": sold(2_000_000)}
    closure_text = "reach({x},{y}) :- link({x},{y}){d} reach({x},{z}) :- reach({x},{y}), reach({y},{z}){d}"
    points_text = (
        "pt({v},{o}) :- alloc({v},{o}){d} pt({v},{o}) :- assign({v},{w}), pt({w},{o}){d}"
        "pt({v},{o}) :- load({v},{w}), pt({w},{p}), heap({p},{o}){d} heap({p},{o}) :- store({v},{w}), pt({v},{p}), pt({w},{o}){d}"
    )
    nemo = {name: f"?{name}" for name in "xyzvwop"} | {"d": " .\n"}
    clingo = {name: name.upper() for name in "xyzvwop"} | {"d": ".\n"}
    both = [(text.format(**nemo), text.format(**clingo)) for text in (closure_text, points_text)]
    return [
        Workload("closure, 1,000 nodes, 2,000 edges", CLOSURE, "reach", small, CLOSURE_SQL),
        Workload("closure, 2,000 nodes, 5,000 edges", CLOSURE, "reach", large, CLOSURE_SQL),
        Workload("same generation, tree of 897 nodes", SAME_GENERATION, "sg", {"parent": tree()}, SAME_GENERATION_SQL),
        Workload(
            "shortest paths from one of 20,000 nodes, 100,000 edges",
            SHORTEST,
            "sp",
            {"link": weighted(gnm(20_000, 100_000))},
            SHORTEST_SQL,
        ),
        Workload(
            "components, 20,000 nodes, 60,000 edges",
            COMPONENTS,
            "component",
            {"link": gnm(20_000, 60_000)},
            COMPONENTS_SQL,
        ),
        Workload(
            "triangles, 20,000 nodes, 200,000 edges",
            TRIANGLES,
            "triangle",
            {"link": gnm(20_000, 200_000)},
            TRIANGLES_SQL,
        ),
        Workload(
            "triangles, 20,000 nodes, hubs, 200,000 edges",
            TRIANGLES,
            "triangle",
            {"link": hubs(20_000, 10)},
            TRIANGLES_SQL,
        ),
        Workload(
            "four rules on the same triangles, 20,000 nodes, hubs, 200,000 edges",
            FOUR_RULES,
            "found",
            {"link": hubs(20_000, 10), "red": [(2 * at,) for at in range(10_000)]},
            FOUR_RULES_SQL,
            once=True,
        ),
        Workload(
            "cliques of four, 2,000 nodes, 40,000 edges", CLIQUES, "clique", {"link": gnm(2_000, 40_000)}, CLIQUES_SQL
        ),
        Workload(
            "cycles of four through 500 of 2,000 nodes, 40,000 edges",
            CYCLES,
            "cycle",
            {"link": gnm(2_000, 40_000), "start": [(4 * at,) for at in range(500)]},
            CYCLES_SQL,
        ),
        Workload("closure, non-linear rule, 300 nodes, 600 edges", NON_LINEAR, "reach", tiny, NON_LINEAR_SQL, *both[0]),
        Workload(
            "two relations that count each other to a million",
            COUNTING,
            "a",
            {"b": [(0,)], "c": [(1,), (2,)], "d": [(2,)]},
            expected=1_000_001,
        ),
        Workload("a sum by group, 2,000,000 rows, 1,000 groups", TOTALS, "total", sales, TOTALS_SQL),
        Workload(
            "a sum by group, 2,000,000 rows, 500,000 groups",
            TOTALS_OF_ORDERS,
            "total",
            sales,
            TOTALS_SQL.replace("c0", "c1"),
        ),
        Workload("points-to (Andersen)", POINTS_TO, "pt", points_to(), POINTS_TO_SQL, *both[1]),
    ]


def whence(work: Workload) -> float:
    """Evaluation alone: without collecting and encoding the facts."""
    program = load(work.rules)
    planned = prepare(program, wanted=program.outputs, lean=True) if work.once else program
    session = Session(planned, facts=work.facts)
    work.rows = len(session.relation(work.view))
    seconds = session.last_epoch["seconds"]
    return sum(spent for phase, spent in seconds.items() if phase != "collect")


def measure(work: Workload) -> None:
    work.times["Whence"] = median_seconds(lambda: whence(work))
    counts = {} if work.expected is None else {"who wrote the program": work.expected}
    if work.duckdb:
        duckdb = DuckDB(work.facts)
        counts["DuckDB"] = duckdb.count(work.duckdb)
        work.times["DuckDB"] = median_seconds(lambda: duckdb.count(work.duckdb) and None)
    for peer, text in ((Nemo, work.nemo), (Clingo, work.clingo)):
        if text:
            engine = peer(text, work.facts)
            counts[peer.name] = engine.seconds(work.view)[1]
            work.times[peer.name] = median_seconds(lambda engine=engine: engine.seconds(work.view)[0], repeats=3)
    for who, count in counts.items():
        if count != work.rows:
            raise SystemExit(f"{work.name}: {who} finds {count} rows, Whence {work.rows}")


def line(work: Workload) -> list[str]:
    """What is told of it."""
    measure(work)
    others = [seconds for who, seconds in work.times.items() if who != "Whence"]
    times = [milliseconds(work.times.get(who)) for who in ("Whence", "DuckDB", "Nemo", "clingo")]
    ratio = f"{work.times['Whence'] / min(others):.2f}" if others else "-"
    return [work.name, f"{work.rows:,}", *times, ratio]


def main() -> None:
    if len(sys.argv) > 1:
        for work in workloads():
            if sys.argv[1] in work.name:
                print(line(work), flush=True)
        return
    report = Report("evaluation", "Full evaluation")
    report.write(
        "Milliseconds, medians of 5 warm runs (Nemo, clingo and what takes seconds: 3; over 15 s: 1). DuckDB with 2 threads, "
        "tables loaded; Whence with facts encoded, keeping all that maintenance needs, with a second thread for large batches. "
        "All engines agree on the number of rows."
    )
    rows, done = [], []
    for work in workloads():
        rows.append(line(work))
        done.append(work)
        print(rows[-1], flush=True)
    report.table(["work", "rows out", "Whence", "DuckDB", "Nemo", "clingo", "Whence / best peer"], rows)
    series = {
        who: [work.times[who] * 1000 if who in work.times else None for work in done]
        for who in ("Whence", "DuckDB", "Nemo", "clingo")
    }
    plot_bars("evaluation", "Full evaluation", [work.name for work in done], series, "milliseconds (less is better)")


if __name__ == "__main__":
    main()
