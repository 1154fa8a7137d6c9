import os
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from whence.backends.spark.session import _is_here


def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    has_engine = "whence.backends.local.machine" in sys.modules
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"pid": [os.getpid()], "has_engine": [has_engine]})


def test_workers_begin_with_the_engine_loaded(spark: SparkSession) -> None:
    rows = spark.range(0, 2, 1, 2).mapInArrow(told, "pid long, has_engine boolean").collect()
    assert [row.has_engine for row in rows] == [True, True]
    assert os.getpid() not in {row.pid for row in rows}


@pytest.mark.parametrize(
    ("master", "here"),
    [
        ("local[2]", True),
        ("local", True),
        ("local-cluster[2,1,1024]", False),
        ("spark://host:7077", False),
        ("yarn", False),
    ],
)
def test_only_tasks_of_this_machine_are_sure_to_find_it(master: str, here: bool) -> None:
    assert _is_here(master) == here
