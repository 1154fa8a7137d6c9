"""What explanations cost.

    .venv/bin/python bench/why.py [--small]

Prints a Markdown table. Every answer is checked: proofs by the independent checker or as paths of links, what-if answers against
a re-evaluation, reliabilities against sampled networks. Times are processor time of this process.
"""

from __future__ import annotations

import random
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import TypeVar

from whence import Session, Update, load
from whence.backends.local.backend import LocalBackend
from whence.engine.guard import Guard
from whence.engine.maintain import Maintainer
from whence.plan import Plan, compile_plan
from whence.plan.steps import Check, DeltaPlan, Join, Step
from whence.provenance import Fact, Proof, probabilities
from whence.provenance.derive import Deriver
from whence.provenance.proofs import smallest_proof
from whence.reference import Limits

CLOSURE = """
.decl link(x:number, y:number)
.input link
.output reach
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
"""
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


def smallest_proofs(nodes: int, links: int, questions: int = 300) -> str:
    given = gnm(nodes, links)
    session = Session(load(CLOSURE), facts={"link": given})
    rng = random.Random(2)
    starts = [rng.randrange(nodes) for _ in range(questions)]
    rows = [(start, rng.choice(sorted(ends))) for start in starts if (ends := reachable(given, start))]
    smallest_proof(Deriver(session), Fact("reach", rows[0]))  # builds the index that it asks for
    spent = []
    for row in rows:
        seconds, (proof, is_certain) = timed(lambda row=row: smallest_proof(Deriver(session), Fact("reach", row)))  # type: ignore[misc]
        assert is_certain
        check_path(proof, row, set(given))
        spent.append(seconds)
    size = len(session.backend.table("reach"))
    return (
        f"smallest proof of a random tuple, closure of {size:,} rows | median {median(spent) * 1e3:.2f} ms, "
        f"95 % under {sorted(spent)[len(spent) * 95 // 100] * 1e3:.2f} ms | under 5 ms"
    )


def check_path(proof: Proof, row: Link, links: set[Link]) -> None:
    """A proof of reachability is a path: its leaves in order."""
    path = [part.fact.tuple for part in proof if part.firing is None]
    assert all(link in links for link in path)
    assert all(one[1] == other[0] for one, other in pairwise(path))
    assert (path[0][0], path[-1][1]) == row
    assert len(path) == proof.height


def overhead_of_ranks(nodes: int, links: int, repeats: int = 7) -> str:
    """A full evaluation against one whose plans neither read nor compare ranks."""
    program = load(CLOSURE)
    plan = compile_plan(program)
    given = gnm(nodes, links)
    with_ranks, without = [], []
    for _ in range(repeats):
        with_ranks.append(timed(lambda: evaluate(plan, given))[0])
        without.append(timed(lambda: evaluate(unranked(plan), given))[0])
    more = min(with_ranks) / min(without) - 1
    return f"ranks in the evaluation of closure Gnm({nodes},{links}) | {more:+.1%} | under 10 %"


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


def recording(nodes: int, links: int, repeats: int = 7) -> str:
    program, given = load(CLOSURE), gnm(nodes, links)
    plain, recorded = [], []
    for _ in range(repeats):
        plain.append(timed(lambda: Session(program, facts={"link": given}))[0])
        seconds, session = timed(lambda: Session(program, facts={"link": given}, record=["reach"]))
        recorded.append(seconds)
    tables = [each.relation for each in session.recordings.values()]
    rows = sum(len(session.backend.table(name)) for name in tables)
    used = session.stats()["bytes"]
    assert set(session.relation("reach")) == set(Session(program, facts={"link": given}).relation("reach"))
    return (
        f"recording {rows:,} derivations of closure Gnm({nodes},{links}) | {min(recorded) / min(plain):.2f}x the unrecorded "
        f"evaluation, {sum(used[name] for name in tables) / rows:.0f} bytes each | under 2x"
    )


def what_if(nodes: int, links: int, reevaluated: int = 25) -> str:
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
    return (
        f"what if each of {links:,} links of Gnm({nodes},{links}) went | {total / links * 1e3:.2f} ms each, "
        f"{ratio:.0f}x faster than re-evaluating each ({reevaluated} of them measured) | at least 20x"
    )


def reliability(samples: int = 2_000) -> str:
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
    return (
        f"reliability on the transit-stub network (100 nodes, {len(links)} link tuples), one node to all others | "
        f"{seconds:.1f} s, {exact} of {len(roots)} exact, widest bounds {width:.2g} | under 10 s, or bounds"
    )


def main() -> None:
    small = "--small" in sys.argv
    print("| work | measured | bar |\n|---|---|---|")
    for row in (
        lambda: smallest_proofs(*((200, 500) if small else (2000, 5000))),
        lambda: overhead_of_ranks(*((200, 400) if small else (1000, 2000))),
        lambda: recording(*((100, 200) if small else (500, 1000))),
        lambda: what_if(*((100, 200) if small else (500, 1000))),
        reliability,
    ):
        print(f"| {row()} |", flush=True)


if __name__ == "__main__":
    main()
