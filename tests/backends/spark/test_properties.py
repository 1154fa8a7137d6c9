"""Random programs give the reference's answers in every mode that they allow."""

from __future__ import annotations

import os
import warnings

from hypothesis import HealthCheck, assume, given, settings
from pyspark.sql import SparkSession
from tests.backends.spark.compare import assert_same, broadcasting
from tests.properties.excuses import ends
from tests.properties.programs import DERIVED, Run, runs

from whence.lang.types import Tuple
from whence.spark import Mode, ModeError

# `make test-long` asks for more; an example here takes some jobs in each mode.
EXAMPLES = max(3, int(os.environ.get("WHENCE_EXAMPLES", "0")) // 200)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture],
)
@given(run=runs())
def test_every_mode_agrees_with_the_reference(spark: SparkSession, run: Run) -> None:
    facts: dict[str, set[Tuple]] = {}
    for op, relation, row, _ in (update for epoch in run.epochs for update in epoch):
        rows = facts.setdefault(relation, set())
        (rows.add if op == "+" else rows.discard)(row)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assume(ends(run.program, facts))
    for mode in Mode:
        try:
            assert_same(spark, run.program, facts, wanted=DERIVED, mode=mode)
            if mode == Mode.DECOMPOSED:
                with broadcasting(spark, "-1"):
                    assert_same(spark, run.program, facts, wanted=DERIVED, mode=mode)
        except ModeError:
            continue
