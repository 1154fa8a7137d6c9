"""Several relations in the rows of one DataFrame, so that one task can read them and one job write them.

A tag tells which relation a row is of; relations share the columns of a type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from whence.backends.spark.arrow import arrow_type
from whence.backends.spark.boundary import columns
from whence.backends.spark.shapes import UNIT, Shapes
from whence.lang.program import Relation

TAG = "tag"


class Packing:
    """`places` tells for each relation which of the shared columns hold its own."""

    def __init__(self, relations: Sequence[Relation], shapes: Shapes) -> None:
        self.relations = {each.name: each for each in relations}
        self.tags = {each.name: tag for tag, each in enumerate(relations)}
        self.sql_types: list[str] = []
        self.arrow_types: list[pa.DataType] = []
        self.places: dict[str, list[int]] = {}
        for relation in relations:
            used: Counter[str] = Counter()
            self.places[relation.name] = []
            for part in relation.fields:
                sql_type = shapes.sql_type(part.kind)
                of_type = [at for at, each in enumerate(self.sql_types) if each == sql_type]
                if used[sql_type] == len(of_type):
                    of_type.append(len(self.sql_types))
                    self.sql_types.append(sql_type)
                    self.arrow_types.append(arrow_type(part.kind, shapes))
                self.places[relation.name].append(of_type[used[sql_type]])
                used[sql_type] += 1

    @property
    def ddl(self) -> str:
        return ", ".join([f"{TAG} int", *(f"p{at} {each}" for at, each in enumerate(self.sql_types))])

    @property
    def arrow_schema(self) -> pa.Schema:
        return pa.schema([(TAG, pa.int32()), *((f"p{at}", each) for at, each in enumerate(self.arrow_types))])

    def pack(self, name: str, frame: DataFrame, extra: Sequence[str] = ()) -> DataFrame:
        """A relation's rows in the shared form, before some more columns."""
        held = {place: f"c{at}" for at, place in enumerate(self.places[name])}
        shared = [
            f"{held.get(place, f'cast(null as {each})')} as p{place}" for place, each in enumerate(self.sql_types)
        ]
        return frame.selectExpr(f"{self.tags[name]} as {TAG}", *shared, *extra)

    def unpack(self, packed: DataFrame) -> Mapping[str, DataFrame]:
        frames = {}
        for name, relation in self.relations.items():
            own = packed if len(self.relations) == 1 else packed.filter(f"{TAG} = {self.tags[name]}")
            taken = [f"p{place} as c{at}" for at, place in enumerate(self.places[name])] or [f"true as {UNIT}"]
            frames[name] = own.selectExpr(*taken)
            assert frames[name].columns == columns(relation)
        return frames

    def split(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows of a batch by relation: each with the columns it has."""
        for name, tag in self.tags.items():
            own = batch.filter(pc.equal(batch.column(0), tag))
            if own.num_rows:
                yield name, own.select([1 + place for place in self.places[name]])

    def batch(self, name: str, arrays: Sequence[pa.Array], rows: int) -> pa.RecordBatch:
        """Rows of a relation in the shared form."""
        shared = [pa.nulls(rows, each) for each in self.arrow_types]
        for place, array in zip(self.places[name], arrays, strict=True):
            shared[place] = array
        tags = pa.repeat(pa.scalar(self.tags[name], pa.int32()), rows)
        return pa.RecordBatch.from_arrays([tags, *shared], schema=self.arrow_schema)
