"""The worked examples: a query of three tables with its costs on paper, the four cases of a minimum, sizes of and-or graphs."""

from __future__ import annotations

import pytest

from whence import Session, Update, load
from whence.optimizer import BottomUp, Memo, Optimizer, QuerySpace, Touch, parse_query, statistics_from_json
from whence.optimizer.given import GivenSpace, clique
from whence.optimizer.rules import RuleOptimizer

C, O, L = 1, 2, 4  # noqa: E741 - the names of the example
CO, OL, COL = C | O, O | L, C | O | L
NAMES = {C: "C", O: "O", L: "L", CO: "CO", OL: "OL", COL: "COL"}

Q3S = """SELECT l_orderkey, o_orderdate, o_shippriority FROM customer C, orders O, lineitem L
    WHERE c_mktsegment = 'MACHINERY' AND c_custkey = o_custkey AND o_orderkey = l_orderkey
      AND o_orderdate < '1995-03-15' AND l_shipdate > '1995-03-15'"""


def _q3s() -> QuerySpace:
    columns = {
        "customer": ["c_custkey", "c_mktsegment"],
        "orders": ["o_orderkey", "o_custkey", "o_orderdate", "o_shippriority"],
        "lineitem": ["l_orderkey", "l_shipdate"],
    }
    tables = {name: {"rows": 1000, "columns": {each: {} for each in cols}} for name, cols in columns.items()}
    tables["lineitem"]["indexes"] = ["l_orderkey"]
    statistics = statistics_from_json({"tables": tables})
    return QuerySpace(parse_query(Q3S, statistics), statistics)


def test_the_search_space_has_the_rows_of_the_table() -> None:
    space = _q3s()
    custkey, orderkey = (
        next(at for at, each in enumerate(space.query.classes, 1) if any(column.name == name for column in each))
        for name in ("c_custkey", "l_orderkey")
    )
    session = RuleOptimizer(space).session
    rows = {(e, p, lo, ph, le, lp, re, rp) for e, p, _, lo, ph, le, lp, re, rp in session.relation("SearchSpace")}
    assert rows >= {
        (COL, 0, "join", "sort-merge", C, custkey, OL, custkey),
        (COL, 0, "join", "indexed nested loops", L, orderkey << 8, CO, 0),
        (CO, 0, "join", "pipelined hash", C, 0, O, 0),
        (CO, 0, "join", "sort-merge", C, custkey, O, custkey),
        (O, 0, "scan", "table scan", 0, 0, 0, 0),
        (L, orderkey << 8, "scan", "index lookup", 0, 0, 0, 0),
        (L, 0, "scan", "table scan", 0, 0, 0, 0),
        (C, 0, "scan", "table scan", 0, 0, 0, 0),
    }
    # Printed as a hash join and a scan, neither of which brings about an order: what does is a sort.
    assert rows >= {
        (OL, custkey, "sort", "sort", OL, 0, 0, 0),
        (O, custkey, "sort", "sort", O, 0, 0, 0),
        (C, custkey, "sort", "sort", C, 0, 0, 0),
    }
    assert not any(row[:2] == (OL, custkey) and "hash" in row[3] for row in rows)


def _paper() -> GivenSpace:
    """Costs in hundredths."""
    return GivenSpace(
        COL,
        {C: 4, O: 19, L: 35},
        {CO: [(C, O)], OL: [(O, L)], COL: [(C, OL), (L, CO)]},
        {(CO, (C, O)): 7, (OL, (O, L)): 24, (COL, (C, OL)): 18, (COL, (L, CO)): 36},
    )


def _set(space: GivenSpace, update: tuple[object, ...]) -> list[Touch]:
    match update:
        case (int(leaf), int(cost)):
            return [space.set_scan(leaf, cost)]
        case (int(whole), tuple(split), int(cost)):
            return [space.set_cost(whole, split, cost)]
    return []


# For each update from the base state: what the query costs, the bounds that are said, and what is kept.
UPDATES = {
    "base": ((), 100, {COL: 100, OL: 78, CO: 29, C: 4, O: 19, L: 35}, {COL, OL, C, O, L}),
    "U1": ((COL, (C, OL), 20), 101, {COL: 101, OL: 77, CO: 30}, {COL, CO, C, O, L}),
    "U2": ((COL, (L, CO), 30), 95, {COL: 95, OL: 73, CO: 30}, {COL, CO, C, O, L}),
    "U3": ((O, 29), 110, {CO: 39}, {COL, OL, C, O, L}),
    "U4": ((C, 2), 98, {CO: 27}, {COL, OL, C, O, L}),
    "U5": ((COL, (L, CO), 40), 100, {CO: 25}, {COL, OL, C, O, L}),
}


@pytest.mark.parametrize("name", UPDATES)
def test_costs_bounds_and_what_is_kept_follow_an_update(name: str) -> None:
    update, cost, bounds, kept = UPDATES[name]
    space = _paper()
    rules, optimizer = RuleOptimizer(space), Optimizer(space)
    touches = _set(space, update)
    rules.update()
    optimizer.update(touches)
    for each in (rules, optimizer):
        assert each.cost == cost
        assert each.plan() == rules.plan()
    by_rules = {NAMES[e]: bound for (e, _), bound in rules.view("Bound").items()}
    by_search = {NAMES[e]: bound for (e, _), bound in optimizer.bounds().items()}
    expected = {NAMES[e]: bound for e, bound in bounds.items()}
    assert {each: by_rules[each] for each in expected} == expected
    assert {each: by_search[each] for each in expected} == expected
    assert {e for e, _ in rules.session.relation("Kept")} == kept
    assert {e for e, _ in optimizer.kept()[0]} == kept


def test_references_count_what_reads_a_node() -> None:
    space = _paper()
    rules, optimizer = RuleOptimizer(space), Optimizer(space)
    expected = {(COL, 0): 0, (OL, 0): 1, (CO, 0): 0, (C, 0): 1, (O, 0): 1, (L, 0): 1}
    assert rules.view("References") == expected == optimizer.references()


def test_a_rise_of_what_is_pruned_already_reaches_nothing() -> None:
    space = _paper()
    optimizer = Optimizer(space)
    optimizer.update([space.set_cost(COL, (L, CO), 40)])
    assert (optimizer.effort.nodes, optimizer.effort.alternatives) == (
        1,
        1,
    )  # the root, to see that its best is as it was


def test_plan_costs_are_those_of_the_prose() -> None:
    session = RuleOptimizer(_paper()).session
    assert set(session.relation("PlanCost")) >= {(CO, 0, 0, 30), (OL, 0, 0, 78), (COL, 0, 0, 100), (COL, 0, 1, 101)}


def test_a_minimum_follows_its_values_in_all_four_cases() -> None:
    program = ".decl q(x: number) .input q .decl best(x: number) .output best best(m) :- m = min x : { q(x) }."
    session = Session(load(program), facts={"q": [(5,), (7,), (9,)]})
    assert set(session.relation("best")) == {(5,)}
    for took, came, best in ((None, 4, 4), (4, None, 5), (5, 8, 7), (9, 6, 6), (6, 3, 3), (7, None, 3)):
        updates = [] if took is None else [Update("-", "q", (took,))]
        updates += [] if came is None else [Update("+", "q", (came,))]
        changes = session.apply(updates)
        assert set(session.relation("best")) == {(best,)}
        assert ("best" in changes.inserted) == (took != 7)


@pytest.mark.parametrize(
    ("relations", "nodes", "alternatives"), [(3, 7, 12), (5, 31, 180), (6, 63, 602), (8, 255, 6050)]
)
def test_sizes_of_cliques(relations: int, nodes: int, alternatives: int) -> None:
    space = clique(relations, lambda _: 1)
    found = list(space.nodes())
    inner = [each for each in found if each[0] & (each[0] - 1)]
    assert len(found) == nodes == 2**relations - 1
    assert (
        sum(len(space.alternatives(each)) for each in inner) == alternatives == 3**relations + 1 - 2 ** (relations + 1)
    )


AFFECTED = {1: (32, 422, None), 2: (16, 290, 292), 3: (8, 194, 200), 4: (4, 122, 136), 5: (2, 62, 92), 6: (1, 0, 62)}


@pytest.mark.parametrize("level", AFFECTED)
def test_what_a_change_reaches_in_a_clique_of_six(level: int) -> None:
    """The change of a cardinality moves what is above a node; that of a selectivity the alternatives of the node as well."""
    nodes, by_cardinality, by_selectivity = AFFECTED[level]
    whole = (1 << level) - 1
    space = clique(6, lambda _: 100)
    if level == 1:
        twin = BottomUp(space, memo=Memo.ALL, conditional=False)
        twin.update([space.set_scan(1, 90)])
        assert (twin.effort.nodes, twin.effort.alternatives) == (nodes, by_cardinality + 1)  # and the scan itself
        return
    twin = BottomUp(space, memo=Memo.ALL, conditional=False)
    before = [(whole, split) for split in space.splits[whole]]
    twin.update([space.set_cost(*each, 90) for each in before])
    assert (twin.effort.nodes, twin.effort.alternatives) == (nodes, by_selectivity)
    assert by_selectivity - len(space.splits[whole]) == by_cardinality
