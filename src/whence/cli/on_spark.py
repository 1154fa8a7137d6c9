"""`whence eval --backend spark`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path

import typer
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from whence.backends.spark.annotated import ANNOTATION, evaluate_annotated
from whence.backends.spark.boundary import SchemaError, frame_to_rows
from whence.backends.spark.choose import ModeError
from whence.backends.spark.errors import translated_errors
from whence.backends.spark.evaluate import evaluate
from whence.backends.spark.files import read_frames, write_frame
from whence.backends.spark.options import Form, Mode
from whence.backends.spark.session import spark_session
from whence.backends.spark.shapes import Shapes
from whence.cli.annotate import annotated_column, with_annotation
from whence.cli.progress import Progress
from whence.cli.terminal import err, show
from whence.io import print_size, write_relation
from whence.lang.bags import copies_of, repeated, with_copies
from whence.lang.program import Program, Relation
from whence.lang.types import NUMBER, UNSIGNED, Tuple
from whence.limits import Limits
from whence.semiring import SEMIRINGS

Rows = Callable[[DataFrame, Relation], Iterable[Tuple]]


def evaluate_on_spark(
    program: Program,
    facts: Path,
    folder: Path | None,
    *,
    master: str | None,
    mode: Mode,
    form: Form,
    limits: Limits,
    quiet: bool,
    semiring: str | None = None,
    annotate: Sequence[str] = (),
) -> None:
    """Reads the inputs, evaluates, writes the outputs; says how each stratum runs."""
    if folder is None and form != Form.TEXT:
        raise typer.BadParameter(f"{form} is written to a folder; -D - prints text", param_hint="--format")
    if semiring is not None and mode != Mode.AUTO:
        raise typer.BadParameter("with --semiring recursion always runs in rounds of joins", param_hint="--mode")
    with translated_errors(), Progress(err, "starting Spark", quiet=quiet) as progress:
        spark = spark_session(master)
        progress.text = "reading"
        inputs = read_frames(spark, program, facts)
        progress.text = "evaluating on Spark"
        shapes = Shapes(program.types)
        views: Mapping[str, DataFrame]
        rows: Rows
        try:
            if semiring is None:
                wanted = with_copies(program, program.outputs) or None
                views = found = evaluate(program, inputs, wanted=wanted, spark=spark, mode=mode, limits=limits)
                rows = lambda frame, relation: frame_to_rows(frame, relation, shapes)  # noqa: E731
                if not quiet:
                    show(err, found.explain())
            else:
                columns = dict(annotated_column(program, text) for text in annotate)
                rows = _annotated_rows(program, semiring, columns, shapes)
                named = {name: program.relations[name].fields[at].name for name, at in columns.items()}
                views = evaluate_annotated(program, inputs, SEMIRINGS[semiring], named, spark=spark, limits=limits)
                relations = {each.name: with_annotation(each) for each in program.relations.values()}
                program = replace(program, relations=relations)
        except ModeError as error:
            raise typer.BadParameter(str(error), param_hint="--mode") from None
        except SchemaError as error:
            show(err, f"error: {error}")
            raise typer.Exit(1) from None
        _write(program, views, rows, folder, form=form, progress=progress)


def _annotated_rows(program: Program, name: str, columns: Mapping[str, int], shapes: Shapes) -> Rows:
    """Rows whose last column is their annotation as text, as the local engine writes it."""
    semiring = SEMIRINGS[name]
    # Spark computes with floating point numbers; sums of whole numbers are shown as such.
    whole = all(program.relations[each].fields[at].kind in (NUMBER, UNSIGNED) for each, at in columns.items())

    def shown(text: str) -> str:
        value = semiring.parse(text)
        return semiring.format(int(value) if whole and isinstance(value, float) and value.is_integer() else value)

    def rows(frame: DataFrame, relation: Relation) -> Iterable[Tuple]:
        as_text = frame.withColumn(ANNOTATION, F.col(ANNOTATION).cast("string"))
        return [(*row, shown(str(last))) for *row, last in frame_to_rows(as_text, relation, shapes)]

    return rows


def _write(
    program: Program,
    views: Mapping[str, DataFrame],
    rows: Rows,
    folder: Path | None,
    *,
    form: Form,
    progress: Progress,
) -> None:
    for transfer in program.transfers:
        relation = program.relations[transfer.relation]
        if transfer.kind == "printsize":
            print_size(transfer, relation, repeat((), views[relation.name].count()))
        elif transfer.kind == "output" and (form == Form.TEXT or folder is None):
            progress.text = f"evaluating {relation.name} on Spark"
            write_relation(transfer, relation, program.types, _repeated(program, relation, views, rows), folder)
        elif transfer.kind == "output":
            assert folder is not None
            path = folder / f"{transfer.params.get('name', relation.name)}.{form}"
            progress.text = f"writing {path}"
            write_frame(views[relation.name], form, relation, path)


def _repeated(program: Program, relation: Relation, views: Mapping[str, DataFrame], rows: Rows) -> Iterable[Tuple]:
    """The rows of a relation, those of a bag as often as they are there. Annotations say themselves how often."""
    companion = copies_of(program, relation.name)
    if companion is None or companion not in views:
        return rows(views[relation.name], relation)
    found = {name: rows(views[name], program.relations[name]) for name in (relation.name, companion)}
    return repeated(program, relation.name, found)
