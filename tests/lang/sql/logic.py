"""Reads files in the manner of sqllogictest: `statement ok`, and `query` with the rows that are expected behind `----`.

Records are separated by empty lines; values of a row by two spaces or more; NULL is a null. The order of rows does not count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Query:
    line: int
    text: str
    rows: list[tuple[str, ...]]


@dataclass
class Script:
    statements: list[str] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)


def read_script(path: Path) -> Script:
    script = Script()
    line = 1
    for record in path.read_text(encoding="utf-8").split("\n\n"):
        lines = [each for each in record.splitlines() if each and not each.startswith("#")]
        if lines and lines[0] == "statement ok":
            script.statements.append("\n".join(lines[1:]))
        elif lines and lines[0] == "query":
            end = lines.index("----")
            rows = [tuple(value.strip() for value in row.split("  ") if value.strip()) for row in lines[end + 1 :]]
            script.queries.append(Query(line, "\n".join(lines[1:end]), rows))
        elif lines:
            raise ValueError(f"{path}:{line}: a record begins with statement ok or query, not {lines[0]}")
        line += record.count("\n") + 2
    return script
