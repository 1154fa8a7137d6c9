"""Conformance programs on Spark: the reference's answers, in one task and stratum by stratum.

`make test` takes one program of each folder, `make test-long` all of them.
"""

from __future__ import annotations

import os
from itertools import groupby
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.backends.spark.compare import assert_same
from tests.conformance.test_conformance import CASES

from whence import Program, load_file
from whence.backends.spark.choose import SMALL
from whence.cli.functions import load_functions
from whence.io import read_relation
from whence.lang.types import Tuple
from whence.spark import ModeError

LONG = bool(os.environ.get("WHENCE_LONG"))
FIRST = [next(group) for _, group in groupby(CASES, lambda case: case.parent)]


def load_case(case: Path) -> tuple[Program, dict[str, set[Tuple]]]:
    (path,) = case.glob("program.*")
    functions = case / "functions.py"
    program = load_file(path, functions=load_functions(functions if functions.exists() else None))
    facts: dict[str, set[Tuple]] = {}
    for transfer in program.transfers_of("input"):
        relation = program.relations[transfer.relation]
        facts.setdefault(relation.name, set()).update(read_relation(transfer, relation, program.types, case / "facts"))
    return program, facts


@pytest.mark.parametrize("case", CASES if LONG else FIRST[::2], ids=lambda case: f"{case.parent.name}/{case.name}")
def test_one_task_agrees_with_the_reference(spark: SparkSession, case: Path) -> None:
    assert_same(spark, *load_case(case), mode="in-task")


@pytest.mark.parametrize("case", CASES if LONG else FIRST, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_strata_agree_with_the_reference(spark: SparkSession, case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, facts = load_case(case)
    # So that inputs of a few rows, too, are worth more than one task.
    monkeypatch.setattr("whence.backends.spark.evaluate.SMALL", -1)
    monkeypatch.setattr("whence.backends.spark.choose.SMALL", -1)
    assert SMALL > 0
    try:
        assert_same(spark, program, facts, mode="shuffled")
    except ModeError:
        assert_same(spark, program, facts, mode="auto")
