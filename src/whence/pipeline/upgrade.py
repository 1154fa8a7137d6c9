"""A state brought over to another version of its program, in an epoch of its own."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from whence.lang.differences import Differences, differences
from whence.lang.program import Program, output_names
from whence.limits import Limits
from whence.pipeline.carry import Defaults, carried
from whence.pipeline.files import StateError
from whence.pipeline.folder import look_into
from whence.pipeline.parts.open import open_state
from whence.pipeline.store import is_same_view
from whence.plan.record import RecordedProgram
from whence.session import Session


@dataclass(frozen=True)
class Upgrade:
    """What an upgrade did, or would do: its epoch, what is derived anew, and for how long that took.

    `gained` and `lost` count the tuples of each output relation that the new version has and the one before had not, and the
    other way round; a relation with other columns is a new one.
    """

    changed: Differences
    epoch: int
    base_tuples: int
    sizes: dict[str, int]
    gained: dict[str, int]
    lost: dict[str, int]
    seconds: float


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
    are derived from them by the new rules, and become those of an epoch after the last one: the changes of that epoch are what
    the new rules change. Epochs before it can be looked at as before.
    """
    if not (folder / "manifest.json").exists() or look_into(folder).is_of(program):
        return None
    before = look_into(folder).program(program.functions)
    store = open_state(folder, before)
    try:
        if store.parts is not None:
            hint = "begin a new state with the new version, from the same updates"
            raise StateError([f"{folder} is in {store.parts} parts, which stay of their program"], hints=[hint])
        whole = store.whole()
        found = whole.recover()
        started = time.perf_counter()
        base = carried(found.base, before, program, defaults or {})
        rules, record = (program.plain, program.record) if isinstance(program, RecordedProgram) else (program, ())
        outputs = output_names(program)
        wanted = rules.relations.keys() & set(outputs)
        session = Session(rules, facts=base.rows, windows=base.windows, wanted=wanted, record=record, limits=limits)
        views = {name: session.relation(name) for name in outputs}
        gained, lost = {}, {}
        for name, view in views.items():
            old = store.view_at(name, found.epoch) if is_same_view(name, before, program) else set()
            now = set(view)
            gained[name], lost[name] = len(now - old), len(old - now)
        seconds = time.perf_counter() - started
        if not dry_run:
            whole.change(program, base, views, defaults or {})
        sizes = {name: len(view) for name, view in views.items()}
        tuples = sum(map(len, base.rows.values()))
        return Upgrade(differences(before, program), found.epoch + 1, tuples, sizes, gained, lost, seconds)
    finally:
        store.close()
