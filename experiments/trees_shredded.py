"""Queries of annotated trees: by rules over shredded documents, and by recursion over trees."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Any

from harness import Claim, Experiment, Results, run

from whence.semiring import Access
from whence.trees import Forest, KSets, Query, Tree, evaluate_query, evaluate_shredded, load_query

ACCESS = Access()
SETS = KSets(ACCESS)
LEVELS = ("public", "public", "confidential", "secret")
QUERIES = {
    "path": "$d//disease",
    "view": "for $p in $d/patient, $f in $p/finding return <case>{ $p/ward, $f/disease, $p/name }</case>",
    # Patients with the nurses of their wards: a join, where recursion goes through all pairs.
    "join": "for $p in $d/patient, $n in $d/nurse where $p/ward = $n/ward return <cares>{ $n/name, $p/name }</cares>",
}


def clinic(patients: int, seed: int) -> Forest[str]:
    """Records of some ten nodes each, and a nurse for each ward of ten patients."""
    random = Random(seed)

    def leaf(label: str, value: str) -> tuple[Tree[str], str]:
        return Tree(label, SETS.single(SETS.leaf(value))), random.choice(LEVELS)

    def tree(label: str, *children: tuple[Tree[str], str]) -> tuple[Tree[str], str]:
        return Tree(label, SETS.of(children)), random.choice(LEVELS)

    wards = max(1, patients // 10)
    records = [
        tree(
            "patient",
            leaf("name", f"patient {number}"),
            leaf("ward", f"ward {random.randrange(wards)}"),
            tree("finding", leaf("disease", f"disease {random.randrange(40)}"), leaf("note", f"note {number}")),
        )
        for number in range(patients)
    ]
    nurses = [tree("nurse", leaf("name", f"nurse {ward}"), leaf("ward", f"ward {ward}")) for ward in range(wards)]
    return SETS.single(Tree("clinic", SETS.of([*records, *nurses])))


EVALUATORS: dict[str, Callable[[Query, dict[str, Forest[str]], Access], Forest[str]]] = {
    "rules": evaluate_shredded,
    "recursion": evaluate_query,
}


def measure(scheme: str, patients: float, seed: int) -> dict[str, float]:
    documents = {"d": clinic(int(patients), seed)}
    found = {}
    for name, text in QUERIES.items():
        query = load_query(text, ACCESS)
        started = time.perf_counter()
        answer = EVALUATORS[scheme](query, documents, ACCESS)
        found[name] = time.perf_counter() - started
        _check(name, answer, query, documents)
    return found


_ANSWERS: dict[Any, Forest[str]] = {}


def _check(name: str, answer: Forest[str], query: Query, documents: dict[str, Forest[str]]) -> None:
    """Both schemes give the same; the first one to come is remembered."""
    assert answer == _ANSWERS.setdefault((name, documents["d"]), answer), f"{name}: the answers differ"
    assert answer, query


def _ratios(results: Results) -> str:
    shown = [f"{name} {results.ratio('rules', 'recursion', name)}" for name in QUERIES]
    return f"at the largest size, time of rules to that of recursion: {', '.join(shown)}"


EXPERIMENT = Experiment(
    name="trees_shredded",
    title="Queries of trees, by rules and by recursion",
    question="Records of a clinic with clearances, eleven nodes a patient. The same queries by rules over shredded documents on "
    "the engine, shredding and decoding included, and by recursion over trees, which goes through the pairs of a join.",
    schemes=("rules", "recursion"),
    across="patients",
    points=(50, 200, 800),
    metrics={"path": "s", "view": "s", "join": "s"},
    measure=measure,
    claims=[Claim("Shredding is a proof of concept; practicality is not claimed (dissertation, 6.7)", _ratios)],
    cut_off=300,
)

if __name__ == "__main__":
    run(EXPERIMENT)
