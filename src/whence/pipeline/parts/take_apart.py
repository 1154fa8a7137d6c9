"""How a state in one piece becomes one in parts."""

from __future__ import annotations

from dataclasses import replace

from whence.lang.program import Program
from whence.pipeline.base import Base
from whence.pipeline.folder import Deliver
from whence.pipeline.parts.store import PartedStore
from whence.pipeline.store import WholeStore
from whence.plan.deal import Dealing, divide
from whence.plan.partition import Partitioning


def take_apart(state: WholeStore, parts: int, deliver: Deliver) -> PartedStore:
    """What sinks may lack of the state is delivered first. What it was before the last epoch is forgotten."""
    how = divide(state.program, state.outputs)
    ships = isinstance(how, Dealing)
    manifest = replace(state.manifest, parts=parts, columns=how.columns, ships=ships, snapshots=())
    parted = PartedStore(state.folder, state.program, manifest, state.lock)
    if state.is_new:
        return parted
    found = state.recover()
    for epoch, changes in found.undelivered:
        deliver(epoch, changes)
    views = {name: state.view_at(name, found.epoch) for name in state.outputs}
    written = []
    for part in range(parts):
        own = {
            name: [row for row in rows if how.part(name, row, parts) in (None, part)]
            for name, rows in views.items()
            if part in parted.holders(name, how)
        }
        written.append(
            parted.write_snapshot(part, found.epoch, share(found.base, state.program, how, part, parts), own, how)
        )
    parted.publish_snapshots(written, found.source, None, delivered=found.epoch, retain=0)
    return parted


def share(base: Base, program: Program, how: Partitioning, part: int, parts: int) -> Base:
    """The base tuples that a part needs."""
    own = Base(program)
    own.windows.advance(base.windows.clock)
    for name, rows in base.rows.items():
        timed = base.windows.times(name) if base.windows.forgets(name) else dict.fromkeys(rows, 0.0)
        own.restore(name, ((row, time) for row, time in timed.items() if how.part(name, row, parts) in (None, part)))
    return own
