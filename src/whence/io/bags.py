"""Changes of tables and views that are bags: rows as often as they came or went, for whoever reads changes as a sequence."""

from __future__ import annotations

from collections.abc import Collection

from whence.io.changes import Changes
from whence.lang.bags import Sides, changes_of_bag, copies_of
from whence.lang.program import Program, output_names
from whence.lang.tables import bag_tables


def as_often(program: Program, changes: Changes, names: Collection[str] | None = None) -> Changes:
    """The changes of the relations (all outputs by default), without those of companions that say how often rows are there."""
    told = output_names(program) if names is None else names
    tables = bag_tables(program)
    inserted = {name: rows for name in told if (rows := changes.inserted.get(name))}
    deleted = {name: rows for name in told if (rows := changes.deleted.get(name))}
    for name in told:
        companion = copies_of(program, name)
        if companion is None:
            continue
        once: Sides = (changes.inserted.get(name, []), changes.deleted.get(name, []))
        copies: Sides = (changes.inserted.get(companion, []), changes.deleted.get(companion, []))
        if name in tables:  # every copy has a row of its own there
            come, gone = ([*each, *(row[:-1] for row in more)] for each, more in zip(once, copies, strict=True))
            sides: Sides = (come, gone)
        else:
            sides = changes_of_bag(once, copies)
        for side, each in zip((inserted, deleted), sides, strict=True):
            side.pop(name, None)
            if each:
                side[name] = list(each)
    return Changes(inserted, deleted, changes.ignored)
