"""The base tuples of a state for another version of its program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from whence.constraints import ConstraintError, Constraints, check_references, values_in
from whence.io.values import parse_value
from whence.lang.program import Program, Relation
from whence.lang.tables import bag_tables
from whence.lang.types import Tuple
from whence.pipeline.base import Base
from whence.pipeline.files import StateError

# The values of columns that are new, as fact files have them: relation, column, text.
Defaults = Mapping[str, Mapping[str, str]]


def carried(base: Base, before: Program, after: Program, defaults: Defaults) -> Base:
    """Raises StateError if tuples would be lost, or have no value for a column."""
    problems = list(_problems(base, before, after, defaults))
    if problems:
        hints = ["base tuples stay: a relation that no rule uses any more is still declared"]
        if any(
            name in base.rows and base.rows[name] for name in set(bag_tables(before).values()) - after.relations.keys()
        ):
            hints.append("rows are there several times: a table that gets a key cannot keep them")
        raise StateError(problems, hints=hints)
    made = Base(after)
    made.windows.advance(base.windows.clock)
    for name, rows in base.rows.items():
        if name not in made.rows:
            continue
        convert = _conversion(before.relations[name], after, after.relations[name], defaults.get(name, {}))
        times = dict(base.windows.times(name)) if name in base.windows.kept else dict.fromkeys(rows, 0.0)
        made.restore(name, ((convert(row), time) for row, time in times.items()))
    return made


def _problems(base: Base, before: Program, after: Program, defaults: Defaults) -> Iterator[str]:
    taking = set(after.base_relations)
    for name, rows in base.rows.items():
        if not rows:
            continue
        if name not in after.relations:
            yield f"{name} has {len(rows):,} tuples, and is not declared any more"
        elif name not in taking:
            yield f"{name} has {len(rows):,} tuples from outside, and is derived by rules now: give it .input too"
        else:
            yield from _column_problems(before.relations[name], after.relations[name], after, defaults.get(name, {}))
    constraints = Constraints(after)
    for name in constraints.tables:
        if (
            name in base.rows
            and name in before.relations
            and before.relations[name].fields == after.relations[name].fields
        ):
            broken = next(constraints.broken(name, list(base.rows[name])), None)
            if broken is not None:
                yield f"{broken}: a state keeps its rows"
    asked = {each for name, reference in constraints.references for each in (name, reference.table)}
    if all(
        name not in before.relations or before.relations[name].fields == after.relations[name].fields for name in asked
    ):
        try:
            check_references({name: values_in(rows) for name, rows in base.rows.items()}, constraints)
        except ConstraintError as error:
            yield f"{error.broken}: a state keeps its rows"
    for name, columns in defaults.items():
        declared = {each.name for each in after.relations[name].fields} if name in after.relations else set()
        for column in columns:
            if column not in declared:
                yield f"there is no column {name}.{column} to have a default"


def _column_problems(old: Relation, new: Relation, program: Program, given: Mapping[str, str]) -> Iterator[str]:
    if (new.window or new.lifetime) and not (old.window or old.lifetime):
        yield f"{new.name} has tuples whose times are not known: it cannot have a .window or .lifetime now"
    declared = {each.name: each for each in new.fields}
    for each in old.fields:
        if each.name not in declared:
            yield f"column {each.name} of {new.name} is gone, and its values would be"
        elif declared[each.name].kind != each.kind:
            yield f"column {each.name} of {new.name} holds {each.kind}, not {declared[each.name].kind}"
    known = {each.name for each in old.fields}
    for each in new.fields:
        if each.name in known:
            continue
        if each.name not in given:
            yield f"column {each.name} of {new.name} is new, and has no default: --default {new.name}.{each.name}=VALUE"
            continue
        try:
            parse_value(given[each.name], each.kind, program.types)
        except ValueError as error:
            yield f"the default of {new.name}.{each.name}: {error}"


def _conversion(old: Relation, program: Program, new: Relation, given: Mapping[str, str]) -> Callable[[Tuple], Tuple]:
    if [each.name for each in old.fields] == [each.name for each in new.fields]:
        return lambda row: row
    at = {each.name: number for number, each in enumerate(old.fields)}
    made = {
        each.name: parse_value(given[each.name], each.kind, program.types) for each in new.fields if each.name not in at
    }
    return lambda row: tuple(row[at[each.name]] if each.name in at else made[each.name] for each in new.fields)
