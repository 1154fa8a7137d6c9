"""Bags, as programs hold them: a relation has each row once, and its companion `name.copies` how often, if more than once.

Only SQL makes such companions: of views whose rows may be equal, and of tables without a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from whence.lang.program import Program
from whence.lang.types import Tuple

_SUFFIX = ".copies"


def copies_of(program: Program, name: str) -> str | None:
    """The relation that says how often rows of another are there, if that is a bag."""
    companion = program.relations.get(f"{name}{_SUFFIX}")
    is_bag = companion is not None and companion.arity == program.relations[name].arity + 1
    return f"{name}{_SUFFIX}" if is_bag else None


def is_companion(name: str) -> bool:
    return name.endswith(_SUFFIX)


def with_copies(program: Program, names: Iterable[str]) -> tuple[str, ...]:
    """The relations, each with its companion."""
    return tuple(each for name in names for each in (name, copies_of(program, name)) if each is not None)


def repeated(program: Program, name: str, views: Mapping[str, Iterable[Tuple]]) -> Iterator[Tuple]:
    """The rows of a relation, as often as they are there."""
    companion = copies_of(program, name)
    copies = {row[:-1]: row[-1] for row in views[companion]} if companion is not None else {}
    for row in views[name]:
        count = copies.get(row, 1)
        assert isinstance(count, int)
        for _ in range(count):
            yield row
