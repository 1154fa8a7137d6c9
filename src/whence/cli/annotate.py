"""Evaluation in a semiring: which one, where the annotations of base tuples come from, and the views with theirs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer

from whence.cli.mistakes import instead_of, unknown
from whence.io import FactError
from whence.lang.program import Program, Relation
from whence.lang.types import SYMBOL, Field, Tuple
from whence.limits import Limits, OnRound
from whence.reference.annotated import base_facts
from whence.reference.annotated import evaluate_annotated as evaluate_naively
from whence.semiring import SEMIRINGS, Semiring
from whence.semiring.tokens import show_token

_PANEL = "Annotations"
_MOST_PROBLEMS = 10


def _known(name: str | None) -> str | None:
    if name is not None and name not in SEMIRINGS:
        raise unknown("semiring", name, SEMIRINGS)
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
    given = _annotations(semiring, program, facts, dict(annotated_column(program, text) for text in annotate or ()))

    def annotation(relation: str, row: Tuple) -> Any:
        return given.get((relation, row))

    if naive:
        views = evaluate_naively(program, facts, semiring, annotation, limits=limits, on_round=on_round)
    else:
        from whence.annotated import evaluate_annotated  # noqa: PLC0415 - brings the engine

        views = evaluate_annotated(program, facts, semiring, annotation, limits=limits, on_round=on_round)
    relations = {each.name: with_annotation(each) for each in program.relations.values()}
    shown = {each: {(*row, semiring.format(value)) for row, value in rows.items()} for each, rows in views.items()}
    return replace(program, relations=relations), shown


def annotated_column(program: Program, text: str) -> tuple[str, int]:
    name, _, column = text.partition("=")
    if name not in program.base_relations:
        raise unknown("base relation", name, program.base_relations, "--annotate")
    fields = [each.name for each in program.relations[name].fields]
    if column not in fields:
        what = f"{name} has no column {column}" if column else f"it does not say which column of {name}"
        raise typer.BadParameter(f"{what}; {instead_of(column, fields)}", param_hint="--annotate")
    return name, fields.index(column)


def _annotations(
    semiring: Semiring[Any], program: Program, facts: Mapping[str, Iterable[Tuple]], columns: Mapping[str, int]
) -> dict[tuple[str, Tuple], Any]:
    """The annotations of the relations that have a column for them."""
    found = {}
    problems = []
    for name, row in base_facts(program, facts):
        if name in columns:
            try:
                found[name, row] = semiring.parse(str(row[columns[name]]))
            except ValueError as error:
                column = program.relations[name].fields[columns[name]].name
                problems.append(f"{show_token((name, row))}, column {column}: {error}")
    if problems:
        shown = sorted(problems)[:_MOST_PROBLEMS]
        if len(problems) > len(shown):
            shown.append(f"... and {len(problems) - len(shown)} more")
        raise FactError(shown, hints=["--annotate names the column that holds annotations"])
    return found


def with_annotation(relation: Relation) -> Relation:
    return replace(relation, fields=(*relation.fields, Field("annotation", "symbol", SYMBOL)))
