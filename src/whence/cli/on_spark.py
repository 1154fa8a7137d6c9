"""`whence eval --backend spark`."""

from __future__ import annotations

from itertools import repeat
from pathlib import Path

import typer

from whence.backends.spark.boundary import SchemaError, frame_to_rows
from whence.backends.spark.choose import ModeError
from whence.backends.spark.errors import translated_errors
from whence.backends.spark.evaluate import Views, evaluate
from whence.backends.spark.files import read_frames, write_frame
from whence.backends.spark.options import Form, Mode
from whence.backends.spark.session import spark_session
from whence.backends.spark.shapes import Shapes
from whence.cli.progress import Progress
from whence.cli.terminal import err, show
from whence.io import print_size, write_relation
from whence.lang.program import Program
from whence.reference import Limits


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
) -> None:
    """Reads the inputs, evaluates, writes the outputs; says how each stratum runs."""
    if folder is None and form != Form.TEXT:
        raise typer.BadParameter(f"{form} is written to a folder; -D - prints text", param_hint="--format")
    with translated_errors(), Progress(err, "starting Spark", quiet=quiet) as progress:
        spark = spark_session(master)
        progress.text = "reading"
        inputs = read_frames(spark, program, facts)
        progress.text = "evaluating on Spark"
        try:
            views = evaluate(program, inputs, spark=spark, mode=mode, limits=limits)
        except ModeError as error:
            raise typer.BadParameter(str(error), param_hint="--mode") from None
        except SchemaError as error:
            show(err, f"error: {error}")
            raise typer.Exit(1) from None
        if not quiet:
            show(err, views.explain())
        _write(program, views, folder, form, progress)


def _write(program: Program, views: Views, folder: Path | None, form: Form, progress: Progress) -> None:
    shapes = Shapes(program.types)
    for transfer in program.transfers:
        relation = program.relations[transfer.relation]
        if transfer.kind == "printsize":
            print_size(transfer, relation, repeat((), views[relation.name].count()))
        elif transfer.kind == "output" and (form == Form.TEXT or folder is None):
            progress.text = f"evaluating {relation.name} on Spark"
            rows = frame_to_rows(views[relation.name], relation, shapes)
            write_relation(transfer, relation, program.types, rows, folder)
        elif transfer.kind == "output":
            assert folder is not None
            path = folder / f"{transfer.params.get('name', relation.name)}.{form}"
            progress.text = f"writing {path}"
            write_frame(views[relation.name], form, relation, path)
