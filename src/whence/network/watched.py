"""What became of the views in an epoch, moment by moment."""

from __future__ import annotations

from dataclasses import dataclass, field

from whence.io.changes import Changes
from whence.lang.types import Tuple


@dataclass
class Watched:
    """When rows of the views came and went, in this epoch: time, relation, row, whether it came."""

    moments: list[tuple[float, str, Tuple, bool]] = field(default_factory=list)

    def wrong(self) -> list[tuple[float, int]]:
        """How many rows differ from what they are at the end, after each moment."""
        final: dict[tuple[str, Tuple], bool] = {}
        first: dict[tuple[str, Tuple], bool] = {}
        for _, name, row, came in self.moments:
            first.setdefault((name, row), not came)
            final[name, row] = came
        wrong = sum(first[each] != final[each] for each in final)
        result = []
        now = dict(first)
        for time, name, row, came in self.moments:
            each = (name, row)
            wrong += (came != final[each]) - (now[each] != final[each])
            now[each] = came
            result.append((time, wrong))
        return result

    def changes(self) -> Changes:
        net: dict[tuple[str, Tuple], int] = {}
        for _, name, row, came in self.moments:
            net[name, row] = net.get((name, row), 0) + (1 if came else -1)
        inserted: dict[str, list[Tuple]] = {}
        deleted: dict[str, list[Tuple]] = {}
        for (name, row), sign in net.items():
            if sign:
                (inserted if sign > 0 else deleted).setdefault(name, []).append(row)
        return Changes(inserted, deleted)
