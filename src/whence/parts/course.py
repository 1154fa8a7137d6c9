"""The strata of a dealt program in order, and at which of them parts wait for each other.

- A stratum that takes nothing from others is completed by each part alone.
- One that takes what lower strata have derived has to wait until that has been delivered, and is then completed alone: `feeders`.
- Where a stratum ships to itself, parts go through it together: `joint`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from whence.plan import Plan


@dataclass(frozen=True)
class Course:
    """`feeders` has by stratum the last one below whose tuples it takes. `growing` ones lose nothing if no base relation does."""

    plan: Plan
    joint: frozenset[int]
    feeders: Mapping[int, int]
    growing: frozenset[int]
    ranked: frozenset[str]  # relations that are shipped within their stratum: others are complete when they are told of

    @classmethod
    def of(cls, plan: Plan, ships: Mapping[str, str]) -> Course:
        strata = {name: at for at, stratum in enumerate(plan.strata) for name in stratum.relations}
        feeders: dict[int, int] = {}
        ranked = set()
        for out, target in ships.items():
            if out not in strata:
                continue  # nobody needs it
            if strata[out] == strata[target]:
                ranked.add(out)
            else:
                feeders[strata[target]] = max(strata[out], feeders.get(strata[target], 0))
        growing: set[int] = set()
        for at, stratum in enumerate(plan.strata):
            is_positive = stratum.native and not stratum.aggregates and not any(each.negated for each in stratum.deltas)
            if is_positive and all(strata[name] in growing for name in stratum.inputs):
                growing.add(at)
        joint = frozenset(strata[out] for out in ranked)
        return cls(plan, joint, feeders, frozenset(growing), frozenset(ranked))

    def idle(self, changed: Iterable[str]) -> frozenset[int]:
        """The strata in which nothing happens if only these relations are given updates."""
        touched = set(changed)
        idle = set()
        for at, stratum in enumerate(self.plan.strata):
            if touched.isdisjoint(stratum.relations) and touched.isdisjoint(stratum.inputs):
                idle.add(at)
            else:
                touched.update(stratum.relations)
        return frozenset(idle)
