"""A program's views kept current, with everything that follows from an epoch: durable state, sinks, figures."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.pipeline.epochs import Epoch
from whence.pipeline.sinks import Sink
from whence.reference import Limits
from whence.session import Changes, Session


@dataclass(frozen=True, slots=True)
class EpochReport:
    """What an epoch did and took. `tuples` are the sizes of the output relations after it."""

    epoch: int
    updates: int
    no_ops: int
    inserted: int
    deleted: int
    rounds: int
    seconds: float
    tuples: Mapping[str, int]
    state_bytes: int


class Keeper:
    """Applies epochs, in order, and hands their changes on."""

    def __init__(
        self,
        program: Program,
        *,
        sinks: Sequence[Sink] = (),
        facts: Mapping[str, Iterable[Tuple]] | None = None,
        strategy: str = "support",
        limits: Limits = Limits(),  # noqa: B008 - immutable
    ) -> None:
        self.program = program
        self.outputs = output_names(program)
        self.sinks = sinks
        self.session = Session(program, facts=facts, strategy=strategy, limits=limits)
        self.epoch = 0
        self.sizes: Counter[str] = Counter()
        self._deliver(0, self._shown(self.session.initial))

    def apply(self, epochs: Sequence[Epoch]) -> list[EpochReport]:
        """All or nothing of it is durable; sinks get it afterwards."""
        reports = []
        for each in epochs:
            started = time.perf_counter()
            before = self.session.rounds
            changes = self.session.apply(each.updates, now=each.now)
            self.epoch += 1
            self._deliver(self.epoch, self._shown(changes))
            reports.append(self._report(each, changes, before, time.perf_counter() - started))
        return reports
