"""What viewers are sent, as JSON: rows, views, epochs."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from typing_extensions import TypedDict  # pydantic asks for it before Python 3.12

from whence.lang.program import Relation
from whence.lang.types import Tuple, Value
from whence.provenance.graph import Fact
from whence.provenance.show import printable, show_fact
from whence.serve.filters import plain_text
from whence.serve.history import Past

_SAFE = 1 << 53  # JavaScript has no larger integers

Cell = int | float | str


class Row(TypedDict):
    """`fact` is how the row is named in questions; `cells` are its values. What JSON has no exact form for is text."""

    fact: str
    cells: list[Cell]


class EpochJson(TypedDict):
    """`at` is in seconds since 1970; `inserted` and `deleted` count rows of output relations."""

    epoch: int
    at: float
    seconds: float
    updates: int
    inserted: int
    deleted: int


def row_to_json(relation: str, row: Tuple) -> Row:
    return {"fact": show_fact(Fact(relation, row)), "cells": [cell(value) for value in row]}


def rows_to_json(relation: str, rows: Iterable[Tuple]) -> list[Row]:
    return [row_to_json(relation, row) for row in rows]


def cell(value: Value) -> Cell:
    """
    >>> cell(3), cell("a\\a"), cell(2**60), cell((1, "b"))
    (3, 'a\\\\u0007', '1152921504606846976', '[1, "b"]')
    """
    match value:
        case int() if -_SAFE < value < _SAFE:
            return value
        case float() if isfinite(value):
            return value
        case _:
            return printable(plain_text(value))


def epoch_to_json(past: Past) -> EpochJson:
    report = past.report
    return {
        "epoch": report.epoch,
        "at": past.at,
        "seconds": report.seconds,
        "updates": report.updates,
        "inserted": report.inserted,
        "deleted": report.deleted,
    }


class ColumnJson(TypedDict):
    name: str
    type: str


def columns_to_json(relation: Relation) -> list[ColumnJson]:
    return [{"name": field.name, "type": field.type} for field in relation.fields]
