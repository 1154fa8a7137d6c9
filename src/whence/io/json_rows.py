"""Relations as JSON: a list of rows, each a list of its values or an object with its attributes' names.

Records are lists or objects in the same way, nil is null, lists are lists; a branch is its text, as in fact files.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import repeat
from math import isfinite, isnan

from whence.io.errors import FactError
from whence.io.json_text import Json, read_json, show_json, write_json
from whence.io.values import HIGHEST, described, format_float, format_value, parse_value, quoted
from whence.lang.deep import Steps, compound, without_recursion
from whence.lang.program import Relation
from whence.lang.scalars import rounded
from whence.lang.transfers import Options
from whence.lang.types import (
    BOOL,
    FLOAT,
    NUMBER,
    RESERVED,
    SYMBOL,
    AdtKind,
    DecimalKind,
    Field,
    Kind,
    ListKind,
    Nullable,
    RecordKind,
    Tuple,
    Types,
    Value,
    base,
    is_whole,
)

# Whole floats up to here are written without a fraction, as in fact files.
_EXACT = 2.0**53
_SURE_DIGITS = 15
_SHOWN = 60  # characters of a value in a message


def parse_json(text: str, relation: Relation, types: Types, name: str) -> list[Tuple]:
    try:
        rows = read_json(text)
    except json.JSONDecodeError as error:
        problem = f"{name}:{error.lineno}:{error.colno}: this is not JSON: {error.msg}"
        raise FactError([problem], hints=["the file holds a list of rows, each a list or an object"]) from None
    except ValueError:
        # Python converts only so many digits.
        raise _too_long(text, name) from None
    if not isinstance(rows, list):
        problem = f"{name}: expected a list of rows, found {shown(rows)}"
        raise FactError([problem], hints=["put the rows into [ and ]"])
    tuples: list[Tuple] = []
    problems: list[str] = []
    for number, row in enumerate(rows, 1):
        try:
            tuples.append(fields_from_json(row, relation.fields, types))
        except ValueError as error:
            problems.append(f"{name}: row {number}: {error}")
    if problems:
        signature = ", ".join(f"{each.name}: {each.type}" for each in relation.fields)
        raise FactError(problems, hints=[f"{relation.name} has the columns {signature}"])
    return tuples


def _too_long(text: str, name: str) -> FactError:
    """The error for the first number, outside of strings, with more digits than Python converts."""
    number = re.compile(rf'"(?:[^"\\]|\\.)*"|(-?\d{{{sys.get_int_max_str_digits() + 1},}})(?![\d.eE])')
    at = next(found.start() for found in number.finditer(text) if found[1])
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return FactError([f"{name}:{line}:{column}: this number has too many digits"], hints=["no column can hold it"])


def format_json(rows: Iterable[Tuple], options: Options, relation: Relation, types: Types) -> Iterator[str]:
    """One line for each row, without its end."""
    texts = [write_json(fields_to_json(row, relation.fields, options, types)) for row in rows]
    opened = [f"{'' if at else '['}{text}" for at, text in enumerate(texts)] or ["["]
    last = len(opened) - 1
    return (f"{text}{']' if at == last else ','}" for at, text in enumerate(opened))


# -- reading ----------------------------------------------------------------------------------------------------------


def fields_from_json(row: Json, fields: tuple[Field, ...], types: Types) -> Tuple:
    return tuple(
        _from_json(value, each.name, each.kind, types) for value, each in zip(_listed(row, fields), fields, strict=True)
    )


def _listed(row: Json, fields: tuple[Field, ...]) -> list[Json]:
    """The values of fields, in their order."""
    match row:
        case dict():
            return _by_name(row, [each.name for each in fields])
        case list() if len(row) == len(fields):
            return row
        case list():
            raise ValueError(f"{len(row)} values, but {len(fields)} expected")
        case _:
            raise ValueError(f"expected a list or an object, found {shown(row)}")


def _by_name(row: dict[str, Json], names: list[str]) -> list[Json]:
    for name in names:
        if name not in row:
            raise ValueError(f"{name} is missing")
    for name in row:
        if name not in names:
            raise ValueError(f"there is no attribute {name}")
    return [row[name] for name in names]


def _from_json(value: Json, attribute: str, kind: Kind, types: Types) -> Value:
    if isinstance(kind, RecordKind | ListKind):
        return without_recursion(_compound_from_json(value, attribute, kind, types))
    return _leaf_from_json(value, attribute, kind, types)


def _compound_from_json(value: Json, attribute: str, kind: Kind, types: Types) -> Steps[Value]:
    parts: Iterable[tuple[Json, str, Kind]]
    match value, kind:
        case None, RecordKind():
            return None
        case list() | dict(), RecordKind(name):
            fields = types.records[name]
            named = zip(_listed(value, fields), fields, strict=True)
            parts = ((part, each.name, each.kind) for part, each in named)
        case list(), ListKind(element):
            parts = ((item, attribute, element) for item in value)
        case _:
            raise ValueError(f"{attribute}: {shown(value)} is not {described(kind)}")
    found: list[Value] = []
    for part, name, inner in parts:
        if isinstance(inner, RecordKind | ListKind):
            found.append((yield _compound_from_json(part, name, inner, types)))
        else:
            found.append(_leaf_from_json(part, name, inner, types))
    return compound(found)


def _leaf_from_json(value: Json, attribute: str, kind: Kind, types: Types) -> Value:
    if isinstance(kind, Nullable):
        if value is None:
            return None
        found = _leaf_from_json(value, attribute, kind.of, types)
        if found == RESERVED.get(kind.of):
            raise ValueError(f"{attribute}: {found} is out of range for {kind}")
        return found
    match value, kind:
        case str(), _ if kind == SYMBOL:
            return value
        # The infinities, which JSON cannot write as numbers.
        case str(), _ if kind == FLOAT or isinstance(kind, AdtKind) or (is_whole(kind) and kind not in (NUMBER, BOOL)):
            return _parse(value, attribute, kind, types)
        case bool(), _ if kind == BOOL:
            return value
        case int() | float(), DecimalKind() if not isinstance(value, bool):
            return _decimal(value, attribute, kind)
        case int() | float(), _ if kind == FLOAT and not isinstance(value, bool):
            try:
                real = float(value) + 0.0  # -0.0 is 0.0
            except OverflowError:
                raise ValueError(f"{attribute}: {quoted(str(value))} is out of range for a float") from None
            if isnan(real):
                raise ValueError(f"{attribute}: nan is not a value")
            return real
        case int(), _ if not isinstance(value, bool) and kind in HIGHEST:
            return _parse(str(value), attribute, kind, types)
        case _:
            raise ValueError(f"{attribute}: {shown(value)} is not {described(kind)}")


def _decimal(value: float, attribute: str, kind: DecimalKind) -> Value:
    """A number of JSON, of which so many digits are sure."""
    written = Decimal(repr(value))
    near = rounded(written, kind) if written.is_finite() else None
    if (
        near is None
        or near != written
        or (not isinstance(value, int) and len(written.as_tuple().digits) > _SURE_DIGITS)
    ):
        raise ValueError(f"{attribute}: {shown(value)} is not {described(kind)}; text has all of its digits")
    return near


def _parse(text: str, attribute: str, kind: Kind, types: Types) -> Value:
    try:
        return parse_value(text, kind, types)
    except ValueError as error:
        raise ValueError(f"{attribute}: {error}") from None


def shown(value: Json) -> str:
    text = show_json(value, _SHOWN)
    return text if len(text) <= _SHOWN else quoted(text)


# -- writing ----------------------------------------------------------------------------------------------------------


def fields_to_json(row: Tuple, fields: tuple[Field, ...], options: Options, types: Types) -> Json:
    return _put_together(
        [_to_json(value, each.kind, options, types) for value, each in zip(row, fields, strict=True)], fields, options
    )


def _put_together(values: list[Json], fields: tuple[Field, ...], options: Options) -> Json:
    if options.objects:
        return {each.name: value for each, value in zip(fields, values, strict=True)}
    return values


def _to_json(value: Value, kind: Kind, options: Options, types: Types) -> Json:
    if isinstance(value, tuple):
        return without_recursion(_compound_to_json(value, kind, options, types))
    return _leaf_to_json(value, kind, types)


def _compound_to_json(value: tuple[Value, ...], kind: Kind, options: Options, types: Types) -> Steps[Json]:
    fields = types.records[kind.name] if isinstance(kind, RecordKind) else ()
    kinds = repeat(kind.element) if isinstance(kind, ListKind) else (each.kind for each in fields)
    found: list[Json] = []
    for part, inner in zip(value, kinds, strict=False):
        if isinstance(part, tuple):
            found.append((yield _compound_to_json(part, inner, options, types)))
        else:
            found.append(_leaf_to_json(part, inner, types))
    return _put_together(found, fields, options) if isinstance(kind, RecordKind) else found


def _leaf_to_json(value: Value, kind: Kind, types: Types) -> Json:
    match value:
        case float() if not isfinite(value):
            return format_float(value)
        case float():
            return int(value) if value.is_integer() and abs(value) <= _EXACT else value
        case None | int() | str() if not isinstance(base(kind), DecimalKind):
            return value
        case None:
            return None
        case _:
            return format_value(value, base(kind), types)
