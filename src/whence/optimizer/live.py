"""What join orders a session follows: each plan, what was expected of its joins, what they find, and the last switches.

What is expected follows from the tables' statistics, with columns taken to be independent. What is found is seen by taking a few
rows of the relation that changes through the plan as it stands.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from whence.io.updates import reported_writing
from whence.lang.program import Program
from whence.optimizer.adaptive import AdaptiveOrders, Observed, Switch
from whence.plan.steps import Check, DeltaPlan, Join, Slot
from whence.reader import Reader

ROWS = 64  # that are taken through a plan
MOST = 100_000  # matches of them, after which no more are counted
SWITCHES = 5  # the last ones that are shown
SHARE = 0.01  # of the time, for writing reports
FILE = "join_orders.json"

Report = dict[str, Any]


@dataclass
class PublishedOrders:
    """Makes followers of sessions. What the one in this process follows is told to those who watch, in a file of the folder."""

    folder: Path | None = None

    def __post_init__(self) -> None:
        self._process = os.getpid()

    def __call__(self, session: Reader) -> AdaptiveOrders | _Published:
        if self.folder is None or os.getpid() != self._process:  # a part, in a worker
            return AdaptiveOrders(session)
        return _Published(AdaptiveOrders(session), self.folder / FILE)


@dataclass
class _Published:
    orders: AdaptiveOrders
    path: Path

    def __post_init__(self) -> None:
        self._next = 0.0
        self._write()

    def after_epoch(self) -> list[Switch]:
        looks = self.orders.looks
        found = self.orders.after_epoch()
        if found or (self.orders.looks > looks and time.monotonic() >= self._next):
            self._write()
        return found

    def _write(self) -> None:
        start = time.monotonic()
        report = {"process": os.getpid(), "written": time.time(), **live_report(self.orders)}
        partial = self.path.with_suffix(".partial")
        with reported_writing(self.path):
            partial.write_text(json.dumps(report, indent=1), encoding="utf-8")
            partial.replace(self.path)
        now = time.monotonic()
        self._next = now + (now - start) / SHARE


def published_report(folder: Path) -> Report | None:
    """What a run that follows the data has last told of the state in this folder."""
    try:
        found: Report = json.loads((folder / FILE).read_bytes())
    except (OSError, ValueError):
        return None
    return found


def live_report(orders: AdaptiveOrders) -> Report:
    """As JSON: what `live_lines` shows."""
    session = orders.session
    plans = [
        found
        for stratum in session.plan.strata
        for plan in stratum.deltas
        if (found := _plan(session, plan, orders.order.observed)) is not None
    ]
    return {
        "epoch": session.epoch,
        "looks": orders.looks,
        "plans": plans,
        "switches": [_switch(each) for each in orders.switches],
    }


def _switch(each: Switch) -> Report:
    return {"epoch": each.epoch, "before": each.before, "after": each.after, "why": each.why, "text": str(each)}


def _plan(session: Reader, plan: DeltaPlan, observed: Observed) -> Report | None:
    joins = [at for at, step in enumerate(plan.steps) if isinstance(step, Join | Check)]
    if plan.scan is None or len(joins) < 2:
        return None  # there is nothing to choose
    table = session.backend.tables[plan.scan.relation]
    ids = table.ids()
    chosen = ids if len(ids) <= ROWS else ids[np.linspace(0, len(ids) - 1, ROWS).astype(np.int64)]
    steps, expected, counting = [], 1.0, len(chosen) > 0
    for number, at in enumerate(joins):
        step = plan.steps[at]
        assert isinstance(step, Join | Check)
        columns = [column for column, _ in step.key] if isinstance(step, Join) else list(range(len(step.args)))
        fits = observed.rows(step.relation)
        for column in columns:
            fits /= observed.distinct(step.relation, column)
        expected *= fits if isinstance(step, Join) else min(1.0, fits)
        until = joins[number + 1] if number + 1 < len(joins) else len(plan.steps)
        found = _matches(session, plan, until, chosen) if counting else None
        counting = found is not None and found < MOST
        steps.append(
            {
                "relation": step.relation,
                "by": [_name(session.program, step.relation, column) for column in columns],
                "expected": expected,
                "seen": None if found is None else found / len(chosen),
                "counted": counting or found is None,
            }
        )
    return {"rule": _text(session.program, plan), "changes": plan.scan.relation, "rows": len(chosen), "steps": steps}


def _matches(session: Reader, plan: DeltaPlan, until: int, ids: np.ndarray[Any, Any]) -> int:
    """How many assignments are left of some rows after the first steps of a plan, or `MOST`, if there are more."""
    backend = session.backend
    first = plan.scan.binds[0][1] if plan.scan is not None and plan.scan.binds else None
    begun = replace(plan, steps=plan.steps[:until], head=() if first is None else (Slot(first),))
    enumerated, found = backend.enumerated, 0
    for heads, _, _ in backend.trace(begun, ids, lambda _: 0):
        found += len(heads)
        if found >= MOST:
            found = MOST
            break
    backend.enumerated = enumerated  # these are not derivations of an epoch
    return found


def _name(program: Program, relation: str, column: int) -> str:
    declared = program.relations.get(relation)
    return f"column {column}" if declared is None else declared.fields[column].name


def _text(program: Program, plan: DeltaPlan) -> str:
    place = program.source.place(plan.rule.span)
    return f"{plan.rule.name} ({place.file.name}:{place.line})"


def live_lines(report: Report) -> Iterator[str]:
    """The report as text; numbers are for one row that changes."""
    yield f"epoch {report['epoch']}, tables looked at {_times(report['looks'])}, {len(report['switches'])} switches"
    for plan in report["plans"]:
        yield f"rule {plan['rule']}, when {plan['changes']} changes"
        yield f"  {'for one row':40}{'expected':>12}{'seen':>12}"
        for step in plan["steps"]:
            what = f"{step['relation']} by {', '.join(step['by'])}" if step["by"] else f"all of {step['relation']}"
            seen = "-" if step["seen"] is None else f"{'' if step['counted'] else '> '}{step['seen']:,.2f}"
            yield f"  {what:40}{step['expected']:12,.2f}{seen:>12}"
    for each in report["switches"][-SWITCHES:]:
        yield f"switch at {each['text']}"
    if not report["switches"]:
        yield "no order was worth a switch"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
