"""`whence optimize`: the cheapest plan of a query, and what becomes of it when statistics change."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from whence.cli.mistakes import unknown
from whence.cli.programs import existing_file
from whence.cli.splits import FieldOption, MetricOption, print_splits
from whence.cli.terminal import err, out, show
from whence.optimizer import Optimizer, Prunings, QueryError, QuerySpace, Statistics, parse_query, read_statistics
from whence.optimizer.changes import Change, ChangeError, parse_changes
from whence.optimizer.cost import ROW
from whence.optimizer.picture import draw_plan, plan_page
from whence.optimizer.show import cost_text, plan_lines, plan_to_json, pruned
from whence.optimizer.statistics import StatisticsError

PRUNINGS = ("suppression", "references", "bounding")


def optimize(
    query: Annotated[Path, typer.Argument(metavar="QUERY.sql", help="One SELECT over tables.", callback=existing_file)],
    *,
    stats: Annotated[
        Path | None,
        typer.Option("--stats", metavar="FILE.json", help="Statistics of the tables.", exists=True, dir_okay=False),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--change",
            metavar="TEXT",
            help="What turns out otherwise, as in 'scan(orders) x 4': the plan is found again. Can be repeated.",
        ),
    ] = None,
    left_linear: Annotated[bool, typer.Option("--left-linear", help="Only joins that read a table.")] = False,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="PRUNING", help=f"Do without a pruning: {', '.join(PRUNINGS)}."),
    ] = None,
    field: FieldOption = None,
    metric: MetricOption = "latency",
    svg: Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Draw the last plan.")] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page about the last plan.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Find the cheapest plan of a query, and find it again when statistics change.

    Costs are in units of looking at one row. The plan is the cheapest by the model, at first and after each change. Changes are
    scan(T) x F, rows(T, …) x F, selectivity(T, …) x F, cost(T, …) x F and rows(T, …) = N; semicolons join several into one.

    The exit code is 2 if the query, the statistics or a change cannot be used.
    """
    text = _read(query)
    try:
        known = Statistics() if stats is None else read_statistics(stats)
        parsed = parse_query(text, known)
        changes = [parse_changes(each, parsed) for each in change or ()]
    except (QueryError, StatisticsError, ChangeError) as error:
        show(err, f"error: {error}")
        raise typer.Exit(2) from None
    if field is not None:
        print_splits(parsed, known, field, metric, as_json=as_json)
        return
    space = QuerySpace(parsed, known, left_linear=left_linear)
    optimizer = Optimizer(space, _prunings(without or []))
    if as_json:
        found: dict[str, Any] = {
            "plan": plan_to_json(space, optimizer.plan(), optimizer),
            "pruned": _pruned_to_json(optimizer, space),
        }
        found["changes"] = [_changed_to_json(space, optimizer, each) for each in changes]
        typer.echo(json.dumps(found, ensure_ascii=False, indent=2))
    else:
        _print_plan(space, optimizer)
        counted = pruned(optimizer, space)
        for line in counted.lines() if counted is not None else ():
            show(out, line)
        for each in changes:
            _print_changed(space, optimizer, each)
    if svg is not None:
        _write(svg, draw_plan(space, optimizer.plan()) + "\n")
    if html is not None:
        _write(html, plan_page(space, optimizer, text))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{path} is not UTF-8", param_hint="QUERY.sql") from None
    except OSError as error:
        raise typer.BadParameter(f"cannot read {path}: {error.strerror}", param_hint="QUERY.sql") from None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"cannot write {path}: {error.strerror}") from None


def _prunings(without: list[str]) -> Prunings:
    for each in without:
        if each not in PRUNINGS:
            raise unknown("pruning", each, PRUNINGS, "--without")
    return Prunings(**{each: each not in without for each in PRUNINGS})


def _print_plan(space: QuerySpace, optimizer: Optimizer) -> None:
    for line in plan_lines(space, optimizer.plan()):
        show(out, line.rstrip())


def _print_changed(space: QuerySpace, optimizer: Optimizer, changes: list[Change]) -> None:
    before = optimizer.cost
    moved = optimizer.update([each.apply(space) for each in changes])
    effort = optimizer.effort
    show(out, "")
    show(
        out,
        f"{'; '.join(each.text for each in changes)}: {'another plan' if moved else 'the same plan'}, "
        f"cost {cost_text(before)} -> {cost_text(optimizer.cost)}; "
        f"{effort.nodes:,} nodes and {effort.alternatives:,} alternatives looked at",
    )
    if moved:
        _print_plan(space, optimizer)


def _changed_to_json(space: QuerySpace, optimizer: Optimizer, changes: list[Change]) -> dict[str, Any]:
    before = optimizer.cost
    start = time.perf_counter()
    moved = optimizer.update([each.apply(space) for each in changes])
    seconds = time.perf_counter() - start
    return {
        "change": [each.text for each in changes],
        "another_plan": moved,
        "cost_before": before / ROW,
        "nodes": optimizer.effort.nodes,
        "alternatives": optimizer.effort.alternatives,
        "seconds": seconds,
        "plan": plan_to_json(space, optimizer.plan(), optimizer),
    }


def _pruned_to_json(optimizer: Optimizer, space: QuerySpace) -> dict[str, int] | None:
    counted = pruned(optimizer, space)
    return None if counted is None else vars(counted)
