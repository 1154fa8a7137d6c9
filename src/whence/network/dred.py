"""A node under delete and rederive, on the tables of support counting: whatever loses a derivation is suspended."""

from __future__ import annotations

from whence.lang.types import Tuple
from whence.network.node import Home, Offer, SupportNode
from whence.network.ranks import BASE_RANK


class DredNode(SupportNode):
    """The same, without ranks: what loses a derivation while tuples are taken away is suspended until they are put back."""

    def _is_lost(self, home: Home, rank: int | None) -> bool:
        return rank is None and (self.is_taking or not home.entries)

    def _is_worse(self, _offer: Offer, lowest: int | None) -> bool:
        return lowest is None or self.is_taking

    def _said(self, lowest: int | None) -> int | None:
        return None if self.is_taking or lowest is None else 0

    def _above(self, rank: int, row: Tuple) -> int:  # noqa: ARG002 - ranks say nothing
        return BASE_RANK

    def _simplify(self, table: int, row: Tuple, offer: Offer) -> None:
        if len(offer.counts) == 1:
            ((rank, count),) = offer.counts.items()
            if count == 1:
                self.offers[table][row] = rank
