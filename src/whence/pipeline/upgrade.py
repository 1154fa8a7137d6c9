"""A state brought over to another version of its program, in an epoch of its own.

If the last run left its tables, they are adapted: a view whose rules are the same stays as it is, and of one whose rules changed
only what changed is looked at, or rows that tell it, whichever is estimated to cost less (`engine.revise`). Otherwise, and where
rows have other columns now, all views are derived anew from the base tuples.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from whence.engine.adapt import Adaptation
from whence.io.changes import Changes
from whence.lang.differences import Differences, differences, why_rows_would_differ
from whence.lang.program import Program, output_names
from whence.limits import Limits
from whence.pipeline.base import Base
from whence.pipeline.carry import Defaults, carried
from whence.pipeline.folder import is_same_view, look_into
from whence.pipeline.keeper import leave, tables_left
from whence.pipeline.parts.open import open_state
from whence.pipeline.parts.store import PartedStore
from whence.pipeline.parts.turn import turned
from whence.pipeline.store import Recovered, WholeStore
from whence.plan.record import RecordedProgram
from whence.prepared import prepare
from whence.session import Session


@dataclass(frozen=True)
class Upgrade:
    """What an upgrade did, or would do: its epoch, how the views were brought over, and for how long that took.

    `gained` and `lost` count the tuples of each output relation that the new version has and the one before had not, and the
    other way round; a relation with other columns is a new one. `anew` is why all views were derived anew, None if they were
    adapted: `adaptations` are those of views whose rules changed.
    """

    changed: Differences
    epoch: int
    base_tuples: int
    sizes: dict[str, int]
    gained: dict[str, int]
    lost: dict[str, int]
    seconds: float
    anew: str | None
    adaptations: tuple[Adaptation, ...]


def upgrade(
    folder: Path,
    program: Program,
    *,
    defaults: Defaults | None = None,
    dry_run: bool = False,
    limits: Limits = Limits(),  # noqa: B008 - immutable
) -> Upgrade | None:
    """None if the state is the program's already, or there is none. Raises StateError if it cannot be brought over.

    Base tuples stay, with values from `defaults` (relation, column, text as in fact files) where columns are new. The views
    follow from them by the new rules, and become those of an epoch after the last one: the changes of that epoch are what
    the new rules change. Epochs before it can be looked at as before.
    """
    if not (folder / "manifest.json").exists() or look_into(folder).is_of(program):
        return None
    before = look_into(folder).program(program.functions)
    store = open_state(folder, before)
    try:
        if isinstance(store, PartedStore):
            return _in_parts(store, program, defaults or {}, limits, dry_run=dry_run)
        whole = store.whole()
        found = whole.recover()
        started = time.perf_counter()
        base = carried(found.base, before, program, defaults or {})
        turned = _adapted(whole, found, before, program, limits)
        session, anew = (_derived(program, base, limits), turned) if isinstance(turned, str) else (turned.session, None)
        views = {name: session.relation(name) for name in output_names(program)}
        gained, lost = {}, {}
        for name, view in views.items():
            is_same = is_same_view(name, before, program)
            if is_same and not isinstance(turned, str) and name in turned.shown:
                gained[name] = len(turned.changes.inserted.get(name, ()))
                lost[name] = len(turned.changes.deleted.get(name, ()))
                continue
            old, now = whole.view_at(name, found.epoch) if is_same else set(), set(view)
            gained[name], lost[name] = len(now - old), len(old - now)
        seconds = time.perf_counter() - started
        if not dry_run:
            whole.change(program, base, views, defaults or {})
            leave(whole, session)
        return Upgrade(
            differences(before, program),
            found.epoch + 1,
            sum(map(len, base.rows.values())),
            {name: len(view) for name, view in views.items()},
            gained,
            lost,
            seconds,
            anew,
            session.adaptations,
        )
    finally:
        store.close()


def _in_parts(store: PartedStore, program: Program, defaults: Defaults, limits: Limits, *, dry_run: bool) -> Upgrade:
    started = time.perf_counter()
    made = turned(store, program, parts=store.parts, defaults=defaults, limits=limits, dry_run=dry_run)
    if not dry_run:
        made.publish()
    return Upgrade(
        differences(store.program, program),
        made.epoch,
        made.base_tuples,
        dict(made.sizes),
        dict(made.gained),
        dict(made.lost),
        time.perf_counter() - started,
        "the state is in parts, whose tables are in the memory of Spark's workers",
        (),
    )


@dataclass(frozen=True)
class _Turned:
    """A session that has become the new program's, and what that changed of the relations that it showed before."""

    session: Session
    changes: Changes
    shown: frozenset[str]


def _adapted(store: WholeStore, found: Recovered, before: Program, after: Program, limits: Limits) -> _Turned | str:
    """Or why it cannot be done."""
    kept = tables_left(store)
    if kept is None:
        return "the last run left no tables to adapt"
    rules, record = _rules_of(before)
    new_rules, new_record = _rules_of(after)
    if record != new_record:
        return "other derivations are recorded"
    for problem in why_rows_would_differ(rules, new_rules):
        return problem
    wanted = kept.of["wanted"]
    sizes = {name: len(rows) for name, rows in found.base.rows.items()}
    prepared = prepare(rules, wanted=wanted, record=record, sizes=sizes)
    session = kept.session(prepared, windows=found.base.windows, limits=limits)
    if session is None:
        return "the tables that the last run left are of another version of Whence, or of another strategy"
    shown = frozenset(name for name in output_names(before) if prepared.shows(name))
    seen = None if wanted is None else new_rules.relations.keys() & set(output_names(after))
    return _Turned(session, session.revise(new_rules, wanted=seen), shown)


def _derived(program: Program, base: Base, limits: Limits) -> Session:
    rules, record = _rules_of(program)
    wanted = rules.relations.keys() & set(output_names(program))
    return Session(rules, facts=base.rows, windows=base.windows, wanted=wanted, record=record, limits=limits)


def _rules_of(program: Program) -> tuple[Program, tuple[str, ...]]:
    return (program.plain, program.record) if isinstance(program, RecordedProgram) else (program, ())
