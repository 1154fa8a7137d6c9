"""The tuples in a text of delimited fields.

Columns are converted as a whole; only when one does not convert is each row looked at, to say what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isnan

from whence.io.errors import FactError
from whence.io.explain_rows import explain_header, explain_rows
from whence.io.split_fields import EMPTY, Fields, split_around_values, split_lines, split_plain, split_quoted
from whence.io.values import HIGHEST, LOWEST, parse_value, quoted
from whence.lang.program import Relation
from whence.lang.transfers import Options
from whence.lang.types import FLOAT, RESERVED, SYMBOL, Kind, Nullable, Tuple, Types, Value, is_plain


def parse_rows(text: str, options: Options, relation: Relation, types: Types, name: str) -> list[Tuple]:
    """`name` is what errors call the text."""
    if relation.arity == 0:
        return _parse_nullary(text, options, relation, name)
    fields = _split(text, options, relation, types, name)
    places = list(range(relation.arity))
    if options.headers and fields.rows:
        if options.columns is None:
            relation, places = _as_named(fields.rows[0], options, relation, name)
            if places != sorted(places):
                fields = _split(text, options, relation, types, name)
        fields = Fields(fields.rows[1:], fields.lines[1:])
    try:
        columns = _columns(fields.rows, options, relation)
        values = [
            _with_nils(cells, each.kind, types) if options.rfc4180 else _convert(cells, each.kind, types)
            for cells, each in zip(columns, relation.fields, strict=False)
        ]
    except ValueError:
        raise explain_rows(fields, options, relation, types, name) from None
    return list(zip(*(values[at] for at in places), strict=True)) if values else []


def _as_named(names: list[str], options: Options, relation: Relation, name: str) -> tuple[Relation, list[int]]:
    """The relation with its columns in the order of a header, and where in it each of its own columns is."""
    names = [each.strip() for each in names]
    own = [each.name for each in relation.fields]
    if sorted(names) != sorted(own):
        raise explain_header(names, options, relation, name)
    in_order = tuple(relation.fields[own.index(each)] for each in names)
    return replace(relation, fields=in_order), [names.index(each) for each in own]


def _split(text: str, options: Options, relation: Relation, types: Types, name: str) -> Fields:
    if options.rfc4180:
        return split_quoted(text, options.delimiter, name)
    if options.delimiter == "\t" or all(is_plain(each.kind) for each in relation.fields):
        return split_plain(text, options.delimiter)
    columns = options.columns or range(relation.arity)
    kinds: list[Kind] = [SYMBOL] * (max(columns) + 1)
    for at, each in zip(columns, relation.fields, strict=False):
        kinds[at] = each.kind
    return split_around_values(text, options.delimiter, kinds, types)


def _columns(rows: list[list[str]], options: Options, relation: Relation) -> Iterable[Sequence[str]]:
    lengths = set(map(len, rows))
    if options.columns is None:
        if lengths <= {relation.arity}:
            return zip(*rows, strict=True)
    elif all(length > max(options.columns) for length in lengths):
        return [[row[at] for row in rows] for at in options.columns]
    raise ValueError


def _with_nils(cells: Sequence[str], kind: Kind, types: Types) -> Sequence[Value]:
    """Where fields may be quoted, an empty one without quotes is nil, and nothing else is."""
    if not isinstance(kind, Nullable):
        return _convert(cells, kind, types)
    present = [cell for cell in cells if cell or cell is EMPTY]
    values = _convert(present, kind.of, types)
    if kind.of in RESERVED and RESERVED[kind.of] in values:
        raise ValueError
    left = iter(str(EMPTY) if value is EMPTY else value for value in values)
    return [next(left) if cell or cell is EMPTY else None for cell in cells]


def _convert(cells: Sequence[str], kind: Kind, types: Types) -> Sequence[Value]:
    if kind == SYMBOL:
        return cells
    if kind == FLOAT or kind in HIGHEST:
        together = "".join(cells)
        # Python takes other digits than ASCII's, and underscores between them; fact files do not.
        if together.isascii() and "_" not in together:
            try:
                return _floats(cells) if kind == FLOAT else _in_range(list(map(int, cells)), kind)
            except ValueError:
                pass  # perhaps only a 0x or 0b, which parse_value knows
    values = {text: parse_value(text, kind, types) for text in set(cells)}
    return [values[text] for text in cells]


def _floats(cells: Sequence[str]) -> list[float]:
    floats = [float(text) + 0.0 for text in cells]  # -0.0 is 0.0
    if any(map(isnan, floats)):
        raise ValueError
    return floats


def _in_range(numbers: list[int], kind: Kind) -> list[int]:
    if numbers and not (LOWEST[kind] <= min(numbers) and max(numbers) <= HIGHEST[kind]):
        raise ValueError
    return numbers


def _parse_nullary(text: str, options: Options, relation: Relation, name: str) -> list[Tuple]:
    lines = list(enumerate(split_lines(text), 1))[1 if options.headers else 0 :]
    wrong = [(number, line) for number, line in lines if line.strip() not in ("()", "")]
    if wrong:
        bad = [f"{name}:{number}: expected (), found {quoted(line)}" for number, line in wrong]
        raise FactError(
            bad, hints=[f"{relation.name} has no columns: the line () says that it holds, and so does an empty one"]
        )
    return [()] * len(lines)
