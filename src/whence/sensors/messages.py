"""What nodes tell each other, and how many bytes it takes on the air."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from whence.lang.types import Tuple, Value, Variant
from whence.runtime.figures import Size
from whence.runtime.process import Message
from whence.runtime.varints import varint_bytes
from whence.sensors.rules import Environment
from whence.topology.paths import Way

STAMP_BYTES = 8  # four of time, two of the node, two of a counter
HEADER_BYTES = 3  # kind, relation or rule, length
_REGISTER_BYTES = 2  # of a sketch


class Stamp(NamedTuple):
    """When something happened by the clock of a node, which node that was, and its how manyth. No two are the same.

    The stamp of its generation identifies a tuple: one that comes back is another one.
    """

    time: float
    node: int
    number: int


Derivation = tuple[str, tuple[Stamp, ...]]  # a rule, and the tuples of its atoms


@dataclass(slots=True)
class Fact:
    """A tuple with its stamps. `root` is when the update came that this one, or its end, goes back to."""

    relation: str
    row: Tuple
    born: Stamp
    root: float
    died: Stamp | None = None

    @property
    def stamp(self) -> Stamp:
        """Of the latest that is known of it."""
        return self.born if self.died is None else self.died

    @property
    def bytes(self) -> int:
        return row_bytes(self.row) + STAMP_BYTES * (1 if self.died is None else 2)

    def copy(self) -> Fact:
        return Fact(self.relation, self.row, self.born, self.root, self.died)


@dataclass(frozen=True, slots=True)
class Told:
    """A fact for a node, or for whoever hears it."""

    fact: Fact

    def size(self) -> Size:
        return Size(data=self.fact.bytes, control=HEADER_BYTES, tuples=1)


@dataclass(frozen=True, slots=True)
class Stored:
    """A fact on its way through its storage region: along `way`, and from its end along each of `sides`."""

    fact: Fact
    way: Way
    sides: tuple[Way, ...] = ()

    def size(self) -> Size:
        return Size(data=self.fact.bytes, control=HEADER_BYTES, tuples=1)


@dataclass(frozen=True, slots=True)
class Flooded:
    """A fact for everybody: who hears it for the first time says it again."""

    fact: Fact

    def size(self) -> Size:
        return Size(data=self.fact.bytes, control=HEADER_BYTES, tuples=1)


class Partial(NamedTuple):
    """Some tuples that go together so far: of the `plan`-th rule, for each atom the stamp of its tuple, or None."""

    plan: int
    is_addition: bool
    environment: Environment
    members: tuple[Stamp | None, ...]
    tests: frozenset[int]  # that are left
    occurrence: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """An update that looks for partners: it is at place `at` of its `way`, on its `walk`-th time along it.

    `found` are the results that still have to be held against what a rule negates.
    """

    fact: Fact
    lead: Way
    way: Way
    at: int
    walk: int
    partials: tuple[Partial, ...]
    found: tuple[Partial, ...] = ()
    is_checking: bool = False

    def size(self) -> Size:
        carried = (*self.partials, *self.found)
        data = sum(2 + sum(map(value_bytes, each.environment.values())) for each in carried)
        stamps = STAMP_BYTES * sum(member is not None for each in carried for member in each.members)
        return Size(data=data, provenance=stamps, control=HEADER_BYTES + STAMP_BYTES, tuples=len(carried))


@dataclass(frozen=True, slots=True)
class Result:
    """That a derivation of a tuple holds from a stamp on, or no longer does."""

    relation: str
    row: Tuple
    derivation: Derivation
    is_addition: bool
    stamp: Stamp
    root: float

    def size(self) -> Size:
        stamps = STAMP_BYTES * (1 + len(self.derivation[1]))
        return Size(data=row_bytes(self.row), provenance=stamps, control=HEADER_BYTES + 1, tuples=1)


@dataclass(frozen=True, slots=True)
class Routed:
    """A message on its way to a node that is not a neighbour."""

    target: Value
    message: Message

    def size(self) -> Size:
        size = self.message.size()
        return size._replace(control=size.control + 2)


@dataclass(frozen=True, slots=True)
class Summary:
    """What the nodes below one in the tree have of some groups of an aggregate: how many ask, and the state of the group."""

    output: str
    groups: tuple[tuple[Tuple, int, tuple[Value, ...] | None], ...]
    root: float
    number: int  # of what this node has said: messages may overtake each other
    is_sketched: bool = False

    def size(self) -> Size:
        each = _REGISTER_BYTES if self.is_sketched else 4
        data = sum(row_bytes(key) + 1 + each * len(state or ()) for key, _, state in self.groups)
        return Size(data=data, control=HEADER_BYTES + 1, tuples=len(self.groups))


def row_bytes(row: Iterable[Value]) -> int:
    return sum(map(value_bytes, row))


def value_bytes(value: Value) -> int:
    match value:
        case int():
            return varint_bytes(2 * abs(value))
        case float():
            return 8
        case str():
            return 1 + len(value.encode(errors="surrogatepass"))
        case None:
            return 1
        case date() | Decimal():
            return 8
        case Variant(args=args):
            return 1 + row_bytes(args)
        case _:
            return 1 + row_bytes(value)
