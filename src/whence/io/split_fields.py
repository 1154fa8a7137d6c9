"""Lines of text into fields: plain ones, quoted ones (RFC 4180), and ones that hold records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from whence.io.errors import FactError
from whence.io.values import parse_prefix, quoted
from whence.lang.types import Kind, Types, is_plain


class Quoted(str):
    """A field that stood in quotes and is empty: one without quotes is nil where that may be."""

    __slots__ = ()


EMPTY = Quoted()


@dataclass(frozen=True, slots=True)
class Fields:
    """The rows of a file as text, and the line that each row starts on."""

    rows: list[list[str]]
    lines: Sequence[int]


def split_lines(text: str) -> list[str]:
    """Only `\\n` and `\\r\\n` end a line: a symbol may hold the other characters that str.splitlines splits at."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def split_plain(text: str, delimiter: str) -> Fields:
    rows = [line.split(delimiter) for line in split_lines(text)]
    return Fields(rows, range(1, len(rows) + 1))


def split_around_values(text: str, delimiter: str, kinds: Sequence[Kind], types: Types) -> Fields:
    """Like `split_plain`, where a delimiter inside of a record, branch or list does not count."""
    rows = [_split_line(line, delimiter, kinds, types) for line in split_lines(text)]
    return Fields(rows, range(1, len(rows) + 1))


def _split_line(line: str, delimiter: str, kinds: Sequence[Kind], types: Types) -> list[str]:
    fields: list[str] = []
    start = 0
    while start <= len(line):
        end = start
        if len(fields) < len(kinds) and not is_plain(kinds[len(fields)]):
            try:
                _, end = parse_prefix(line, start, kinds[len(fields)], types)
            except ValueError:
                end = start  # the field is bad: its value says so when it is read
        end = line.find(delimiter, end)
        if end < 0:
            end = len(line)
        fields.append(line[start:end])
        start = end + len(delimiter)
    return fields


def split_quoted(text: str, delimiter: str, name: str) -> Fields:
    """Fields may be in quotes, which hide delimiters and line ends; a quote inside of them is doubled."""
    if '"' not in text:
        return split_plain(text, delimiter)
    escaped = re.escape(delimiter)
    field = re.compile(rf'(?:"([^"]*(?:""[^"]*)*)"|((?!")(?:(?!{escaped})[^\n])*))({escaped}|\r?(?:\n|\Z))')
    rows: list[list[str]] = []
    lines: list[int] = []
    at, line = 0, 1
    while at < len(text):
        row: list[str] = []
        rows.append(row)
        lines.append(line)
        ended = False
        while not ended:
            match = field.match(text, at)
            if match is None:
                raise _bad_quotes(text, at, line, delimiter, name)
            inside, bare, end = match.groups()
            ended = end != delimiter
            if bare is None:
                row.append(inside.replace('""', '"') or EMPTY)
            else:
                row.append(bare.removesuffix("\r") if ended else bare)
            line += match[0].count("\n")
            at = match.end()
    return Fields(rows, lines)


def _bad_quotes(text: str, at: int, line: int, delimiter: str, name: str) -> FactError:
    hint = "a quote inside of a quoted field is doubled"
    closing = re.compile(r'"[^"]*(?:""[^"]*)*"').match(text, at)
    if closing is None:
        return FactError([f"{name}:{line}: the quote that starts here is never closed"], hints=[hint])
    line += closing[0].count("\n")
    found = quoted(text[closing.end()])
    problem = f"{name}:{line}: expected {quoted(delimiter)} or the line's end after a quoted field, found {found}"
    return FactError([problem], hints=[hint])


def quote_field(field: str) -> str:
    return '"' + field.replace('"', '""') + '"'
