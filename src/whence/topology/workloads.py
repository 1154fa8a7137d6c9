"""What happens to the links of a network, epoch after epoch, the same for the same seed.

Most workloads say which links fail and which are repaired (`LinkChanges`), whatever the relation is called and which columns it
has: `changes.epoch("link", Link.pairs)` makes updates of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from whence.io.changes import Epoch, Update
from whence.topology.failures import LinkChanges, Rows, check_outage
from whence.topology.links import Link, Topology
from whence.topology.transit import TransitStub


def come_up(links: Sequence[Link], *, seed: int, per_epoch: int = 1) -> Iterator[LinkChanges]:
    """All links, in random order, so many at a time.

    >>> links = [Link("a", "b", 1, 1), Link("b", "c", 1, 1), Link("c", "d", 1, 1)]
    >>> [[str(link) for link in each.repaired] for each in come_up(links, seed=1, per_epoch=2)]
    [['a-b', 'c-d'], ['b-c']]
    """
    if per_epoch < 1:
        raise ValueError("one link comes up in each epoch, at least")
    shuffled = Random(seed).sample(links, len(links))  # noqa: S311 - repeatable, not secret
    for start in range(0, len(shuffled), per_epoch):
        yield LinkChanges((), tuple(shuffled[start : start + per_epoch]))


def fail_alone(links: Sequence[Link], *, seed: int, epochs: int) -> Iterator[LinkChanges]:
    """One link fails and is repaired in the next epoch, before another one does: each failure by itself.

    >>> links = [Link("a", "b", 1, 1), Link("b", "c", 1, 1)]
    >>> for each in fail_alone(links, seed=1, epochs=3):
    ...     print("failed:", *each.failed, "repaired:", *each.repaired)
    failed: b-c repaired:
    failed: repaired: b-c
    failed: a-b repaired:
    """
    order: list[Link] = []
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    for epoch in range(epochs if links else 0):
        if epoch % 2:
            yield LinkChanges((), (order.pop(),))
            continue
        order = order or draw.sample(links, len(links))
        yield LinkChanges((order[-1],), ())


def fail_around(
    network: Topology | TransitStub, *, seed: int, epochs: int, hops: int = 1, outage: tuple[int, int] = (2, 8)
) -> Iterator[LinkChanges]:
    """Correlated failures: in each epoch a random node fails, and with it every working link within so many hops of it.

    With one hop these are the links of the node. All that failed together are repaired together, after a number of epochs between
    the two of `outage`.

    >>> network = Topology(("a", "b", "c"), (Link("a", "b", 1, 1), Link("b", "c", 1, 1)))
    >>> for each in fail_around(network, seed=3, epochs=3, outage=(1, 1)):
    ...     print("failed:", *each.failed, "repaired:", *each.repaired)
    failed: a-b repaired:
    failed: b-c repaired: a-b
    failed: repaired: b-c
    """
    check_outage(outage)
    if hops < 1:
        raise ValueError("failures reach one hop around a node, at least")
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    at: dict[str, list[Link]] = {node: [] for node in network.nodes}
    for link in network.links:
        at[link.a].append(link)
        at[link.b].append(link)
    down: dict[Link, int] = {}
    for epoch in range(epochs):
        repaired = tuple(link for link, until in down.items() if until <= epoch)
        around = _links_around(draw.choice(network.nodes), at, hops)
        failed = tuple(link for link in around if link not in down)
        for link in repaired:
            del down[link]
        until = epoch + draw.randint(*outage)
        down |= dict.fromkeys(failed, until)
        yield LinkChanges(failed, repaired)


def _links_around(node: str, at: dict[str, list[Link]], hops: int) -> list[Link]:
    found: dict[Link, None] = {}
    reached, edge = {node}, [node]
    for _ in range(hops):
        links = [link for each in edge for link in at[each]]
        found |= dict.fromkeys(links)
        edge = [
            each for each in dict.fromkeys(end for link in links for end in (link.a, link.b)) if each not in reached
        ]
        reached.update(edge)
    return list(found)


def flap(links: Sequence[Link], *, seed: int, epochs: int, flapping: int = 1, period: int = 1) -> Iterator[LinkChanges]:
    """Some links, always the same, fail and are repaired over and over, `period` epochs each way; each begins at its own time.

    >>> links = [Link("a", "b", 1, 1), Link("b", "c", 1, 1)]
    >>> for each in flap(links, seed=1, epochs=4, period=2):
    ...     print("failed:", *each.failed, "repaired:", *each.repaired)
    failed: a-b repaired:
    failed: repaired:
    failed: repaired: a-b
    failed: repaired:
    """
    if not 0 <= flapping <= len(links) or period < 1:
        raise ValueError(f"of {len(links)} links up to {len(links)} can flap, and each way takes one epoch or more")
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    begins = {link: draw.randrange(2 * period) for link in draw.sample(links, flapping)}
    for epoch in range(epochs):
        turns = {link: (epoch - begin) % (2 * period) for link, begin in begins.items() if epoch >= begin}
        yield LinkChanges(
            tuple(link for link, turn in turns.items() if turn == 0),
            tuple(link for link, turn in turns.items() if turn == period),
        )


def refresh(
    links: Sequence[Link],
    *,
    seed: int,
    epochs: int,
    lifetime: int,
    period: int,
    relation: str = "link",
    rows: Rows = Link.tuples,
    storms: Sequence[int] = (),
    share: float = 0.5,
) -> Iterator[Epoch]:
    """Soft state, for a relation with that `.lifetime`: each link is inserted again every `period` epochs, a unit of time apart.

    In an epoch of `storms`, a random share of the links is refreshed at once and then falls silent for twice the lifetime: all of
    them expire together, and come back together.

    >>> links = [Link("a", "b", 1, 1), Link("b", "c", 1, 1)]
    >>> for each in refresh(links, seed=4, epochs=3, lifetime=4, period=2, rows=Link.pairs):
    ...     print(each.now, *(update.tuple for update in each.updates))
    0.0 ('a', 'b') ('b', 'a') ('b', 'c') ('c', 'b')
    1.0 ('b', 'c') ('c', 'b')
    2.0 ('a', 'b') ('b', 'a')
    """
    if not 1 <= period < lifetime:
        raise ValueError("links are refreshed before their lifetime is over: 1 <= period < lifetime")
    if not 0 <= share <= 1:
        raise ValueError(f"a share is between 0 and 1, not {share}")
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    phase = {link: draw.randrange(period) for link in links}
    silent_until = dict.fromkeys(links, 0)
    for epoch in range(epochs):
        hit = set(draw.sample(links, round(share * len(links)))) if epoch in storms else set()
        fresh = [
            link
            for link in links
            if (epoch in (0, silent_until[link]) or epoch % period == phase[link] or link in hit)
            and epoch >= silent_until[link]
        ]
        silent_until |= dict.fromkeys(hit.intersection(fresh), epoch + 2 * lifetime)
        updates = [Update("+", relation, row, float(epoch)) for link in fresh for row in rows(link)]
        yield Epoch(updates, now=float(epoch))
