"""Answers about events as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from whence.events.compare import Difference, event_of, slow_of
from whence.events.history import Interval
from whence.events.questions import EventTree, Run, Trees
from whence.events.shortfall import Shortfall
from whence.events.store import EventStore
from whence.provenance.graph import Fact
from whence.provenance.proofs import Proof
from whence.provenance.show import show_fact
from whence.provenance.to_json import fact_to_json, proof_to_json
from whence.provenance.tree import show_proofs


def trees_text(found: Trees, store: EventStore) -> str:
    if not found.trees:
        return "there is no tree" if found.is_complete else "no tree can be rebuilt"
    heads = [f"{_met(each)}" for each in found.trees]
    texts = [show_proofs([each.tree], store.events.program).rstrip() for each in found.trees]
    return "\n\n".join(f"{head}\n{text}" for head, text in zip(heads, texts, strict=True))


def _met(each: EventTree) -> str:
    if not each.runs:
        return f"{show_fact(event_of(each.tree))} would lead to:"
    shown = ", ".join(_run_text(run) for run in each.runs[:3])
    more = f" and {len(each.runs) - 3:,} more" if len(each.runs) > 3 else ""
    return f"run {shown}{more}:"


def _run_text(run: Run) -> str:
    time = "" if run.time is None else f" at time {run.time:g}"
    return f"{run.number}{time}, configuration {run.configuration}"


def trees_json(found: Trees, store: EventStore) -> dict[str, Any]:
    return {
        "trees": [
            {
                **proof_to_json(each.tree, store.events.program),
                "event": fact_to_json(event_of(each.tree)),
                "tree": _nested(each.tree, store),
                "runs": [
                    {"run": run.number, "time": run.time, "configuration": run.configuration} for run in each.runs
                ],
            }
            for each in found.trees
        ],
        "complete": found.is_complete,
        "missing": [each.reason for each in found.missing],
    }


def _nested(tree: Proof, store: EventStore) -> dict[str, Any]:
    """The tree as it is drawn: a step has its rule, where it ran, and its premises, the event first."""
    spine = [tree]
    while spine[-1].premises:
        spine.append(spine[-1].premises[0])
    made: dict[str, Any] = dict(fact_to_json(spine[-1].fact))
    for step in reversed(spine[:-1]):
        assert step.firing is not None
        ran_at = store.texts.place(step.premises[0].fact)
        slow = [dict(fact_to_json(fact)) for fact in slow_of(step)]
        made = {**fact_to_json(step.fact), "rule": step.firing.rule, "place": ran_at, "premises": [made, *slow]}
    return made


def shortfall_text(found: Iterable[Shortfall], event: Fact, configuration: int) -> str:
    lines = [f"{show_fact(event)}, configuration {configuration}:"]
    for each in found:
        lines += [f"  {hop.firing.rule}: {show_fact(hop.firing.head)}" for hop in each.way]
        lines.append(f"  {each}")
    return "\n".join(
        lines if len(lines) > 1 else [*lines, "  it leads to an output: `whence events why` shows the tree"]
    )


def shortfall_json(found: Iterable[Shortfall], configuration: int, store: EventStore) -> dict[str, Any]:
    return {
        "configuration": configuration,
        "ends": [
            {
                "at": fact_to_json(each.at),
                "place": store.texts.place(each.at),
                "steps": [{"rule": hop.firing.rule, **fact_to_json(hop.firing.head)} for hop in each.way],
                "missed": list(each.missed),
            }
            for each in found
        ],
    }


def difference_text(difference: Difference, one: str, other: str) -> str:
    if difference.is_empty:
        return f"{one} and {other} took the same steps with the same slow tuples"
    lines = [
        f"the first {difference.shared} steps are alike" if difference.shared else "they differ from the first step on"
    ]
    for name, step, only in zip((one, other), difference.parting, difference.only, strict=True):
        lines.append(f"{name}:")
        made = None if step is None or step.firing is None else f"{step.firing.rule} made {show_fact(step.fact)}"
        lines.append(f"  then {made or 'it ended'}")
        lines += [f"  only here: {show_fact(fact)}, {_intervals_text(intervals)}" for fact, intervals in only]
    return "\n".join(lines)


def _intervals_text(intervals: Iterable[Interval]) -> str:
    return " and ".join(
        f"configurations {each.since} to {'now' if each.until is None else each.until - 1}{_times(each)}"
        for each in intervals
    )


def _times(interval: Interval) -> str:
    if interval.since_time is None and interval.until_time is None:
        return ""
    since = "?" if interval.since_time is None else f"{interval.since_time:g}"
    until = "now" if interval.until is None else "?" if interval.until_time is None else f"{interval.until_time:g}"
    return f" (times {since} to {until})"
