"""Join orders follow the data, and nothing else changes: views are exact and changes add up across every switch."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from tests.properties.excuses import LIMITS, follow
from tests.properties.programs import Run, runs
from typer.testing import CliRunner

from whence import Changes, Session, Update, load
from whence.cli import app
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.limits import RunawayError
from whence.optimizer import adaptive, live
from whence.optimizer.adaptive import AdaptiveOrders, ObservedOrder
from whence.optimizer.delta_space import DeltaSpace
from whence.optimizer.exhaustive import cheapest
from whence.plan.steps import Join
from whence.prepared import prepare
from whence.reference import evaluate

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "40"))

CHAIN = """
.decl a(x:number, y:number)  .decl b(y:number, z:number)  .decl c(y:number, w:number)
.input a, b, c
.output found
.decl found(x:number, z:number, w:number)
found(x, z, w) :- a(x, y), b(y, z), c(y, w).
"""


def _joined(session: Session, relation: str) -> list[str]:
    """What is joined, in which order, when a relation changes."""
    (plan,) = (
        each
        for stratum in session.plan.strata
        for each in stratum.deltas
        if each.scan and each.scan.relation == relation
    )
    return [step.relation for step in plan.steps if isinstance(step, Join)]


class _Adaptive:
    """A session whose join orders follow its data."""

    def __init__(self, program: Program) -> None:
        self.session = Session(program)
        self.orders = AdaptiveOrders(self.session)

    def apply(self, updates: Sequence[Update]) -> Changes:
        changes = self.session.apply(updates)
        self.orders.after_epoch()
        return changes


def _grow(name: str, count: int, keys: int) -> list[Update]:
    return [Update("+", name, (at % keys, at)) for at in range(count)]


def test_the_order_follows_what_the_tables_hold() -> None:
    session = _Adaptive(load(CHAIN))
    session.apply([*_grow("b", 1000, 10), *_grow("c", 1000, 1000)])
    assert _joined(session.session, "a") == ["c", "b"]  # one match in c, a hundred in b
    session.apply([Update("-", "b", (at % 10, at)) for at in range(990)] + _grow("c", 3000, 3))
    session.apply([Update("+", "a", (1, 1))])
    assert _joined(session.session, "a") == ["b", "c"]
    (switch,) = (each for each in session.orders.switches if each.before == ("c", "b") and each.after == ("b", "c"))
    assert switch.cost_after * adaptive.WORTH <= switch.cost_before
    assert str(switch).startswith(f"epoch {switch.epoch}: ")
    assert len(session.session.relation("found")) == len(set(session.session.relation("found"))) > 0


def test_a_small_difference_is_not_worth_a_switch() -> None:
    session = _Adaptive(load(CHAIN))
    session.apply([*_grow("b", 1000, 100), *_grow("c", 1000, 200)])
    before, switches = _joined(session.session, "a"), len(session.orders.switches)
    for at in range(200):  # now b has the fewer matches, by little
        session.apply([Update("+", "c", (at % 200, 10_000 + at)), Update("-", "b", (at % 100, at))])
    assert _joined(session.session, "a") == before
    assert len(session.orders.switches) == switches


def test_the_cheapest_order_is_found_for_every_body() -> None:
    random = Random(3)
    program = load(CHAIN.replace("found(x, z, w) :-", "found(x, z, w) :- a(z, w), b(x, w), c(x, z),"))
    asked: list[DeltaSpace] = []

    class Watching(ObservedOrder):
        def __call__(self, candidates: Sequence[object], sizes: object) -> int:
            if len(candidates) > 1:
                space = DeltaSpace(candidates)  # type: ignore[arg-type]
                space.take_in(lambda _: random.randrange(1, 5000), lambda *_: random.randrange(1, 500))
                asked.append(space)
            return super().__call__(candidates, sizes)  # type: ignore[arg-type]

    prepare(program, join_order=Watching())
    assert len(asked) > 5
    for space in asked:
        assert cheapest(space).cost == min(space.cost_of(order) for order in permutations(range(len(space.candidates))))


@given(run=runs())
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_views_are_exact_and_changes_add_up_across_switches(run: Run) -> None:
    before = adaptive.WORTH, adaptive.SHARE
    adaptive.WORTH, adaptive.SHARE = 0.0, 1e9  # every epoch ends with a look, and every look is a switch
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _check(run)
    finally:
        adaptive.WORTH, adaptive.SHARE = before


def _check(run: Run) -> None:
    base: dict[str, set[Tuple]] = {}
    total: dict[str, set[Tuple]] = {}
    session: _Adaptive | None = None
    for epoch in ((), *run.epochs):
        follow(base, epoch)
        try:
            expected = evaluate(run.program, base, limits=LIMITS)
        except RunawayError:
            return
        if session is None:
            session = _Adaptive(run.program)
            changes = session.session.initial
        else:
            changes = session.apply(epoch)
        for op, relation, row, _ in changes:
            rows = total.setdefault(relation, set())
            assert (row in rows) == (op == "-")
            (rows.remove if op == "-" else rows.add)(row)
        assert session.session.views() == expected
        assert {name: total.get(name, set()) for name in expected} == expected


def test_a_run_tells_of_its_switches(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(CHAIN)
    grown = [*_grow("b", 1000, 10), *_grow("c", 1000, 1000)]
    epochs = [
        grown,
        [Update("-", "b", (at % 10, at)) for at in range(990)] + _grow("c", 3000, 3),
        [Update("+", "a", (1, 1))],
    ]
    lines = []
    for epoch in epochs:
        lines += [json.dumps({"op": op, "relation": name, "tuple": row}) for op, name, row, _ in epoch]
        lines.append(json.dumps({"commit": True}))
    (tmp_path / "u.jsonl").write_text("\n".join(lines) + "\n")
    options = ["run", str(tmp_path / "p.dl"), "--updates", str(tmp_path / "u.jsonl"), "--no-spark", "--json"]
    plain = CliRunner().invoke(app, options)
    followed = CliRunner().invoke(app, [*options, "--adaptive"])
    assert (plain.exit_code, followed.exit_code) == (0, 0)
    assert followed.stdout == plain.stdout
    assert any("c, b -> b, c" in each for each in json.loads(followed.stderr)["join_orders"])


def _grown(tmp_path: Path) -> Path:
    (tmp_path / "p.dl").write_text(CHAIN)
    epochs = [
        [*_grow("b", 1000, 10), *_grow("c", 1000, 1000), Update("+", "a", (1, 1))],
        [Update("-", "b", (at % 10, at)) for at in range(990)] + _grow("c", 3000, 3),
    ]
    lines = []
    for epoch in epochs:
        lines += [json.dumps({"op": op, "relation": name, "tuple": row}) for op, name, row, _ in epoch]
        lines.append(json.dumps({"commit": True}))
    (tmp_path / "u.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path / "p.dl"


def test_explain_plan_shows_what_a_run_follows(tmp_path: Path) -> None:
    program, state = _grown(tmp_path), tmp_path / "state"
    options = ["run", str(program), "--updates", str(tmp_path / "u.jsonl"), "--state", str(state), "--no-spark", "-q"]
    assert CliRunner().invoke(app, [*options, "--adaptive"]).exit_code == 0
    shown = CliRunner().invoke(app, ["explain-plan", str(state), "--live"])
    assert shown.exit_code == 0
    assert f"as process {os.getpid()} told" in shown.stdout
    assert "when a changes\n" in shown.stdout
    assert "switch at epoch 2: c, b -> b, c, " in shown.stdout
    found = json.loads(CliRunner().invoke(app, ["explain-plan", str(state), "--live", "--json"]).stdout)
    (plan,) = (each for each in found["plans"] if each["changes"] == "a")
    assert [(step["relation"], step["by"]) for step in plan["steps"]] == [("b", ["y"]), ("c", ["y"])]
    assert [round(step["seen"]) for step in plan["steps"]] == [1, 1000]
    assert all(each["why"] for each in found["switches"])


def test_explain_plan_looks_at_a_state_that_nobody_followed(tmp_path: Path) -> None:
    program, state = _grown(tmp_path), tmp_path / "state"
    options = ["run", str(program), "--updates", str(tmp_path / "u.jsonl"), "--state", str(state), "--no-spark", "-q"]
    assert CliRunner().invoke(app, options).exit_code == 0
    shown = CliRunner().invoke(app, ["explain-plan", str(state), "--live"])
    assert shown.exit_code == 0
    assert "c by y" in shown.stdout
    assert "no order was worth a switch" in shown.stdout
    assert "stratum 1" in CliRunner().invoke(app, ["explain-plan", str(state)]).stdout


def test_matches_that_are_too_many_are_not_counted_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    session = _Adaptive(load(CHAIN))
    session.apply([*_grow("b", 1000, 1), *_grow("c", 1000, 1), Update("+", "a", (1, 0))])
    monkeypatch.setattr(live, "MOST", 500)
    plans = live.live_report(session.orders)["plans"]
    seen = {plan["changes"]: [(step["seen"], step["counted"]) for step in plan["steps"]] for plan in plans}
    assert seen["a"] == [(500.0, False), (None, True)]
    assert any("> 500.00" in line for line in live.live_lines(live.live_report(session.orders)))
