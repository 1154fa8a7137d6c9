"""Views are exact and changes add up while rules come and go between epochs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.properties.counting import count_sequence
from tests.properties.excuses import LIMITS, LOOSE, excused, follow
from tests.properties.programs import DERIVED, Run, rules, runs, shapes, updates
from tests.properties.test_maintenance import EXAMPLES

from whence import Program, ProgramError, Session, Update
from whence.lang.differences import why_rows_would_differ
from whence.lang.revise import add_rules, drop_rule
from whence.lang.types import Tuple
from whence.limits import RunawayError
from whence.plan import UnsuitableStrategy
from whence.reference import evaluate
from whence.session import STRATEGIES

# A rule to add, the number of a rule to drop, or an epoch.
Action = str | int | list[Update]
epoch = st.lists(updates().map(lambda drawn: Update(*drawn)), min_size=1, max_size=6)
changes_of_rules = st.one_of(rules(), rules(), shapes(dict.fromkeys(DERIVED, 0)), st.integers(0, 9))
actions = st.lists(st.one_of(changes_of_rules, epoch), min_size=1, max_size=8)


def take(session: Session, action: Action) -> Iterable[Update]:
    if isinstance(action, str):
        return session.add_rule(action)
    if isinstance(action, int):
        names = [rule.name for rule in session.program.rules]
        return session.drop_rule(names[action % len(names)]) if names else []
    return session.apply(action)


def intended(program: Program, action: Action) -> Program:
    """The program after an action. Raises ProgramError."""
    if isinstance(action, str):
        return add_rules(program, action)
    if isinstance(action, int) and program.rules:
        return drop_rule(program, program.rules[action % len(program.rules)].name)
    return program


def check_revisions(run: Run, steps: list[Action], strategy: str, wanted: frozenset[str] | None) -> None:
    base: dict[str, set[Tuple]] = {}
    with excused(run.program, base):
        session = Session(run.program, wanted=wanted, strategy=strategy, limits=LOOSE)
    total = session.views()
    for action in [*map(list, run.epochs[:2]), *steps]:
        changes: Iterable[Update] = []
        if isinstance(action, list):
            follow(base, action)
        # A rule that does not fit is refused, and nothing has changed then.
        with suppress(ProgramError, UnsuitableStrategy), excused(intended(session.program, action), base):
            # What terms hold that nobody has declared may depend on the rule.
            if any(why_rows_would_differ(session.program, intended(session.program, action))):
                with pytest.raises(ValueError, match=r"would (have|hold)"):
                    take(session, action)
            else:
                changes = take(session, action)
        for op, relation, row, _ in changes:
            assert (row in total.setdefault(relation, set())) == (op == "-"), "a change that changes nothing"
            (total[relation].remove if op == "-" else total[relation].add)(row)
        try:
            expected = evaluate(session.program, base, limits=LIMITS)
        except RunawayError:
            return
        expected = {name: rows for name, rows in expected.items() if wanted is None or name in wanted}
        assert session.views() == expected
        assert {name: rows for name, rows in total.items() if rows} == {
            name: rows for name, rows in expected.items() if rows
        }
    count_sequence()


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(
    max_examples=max(40, EXAMPLES // 20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(run=runs(), steps=actions, wanted=st.sampled_from((None, frozenset("p"), frozenset("qs"))))
def test_views_follow_rules_that_come_and_go(
    strategy: str, run: Run, steps: list[Action], wanted: frozenset[str] | None
) -> None:
    if strategy == "counting" and any(stratum.recursive for stratum in run.program.strata):
        return  # it is for programs without recursion
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_revisions(run, steps, strategy, wanted)
