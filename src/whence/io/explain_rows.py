"""What is wrong with the rows of a file that cannot be read, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

from whence.io.errors import FactError
from whence.io.split_fields import Fields
from whence.io.values import HIGHEST, LOWEST, described, parse_value, quoted
from whence.lang.program import Relation
from whence.lang.transfers import Options
from whence.lang.types import (
    BOOL,
    DATE,
    FLOAT,
    TIMESTAMP,
    AdtKind,
    DecimalKind,
    Field,
    Kind,
    ListKind,
    RecordKind,
    Types,
    base,
)

_WRITTEN: dict[Kind, str] = {
    BOOL: "true or false",
    DATE: "2024-02-29",
    TIMESTAMP: "2024-02-29 12:30:00 or 2024-02-29T12:30:00.5, taken in UTC if a zone such as +02:00 follows",
}


def explain_rows(fields: Fields, options: Options, relation: Relation, types: Types, name: str) -> FactError:
    problems: list[str] = []
    hints: list[str] = []
    bad_lines: set[int] = set()
    for line, cells in zip(fields.lines, fields.rows, strict=True):
        for problem, hint in _row_problems(cells, options, relation, types):
            bad_lines.add(line)
            problems.append(f"{name}:{line}: {problem}")
            hints.append(hint)
    if bad_lines == {1} and len(fields.rows) > 1:
        hints.append(f"if the first line names the columns, write .input {relation.name}(headers=true)")
    return FactError(problems, hints=hints)


def explain_header(names: list[str], options: Options, relation: Relation, name: str) -> FactError:
    """What is wrong with a first line that does not name each column of the relation once."""
    own = [each.name for each in relation.fields]
    problems = [f"no column is called {each}" for each in own if each not in names]
    problems += [f"{relation.name} has no column {quoted(each)}" for each in dict.fromkeys(names) if each not in own]
    problems += [f"two columns are called {each}" for each in own if names.count(each) > 1]
    hint = f"with headers=true the first line names the columns of {relation.name}, in any order: {', '.join(own)}"
    better = _better_delimiter(names[0], len(own), options.delimiter) if len(names) == 1 else None
    if better:
        hint = f'if "{better}" separates the columns, write .input {relation.name}(delimiter="{better}")'
    by_place = f'columns="{":".join(map(str, range(len(own))))}" takes columns by their places instead'
    return FactError([f"{name}:1: {problem}" for problem in problems], hints=[hint, by_place])


def _row_problems(cells: list[str], options: Options, relation: Relation, types: Types) -> Iterator[tuple[str, str]]:
    columns = options.columns or range(relation.arity)
    if len(cells) <= max(columns) or (options.columns is None and len(cells) > relation.arity):
        yield _wrong_length(cells, options, relation)
        return
    for at, each in zip(columns, relation.fields, strict=False):
        try:
            parse_value(cells[at], each.kind, types)
        except ValueError as error:
            yield f"column {at + 1} ({each.name}: {each.type}): {error}", _how_to_write(base(each.kind), types)


def _wrong_length(cells: list[str], options: Options, relation: Relation) -> tuple[str, str]:
    needed = max(options.columns) + 1 if options.columns else relation.arity
    needs = "reads column" if options.columns else "has"
    found = "an empty line" if cells == [""] else "1 column" if len(cells) == 1 else f"{len(cells)} columns"
    problem = f"{found}, but {relation.name}({_listed(relation.fields)}) {needs} {needed}"
    better = _better_delimiter(cells[0], needed, options.delimiter)
    if cells == [""]:
        return problem, "remove the empty line"
    if len(cells) == 1 and better:
        return problem, f'if "{better}" separates the columns, write .input {relation.name}(delimiter="{better}")'
    separator = "a tab" if options.delimiter == "\t" else quoted(options.delimiter)
    return problem, f'columns are separated by {separator}; .input {relation.name}(delimiter="…") sets another text'


def _better_delimiter(line: str, needed: int, current: str) -> str | None:
    candidates = {",": ",", ";": ";", "|": "|", " ": " ", "\t": "\\t"}
    fitting = (shown for each, shown in candidates.items() if each != current and line.count(each) + 1 == needed)
    return next(fitting, None)


def _how_to_write(kind: Kind, types: Types) -> str:
    match kind:
        case RecordKind(name):
            return f"{described(kind)} is written nil or [{_listed(types.records[name])}]"
        case AdtKind(name):
            branches = (_branch(*branch) for branch in types.adts[name].items())
            return f"{described(kind)} is written {' or '.join(branches)}"
        case ListKind(element):
            return f"{described(kind)} is written [] or [{element}, {element}, …]"
        case _ if kind == FLOAT:
            return "a float is written 4, 0.5 or 1e-3"
        case DecimalKind(precision=precision, scale=scale):
            return f"a {kind} has at most {precision - scale} digits before the point and {scale} behind it"
        case _ if kind in _WRITTEN:
            return f"a {kind} is written {_WRITTEN[kind]}"
        case _:
            return f"columns of type {kind} hold whole numbers from {LOWEST[kind]} to {HIGHEST[kind]}"


def _branch(name: str, fields: tuple[Field, ...]) -> str:
    return f"${name}({_listed(fields)})" if fields else f"${name}"


def _listed(fields: tuple[Field, ...]) -> str:
    return ", ".join(f"{each.name}: {each.type}" for each in fields)
