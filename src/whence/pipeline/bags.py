"""Changes of views in SQL that are bags: rows as often as they came or went, for whoever reads changes as a sequence."""

from __future__ import annotations

from whence.io.changes import Changes
from whence.lang.bags import changes_of_bag, copies_of
from whence.lang.program import Program, output_names


def as_often(program: Program, changes: Changes) -> Changes:
    """The changes of the outputs, without those of companions that say how often rows are there."""
    inserted = {name: rows for name in output_names(program) if (rows := changes.inserted.get(name))}
    deleted = {name: rows for name in output_names(program) if (rows := changes.deleted.get(name))}
    for name in output_names(program):
        companion = copies_of(program, name)
        if companion is None:
            continue
        come, gone = changes_of_bag(
            (changes.inserted.get(name, []), changes.deleted.get(name, [])),
            (changes.inserted.get(companion, []), changes.deleted.get(companion, [])),
        )
        for side, each in ((inserted, come), (deleted, gone)):
            side.pop(name, None)
            if each:
                side[name] = list(each)
    return Changes(inserted, deleted, changes.ignored)
