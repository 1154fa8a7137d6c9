"""Recursions through UNION ALL on data with cycles: reported with the rows that go round; without a cycle they end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from random import Random

import networkx as nx
import pytest

from whence import Session, Update, load
from whence.lang.types import Tuple
from whence.limits import Limits, RunawayError
from whence.reference import evaluate as evaluate_naively
from whence.session import evaluate

EVALUATORS = pytest.mark.parametrize("run", [evaluate, evaluate_naively], ids=["engine", "reference"])
LINK = "CREATE TABLE link(src TEXT, dst TEXT, PRIMARY KEY (src, dst)); "
PATHS = load(
    LINK + "CREATE RECURSIVE VIEW r(src, dst) AS SELECT src, dst FROM link UNION ALL "
    "SELECT r.src, l.dst FROM r JOIN link l ON l.src = r.dst;",
    dialect="sql",
)
TWO_VIEWS = load(
    LINK + "CREATE RECURSIVE VIEW odd(src, dst) AS SELECT src, dst FROM link UNION ALL "
    "SELECT even.src, l.dst FROM even JOIN link l ON l.src = even.dst; "
    "CREATE RECURSIVE VIEW even(src, dst) AS SELECT odd.src, l.dst FROM odd JOIN link l ON l.src = odd.dst UNION ALL "
    "SELECT src, dst FROM odd WHERE src = 'nobody';",
    dialect="sql",
)
NONLINEAR = load(
    LINK + "CREATE RECURSIVE VIEW r(src, dst) AS SELECT src, dst FROM link UNION ALL "
    "SELECT a.src, b.dst FROM r a JOIN r b ON b.src = a.dst;",
    dialect="sql",
)
WEIGHTS = load(
    LINK + "CREATE RECURSIVE VIEW w(dst, steps) AS SELECT dst, 1 FROM link WHERE src = 'a' UNION ALL "
    "SELECT l.dst, w.steps + 1 FROM w JOIN link l ON l.src = w.dst;",
    dialect="sql",
)
Run = Callable[..., object]


def rows_of(message: str) -> list[tuple[str, str]]:
    return re.findall(r"\('(\w+)', '(\w+)'\)", message)


@EVALUATORS
@pytest.mark.parametrize("program", [PATHS, NONLINEAR], ids=["linear", "nonlinear"])
def test_a_row_that_comes_from_itself_is_reported_with_the_rows_between(run: Run, program: object) -> None:
    links = [("s", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "t")]
    with pytest.raises(RunawayError, match=r"r \(<program>:1\) has no end.*\n  hint: write UNION") as error:
        run(program, {"link": links})
    rows = rows_of(str(error.value))
    assert rows[0] == rows[-1]
    # Only the non-linear rule can go round in front of a row too: r(c, t) comes from r(c, c) and itself.
    ends = [{dst} if program is PATHS else {src, dst} for src, dst in rows]
    assert all(end & set("abc") for end in ends)


@EVALUATORS
def test_a_cycle_may_go_through_several_views(run: Run) -> None:
    with pytest.raises(RunawayError, match=r"(odd|even) \(<program>:1\) has no end") as error:
        run(TWO_VIEWS, {"link": [("a", "b"), ("b", "c"), ("c", "a")]})
    steps = re.findall(r"(odd|even)\('(\w)', '(\w)'\)", str(error.value).splitlines()[0])
    assert steps[0] == steps[-1]
    assert [name for name, _, _ in steps] == [steps[0][0] if at % 2 == 0 else steps[1][0] for at in range(len(steps))]


def test_a_dense_cycle_is_found_before_its_rows_are_many() -> None:
    links = [(f"n{x}", f"n{y}") for x in range(30) for y in range(30)]
    with pytest.raises(RunawayError, match="has no end"):
        evaluate(PATHS, {"link": links}, limits=Limits(max_tuples=2_000_000))


def test_an_epoch_that_closes_a_cycle_is_refused_and_nothing_of_it_stays() -> None:
    session = Session(PATHS, facts={"link": [("a", "b"), ("b", "c")]})
    before = Counter(session.bag("r"))
    with pytest.raises(RunawayError, match=r"r\('\w', '\w'\) -> "):
        session.apply([Update("+", "link", ("c", "a"))])
    assert Counter(session.bag("r")) == before
    session.apply([Update("+", "link", ("c", "d"))])
    assert Counter(session.bag("r")) == Counter(
        {("a", "b"): 1, ("a", "c"): 1, ("a", "d"): 1, ("b", "c"): 1, ("b", "d"): 1, ("c", "d"): 1}
    )


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_end_where_they_have_no_cycle_and_only_there(seed: int) -> None:
    random = Random(seed)
    links: set[Tuple] = {(f"n{random.randrange(12)}", f"n{random.randrange(12)}") for _ in range(random.randint(5, 16))}
    graph = nx.DiGraph(sorted(links))
    if not nx.is_directed_acyclic_graph(graph):
        with pytest.raises(RunawayError, match="has no end") as error:
            evaluate(PATHS, {"link": links})
        steps = [dst for _, dst in rows_of(str(error.value).splitlines()[0])]
        assert all(link in links for link in pairwise(steps))
        return
    expected = Counter(
        (x, path[-1]) for x in graph for y in graph for path in nx.all_simple_paths(graph, x, y) if x != y
    )
    assert Counter(Session(PATHS, facts={"link": links}).bag("r")) == expected


def test_many_rows_without_a_cycle_end() -> None:
    """Two ways from each place to the next: 2 to the power of 11 ways to the last one."""
    links = [(f"p{at}", f"{side}{at}") for at in range(11) for side in "ab"]
    links += [(f"{side}{at}", f"p{at + 1}") for at in range(11) for side in "ab"]
    session = Session(PATHS, facts={"link": links})
    assert Counter(session.bag("r"))["p0", "p11"] == 2**11


def test_where_values_grow_a_limit_tells_what_goes_round() -> None:
    with pytest.raises(RunawayError, match=r"stopped at .* it goes round: w\('(\w)', \d+\) -> .* -> w\('\1', \d+\)"):
        evaluate(WEIGHTS, {"link": [("a", "b"), ("b", "c"), ("c", "a")]}, limits=Limits(max_tuples=3000))
