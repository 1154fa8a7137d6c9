"""Evaluation in a semiring: which one, where the annotations of base tuples come from, and the views with theirs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer

from whence.annotated import evaluate_annotated
from whence.io import FactError
from whence.lang.program import Program, Relation
from whence.lang.types import SYMBOL, Field, Tuple
from whence.reference import Limits
from whence.reference.annotated import evaluate_annotated as evaluate_naively
from whence.reference.limits import OnRound
from whence.semiring import SEMIRINGS, Semiring
from whence.semiring.tokens import show_token

_PANEL = "Annotations"


def _known(name: str | None) -> str | None:
    if name is not None and name not in SEMIRINGS:
        raise typer.BadParameter(f"there is no semiring {name}; there are {', '.join(SEMIRINGS)}")
    return name


SemiringOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"Annotate every tuple in a semiring: {', '.join(SEMIRINGS)}.",
        callback=_known,
        rich_help_panel=_PANEL,
    ),
]
AnnotateOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RELATION=COLUMN",
        help="Take the annotations of a base relation from one of its columns. Without, a tuple counts as one, or stands "
        "for itself in semirings that tell tuples apart.",
        rich_help_panel=_PANEL,
    ),
]


def evaluate_in(
    name: str,
    program: Program,
    facts: Mapping[str, Iterable[Tuple]],
    annotate: list[str] | None,
    *,
    naive: bool,
    limits: Limits,
    on_round: OnRound,
) -> tuple[Program, dict[str, set[Tuple]]]:
    """The program with a column for annotations in each relation, and its views with what is in there."""
    semiring = SEMIRINGS[name]
    columns = dict(_column(program, text) for text in annotate or ())

    def annotation(relation: str, row: Tuple) -> Any:
        column = columns.get(relation)
        return None if column is None else _read(semiring, program.relations[relation], column, row)

    if naive:
        views = evaluate_naively(program, facts, semiring, annotation)
    else:
        views = evaluate_annotated(program, facts, semiring, annotation, limits=limits, on_round=on_round)
    relations = {each.name: _with_annotation(each) for each in program.relations.values()}
    shown = {each: {(*row, semiring.format(value)) for row, value in rows.items()} for each, rows in views.items()}
    return replace(program, relations=relations), shown


def _column(program: Program, text: str) -> tuple[str, int]:
    name, _, column = text.partition("=")
    if name not in program.base_relations:
        known = ", ".join(program.base_relations)
        raise typer.BadParameter(f"{name} is no base relation; there are {known}", param_hint="--annotate")
    fields = [each.name for each in program.relations[name].fields]
    if column not in fields:
        problem = f"{name} has no column {column or 'given'}; it has {', '.join(fields)}"
        raise typer.BadParameter(problem, param_hint="--annotate")
    return name, fields.index(column)


def _read(semiring: Semiring[Any], relation: Relation, column: int, row: Tuple) -> Any:
    try:
        return semiring.parse(str(row[column]))
    except ValueError as error:
        place = f"{show_token((relation.name, row))}, column {relation.fields[column].name}"
        raise FactError([f"{place}: {error}"], hints=["--annotate names the column that holds annotations"]) from None


def _with_annotation(relation: Relation) -> Relation:
    return replace(relation, fields=(*relation.fields, Field("annotation", "symbol", SYMBOL)))
