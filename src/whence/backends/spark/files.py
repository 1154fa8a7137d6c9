"""Relations in files: fact files as everywhere, and folders of Parquet, JSON or CSV that Spark reads and writes in parallel."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from whence.backends.spark.boundary import rows_to_frame
from whence.backends.spark.options import Form
from whence.backends.spark.shapes import Shapes, name
from whence.io import FactError, read_rows
from whence.lang.program import Program, Relation, Transfer
from whence.lang.types import PRIMITIVES


def read_frames(spark: SparkSession, program: Program, folder: Path) -> dict[str, DataFrame]:
    """What the program's `.input` directives name.

    R.parquet, or a folder R.json or R.csv (with a header), is read by Spark; otherwise there is a fact file, which is read
    here. Raises `FactError` with everything that is wrong.
    """
    frames: dict[str, list[DataFrame]] = {}
    failed: list[FactError] = []
    for transfer in program.transfers_of("input"):
        try:
            frames.setdefault(transfer.relation, []).append(_read(spark, program, transfer, folder))
        except FactError as error:
            failed.append(error)
    if failed:
        problems = [each for error in failed for each in error.problems]
        raise FactError(problems, hints=[each for error in failed for each in error.hints])
    return {relation: reduce(DataFrame.union, found) for relation, found in frames.items()}


def _read(spark: SparkSession, program: Program, transfer: Transfer, folder: Path) -> DataFrame:
    relation = program.relations[transfer.relation]
    shapes = Shapes(program.types)
    stem = transfer.params.get("name", relation.name)
    for form, path in _candidates(folder.resolve(), stem):  # Java's current folder may be another
        reader = spark.read.schema(_schema(relation, shapes)).option("mode", "FAILFAST")
        if form == Form.PARQUET:
            return spark.read.parquet(str(path))
        if form == Form.JSON:
            return reader.json(str(path))
        _refuse_nested(relation, f"cannot read {path}")
        return reader.option("header", True).option("escape", '"').csv(str(path))
    return rows_to_frame(spark, read_rows(transfer, relation, program.types, folder), relation, shapes)


def _candidates(folder: Path, stem: str) -> Iterator[tuple[Form, Path]]:
    if (path := folder / f"{stem}.parquet").exists():
        yield Form.PARQUET, path
    for form in (Form.JSON, Form.CSV):
        if (path := folder / f"{stem}.{form}").is_dir():
            yield form, path


def write_frame(frame: DataFrame, form: Form, relation: Relation, path: Path) -> None:
    """Writes a folder of parts, in place of what was there."""
    path = path.resolve()  # Java's current folder may be another
    writer = frame.write.mode("overwrite")
    if form == Form.PARQUET:
        writer.parquet(str(path))
    elif form == Form.JSON:
        writer.json(str(path))
    else:
        _refuse_nested(relation, f"cannot write {path}")
        writer.option("header", True).option("escape", '"').csv(str(path))


def _schema(relation: Relation, shapes: Shapes) -> str:
    return ", ".join(f"{name(each.name)} {shapes.sql_type(each.kind, outside=True)}" for each in relation.fields)


def _refuse_nested(relation: Relation, problem: str) -> None:
    for each in relation.fields:
        if each.kind not in PRIMITIVES.values():
            reason = f"the column {each.name} holds values of {each.kind}, for which CSV has no form"
            raise FactError([f"{problem}: {reason}"], hints=["use Parquet or JSON"])
