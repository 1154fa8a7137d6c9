"""What explanations cost, and Nemo's trace beside the smallest proofs.

    .venv-bench/bin/python bench/why.py [--small]

Writes results/why.md and why.svg. Every answer is checked: proofs as paths of links, what-if answers against a re-evaluation,
reliabilities against sampled networks. Times are processor time of this process. `--small` is for trying it out, and writes
nothing.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import Any, TypeVar

from measure import Report, plot_bars
from peers import Nemo

from whence import Session, Update, load
from whence.backends.local.backend import LocalBackend
from whence.engine.absorption import AbsorptionStratum
from whence.engine.guard import Guard
from whence.engine.maintain import Maintainer
from whence.limits import Limits
from whence.plan import Plan, compile_plan
from whence.plan.steps import Check, DeltaPlan, Join, Step
from whence.provenance import Fact, probabilities
from whence.provenance.derive import Deriver
from whence.provenance.proofs import smallest_proof

CLOSURE = """
.decl link(x:number, y:number)
.input link
.output reach
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
"""
NEMO_CLOSURE = """
reach(?X, ?Y) :- link(?X, ?Y) .
reach(?X, ?Z) :- reach(?X, ?Y), link(?Y, ?Z) .
@export reach :- csv{} .
"""
SPARSE_TO_DENSE = ((20, 30), (20, 40), (20, 44), (20, 48))
Link = tuple[int, int]
T = TypeVar("T")


def gnm(nodes: int, links: int, seed: int = 1) -> list[Link]:
    rng = random.Random(seed)
    chosen: set[Link] = set()
    while len(chosen) < links:
        one, other = rng.randrange(nodes), rng.randrange(nodes)
        if one != other:
            chosen.add((one, other))
    return sorted(chosen)


def transit_stub(seed: int = 1) -> list[Link]:
    """Four transit nodes, three stubs of eight nodes at each: 100 nodes, about 200 links that go both ways."""
    rng = random.Random(seed)
    pairs = {(one, other) for one in range(4) for other in range(one)}
    first = 4
    for transit in range(4):
        for _ in range(3):
            stub = range(first, first + 8)
            inner = {(stub[at], stub[rng.randrange(at)]) for at in range(1, 8)}
            while len(inner) < 15:
                one, other = rng.sample(stub, 2)
                if (other, one) not in inner:
                    inner.add((one, other))
            pairs |= inner | {(transit, rng.choice(stub))}
            first += 8
    return sorted(pairs | {(other, one) for one, other in pairs})


def timed(work: Callable[[], T]) -> tuple[float, T]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def reachable(links: Iterable[Link], start: int) -> set[int]:
    following: dict[int, list[int]] = {}
    for one, other in links:
        following.setdefault(one, []).append(other)
    found: set[int] = set()
    pending = deque([start])
    while pending:
        for other in following.get(pending.popleft(), ()):
            if other not in found:
                found.add(other)
                pending.append(other)
    return found


class Proofs:
    """Proofs of the same random tuples of one closure, by both engines."""

    def __init__(self, nodes: int, links: int, questions: int = 300) -> None:
        self.links = gnm(nodes, links)
        self.name = f"Gnm({nodes:,},{links:,})"
        rng = random.Random(2)
        starts = [rng.randrange(nodes) for _ in range(questions)]
        self.rows = [(start, rng.choice(sorted(ends))) for start in starts if (ends := reachable(self.links, start))]
        self.heights: dict[Link, int] = {}
        self.whence, self.size = self._by_whence()
        self.nemo, self.as_small = self._by_nemo()

    def _by_whence(self) -> tuple[list[float], int]:
        session = Session(load(CLOSURE), facts={"link": self.links})
        smallest_proof(Deriver(session), Fact("reach", self.rows[0]))  # builds the index that it asks for
        spent, given = [], set(self.links)
        for row in self.rows:
            seconds, (proof, is_certain) = timed(lambda row=row: smallest_proof(Deriver(session), Fact("reach", row)))  # type: ignore[misc]
            assert is_certain
            check_path([part.fact.tuple for part in proof if part.firing is None], row, given)  # type: ignore[misc]
            self.heights[row] = proof.height
            spent.append(seconds)
        return spent, len(session.backend.table("reach"))

    def _by_nemo(self) -> tuple[list[float], int]:
        """Times, and how many of the proofs are as small as can be."""
        engine = Nemo(NEMO_CLOSURE, {"link": self.links}).reasoned()
        engine.trace("reach({}, {})".format(*self.rows[0]))
        spent, given, as_small = [], set(self.links), 0
        for row in self.rows:
            seconds, trace = timed(lambda row=row: engine.trace("reach({}, {})".format(*row)).dict())  # type: ignore[misc]
            path = list(links_of(trace))
            check_path(path, row, given)
            as_small += len(path) == self.heights[row]
            spent.append(seconds)
        return spent, as_small

    def line(self) -> list[str]:
        return [
            self.name, f"{self.size:,}", shown(self.whence), shown(self.nemo), f"{self.as_small} of {len(self.rows)}"
        ]  # fmt: skip


def shown(times: list[float]) -> str:
    return f"{median(times) * 1e3:.2f}, {sorted(times)[len(times) * 95 // 100] * 1e3:.2f}"


def links_of(trace: dict[str, Any]) -> Iterator[Link]:
    """The facts below a trace of Nemo's, in order."""
    if "fact" in trace:
        one, other = re.findall(r"\d+", trace["fact"])
        yield int(one), int(other)
    for each in trace.get("subtraces", ()):
        yield from links_of(each)


def check_path(path: list[Link], row: Link, links: set[Link]) -> None:
    """A proof of reachability is a path: its leaves in order."""
    assert all(link in links for link in path)
    assert all(one[1] == other[0] for one, other in pairwise(path))
    assert (path[0][0], path[-1][1]) == row


def overhead_of_ranks(nodes: int, links: int, repeats: int = 7) -> list[str]:
    """A full evaluation against one whose plans neither read nor compare ranks."""
    program = load(CLOSURE)
    plan = compile_plan(program)
    given = gnm(nodes, links)
    with_ranks, without = [], []
    for _ in range(repeats):
        with_ranks.append(timed(lambda: evaluate(plan, given))[0])
        without.append(timed(lambda: evaluate(unranked(plan), given))[0])
    more = min(with_ranks) / min(without) - 1
    return [f"ranks in the evaluation of closure Gnm({nodes},{links})", f"{more:+.1%}", "under 10 %"]


def evaluate(plan: Plan, links: list[Link]) -> int:
    backend = LocalBackend(plan.program)
    maintainer = Maintainer(plan, backend, Guard(plan.program, Limits(), None))
    maintainer.settle(maintainer.apply({}, {"link": list(links)}))
    return len(backend.table("reach"))


def unranked(plan: Plan) -> Plan:
    def step(each: Step) -> Step:
        return replace(each, recursive=False) if isinstance(each, Join | Check) else each

    def delta(each: DeltaPlan) -> DeltaPlan:
        assert each.scan is not None
        scan = replace(each.scan, recursive=False)
        return replace(each, scan=scan, steps=tuple(step(part) for part in each.steps))

    strata = tuple(replace(each, deltas=tuple(delta(plan) for plan in each.deltas)) for each in plan.strata)
    return replace(plan, strata=strata)


def recording(nodes: int, links: int, repeats: int = 15) -> list[str]:
    program, given = load(CLOSURE), gnm(nodes, links)
    plain, recorded = [], []
    for _ in range(repeats):
        plain.append(timed(lambda: Session(program, facts={"link": given}))[0])
        seconds, session = timed(lambda: Session(program, facts={"link": given}, record=["reach"]))
        recorded.append(seconds)
    tables = [each.relation for each in session.recordings.values()]
    rows = sum(len(session.backend.table(name)) for name in tables)
    used = session.stats()["bytes"]
    # Rows are hashed when one of them is first looked up, as a deletion does.
    session.apply([Update("-", "link", given[0])])
    hashed = session.stats()["bytes"]
    session.apply([Update("+", "link", given[0])])
    assert set(session.relation("reach")) == set(Session(program, facts={"link": given}).relation("reach"))
    return [
        f"recording {rows:,} derivations of closure Gnm({nodes},{links})",
        f"{median(recorded) / median(plain):.2f}x the unrecorded evaluation, "
        f"{(median(recorded) - median(plain)) / rows * 1e9:.0f} ns and "
        f"{sum(used[name] for name in tables) / rows:.0f} bytes each, "
        f"{sum(hashed[name] for name in tables) / rows:.0f} after the first deletion",
        "under 2x",
    ]


def what_if(nodes: int, links: int, reevaluated: int = 25) -> list[str]:
    program, given = load(CLOSURE), gnm(nodes, links)
    session = Session(program, facts={"link": given})
    session.trial([Update("-", "link", given[0])])
    total, answers = timed(lambda: {link: session.trial([Update("-", "link", link)]) for link in given})
    sample = random.Random(3).sample(given, reevaluated)
    anew = []
    before = set(session.relation("reach"))
    for link in sample:
        rest = [each for each in given if each != link]
        seconds, fresh = timed(lambda rest=rest: Session(program, facts={"link": rest}))  # type: ignore[misc]
        anew.append(seconds)
        assert before - set(answers[link].deleted.get("reach", ())) == set(fresh.relation("reach"))
    ratio = median(anew) * len(given) / total
    return [
        f"what if each of {links:,} links of Gnm({nodes},{links}) went",
        f"{total / links * 1e3:.2f} ms each, {ratio:.0f}x faster than re-evaluating each ({reevaluated} of them measured)",
        "at least 20x",
    ]


def reliability(samples: int = 2_000) -> list[str]:
    links = transit_stub()
    session = Session(load(CLOSURE), facts={"link": links})
    source = 20
    roots = [Fact("reach", (source, node)) for node in range(100) if node != source]
    seconds, found = timed(lambda: probabilities(session, roots, lambda _: 0.9))
    rng = random.Random(4)
    met = dict.fromkeys(roots, 0)
    for _ in range(samples):
        world = reachable((link for link in links if rng.random() < 0.9), source)
        for root in roots:
            met[root] += root.tuple[1] in world
    for root, (low, high) in found.items():
        assert low - 0.05 <= met[root] / samples <= high + 0.05, root
    exact = sum(each.is_exact for each in found.values())
    width = max(high - low for low, high in found.values())
    return [
        f"reliability on the transit-stub network (100 nodes, {len(links)} link tuples), one node to all others",
        f"{seconds:.1f} s, {exact} of {len(roots)} exact, widest bounds {width:.2g}",
        "under 10 s, or bounds",
    ]


def absorption(name: str, links: list[Link]) -> list[str]:
    """All pairs, kept by formulas; then one link goes."""
    program = load(CLOSURE)
    seconds, session = timed(lambda: Session(program, facts={"link": links}, strategy="absorption"))
    stratum = next(each for each in session._maintainer.strata if "reach" in each.plan.relations)  # noqa: SLF001
    assert isinstance(stratum, AbsorptionStratum)
    sizes = [stratum.diagrams.size(each) for each in stratum.formulas["reach"].values()]
    gone = links[len(links) // 2]
    deleting, _ = timed(lambda: session.apply([Update("-", "link", gone)]))
    counted = Session(program, facts={"link": links})
    deleting_counted, _ = timed(lambda: counted.apply([Update("-", "link", gone)]))
    assert set(session.relation("reach")) == set(counted.relation("reach"))
    return [
        name, f"{len(sizes):,}", f"{max(sizes):,}", f"{sum(sizes):,}", f"{seconds:.2f}", f"{deleting * 1e3:.1f}",
        f"{deleting_counted * 1e3:.1f}",
    ]  # fmt: skip


def tree(nodes: int, seed: int = 1) -> list[Link]:
    rng = random.Random(seed)
    return [(rng.randrange(node), node) for node in range(1, nodes)]


def main() -> None:
    if "--small" in sys.argv:
        for line in (Proofs(200, 500).line(), recording(100, 200), what_if(100, 200), absorption("tree", tree(100))):
            print(line)
        return
    report = Report("why", "Explanations")
    report.write(
        "Smallest proofs of 300 random tuples of a closure, after load, beside Nemo's `trace`, which shows one proof: "
        "milliseconds of processor time, median and what 95 % stay under."
    )
    proofs = [Proofs(*size) for size in ((200, 500), (1000, 2500), (2000, 5000))]
    header = ["closure", "rows", "Whence (bar: median under 5)", "Nemo", "of Nemo's, as small as can be"]
    report.table(header, [each.line() for each in proofs])
    series = {
        "Whence": [median(each.whence) * 1e3 for each in proofs],
        "Nemo": [median(each.nemo) * 1e3 for each in proofs],
    }
    labels = [f"{each.size:,} rows" for each in proofs]
    plot_bars("why", "A proof of a random tuple", labels, series, "milliseconds, median (less is better)")
    report.write("Everything else:")
    work = [overhead_of_ranks(1000, 2000), recording(500, 1000), what_if(500, 1000), reliability()]
    report.table(["work", "measured", "bar"], work)
    report.write(
        "How far maintenance by absorption goes: all pairs of a graph, the nodes of their decision diagrams, the seconds to "
        "derive them, and the milliseconds in which one link goes, beside those of support counting."
    )
    graphs = [("tree, 1,000 nodes", tree(1000))]
    graphs += [(f"random, {nodes} nodes, {links} links", gnm(nodes, links)) for nodes, links in SPARSE_TO_DENSE]
    header = [
        "graph",
        "pairs",
        "largest diagram",
        "all diagrams",
        "s to derive",
        "ms to delete",
        "support: ms to delete",
    ]
    report.table(header, [absorption(name, links) for name, links in graphs])


if __name__ == "__main__":
    main()
