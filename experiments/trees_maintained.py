"""An answer kept while its document changes in one place, and the answer made anew."""

from __future__ import annotations

import statistics
import time

from harness import Claim, Experiment, Results, run
from trees_shredded import ACCESS, QUERIES, SETS, clinic

from whence.trees import Insert, Maintained, Reannotate, evaluate_shredded, load_query
from whence.trees.nodes import Delete, Edit, Nodes
from whence.trees.shred import decode

EDITS = 20


def edits_of(nodes: Nodes[str], turn: int) -> list[Edit[str]]:
    """In turn: another disease, another clearance, a record less, a note more."""
    patients = nodes.find("d", "clinic", "patient")
    patient = patients[(turn * 37) % len(patients)]
    (finding,) = (child for child in nodes.children[patient] if nodes.rows[child][2] == "finding")
    match turn % 4:
        case 0:
            (disease,) = (child for child in nodes.children[finding] if nodes.rows[child][2] == "disease")
            (value,) = nodes.children[disease]
            return [Delete(value), Insert(disease, SETS.leaf(f"disease {turn}"), "public")]
        case 1:
            return [Reannotate(finding, "top-secret")]
        case 2:
            return [Delete(patient)]
        case _:
            return [Insert(finding, SETS.leaf(f"note {turn}"), "secret")]


def measure(scheme: str, patients: float, seed: int) -> dict[str, float]:
    documents = {"d": clinic(int(patients), seed)}
    query = load_query(f"({QUERIES['view']}, {QUERIES['join']})", ACCESS)
    kept = Maintained(query, documents, ACCESS)
    times = []
    for turn in range(EDITS):
        edits = edits_of(kept.nodes, turn)
        started = time.perf_counter()
        kept.apply(edits)
        taken = time.perf_counter() - started
        if scheme == "anew":
            rows = {row: kept.nodes.annotations[node] for node, row in kept.nodes.rows.items()}
            members = {row[1:]: value for row, value in rows.items() if row[0] == "d"}
            now = {"d": decode(ACCESS, members, rows)}
            started = time.perf_counter()
            answer = evaluate_shredded(query, now, ACCESS)
            taken = time.perf_counter() - started
            assert answer == kept.answer(), "what is kept is not what an evaluation gives"
        times.append(1000 * taken)
    return {"time": statistics.median(times)}


def _ratios(results: Results) -> str:
    return f"at the largest size, an evaluation takes {results.ratio('anew', 'kept', 'time')} the time of an edit"


EXPERIMENT = Experiment(
    name="trees_maintained",
    title="A document changes in one place",
    question="The records and queries of trees_shredded (the view and the join together) in the semiring of clearances; twenty "
    "edits, one at a time: a value, a clearance, a record that goes, a note that comes. The median of an edit: kept by a "
    "session and recorded derivations, or evaluated anew by rules. Each answer kept is compared with the one made anew.",
    schemes=("kept", "anew"),
    across="patients",
    points=(50, 200, 800),
    metrics={"time": "ms an edit"},
    measure=measure,
    claims=[Claim("No claim is printed; an edit should cost what it changes", _ratios)],
    cut_off=300,
)

if __name__ == "__main__":
    run(EXPERIMENT)
