"""A program made ready for sessions: planned once, however many there are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Protocol

from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.shared import Shared
from whence.constraints import Constraints
from whence.engine.dred import DredStratum
from whence.engine.maintain import Native, absorb
from whence.engine.support import SupportStratum
from whence.lang.program import Program, Relation
from whence.plan import JoinOrder, Plan, compile_counting, compile_plan, compile_recomputation, most_bound
from whence.plan.record import Recording, record_derivations, refuse_unrecordable


class _Compile(Protocol):
    def __call__(
        self,
        program: Program,
        wanted: Iterable[str] | None,
        sizes: Mapping[str, int] | None,
        join_order: JoinOrder,
        /,
        *,
        lean: bool = False,
    ) -> Plan: ...


class Method(NamedTuple):
    """What a strategy does: how a program is planned, and how strata with delta plans are maintained."""

    compile: _Compile
    native: Native[Ids, Lines, Ids]


STRATEGIES: Mapping[str, Method] = {
    "support": Method(compile_plan, SupportStratum),
    "counting": Method(compile_counting, SupportStratum),
    "dred": Method(compile_plan, DredStratum),
    "absorption": Method(compile_plan, absorb),
    "recompute": Method(compile_recomputation, SupportStratum),
}


@dataclass(frozen=True)
class Prepared:
    """What sessions of one program have in common: its plan, where derivations are recorded, the words that stand for values.

    `base` are the relations that take updates, `wanted` those that can be seen, None standing for all. Any number of sessions
    can be made of it, but only one thread at a time may use any of them: they share memory to work in.
    """

    program: Program
    plan: Plan
    base: frozenset[str]
    wanted: frozenset[str] | None
    record: frozenset[str]
    recordings: Mapping[str, Recording]
    strategy: str
    join_order: JoinOrder
    shared: Shared = field(default_factory=Shared, compare=False)
    # Whether what changes no row is left out of the plan, and what was.
    simplify: bool = False
    simplified: tuple[str, ...] = ()
    # Whether relations that are not wanted need not be whole.
    lean: bool = False

    @property
    def tables(self) -> Mapping[str, Relation]:
        """The relations of recorded derivations."""
        return {each.relation: self.plan.program.relations[each.relation] for each in self.recordings.values()}

    @cached_property
    def constraints(self) -> Constraints:
        """What rows of its tables have to satisfy."""
        return Constraints(self.program)

    def shows(self, name: str) -> bool:
        """Helper relations, whose names hold a `!`, are not shown, but for those of recorded derivations."""
        if any(name == each.relation for each in self.recordings.values()):
            return True
        return "!" not in name if self.wanted is None else name in self.wanted

    def revised(self, program: Program, sizes: Mapping[str, int], seen: Iterable[str] | None = None) -> Prepared:
        """The same for another program, whose values are the same words. Relations that took updates go on taking them.

        If it is not told which relations are to be seen, outputs that are new are, beside those of before.
        """
        base = self.base & program.relations.keys()
        wanted, kept = self.wanted if seen is None else frozenset(seen), None
        if wanted is not None:
            if seen is None:
                outputs = {transfer.relation for transfer in program.transfers_of("output")}
                wanted |= outputs - self.program.relations.keys()
            kept = wanted & program.relations.keys() | base.difference(program.base_relations)
        compiled = _compile(
            program,
            kept,
            strategy=self.strategy,
            record=self.record,
            sizes=sizes,
            join_order=self.join_order,
            simplify=self.simplify,
            lean=self.lean,
        )
        base = base.union(program.base_relations)
        return replace(self, program=program, base=base, wanted=wanted, **compiled._asdict())


def prepare(
    program: Program,
    *,
    wanted: Iterable[str] | None = None,
    strategy: str = "support",
    record: Collection[str] = (),
    sizes: Mapping[str, int] | None = None,
    join_order: JoinOrder = most_bound,
    shared: Shared | None = None,
    simplify: bool = False,
    lean: bool = False,
) -> Prepared:
    """Plans a program for any number of sessions.

    `wanted` names the relations to be seen, by default all: what they do not need is not derived. The derivations of the
    relations in `record` are kept as relations too. `sizes` tells how many rows relations will have, as far as that is known;
    `join_order` picks by them. Programs that are given what another has `shared` have their values for the same words. If told
    to `simplify`, it looks for rules and joins that change no row, which takes time where there are many alike; recorded
    derivations tell them apart, so nothing goes then. If it may be `lean`, relations that are not wanted are derived as far as
    the others need them, perhaps without columns: whoever asks why rows are there should not have it so.

    >>> from whence import Session, load
    >>> prepared = prepare(load(".decl p(x:number) .input p .decl q(x:number) .output q q(x + 1) :- p(x)."))
    >>> [Session(prepared, facts={"p": [(number,)]}).views()["q"] for number in range(3)]
    [{(1,)}, {(2,)}, {(3,)}]
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"there is no strategy {strategy}; there are {', '.join(STRATEGIES)}")
    seen = None if wanted is None else frozenset(wanted)
    if unknown := (seen or frozenset()) - program.relations.keys():
        raise ValueError(f"there is no relation {min(unknown)}; there are {', '.join(program.relations)}")
    recorded = frozenset(record)
    compiled = _compile(
        program,
        seen,
        strategy=strategy,
        record=recorded,
        sizes=sizes,
        join_order=join_order,
        simplify=simplify,
        lean=lean,
    )
    refuse_unrecordable(program, compiled.plan, recorded)
    base = frozenset(program.base_relations)
    return Prepared(
        program,
        base=base,
        wanted=seen,
        record=recorded,
        strategy=strategy,
        join_order=join_order,
        shared=shared or Shared(),
        simplify=simplify,
        lean=lean,
        **compiled._asdict(),
    )


class _Compiled(NamedTuple):
    plan: Plan
    recordings: Mapping[str, Recording]
    simplified: tuple[str, ...]


def _compile(
    program: Program,
    wanted: frozenset[str] | None,
    *,
    strategy: str,
    record: frozenset[str],
    sizes: Mapping[str, int] | None,
    join_order: JoinOrder,
    simplify: bool,
    lean: bool,
) -> _Compiled:
    simplified: tuple[str, ...] = ()
    if simplify and not record:
        from whence.plan.simplify import simplify as without_superfluous  # noqa: PLC0415 - few want it

        program, simplified = without_superfluous(program)
    planned, recordings = record_derivations(program, record)
    if wanted is not None:
        wanted |= {each.relation for each in recordings.values()}
    plan = STRATEGIES[strategy].compile(planned, wanted, sizes, join_order, lean=lean)
    refuse_unrecordable(program, plan, {each.rule.head.relation for each in recordings.values()})
    return _Compiled(plan, recordings, simplified)
