"""The aggregates of a stratum: which groups have to be looked at again, and what they hold then.

The row of a group follows from the rows that are in it. Taking away: a group whose value no longer follows from rows of lower
rank loses its row, and what was derived from it goes too. Putting back: groups that got rows are aggregated again; where the
value has changed, the old row goes (with what was derived from it) before the new one comes. So no stale value is there to
feed itself, and costs do not count to infinity when a path is gone.

A group that lost its row is not aggregated again while there is anything else to do: most often a better value is on its
way, and one that is good for a moment only would be derived from in vain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic

from whence.engine.protocol import ADDED, GONE, HIDDEN, SUSPENDED, Backend, GroupOperations, Ids, Keys, Ranks
from whence.plan.extract_aggregates import AggregateSpec

ABSENT = SUSPENDED | HIDDEN


@dataclass
class Groups(Generic[Ids, Keys]):
    """The groups of one aggregate during an epoch. `members` are the relations of the stratum."""

    spec: AggregateSpec
    members: frozenset[str]
    operations: GroupOperations[Ids, Keys]
    touched: list[Keys] = field(default_factory=list)
    waiting: list[Keys] = field(default_factory=list)

    def touch(self, source: str, added: Ids, gone: Ids) -> None:
        """Has the groups of rows that an input gained or lost aggregated again."""
        self.touched += [self.operations.keys_of_added(source, added), self.operations.keys_of(source, gone)]

    def grow(self, source: str, ids: Ids) -> None:
        """Has the groups of rows that came to the stratum aggregated again, unless that cannot change their value."""
        is_told = source == self.spec.rows and self.operations.is_of_numbers
        keys = self.operations.improved(ids, ABSENT) if is_told else self.operations.keys_of(source, ids)
        if len(keys):
            self.touched.append(keys)

    def touch_the_only(self) -> None:
        self.touched.append(self.operations.the_only_key())

    def lose(self, ids: Ids) -> None:
        """Groups whose row is gone."""
        self.waiting.append(self.operations.keys_of(self.spec.output, ids))

    def take(self, *, with_waiting: bool) -> Keys | None:
        """The groups to be aggregated now."""
        keys, self.touched = self.touched, []
        if with_waiting and self.waiting:
            waiting, self.waiting = self.operations.merge(self.waiting), []
            keys.append(self.operations.without_rows(waiting, ABSENT))  # others have a value again
        return self.operations.merge(keys) if keys else None

    def unsupported(self, source: str, ids: Ids, *, is_settled: bool) -> Keys:
        """Rows of groups that `ids` were in and that do not follow any more from rows of lower rank.

        Unless all inputs are settled, what came in this epoch does not count yet.
        """
        is_told = source == self.spec.rows and self.operations.is_of_numbers
        keys = self.operations.weakened(ids, ABSENT) if is_told else self.operations.keys_of(source, ids)
        recursive = tuple(name for name in self.spec.sources if name in self.members)
        return self.operations.unsupported(keys, self._forbid(GONE if is_settled else ADDED | GONE), ABSENT, recursive)

    def outdated(self, keys: Keys) -> tuple[Keys, Keys]:
        """For groups to be aggregated: their rows that have to go, and those that have to come."""
        return self.operations.regroup(keys, self._forbid(GONE), ABSENT)

    def _forbid(self, outside: int) -> Mapping[str, int]:
        """Which rows of the sources are not there; those from outside the stratum by other flags than its own."""
        return {name: ABSENT if name in self.members else outside for name in self.spec.sources}


class Aggregates(Generic[Ids, Keys]):
    """All aggregates of one stratum, in one epoch."""

    def __init__(
        self, specs: Sequence[AggregateSpec], members: frozenset[str], backend: Backend[Ids, Keys, Ranks]
    ) -> None:
        self.groups = [Groups(spec, members, backend.groups(spec)) for spec in specs]

    def begin(self) -> None:
        """The first epoch: groups that are there without any rows."""
        for groups in self.groups:
            if groups.spec.is_single:
                groups.touch_the_only()

    def over(self, relation: str) -> Sequence[Groups[Ids, Keys]]:
        return [groups for groups in self.groups if relation in groups.spec.sources]

    def of(self, relation: str) -> Groups[Ids, Keys] | None:
        return next((groups for groups in self.groups if groups.spec.output == relation), None)

    def best_first(self, relation: str, ids: Ids) -> tuple[Ids, Ids | None]:
        """Of rows about to come, those that come next and those that go on waiting: of what groups are made of, the best first.

        The value of a group is final as soon as no row to come leads to a better one. Where values get worse from row to row,
        as the lengths of paths do, it is so sooner if the best come first; what follows from other values is derived in vain.
        """
        for groups in self.groups:
            if groups.spec.rows == relation and groups.spec.recursive and groups.operations.is_of_numbers:
                return groups.operations.best_first(ids)
        return ids, None

    @property
    def is_pending(self) -> bool:
        return any(groups.touched or groups.waiting for groups in self.groups)

    def settle(
        self,
        is_idle: bool,
        remove: Callable[[str, Keys], None],
        propagate: Callable[[], bool],
        insert: Callable[[str, Keys], None],
    ) -> None:
        """Aggregates again what was touched, and if there is nothing else to do, what is waiting.

        Old values go first, with all that follows from them: that may change what the new values are.
        """
        looked_at = self._take(is_idle)
        while True:
            found = [(groups, *groups.outdated(keys)) for groups, keys in looked_at]
            for groups, old, _ in found:
                if len(old):
                    remove(groups.spec.output, old)
            if not propagate():
                break
        for groups, _, new in found:
            if len(new):
                insert(groups.spec.output, new)

    def settle_in_steps(
        self, is_idle: bool, remove: Callable[[str, Keys], None], insert: Callable[[str, Keys], None]
    ) -> bool:
        """The same, except that after old values went, others have a say first: False, and it is to be called again."""
        looked_at = self._take(is_idle)
        found = [(groups, keys, *groups.outdated(keys)) for groups, keys in looked_at]
        if any(len(old) for _, _, old, _ in found):
            for groups, keys, old, _ in found:
                groups.touched.append(keys)
                if len(old):
                    remove(groups.spec.output, old)
            return False
        for groups, _, _, new in found:
            if len(new):
                insert(groups.spec.output, new)
        return True

    def _take(self, is_idle: bool) -> list[tuple[Groups[Ids, Keys], Keys]]:
        is_idle = is_idle and not any(groups.touched for groups in self.groups)
        taken = ((groups, groups.take(with_waiting=is_idle)) for groups in self.groups)
        return [(groups, keys) for groups, keys in taken if keys is not None]
