"""What a delta plan is made of: operations on batches of variable assignments, each variable in a numbered slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from whence.lang.program import Rule
from whence.lang.types import Kind, Value
from whence.plan.extract_aggregates import AggregateSpec


@dataclass(frozen=True, slots=True)
class Slot:
    number: int


@dataclass(frozen=True, slots=True)
class Constant:
    value: Value
    kind: Kind


Operand = Slot | Constant


@dataclass(frozen=True, slots=True)
class Scan:
    """Starts from changed rows of a relation: columns into slots, rows that do not fit left out."""

    relation: str
    recursive: bool
    binds: tuple[tuple[int, int], ...]
    equals: tuple[tuple[int, Constant], ...] = ()
    same: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Join:
    """Extends each assignment by the rows of a relation that agree with it on `key`."""

    position: int
    relation: str
    recursive: bool
    key: tuple[tuple[int, Operand], ...]
    binds: tuple[tuple[int, int], ...]
    same: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """Keeps assignments for which a row is there, or is not there."""

    position: int
    relation: str
    recursive: bool
    args: tuple[Operand, ...]
    present: bool


@dataclass(frozen=True, slots=True)
class Compare:
    op: str
    left: Operand
    right: Operand
    kind: Kind


@dataclass(frozen=True, slots=True)
class Compute:
    """Puts a functor's value into a slot; assignments for which it has none are dropped."""

    target: int
    functor: str
    args: tuple[Operand, ...]
    arg_kinds: tuple[Kind, ...]
    kind: Kind


@dataclass(frozen=True, slots=True)
class Build:
    """Makes a record, branch or list. With `rest`, the parts go in front of that list."""

    target: int
    parts: tuple[Operand, ...]
    part_kinds: tuple[Kind, ...]
    kind: Kind
    branch: str | None = None
    rest: Operand | None = None


@dataclass(frozen=True, slots=True)
class TakeApart:
    """The parts of a record, branch or list into slots (and what is left of a list into `rest`); others are dropped."""

    source: Operand
    kind: Kind
    branch: str | None
    parts: tuple[int, ...]
    part_kinds: tuple[Kind, ...]
    rest: int | None = None
    open_ended: bool = False


@dataclass(frozen=True, slots=True)
class Generate:
    """Extends each assignment by the values of a range, one after the other in a slot."""

    target: int
    args: tuple[Operand, ...]
    kind: Kind


Step = Join | Check | Compare | Compute | Build | TakeApart | Generate


def read_by(step: Step) -> set[int]:
    """The slots that a step looks at."""
    operands: tuple[Operand, ...]
    match step:
        case Join(key=key):
            operands = tuple(operand for _, operand in key)
        case Check(args=args) | Compute(args=args) | Generate(args=args):
            operands = args
        case Compare(left=left, right=right):
            operands = (left, right)
        case Build(parts=parts, rest=rest):
            operands = parts if rest is None else (*parts, rest)
        case TakeApart(source=source):
            operands = (source,)
    return {operand.number for operand in operands if isinstance(operand, Slot)}


def bound_by(step: Step) -> set[int]:
    """The slots that a step gives a value to."""
    match step:
        case Join(binds=binds):
            return {slot for _, slot in binds}
        case Compute(target=target) | Build(target=target) | Generate(target=target):
            return {target}
        case TakeApart(parts=parts, rest=rest):
            return {*parts} if rest is None else {*parts, rest}
        case Check() | Compare():
            return set()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class DeltaPlan:
    """What follows for a rule from changes at one of its literals. Plans are told apart by identity.

    `position` is the literal's place in the body. If it is negated, rows that come take derivations away.
    """

    rule: Rule
    position: int
    negated: bool
    scan: Scan | None
    steps: tuple[Step, ...]
    head: tuple[Operand, ...]
    slots: int


@dataclass(frozen=True)
class StratumPlan:
    """Relations evaluated together. `native` strata have delta plans; the others are evaluated anew when an input changes."""

    relations: tuple[str, ...]
    recursive: bool
    native: bool
    why_not_native: str = ""
    deltas: tuple[DeltaPlan, ...] = ()
    # Rules without any atom: they derive the same at all times.
    statics: tuple[DeltaPlan, ...] = ()
    inputs: tuple[str, ...] = ()
    # Relations that hold groups of others.
    aggregates: tuple[AggregateSpec, ...] = ()
    # Relations whose rows have one derivation each, whatever the data.
    distinct: frozenset[str] = frozenset()

    @property
    def is_base(self) -> bool:
        """Whether nothing is derived."""
        return self.native and not (self.deltas or self.statics or self.aggregates)

    @cached_property
    def readers(self) -> Mapping[tuple[str, bool], Sequence[DeltaPlan]]:
        """The plans that begin with changes of a relation, as positive or as negated literals."""
        found: dict[tuple[str, bool], list[DeltaPlan]] = {}
        for plan in self.deltas:
            if plan.scan is not None:
                found.setdefault((plan.scan.relation, plan.negated), []).append(plan)
        return found

    @cached_property
    def onward(self) -> tuple[DeltaPlan, ...]:
        """The plans that begin with rows of the stratum's own."""
        return tuple(plan for name in self.relations for plan in self.readers.get((name, False), ()))

    @cached_property
    def joins_members(self) -> bool:
        """Whether what follows from rows of the stratum is joined with others of it, so that it matters which are the batch."""
        return any(
            isinstance(step, Join | Check) and step.relation in self.relations
            for plan in self.onward
            for step in plan.steps
        )
