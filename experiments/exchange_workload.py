"""Confederations as the papers on update exchange measured them, from a seed.

One universal relation of 25 attributes. Every peer splits them at random into two relations that share a key; a mapping joins the
relations of its source and fills those of its target. Mappings make a tree, from a peer to one that came later, or as
many more as a fan asks for. Entries are integers, or strings of 1 KB, of which an attribute has 2,000.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

from whence.exchange import Edit, Instance, load_confederation
from whence.exchange.compile import table_of
from whence.exchange.model import Confederation
from whence.lang.types import Tuple, Value

ATTRIBUTES = 25
_LETTERS, _TEXTS = "ACDEFGHIKLMNPQRSTVWY", 2_000


@dataclass
class Workload:
    """`base` has the entries of each peer by their keys; an entry becomes a row of each of the peer's two relations."""

    peers: int
    entries: int
    seed: int
    fan: int = 1
    bases: float = 1.0  # in how many of them an entry is, on the average
    strings: bool = False
    base: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self.splits = [self._split() for _ in range(self.peers)]
        self.edges = sorted(self._tree())
        pool = range(max(self.entries, int(self.peers * self.entries / self.bases)))
        if self.bases > 1:
            self.base = [self._random.sample(pool, self.entries) for _ in range(self.peers)]
        else:
            self.base = [list(pool[at * self.entries : (at + 1) * self.entries]) for at in range(self.peers)]
        self._fresh = len(pool)

    def _split(self) -> tuple[list[int], list[int]]:
        attributes = list(range(ATTRIBUTES))
        self._random.shuffle(attributes)
        middle = ATTRIBUTES // 2
        return sorted(attributes[:middle]), sorted(attributes[middle:])

    def _tree(self) -> Iterator[tuple[int, int]]:
        """Every peer but the first gets from an earlier one; with a fan of n, from n of them as far as there are."""
        for target in range(1, self.peers):
            sources = self._random.sample(range(target), min(self.fan, target))
            yield from ((source, target) for source in sources)

    # -- the confederation

    def confederation(self, peers: int | None = None) -> Confederation:
        """That of the first peers, by default all."""
        count = self.peers if peers is None else peers
        type_ = "symbol" if self.strings else "number"
        lines = []
        for at in range(count):
            relations = [
                f"R{side}(k: number, {', '.join(f'a{each}: {type_}' for each in split)}) key (k)."
                for side, split in enumerate(self.splits[at])
            ]
            lines.append(f"peer P{at} {{ {' '.join(relations)} }}")
        for source, target in self.edges:
            if target < count:
                lines.append(f"m{source}_{target}: {self._atoms(source)} -> {self._atoms(target)}.")
        return load_confederation([("workload.peers", "\n".join(lines))])

    def _atoms(self, peer: int) -> str:
        return ", ".join(
            f"P{peer}.R{side}(k, {', '.join(f'v{each}' for each in split)})"
            for side, split in enumerate(self.splits[peer])
        )

    # -- entries

    def values(self, key: int) -> list[Value]:
        """Integers as hashes of text are: some attributes have many values, some few."""
        made = random.Random(f"{self.seed} {key}")
        if self.strings:
            return [_text(at, made.randrange(_TEXTS)) for at in range(ATTRIBUTES)]
        return [made.randrange(10 ** (3 + at % 7)) for at in range(ATTRIBUTES)]

    def edits(self, op: str, chosen: Iterable[tuple[int, int]]) -> list[Edit]:
        """Of entries: the peer and the key of each."""
        made: dict[int, list[Value]] = {}
        found = []
        for peer, key in chosen:
            if key not in made:
                made[key] = self.values(key)
            for side, split in enumerate(self.splits[peer]):
                row: Tuple = (key, *(made[key][each] for each in split))
                found.append(Edit(op, "local", f"P{peer}.R{side}", row))
        return found

    def all_edits(self) -> list[Edit]:
        return self.edits("+", ((peer, key) for peer, keys in enumerate(self.base) for key in keys))

    def deletions(self, share: float) -> list[Edit]:
        """A share of every peer's entries goes."""
        chosen = random.Random(f"deletions {self.seed}")
        return self.edits(
            "-",
            (
                (peer, key)
                for peer, keys in enumerate(self.base)
                for key in chosen.sample(keys, round(share * len(keys)))
            ),
        )

    def insertions(self, share: float, number: int = 0) -> list[Edit]:
        """As many fresh entries at every peer as a share of its own are: others for each number."""
        count = round(share * self.entries)
        first = self._fresh + number * self.peers * count
        return self.edits(
            "+", ((peer, first + peer * count + each) for peer in range(self.peers) for each in range(count))
        )


@cache
def _text(attribute: int, number: int) -> str:
    return "".join(random.Random(f"{attribute} {number}").choices(_LETTERS, k=1024))


def processor_time(action: Callable[[], object]) -> float:
    """Seconds of the processor: the machine may have other things to do."""
    gc.collect()
    gc.freeze()  # what the workload itself keeps is not for the action to look through
    start = time.process_time()
    action()
    spent = time.process_time() - start
    gc.unfreeze()
    return spent


def counted(instance: Instance) -> tuple[int, int]:
    """Rows in peers' relations, and derivations of mappings."""
    session, confederation = instance.session, instance.confederation
    peer_rows = sum(len(session.relation(name)) for name in confederation.relations)
    return peer_rows, sum(len(session.relation(table_of(name))) for name in confederation.mappings)


def check_instance(instance: Instance, edits: Iterable[Edit]) -> None:
    """Raises if an instance is not what follows from the edits, of which those that delete come last."""
    kept: dict[tuple[str, str, Tuple], Edit] = {}
    for each in edits:
        if each.op == "+":
            kept[each[1:]] = each
        else:
            del kept[each[1:]]
    fresh = Instance(instance.confederation, kept.values())
    for name in instance.confederation.relations:
        if instance.relation(name) != fresh.relation(name):
            raise AssertionError(f"{name} is wrong")
