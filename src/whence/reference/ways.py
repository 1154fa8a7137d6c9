"""Rows of a recursion through UNION ALL that come from equal rows: it has no end then."""

from __future__ import annotations

from collections.abc import Mapping

from whence.lang.program import Program
from whence.lang.types import Tuple, Variant
from whence.lang.ways import parents_of
from whence.reference.tables import TupleSet


def round_trip(program: Program, tables: Mapping[str, TupleSet], relation: str, row: Tuple) -> list[tuple[str, Tuple]]:
    """The rows by which a row was derived, from one to an equal one, without the terms that tell them apart; or none."""
    parents = parents_of(program, [name for name, each in program.relations.items() if each.tagged])
    path: dict[tuple[str, Tuple], None] = {}
    while True:
        shown = relation, row[:-1]
        if shown in path:
            rows = [*path, shown]
            return rows[rows.index(shown) :][::-1]
        path[shown] = None
        way = row[-1]
        assert isinstance(way, Variant)
        found: list[tuple[str, Tuple]] = []
        for parent in parents.get((relation, way.branch), ()):
            known = {
                at: (way.args if each.in_way else row)[each.at]
                for at, each in enumerate(parent.columns)
                if each is not None
            }
            likely = list(tables[parent.relation].lookup(tuple(known), tuple(known.values())))
            if len(likely) == 1:
                found.append((parent.relation, likely[0]))
        if not found:
            return []
        relation, row = found[-1]
