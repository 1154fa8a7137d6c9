"""What a stratum under maintenance can be asked, whichever way it is maintained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol

from whence.engine.protocol import EXTERNAL, Backend, Ids, Keys, Ranks
from whence.plan.steps import DeltaPlan, StratumPlan


@dataclass
class Delta(Generic[Ids]):
    """The rows of a relation that came and that went in this epoch."""

    added: Ids
    gone: Ids


class Ranking(Enum):
    """NONE: there are no ranks. WELL_FOUNDED: each row has a derivation from rows of its stratum that rank lower. EXACT: ranks
    are also the rounds in which a fresh evaluation makes the rows, so that no derivation is shorter.
    """

    NONE = 0
    WELL_FOUNDED = 1
    EXACT = 2


class MaintainedStratum(Protocol[Ids, Keys, Ranks]):
    plan: StratumPlan
    backend: Backend[Ids, Keys, Ranks]

    @property
    def ranking(self) -> Ranking:
        """What the ranks of its rows tell."""
        ...

    def maintain(
        self,
        removed: Mapping[str, Keys],
        inserted: Mapping[str, Keys],
        inputs: Mapping[str, Delta[Ids]],
        *,
        first: bool,
    ) -> dict[str, Delta[Ids]]:
        """One epoch, given what was taken out and put in from outside and what changed below.

        The first epoch also derives what needs no input.
        """
        ...

    def revise(
        self,
        plan: StratumPlan,
        inputs: Mapping[str, Delta[Ids]],
        dropped: Sequence[DeltaPlan],
        added: Sequence[DeltaPlan],
    ) -> dict[str, Delta[Ids]] | None:
        """One epoch in which rules go and come, each given by one plan, and inputs change.

        None, and nothing has happened, if it is not maintained from single derivations.
        """
        ...

    def are_outside(self, name: str, keys: Keys) -> list[bool]:
        """For each row, whether it was put in from outside."""
        ...

    def outside(self, name: str) -> Keys:
        """The rows that were put in from outside."""
        ...


class FlaggedStratum(Generic[Ids, Keys, Ranks]):
    """A stratum whose tables hold all rows from outside, flagged."""

    plan: StratumPlan
    backend: Backend[Ids, Keys, Ranks]

    @property
    def ranking(self) -> Ranking:
        return Ranking.NONE

    def are_outside(self, name: str, keys: Keys) -> list[bool]:
        return self.backend.have_flag(name, keys, EXTERNAL)

    def outside(self, name: str) -> Keys:
        return self.backend.rows(name, having=EXTERNAL)
