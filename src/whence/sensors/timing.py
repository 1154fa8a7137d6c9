"""Bounds: how long storing, joining and telling a home take, and by when what an update changes is final.

With hops of at most `hop` seconds and clocks at most `skew` apart:

- a join begins `storing + skew` after its update, so that everything older has been stored by then;
- a replica that was deleted is of no use to anybody `skew + (storing + skew) + joining` later, and one that left its window
  `(storing + skew) + joining + (window + skew)` after it was born;
- a layer of rules takes `storing + skew + joining + homing`, and what it derives is final when all layers below are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from whence.lang.program import Atom
from whence.lang.tree import walk
from whence.sensors.translate import RulePlan, SensorProgram, delivers_home, delivery_of, derives_at_home

_MARGIN = 0.01  # of a hop


@dataclass(frozen=True)
class Timing:
    hop: float
    skew: float  # between any two clocks
    storing: float
    joining: float
    homing: float
    latencies: Mapping[str, float]  # of relations without stages
    staged: Mapping[
        str, tuple[float, float]
    ]  # of relations with stages: where stage 0 begins, and how long a turn takes

    @property
    def patience(self) -> float:
        """From an update until it looks for partners: a little longer, for what arrives in the very last instant."""
        return self.storing + self.skew + self.hop * _MARGIN

    @property
    def forgetting(self) -> float:
        """How long the replica of a deleted tuple is kept; the echo of a flood comes a hop later than the flood itself."""
        return self.skew + self.patience + self.joining + self.hop

    def expiry(self, window: float) -> float:
        return self.patience + self.joining + window + self.skew

    def decided(self, relation: str, stage: int, turn: int, turns: int, root: float) -> float:
        """When a staged relation knows all that an update of time `root` does to one of its stages."""
        begins, layer = self.staged[relation]
        return root + begins + (max(stage, 0) * turns + turn + 1) * layer

    def final(self, program: SensorProgram, relation: str, row: tuple[object, ...], root: float) -> float:
        """When nothing that goes back to updates up to `root` changes a row any more; infinity if it cannot be told."""
        if relation not in self.staged:
            return root + self.latencies[relation]
        column, turn, turns = program.stages[relation]
        return self.decided(relation, int(row[column]), turn, turns, root) + self.staged[relation][1]  # type: ignore[call-overload]


def find_timing(program: SensorProgram, hop: float, skew: float) -> Timing:
    storing = max(
        (
            program.regions.storage_hops(kind, reach)
            for kinds in program.storage.values()
            for kind, reach in kinds.items()
        ),
        default=0,
    )
    joining = 0
    for plan in program.region_plans:
        for (_, join), reach in zip(plan.regions, plan.reaches, strict=True):
            joining = max(joining, program.regions.join_hops(join, reach, plan.walks))
    homing = program.field.longest * hop
    bounds = Timing(hop, skew, storing * hop, joining * hop, homing, {}, {})
    latencies, staged = _latencies(program, bounds)
    return Timing(hop, skew, bounds.storing, bounds.joining, homing, latencies, staged)


def layer_of(program: SensorProgram, plan: RulePlan, timing: Timing) -> float:
    """From a change of what a rule reads until the home of its head knows."""
    if plan.site is None:
        return timing.patience + timing.joining + timing.homing
    locations = {name: relation.location for name, relation in program.program.relations.items()}
    telling = 0.0
    for atom in plan.body.reads:
        delivery = delivery_of(atom, plan.site, locations)
        if delivery is not None and not delivers_home(delivery, program.homes[atom.relation]):
            telling = max(telling, timing.hop if delivery.how == "neighbours" else timing.homing)
    return telling + (0.0 if derives_at_home(plan.body, plan.site, program.homes) else timing.homing)


def _latencies(program: SensorProgram, timing: Timing) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    found: dict[str, float] = {}
    staged: dict[str, tuple[float, float]] = {}
    depth = max(program.field.distances(program.server).values())
    plans: dict[str, list[RulePlan]] = {}
    for plan in program.plans:
        plans.setdefault(plan.rule.head.relation, []).append(plan)
    for stratum in program.program.strata:
        own = set(stratum.relations)
        reads = {
            name: [
                part.relation for plan in plans.get(name, ()) for part in walk(plan.rule.body) if isinstance(part, Atom)
            ]
            for name in stratum.relations
        }
        if stratum.stages:
            below = max((found[each] for names in reads.values() for each in names if each not in own), default=0.0)
            layer = max(layer_of(program, plan, timing) for name in own for plan in plans.get(name, ()))
            for name in own:
                staged[name] = (below + timing.skew, layer + timing.hop * _MARGIN)
                found[name] = inf  # what reads it waits for all stages
            continue
        for name in stratum.relations:
            spec = program.aggregates.get(name)
            if spec is not None:
                found[name] = max(found[each] for each in spec.sources) + 2 * (depth + 1) * timing.hop + timing.homing
            else:
                layers = (
                    layer_of(program, plan, timing)
                    + max(
                        (found.get(part.relation, inf) for part in walk(plan.rule.body) if isinstance(part, Atom)),
                        default=0.0,
                    )
                    for plan in plans.get(name, ())
                )
                found[name] = inf if stratum.recursive else max(layers, default=0.0)
    return found, staged
