"""Views are exact (I1) and changes add up (I2), after every epoch, for every strategy."""

from __future__ import annotations

import os
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from tests.properties.programs import Run, runs

from whence import Session
from whence.lang.types import Tuple
from whence.reference import Limits, RunawayError, evaluate
from whence.session import STRATEGIES

# `make test-long` asks for more.
EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "150"))
LIMITS = Limits(max_rounds=200, max_tuples=20_000)


def check_run(run: Run, strategy: str) -> None:
    base: dict[str, set[Tuple]] = {}
    total: dict[str, set[Tuple]] = {name: set() for name in run.program.relations}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            session = Session(run.program, strategy=strategy, limits=LIMITS)
            emitted = [session.initial]
            for epoch in run.epochs:
                for op, relation, row, _ in epoch:
                    rows = base.setdefault(relation, set())
                    (rows.add if op == "+" else rows.discard)(row)
                expected = evaluate(run.program, base, limits=LIMITS)
                emitted.append(session.apply(epoch))
                for changes in emitted:
                    for op, relation, row, _ in changes:
                        assert (row in total[relation]) == (op == "-"), "a change that changes nothing"
                        (total[relation].remove if op == "-" else total[relation].add)(row)
                emitted = []
                assert session.views() == expected
                assert total == expected
        except RunawayError:
            return


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(run=runs())
def test_views_and_changes_match_the_reference(strategy: str, run: Run) -> None:
    check_run(run, strategy)
