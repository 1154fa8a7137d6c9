"""Tuples as lines of delimited fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from whence.io.split_fields import quote_field
from whence.io.values import format_value
from whence.lang.program import Relation
from whence.lang.transfers import Options
from whence.lang.types import NUMBER, SYMBOL, UNSIGNED, Kind, Nullable, Tuple, Types, Value, base


def format_rows(rows: Sequence[Tuple], options: Options, relation: Relation, types: Types) -> Iterator[str]:
    """One line for each row, without its end."""
    if relation.arity == 0:
        return ("()" for _ in rows)
    columns = [
        _format_column(values, each.kind, options, types)
        for values, each in zip(zip(*rows, strict=True), relation.fields, strict=False)
    ]
    return map(options.delimiter.join, zip(*columns, strict=True))


def header(options: Options, relation: Relation) -> str:
    return options.delimiter.join(each.name for each in relation.fields)


def _format_column(values: Sequence[Value], kind: Kind, options: Options, types: Types) -> Iterable[str]:
    if kind in (NUMBER, UNSIGNED):
        return map(str, values)
    if isinstance(kind, Nullable) and options.rfc4180:  # as everybody's CSV has it: nothing, not even quotes
        present = iter(_format_column([value for value in values if value is not None], kind.of, options, types))
        return ["" if value is None else next(present) for value in values]
    texts = map(str, values) if kind == SYMBOL else (format_value(value, kind, types) for value in values)
    # Every symbol is quoted, needed or not, as Souffle does: its files and ours compare byte by byte.
    return map(quote_field, texts) if options.rfc4180 else texts


def reads_back(rows: Sequence[Tuple], options: Options, relation: Relation) -> bool:
    """Whether no symbol of the rows holds what separates columns or rows."""
    if options.rfc4180:
        return True
    symbols = [at for at, each in enumerate(relation.fields) if base(each.kind) == SYMBOL]
    separators = (options.delimiter, "\n", "\r")
    return not any(each in str(row[at]) for row in rows for at in symbols for each in separators)
