"""Derivations recorded on Spark are those that a session records."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.backends.spark.compare import frames

from whence import Session, load
from whence.backends.spark.boundary import frame_to_rows
from whence.backends.spark.shapes import Shapes
from whence.lang.types import Tuple
from whence.spark import evaluate

PROGRAM = load("""
.type Hop = [node: number, via: symbol]
.decl link(x: number, hop: Hop) .input link
.decl broken(x: number) .input broken
one: reach(x, y) :- link(x, [y, _]), !broken(y).
more: reach(x, z) :- reach(x, y), link(y, [z, _]), !broken(z).
far(x, n), counted(x) :- reach(x, _), n = count : { reach(x, _) }.
.output far
""")
LINKS: list[Tuple] = [(0, (1, "a")), (1, (2, "b")), (2, (0, "a")), (1, (3, "it's")), (0, (1, "b")), (3, (4, "c"))]
FACTS: dict[str, list[Tuple]] = {"link": LINKS, "broken": [(4,)]}


@pytest.mark.parametrize("mode", ["auto", "shuffled"])
def test_tables_are_those_of_a_session(spark: SparkSession, mode: str) -> None:
    session = Session(PROGRAM, facts=FACTS, record=["reach", "far"])
    views = evaluate(PROGRAM, frames(spark, PROGRAM, FACTS), spark=spark, record=["reach", "far"], mode=mode)
    assert list(views) == ["far", "one.derivations", "more.derivations", "far.1.derivations"]
    shapes = Shapes(PROGRAM.types)
    assert views.recordings.keys() == session.recordings.keys() == {"one", "more", "far#1"}
    for rule, recording in views.recordings.items():
        table = session.tables[recording.relation]
        rows = frame_to_rows(views[recording.relation], table, shapes)
        expected = set(session.relation(session.recordings[rule].relation))
        assert expected
        assert len(rows) == len(set(rows))
        assert set(rows) == expected
    assert views["one.derivations"].columns == ["x", "y", "any0"]
    views.unpersist()


def test_what_has_no_derivations_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="no rule derives link: there is nothing to record"):
        evaluate(PROGRAM, {}, spark=spark, record=["link"])
    equal = load(".decl e(x: number, y: number) eqrel .decl f(x: number, y: number) .input f e(x, y) :- f(x, y).")
    with pytest.raises(ValueError, match="derivations of e cannot be recorded: e is an eqrel"):
        evaluate(equal, {}, spark=spark, record=["e"])
