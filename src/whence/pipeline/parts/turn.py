"""A state in parts that becomes another one: of another version of its program, or in another number of parts.

Base tuples go through this process, all of them. The views of parts that need nothing of each other are derived part by part;
where parts need each other they are derived at once. The turn is an epoch of its own: what was before can be looked at as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from whence.lang.program import Program, output_names
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.pipeline.base import Base
from whence.pipeline.carry import Defaults, carried
from whence.pipeline.files import StateError
from whence.pipeline.folder import is_same_view
from whence.pipeline.parts.store import PartedStore
from whence.pipeline.parts.take_apart import share
from whence.pipeline.snapshots import Snapshot
from whence.plan.deal import Dealing, divide
from whence.plan.partition import NotPartitionable, Partitioning
from whence.session import Session

Views = Mapping[str, set[Tuple]]


@dataclass(frozen=True)
class Turned:
    """What it becomes: nothing counts before `publish`. `gained` and `lost` are tuples of outputs with the same columns."""

    store: PartedStore
    epoch: int
    written: list[Snapshot]
    base_tuples: int
    sizes: Mapping[str, int]
    gained: Mapping[str, int]
    lost: Mapping[str, int]

    def publish(self) -> PartedStore:
        """The state as it is from now on."""
        self.store.begin_era(self.written)
        return self.store


def turned(
    state: PartedStore,
    program: Program,
    *,
    parts: int,
    defaults: Defaults | None = None,
    limits: Limits = Limits(),  # noqa: B008 - immutable
    dry_run: bool = False,
) -> Turned:
    """In a dry run nothing is written, so there is nothing to publish.

    Raises StateError if the state cannot be brought over, or the program cannot be in parts.
    """
    state.refuse_lost_epochs()
    outputs = output_names(program)
    try:
        how = divide(program, outputs)
    except NotPartitionable as reason:
        hint = "begin a new state with the new version, from the same updates"
        raise StateError([f"{state.folder} is in parts, which the program cannot be: {reason}"], hints=[hint]) from None
    last = state.last_epoch
    base = carried(state.base(), state.program, program, defaults or {})
    now = replace(
        state.manifest.now_of(program, last, defaults or {}),
        parts=parts,
        columns=how.columns,
        ships=isinstance(how, Dealing),
    )
    after = PartedStore(state.folder, program, now, state.lock)
    written: list[Snapshot] = []
    sizes: dict[str, int] = dict.fromkeys(outputs, 0)
    common: dict[str, int] = dict.fromkeys(outputs, 0)
    old = {name: state.view_at(name, last) if is_same_view(name, state.program, program) else set() for name in outputs}
    for part, (own, views) in enumerate(_parts(program, how, base, parts, limits)):
        kept = {name: views[name] for name in outputs if part in after.holders(name, how)}
        for name, rows in kept.items():
            sizes[name] += len(rows)
            common[name] += len(rows & old[name])
        if not dry_run:
            listed = {name: list(rows) for name, rows in kept.items()}
            snapshot = after.write_snapshot(part, last + 1, own, listed, how)
            written.append(replace(snapshot, source=state.last_source))
    return Turned(
        after,
        last + 1,
        written,
        sum(map(len, base.rows.values())),
        sizes,
        {name: sizes[name] - common[name] for name in outputs},
        {name: len(old[name]) - common[name] for name in outputs},
    )


def _parts(program: Program, how: Partitioning, base: Base, parts: int, limits: Limits) -> Iterator[tuple[Base, Views]]:
    """The base tuples and the views of each part."""
    outputs = output_names(program)
    whole = _views(program, base, outputs, limits) if isinstance(how, Dealing) else None
    for part in range(parts):
        own = share(base, program, how, part, parts)
        if whole is None:
            yield own, _views(how.program_of(part, parts), own, outputs, limits)
        else:
            yield (
                own,
                {
                    name: {row for row in rows if how.part(name, row, parts) in (None, part)}
                    for name, rows in whole.items()
                },
            )


def _views(program: Program, base: Base, outputs: tuple[str, ...], limits: Limits) -> Views:
    session = Session(program, facts=base.rows, windows=base.windows, wanted=outputs, limits=limits)
    return {name: set(session.relation(name)) for name in outputs}
