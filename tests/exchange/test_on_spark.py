"""The exchange on Spark gives what it gives in one process: joining, updates, another confederation."""

from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession
from tests.exchange.vectors import MAPPINGS, NUMBERS, SCHEMAS, confederation, put, reject, take

from whence.exchange.instance import Edit, Instance
from whence.exchange.on_spark import OnSpark
from whence.pipeline.keeper import ResidentKeeper
from whence.pipeline.parts.keeper import PartedKeeper

# Rows are joined by their key only: so its state can be split.
SPLIT = """
peer A { R(k: number, a: symbol). S(k: number, b: symbol) key (k). }
peer B { T(k: number, b: symbol, a: symbol) key (k). }
peer C { V(k: number, a: symbol). }
m1: R(k, a), S(k, b) -> T(k, b, a).
m2: T(k, b, a) -> V(k, a).
"""
SPLIT_EDITS = [edit for k in range(20) for edit in put("A.R", (k, f"a{k % 3}")) + put("A.S", (k, f"b{k % 5}"))]


@pytest.mark.parametrize(
    ("text", "edits", "epochs", "keeper"),
    [
        pytest.param(
            SCHEMAS + MAPPINGS + "BioSQL distrusts B(b, n) from GUS if n = 3.",
            NUMBERS,
            [reject("uBio.U", (5, 6)) + put("uBio.U", (8, 2)), take("GUS.G", (1, 2, 3))],
            ResidentKeeper,
            marks=pytest.mark.skipif("WHENCE_LONG" not in os.environ, reason="many batches: make test-long"),
            id="in the driver",
        ),
        pytest.param(
            SPLIT,
            SPLIT_EDITS,
            [take("A.R", (3, "a0"), (4, "a1")) + put("A.R", (4, "new")), reject("B.T", (5, "b0", "a2"))],
            PartedKeeper,
            id="in parts",
        ),
    ],
)
def test_same_as_in_one_process(
    spark: SparkSession, text: str, edits: list[Edit], epochs: list[list[Edit]], keeper: type
) -> None:
    assert spark is not None
    here, there = Instance(confederation(text), edits), Instance(confederation(text), edits, strategy="spark")
    try:
        names = here.confederation.relations
        assert {name: there.relation(name) for name in names} == {name: here.relation(name) for name in names}
        for epoch in epochs:
            assert there.apply(epoch) == here.apply(epoch)
            assert {name: there.relation(name) for name in names} == {name: here.relation(name) for name in names}
        assert isinstance(there._maintained, OnSpark)
        assert isinstance(there._maintained._keeper, keeper)
        mapping = next(iter(here.confederation.mappings))
        assert there.derivations(mapping) == here.derivations(mapping)
    finally:
        there.close()
