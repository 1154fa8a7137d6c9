"""Recompute the expected output of the conformance cases that are not written by hand.

Every function below states in plain Python (sets, networkx, itertools) what one case
means, without any Datalog engine.  It reads the facts of the case and returns the rows
of each output relation.  Needs networkx.

    python souffle_features.py            rewrite the expected files
    python souffle_features.py --check    only compare, exit 1 on a difference
"""

import itertools
import math
import pathlib
import random
import sys

import networkx as nx

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = {}


def case(name):
    def register(function):
        CASES[name] = function
        return function

    return register


def value(text):
    """A field of a facts file: a number when it looks like one, else a symbol."""
    try:
        return int(text)
    except ValueError:
        return text


def facts(name, relation):
    path = ROOT / name / "facts" / f"{relation}.facts"
    lines = path.read_text(encoding="utf-8").splitlines()
    return [tuple(value(field) for field in line.split("\t")) for line in lines]


def graph(edges):
    return nx.DiGraph((x, y) for x, y, *_ in edges)


def closure(edges):
    """Pairs (x, y) with a path of at least one edge from x to y."""
    g = graph(edges)
    pairs = set()
    for x in g:
        for first in g.successors(x):
            pairs.update((x, y) for y in nx.descendants(g, first) | {first})
    return pairs


@case("facts_rules/triangle_self_join")
def triangles(name):
    edges = facts(name, "e")
    cycles = [c for c in nx.simple_cycles(graph(edges)) if len(c) == 3]
    return {"tri": {(*c[i:], *c[:i]) for c in cycles for i in range(3)}}


@case("recursion/closure_right_linear")
@case("recursion/closure_left_linear")
def closure_of_file(name):
    return {"path": closure(facts(name, "edge"))}


@case("recursion/closure_nonlinear")
def closure_of_chain(name):
    return {"path": closure([(x, x + 1) for x in range(12)] + [(7, 4)])}


@case("recursion/closure_random_graph")
def closure_of_random(name):
    write_random_edges(ROOT / name / "facts" / "edge.facts")
    edges = facts(name, "edge")
    cyclic = [
        c for c in nx.strongly_connected_components(graph(edges)) if len(c) > 1 or any((x, x) in edges for x in c)
    ]
    same = {pair for c in cyclic for pair in itertools.product(c, repeat=2)}
    return {"path": closure(edges), "sameScc": same}


def write_random_edges(path):
    rng = random.Random(20240)
    edges = set()
    while len(edges) < 60:
        edges.add((rng.randrange(40), rng.randrange(40)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{x}\t{y}\n" for x, y in sorted(edges)), encoding="utf-8")


@case("recursion/even_and_odd_walks")
def walks_by_parity(name):
    edges = facts(name, "edge")
    doubled = nx.DiGraph()
    for x, y in edges:
        doubled.add_edge((x, 0), (y, 1))
        doubled.add_edge((x, 1), (y, 0))
    found = {0: set(), 1: set()}
    for x in graph(edges):
        for first in doubled.successors((x, 0)):
            for node, parity in nx.descendants(doubled, first) | {first}:
                found[parity].add((x, node))
    return {"evenWalk": found[0], "oddWalk": found[1]}


@case("recursion/same_generation")
def same_generation(name):
    up = graph(facts(name, "parent"))
    heights = {x: set() for x in up}  # (ancestor, number of steps up to it)
    for x in up:
        heights[x].add((x, 0))
        for a in nx.descendants(up, x):
            for path in nx.all_simple_paths(up, x, a):
                heights[x].add((a, len(path) - 1))
    return {"sg": {(x, y) for x in up for y in up if heights[x] & heights[y]}}


@case("recursion/ackermann_small")
def ackermann(name):
    table = {(0, n): n + 1 for n in range(31)}
    for m in range(1, 4):
        n, k = 0, 1
        while (m - 1, k) in table:
            k = table[m, n] = table[m - 1, k]
            n += 1
    return {"ack": {(m, n, r) for (m, n), r in table.items()}}


@case("recursion/fibonacci")
def fibonacci(name):
    rows, a, b = set(), 0, 1
    for i in range(91):
        rows.add((i, a))
        a, b = b, a + b
    return {"fib": rows}


@case("recursion/factorial")
def factorial(name):
    return {"fact": {(n, math.factorial(n)) for n in range(21)}}


@case("recursion/collatz")
def collatz(name):
    steps, length = set(), set()
    for start in (27, 97):
        i, v = 0, start
        steps.add((start, i, v))
        while v != 1:
            i, v = i + 1, v // 2 if v % 2 == 0 else 3 * v + 1
            steps.add((start, i, v))
        length.add((start, i))
    return {"step": steps, "length": length}


@case("recursion/grammar_reachability")
def balanced_brackets(name):
    edges = facts(name, "edge")
    nodes = {x for x, _, _ in edges} | {y for _, _, y in edges}
    matched = set()
    while True:
        # a balanced word is a sequence of matched words, maybe of none
        words = nx.DiGraph(list(matched))
        words.add_nodes_from(nodes)
        balanced = {(x, y) for x in nodes for y in nx.descendants(words, x) | {x}}
        new = {
            (x, y)
            for x, opening, a in edges
            for b, closing, y in edges
            if opening + closing in ("()", "[]") and (a, b) in balanced
        }
        if new <= matched:
            break
        matched |= new
    return {"nonempty": closure(matched)}


@case("recursion/bounded_path_lengths")
def walks_by_length(name):
    edges = {(1, 2), (2, 3), (3, 1), (3, 4), (4, 4)}
    rows, power = set(), edges
    for n in range(1, 8):
        rows |= {(x, y, n) for x, y in power}
        power = {(x, z) for x, y in power for v, z in edges if v == y}
    return {"walk": rows}


@case("negation/unreachable_pairs")
def unreachable(name):
    edges = facts(name, "edge")
    pairs = set(itertools.product(graph(edges), repeat=2))
    return {"unreachable": pairs - closure(edges)}


@case("types/record_grown_from_paths")
def linked_paths(name):
    g = graph(facts(name, "edge"))
    rows = set()
    for x, y in itertools.permutations(g, 2):
        for path in nx.all_simple_paths(g, x, y):
            text = "nil"
            for node in path:
                text = f"[{node}, {text}]"
            rows.add((text,))
    return {"path": rows}


@case("strings/build_in_recursion")
def words(name):
    return {"word": {("".join(letters),) for length in range(4) for letters in itertools.product("ab", repeat=length)}}


@case("strings/split_characters")
def characters(name):
    given = [w for (w,) in facts(name, "word")]
    return {
        "char": {(w, i, c) for w in given for i, c in enumerate(w)},
        "palindrome": {(w,) for w in given if w == w[::-1]},
    }


@case("aggregates/over_recursive_relation")
def reach_counts(name):
    edges = facts(name, "edge")
    paths = closure(edges)
    rows = set()
    for x in graph(edges):
        reached = [y for v, y in paths if v == x]
        rows.add((x, len(reached), sum(reached)))
    return {"reaches": rows}


@case("eqrel/components_of_graph")
def components(name):
    classes = list(nx.connected_components(nx.Graph(facts(name, "edge"))))
    return {
        "rep": {(x, min(c)) for c in classes for x in c},
        "classes": {(len(classes),)},
    }


@case("subsumption/shortest_path")
def shortest_path(name):
    g = nx.DiGraph()
    g.add_weighted_edges_from(facts(name, "edge"))
    return {"dist": set(nx.single_source_dijkstra_path_length(g, "s").items())}


@case("subsumption/pareto_front")
def pareto_front(name):
    offers = set(facts(name, "offer"))
    return {"front": {(p, t) for p, t in offers if not any(q <= p and u <= t and (q, u) != (p, t) for q, u in offers)}}


@case("inline_magic/magic")
def reach_with_magic(name):
    paths = closure(facts(name, "edge"))
    return {
        "from1": {(y,) for x, y in paths if x == 1},
        "to5": {(x,) for x, y in paths if y == 5},
    }


@case("recursion/takeuchi")
def takeuchi(name):
    domain = range(-2, 5)
    known = {(x, y, z): z for x, y, z in itertools.product(domain, repeat=3) if x <= y}
    while True:
        more = {}
        for x, y, z in itertools.product(range(-20, 20), repeat=3):
            calls = ((x - 1, y, z), (y - 1, z, x), (z - 1, x, y))
            if x > y and (x, y, z) not in known and all(call in known for call in calls):
                last = tuple(known[call] for call in calls)
                if last in known:
                    more[x, y, z] = known[last]
        if not more:
            return {"tak": {(*args, result) for args, result in known.items()}}
        known.update(more)


@case("arithmetic/functions_of_floats")
def functions_of_floats(name):
    names = "exp log sqrt floor ceil sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh".split()
    functions = {each: getattr(math, each) for each in names} | {"^": lambda x: x**-1.0}
    rows = set()
    for each, function in functions.items():
        for x in (-800.0, -2.5, -1.0, -0.5, 0.0, 0.25, 1.0, 2.0, 20.0, 800.0):
            try:
                rows.add((each, int(x * 4), math.floor(function(x) * 1000000)))
            except (ArithmeticError, ValueError):
                continue  # it has no value
    return {"f": rows}


@case("recursion/rounds_are_counted")
def rounds_are_counted(name):
    edges = [(1, 2), (2, 3), (1, 3), (3, 4), (4, 1), (4, 5)]
    rows = {(x, y, 0) for x, y in edges}
    last = rows
    for number in range(1, 4):
        last = {(x, z, number) for x, y, _ in last for v, z in edges if v == y} - rows
        rows |= last
    return {"steps": {(x,) for x in range(20)}, "walk": rows}


def main(check):
    differences = 0
    for name, function in CASES.items():
        for relation, rows in function(name).items():
            text = "".join("\t".join(map(str, row)) + "\n" for row in sorted(rows))
            path = ROOT / name / "expected" / f"{relation}.csv"
            if check:
                if not path.exists() or path.read_text(encoding="utf-8") != text:
                    print(f"differs: {path.relative_to(ROOT)}")
                    differences += 1
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    print(f"{len(CASES)} cases, {differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
