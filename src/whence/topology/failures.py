"""A stream of link failures and repairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from whence.io.changes import Epoch, Update
from whence.lang.types import Tuple
from whence.topology.links import Link, LinkTuple

Rows = Callable[[Link], Iterable[Tuple]]  # the rows that a link is in a relation


@dataclass(frozen=True, slots=True)
class LinkChanges:
    """What happens to the links at once."""

    failed: tuple[Link, ...]
    repaired: tuple[Link, ...]

    def updates(self) -> Iterator[tuple[str, LinkTuple]]:
        """`-` for each direction of a failed link, `+` for each of a repaired one."""
        yield from (("-", each) for link in self.failed for each in link.tuples())
        yield from (("+", each) for link in self.repaired for each in link.tuples())

    def epoch(self, relation: str, rows: Rows) -> Epoch:
        """The same for a relation whose rows `rows` makes: `Link.pairs`, `Link.priced`, `Link.tuples`, or a function of yours.

        >>> LinkChanges((Link("a", "b", 2, 50),), ()).epoch("wire", Link.pairs).updates[0]
        Update(op='-', relation='wire', tuple=('a', 'b'), time=None)
        """
        down = [Update("-", relation, row) for link in self.failed for row in rows(link)]
        return Epoch(down + [Update("+", relation, row) for link in self.repaired for row in rows(link)])


def fail_and_repair(
    links: Sequence[Link], *, seed: int, epochs: int, failures: int = 1, outage: tuple[int, int] = (2, 8)
) -> Iterator[LinkChanges]:
    """In each epoch some links fail that work; a failed link is repaired after a number of epochs between the two of `outage`.

    >>> a, b = Link("x", "y", 2, 50), Link("y", "z", 2, 50)
    >>> for epoch in fail_and_repair([a, b], seed=1, epochs=4, outage=(2, 2)):
    ...     print("failed:", *epoch.failed, "repaired:", *epoch.repaired)
    failed: x-y repaired:
    failed: y-z repaired:
    failed: repaired: x-y
    failed: x-y repaired: y-z
    """
    check_outage(outage)
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    down: dict[Link, int] = {}
    for epoch in range(epochs):
        up = [link for link in links if link not in down]
        repaired = tuple(link for link, until in down.items() if until <= epoch)
        failed = tuple(draw.sample(up, min(failures, len(up))))
        for link in repaired:
            del down[link]
        down |= {link: epoch + draw.randint(*outage) for link in failed}
        yield LinkChanges(failed, repaired)


def check_outage(outage: tuple[int, int]) -> None:
    if not 1 <= outage[0] <= outage[1]:
        raise ValueError(f"outages last one epoch or more, from the shortest to the longest, not {outage}")
