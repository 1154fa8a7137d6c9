"""`whence optimize --field`: what of a query the sensors answer, and what is left to the engine."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from whence.cli.mistakes import unknown
from whence.cli.terminal import err, out, show
from whence.optimizer import Query, Statistics, StatisticsError
from whence.optimizer.federated import METRICS, best_split, read_field, splits

FieldOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.json",
        help="Where sensors are: say what of the query they answer, and what the engine does.",
        exists=True,
        dir_okay=False,
    ),
]
MetricOption = Annotated[str, typer.Option(help=f"With --field: what is to be least: {', '.join(METRICS)}.")]


def print_splits(query: Query, statistics: Statistics, field: Path, metric: str, *, as_json: bool) -> None:
    """All of them, the best by the metric first."""
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS, "--metric")
    try:
        where = read_field(field)
    except StatisticsError as error:
        show(err, f"error: {error}")
        raise typer.Exit(2) from None
    found = splits(query, statistics, where)
    best = best_split(found, metric)
    ordered = sorted(found, key=lambda each: (each is not best, getattr(each.cost, metric), str(each)))
    if as_json:
        typer.echo(json.dumps([asdict(each) for each in ordered], indent=2))
        return
    for number, each in enumerate(ordered):
        cost = each.cost
        show(
            out, f"{'best' if not number else '    '}  {cost.messages:8,.1f} messages  {cost.latency:8,.1f} ms  {each}"
        )
