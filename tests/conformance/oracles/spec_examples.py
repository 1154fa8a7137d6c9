"""Computes the expected files of the conformance cases that are neither worked examples nor done by hand.

Each oracle is written against the meaning of its case (graph algorithms, comprehensions, simulations) or runs
the SQL text on DuckDB; none of them uses Whence.  Needs networkx and duckdb:

    python tests/conformance/oracles/spec_examples.py
"""

import importlib.util
import inspect
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import duckdb
import networkx as nx

ROOT = Path(__file__).resolve().parents[1]
Value = str | int | float
Row = tuple[Value, ...]
Tables = dict[str, Iterable[Row]]
ORACLES: dict[str, Callable[[Path], Tables]] = {}


def oracle(*cases: str) -> Callable[[Callable[[Path], Tables]], Callable[[Path], Tables]]:
    def register(compute: Callable[[Path], Tables]) -> Callable[[Path], Tables]:
        ORACLES.update(dict.fromkeys(cases, compute))
        return compute

    return register


def value(text: str) -> Value:
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?\d+\.\d+", text) else text


def facts(case: Path, relation: str) -> list[Row]:
    lines = (case / "facts" / f"{relation}.facts").read_text().splitlines()
    return [tuple(value(field) for field in line.split("\t")) for line in lines]


def digraph(rows: Iterable[Row]) -> nx.DiGraph:
    """A graph from (x, y) or (x, y, weight) rows; of parallel links the lightest stays."""
    graph = nx.DiGraph()
    for x, y, *weight in rows:
        w = weight[0] if weight else 1
        if not graph.has_edge(x, y) or graph[x][y]["weight"] > w:
            graph.add_edge(x, y, weight=w)
    return graph


def closure(graph: nx.DiGraph) -> set[Row]:
    """Pairs joined by at least one link."""
    return {(x, y) for x in graph for s in graph[x] for y in {s, *nx.descendants(graph, s)}}


def distances(graph: nx.DiGraph) -> dict[tuple[Value, Value], int]:
    """Least weight over paths of at least one link, so a node reaches itself only around a cycle."""
    from_node = dict(nx.all_pairs_dijkstra_path_length(graph))
    best: dict[tuple[Value, Value], int] = {}
    for x, s, w in graph.edges(data="weight"):
        for y, d in from_node[s].items():
            best[x, y] = min(w + d, best.get((x, y), w + d))
    return best


def widths(rows: list[Row]) -> set[Row]:
    """For each pair the largest width whose links alone still join it."""
    best: dict[tuple[Value, Value], int] = {}
    for width in sorted({w for *_, w in rows}):
        for pair in closure(digraph((x, y) for x, y, w in rows if w >= width)):
            best[pair] = width
    return {(*pair, width) for pair, width in best.items()}


def simple_paths(graph: nx.DiGraph) -> list[list[Value]]:
    return [p for x in graph for y in graph if x != y for p in nx.all_simple_paths(graph, x, y)]


@oracle("spec000_004/reachable_tv4_graph")
def reachable(case: Path) -> Tables:
    return {"reachable": closure(digraph(facts(case, "link")))}


@oracle("spec000_004/path_vectors", "spec000_004/path_vectors_sql")
def path_vectors(case: Path) -> Tables:
    graph = digraph(facts(case, "link"))
    path = {(p[0], p[-1], ".".join(p), len(p) - 1) for p in simple_paths(graph)}
    hops = distances(graph)
    return {
        "path": path,
        "minHops": {(*pair, n) for pair, n in hops.items()},
        "shortestPath": {row for row in path if row[3] == hops[row[0], row[1]]},
    }


@oracle("spec000_004/min_hops_on_a_cycle")
def min_hops(case: Path) -> Tables:
    return {"minHops": {(*pair, n) for pair, n in distances(digraph(facts(case, "link"))).items()}}


@oracle("spec000_004/cheapest_path_on_a_cycle")
def cheapest(case: Path) -> Tables:
    return {"cheapest": {(*pair, n) for pair, n in distances(digraph(facts(case, "link"))).items()}}


@oracle("spec000_004/cheapest_cost_path_sql")
def cheapest_with_vectors(case: Path) -> Tables:
    graph = digraph(facts(case, "link"))
    path = {(p[0], p[-1], ".".join(p), nx.path_weight(graph, p, "weight")) for p in simple_paths(graph)}
    least = distances(graph)
    return {
        "path": path,
        "minCost": {(*pair, n) for pair, n in least.items()},
        "cheapestCostPath": {row for row in path if row[3] == least[row[0], row[1]]},
    }


@oracle("spec000_004/highest_bandwidth", "spec000_004/highest_bandwidth_sql")
def highest_bandwidth(case: Path) -> Tables:
    return {"highest": widths(facts(case, "link"))}


@oracle("spec000_004/horizon_two_hops")
def horizon(case: Path) -> Tables:
    graph = digraph(facts(case, "link"))
    reading = dict(facts(case, "reading"))
    within = {pair for pair, n in distances(graph).items() if n <= 2}
    seen = {x: {y for s, y in within if s == x} for x, _ in within}
    return {
        "within": within,
        "horizonMax": {(x, max(reading[y] for y in ys)) for x, ys in seen.items()},
        "horizonSize": {(x, len(ys)) for x, ys in seen.items()},
    }


@oracle("spec000_004/radius_sql")
def radius(case: Path) -> Tables:
    graph = digraph(facts(case, "link"))
    one = set(graph.edges())
    two = {(x, z) for x, y in one for z in graph[y]}
    return {"hop": {(*e, 1) for e in one} | {(*e, 2) for e in two}, "withinRadius": one | two}


@oracle("spec000_004/resilience_counts", "spec000_004/resilience_counts_sql")
def resilience(case: Path) -> Tables:
    paths = simple_paths(digraph(facts(case, "link")))
    ends = [(p[0], p[-1]) for p in paths]
    counts = {(*pair, ends.count(pair)) for pair in ends}
    if case.name == "resilience_counts":
        return {"resilience": counts}
    return {
        "path": {(p[0], p[-1], "".join(p)) for p in paths},
        "resilience": {row for row in counts if row[2] >= 2},
    }


@oracle("spec000_004/same_generation")
def same_generation(case: Path) -> Tables:
    depth = nx.single_source_shortest_path_length(digraph((up, child) for child, up in facts(case, "parent")), "a")
    return {"sg": {(x, y) for x in depth for y in depth if depth[x] == depth[y]}}


@oracle("spec000_004/subtree_height_and_imbalance")
def subtree_heights(case: Path) -> Tables:
    tree = digraph((up, child) for child, up in facts(case, "parent"))
    leaves = {x for x in tree if not tree[x]}
    down = {x: [n for y, n in nx.single_source_shortest_path_length(tree, x).items() if y in leaves] for x in tree}
    return {
        "height": {(x, max(ns)) for x, ns in down.items()},
        "imbalance": {(x, max(ns) - min(ns)) for x, ns in down.items()},
    }


@oracle("spec002/possible_worlds_tv2_1")
def possible_worlds(case: Path) -> Tables:
    bit = dict(facts(case, "maybe"))
    answers = set()
    for world in range(8):
        rows = [row[1:] for row in facts(case, "R") if world & bit[row[0]]]
        answers |= {(world, r[0], s[2]) for r in rows for s in rows if r[1] == s[1]}
        answers |= {(world, r[0], r[2]) for r in rows for s in rows if r[2] == s[2]}
    printed = ["", "ac", "de", "fe", "ac fe", "de fe", "ac ae dc de", "ac ae dc de fe"]
    per_world = {" ".join(sorted(a + c for w, a, c in answers if w == world)) for world in range(8)}
    assert per_world == set(printed), "the eight answers of TV-2.1"
    return {"ans": answers}


@oracle("spec002/tropical_nonlinear_tv2_6")
def tropical_closure(case: Path) -> Tables:
    return {"Q": {(*pair, n) for pair, n in distances(digraph(facts(case, "R"))).items()}}


@oracle("spec002/linearised_comparisons_tv5_10")
def linearised_comparisons(case: Path) -> Tables:
    triples = [(x, y, z) for x, y in facts(case, "R") for u, z in facts(case, "R") if u == y]
    orders = [
        lambda x, y, z: x == z < y,
        lambda x, y, z: x < y == z,
        lambda x, y, z: x < y < z,
        lambda x, y, z: x < z < y,
    ]
    part = [(k, *t) for k, holds in enumerate(orders, 1) for t in triples if holds(*t)]
    query = [t for t in triples if t[0] < t[1] and t[0] <= t[2]]
    assert sorted(t[1:] for t in part) == sorted(query), "every assignment is in exactly one order"
    return {"Q": {t[:2] for t in query}, "part": part}


@oracle(
    "spec003/logich_self_loop_without_rule_2",
    "spec003/logich_random_undirected",
    "spec003/logich_random_directed",
    "spec003/logicj_random_undirected",
    "spec003/logicj_random_directed",
)
def shortest_path_edges(case: Path) -> Tables:
    """The property of V4: H holds the edges that go one level down, H1 what an earlier level already has."""
    graph = digraph(facts(case, "G"))
    depth = nx.single_source_shortest_path_length(graph, 0)
    edges = [(x, y) for x, y in graph.edges() if x in depth]
    tables: Tables = {
        "H": {(0, 0, 0)} | {(x, y, depth[y]) for x, y in edges if depth[y] == depth[x] + 1},
        "H1": {(y, depth[x] + 1) for x, y in edges if depth[y] <= depth[x]},
    }
    return tables | {"J": set(depth.items())} if "logicj" in case.name else tables


@oracle("recursive_aggregates/shortest_path_single_source", "recursive_aggregates/shortest_path_negative_weights")
def single_source(case: Path) -> Tables:
    graph = digraph(facts(case, "link"))
    return {"sp": nx.single_source_bellman_ford_path_length(graph, "s").items()}


@oracle("recursive_aggregates/shortest_path_all_pairs", "recursive_aggregates/shortest_path_zero_cycle")
def all_pairs(case: Path) -> Tables:
    return {"sp": {(*pair, n) for pair, n in distances(digraph(facts(case, "link"))).items()}}


@oracle("recursive_aggregates/shortest_path_left_and_right")
def all_pairs_twice(case: Path) -> Tables:
    return all_pairs(case) | {"differs": set()}


@oracle("recursive_aggregates/widest_path")
def widest_path(case: Path) -> Tables:
    return {"widest": widths(facts(case, "link"))}


@oracle("recursive_aggregates/most_reliable_path")
def most_reliable(case: Path) -> Tables:
    """Best product over closed or simple paths: with factors up to 1 a detour through a cycle never helps."""
    graph = digraph(row for row in facts(case, "link") if 0 <= row[2] <= 1)
    paths = simple_paths(graph) + [[*p, p[0]] for p in simple_paths(graph) if graph.has_edge(p[-1], p[0])]
    best: dict[tuple[Value, Value], float] = {}
    for path in paths:
        product = 1.0
        for x, y in nx.utils.pairwise(path):
            product *= graph[x][y]["weight"]
        ends = path[0], path[-1]
        best[ends] = max(product, best.get(ends, 0.0))
    return {"best": {(*pair, product) for pair, product in best.items()}}


@oracle("recursive_aggregates/components_min_label")
def components(case: Path) -> Tables:
    graph = nx.Graph(facts(case, "edge"))
    graph.add_nodes_from(x for (x,) in facts(case, "node"))
    return {"comp": {(x, min(part)) for part in nx.connected_components(graph) for x in part}}


@oracle("recursive_aggregates/longest_path_dag")
def longest_paths(case: Path) -> Tables:
    graph = digraph(facts(case, "edge"))
    longest: dict[Value, int] = {}
    for x in nx.topological_sort(graph):
        longest[x] = max((longest[p] + 1 for p in graph.predecessors(x)), default=0)
    return {"longest": longest.items()}


@oracle("recursive_aggregates/bfs_hops")
def hops_from_sources(case: Path) -> Tables:
    sources = {x for (x,) in facts(case, "source")}
    return {"hops": nx.multi_source_dijkstra_path_length(digraph(facts(case, "edge")), sources).items()}


@oracle("recursive_aggregates/critical_path")
def critical_path(case: Path) -> Tables:
    lasts = dict(facts(case, "task"))
    graph = digraph((before, task) for task, before in facts(case, "after"))
    order = list(nx.topological_sort(graph))
    start: dict[Value, int] = {}
    for task in order:
        start[task] = max((start[p] + lasts[p] for p in graph.predecessors(task)), default=0)
    total = max(start[t] + lasts[t] for t in order)
    tail: dict[Value, int] = {}
    for task in reversed(order):
        tail[task] = lasts[task] + max((tail[n] for n in graph[task]), default=0)
    critical = {(t,) for t in order if start[t] + tail[t] == total}
    return {"start": start.items(), "total": {(total,)}, "critical": critical}


@oracle("recursive_aggregates/aggregate_on_top_of_recursive_min")
def eccentricities(case: Path) -> Tables:
    best = distances(digraph(facts(case, "link")))
    from_node = {x: [n for (s, _), n in best.items() if s == x] for x, _ in best}
    return {
        "eccentricity": {(x, max(ns)) for x, ns in from_node.items()},
        "near": {(x, sum(n <= 4 for n in ns)) for x, ns in from_node.items()},
    }


@oracle("xy_stratified/bfs_levels")
def bfs_levels(case: Path) -> Tables:
    return {"level": nx.single_source_shortest_path_length(digraph(facts(case, "edge")), "a").items()}


@oracle("xy_stratified/game_stages")
def game_stages(case: Path) -> Tables:
    graph = digraph(facts(case, "move"))
    won: set[Value] = set()
    win, lose = set(), set()
    for stage in range(5):
        lost = {x for x in graph if set(graph[x]) <= won}
        win |= {(x, stage) for x in won}
        lose |= {(x, stage) for x in lost}
        won = {x for x in graph if set(graph[x]) & lost}
    return {"win": win, "lose": lose}


@oracle("xy_stratified/sieve")
def primes(case: Path) -> Tables:
    return {"prime": {(n,) for n in range(2, 41) if all(n % k for k in range(2, n))}}


@oracle("xy_stratified/cellular_automaton")
def rule_90(case: Path) -> Tables:
    alive, cells = {8}, set()
    for t in range(7):
        cells |= {(t, x) for x in alive}
        alive = {x for x in range(17) if (x - 1 in alive) != (x + 1 in alive)}
    return {"cell": cells}


@oracle("xy_stratified/epidemic")
def epidemic(case: Path) -> Tables:
    graph = digraph(facts(case, "contact"))
    ill, immune, rows = {"a"}, set(), set()
    for t in range(8):
        rows |= {(t, x) for x in ill}
        reached = {y for x in ill for y in graph[x]}
        ill, immune = reached - ill - immune, immune | ill
    return {"infected": rows}


@oracle("xy_stratified/two_steps_back")
def taking_stones(case: Path) -> Tables:
    return {"winning": {(n,) for n in range(13) if n % 3}, "losing": {(n,) for n in range(0, 13, 3)}}


def newest_first(path: list[Value]) -> Row:
    return ("[" + ", ".join(map(str, reversed(path))) + "]",)


@oracle("lists_terms/path_vectors_simple_walks")
def simple_walks(case: Path) -> Tables:
    paths = simple_paths(digraph(facts(case, "link")))
    return {"simple": {newest_first(p) for p in paths if len(p) <= 4}}


@oracle("lists_terms/path_vectors_free_nodes")
def loop_free_paths(case: Path) -> Tables:
    graph = digraph(facts(case, "link"))
    return {"path": {newest_first(p) for p in [[x] for x in graph] + simple_paths(graph)}}


@oracle("sql/recursive_view_nonlinear")
def nonlinear_closure(case: Path) -> Tables:
    return {"closure": closure(digraph(facts(case, "link")))}


@oracle("sql/recursive_three_branches")
def trips(case: Path) -> Tables:
    return {"trip": closure(digraph(facts(case, "train") + facts(case, "ferry")))}


@oracle(
    "sql/arithmetic",
    "sql/case_in_select",
    "sql/count_distinct",
    "sql/division_double_not_exists",
    "sql/empty_results",
    "sql/except",
    "sql/exists_correlated",
    "sql/global_aggregate",
    "sql/group_by_aggregates",
    "sql/group_by_equal_values_are_not_merged",
    "sql/having",
    "sql/in_subquery",
    "sql/intersect",
    "sql/join_comma",
    "sql/join_on",
    "sql/join_using",
    "sql/not_exists_correlated",
    "sql/select_distinct",
    "sql/self_join_aliases",
    "sql/set_operator_precedence",
    "sql/union_of_branches",
    "sql/where_boolean_operators",
    "sql/with_several_tables",
)
def on_duckdb(case: Path) -> Tables:
    """Run program.sql; every view is stored with its duplicates removed before the next one reads it."""
    database = duckdb.connect()
    functions = case / "functions.py"
    if functions.exists():
        spec = importlib.util.spec_from_file_location("functions", functions)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            database.create_function(name, function)
    tables: Tables = {}
    for statement in duckdb.extract_statements((case / "program.sql").read_text()):
        text = re.sub(r"\A(\s*--[^\n]*\n|\s*/\*.*?\*/)*", "", statement.query, flags=re.DOTALL)
        name = re.match(r"\s*CREATE\s+(?:TABLE|(?:RECURSIVE\s+)?VIEW)\s+(\w+)", text, re.IGNORECASE)[1]
        database.execute(text)
        if re.match(r"\s*CREATE\s+TABLE", text, re.IGNORECASE):
            for row in facts(case, name):
                database.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
        else:
            database.execute(f"CREATE TABLE {name}__rows AS SELECT DISTINCT * FROM {name}")
            database.execute(f"DROP VIEW {name}")
            database.execute(f"ALTER TABLE {name}__rows RENAME TO {name}")
            tables[name] = database.execute(f"SELECT * FROM {name}").fetchall()
    return tables


def write(case: Path, tables: Tables) -> None:
    (case / "expected").mkdir(exist_ok=True)
    for relation, rows in tables.items():
        lines = sorted({"\t".join(map(str, row)) for row in rows})
        (case / "expected" / f"{relation}.csv").write_text("".join(line + "\n" for line in lines))


def main() -> None:
    for name, compute in ORACLES.items():
        write(ROOT / name, compute(ROOT / name))


if __name__ == "__main__":
    main()
