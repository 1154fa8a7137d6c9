"""What a user's edits mean: from rows that came and went in a peer's tables to what is published.

An inserted row becomes local, and is no longer rejected or lost. A deleted row is no longer local; if others bring it too, it is
rejected as well, or it would come back with the next exchange. A changed row is one deleted and one inserted. Whatever happened
to a row between two publications, only the difference counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from whence.exchange.compile import LOCAL, LOST, REJECTED
from whence.exchange.instance import Edit
from whence.exchange.model import Relation
from whence.exchange.rows import key_of, show_row, sort_rows
from whence.io import FactError
from whence.lang.types import Tuple

Parts = Mapping[tuple[str, str], set[Tuple]]  # by relation and part


def net_edits(
    relations: Sequence[Relation],
    before: Mapping[str, set[Tuple]],
    after: Mapping[str, set[Tuple]],
    parts: Parts,
    imported: Mapping[str, set[Tuple]],
) -> list[Edit]:
    """The edits to publish for what changed in the tables. `imported` are the rows that trusted derivations bring.

    Raises FactError if two rows of the peer's own would have one key.
    """
    found: list[Edit] = []
    for relation in relations:
        name = relation.full_name
        old, new = before.get(name, set()), after.get(name, set())
        found += _deletions(name, old - new, parts, imported.get(name, set()))
        found += _insertions(name, new - old, parts)
    _check_keys(relations, parts, found)
    return found


def _deletions(name: str, rows: set[Tuple], parts: Parts, imported: set[Tuple]) -> Iterator[Edit]:
    for row in sort_rows(rows):
        if row in parts[name, LOCAL]:
            yield Edit("-", LOCAL, name, row)
        if row in imported and row not in parts[name, REJECTED]:
            yield Edit("+", REJECTED, name, row)


def _insertions(name: str, rows: set[Tuple], parts: Parts) -> Iterator[Edit]:
    for row in sort_rows(rows):
        if row not in parts[name, LOCAL]:
            yield Edit("+", LOCAL, name, row)
        for part in (REJECTED, LOST):
            if row in parts[name, part]:
                yield Edit("-", part, name, row)


def _check_keys(relations: Sequence[Relation], parts: Parts, edits: Sequence[Edit]) -> None:
    problems: list[str] = []
    for relation in relations:
        name = relation.full_name
        local = parts[name, LOCAL].copy()
        for op, part, where, row in edits:
            if where == name and part == LOCAL:
                (local.add if op == "+" else local.discard)(row)
        by_key: dict[Tuple, Tuple] = {}
        for row in sort_rows(local) if relation.key else ():
            other = by_key.setdefault(key_of(relation, row), row)
            if other != row:
                problems.append(f"{show_row(name, other)} and {show_row(name, row)} have the same key")
    if problems:
        raise FactError(problems, hints=["keep one of them; nothing was published"])
