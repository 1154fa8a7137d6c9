"""The strategies with provenance: what they are made of, and how they ship."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from whence.lang.program import Program
from whence.network.absorption import ORDERS, OWN, Absorption
from whence.network.aggregate_selection import AggregateSelection, Wanted
from whence.network.annotated import AnnotatedNode, Serials
from whence.network.annotations import Algebra
from whence.network.linear import LinearProgram, compile_linear
from whence.network.minship import Policy
from whence.network.places import node_columns
from whence.network.relative import Relative
from whence.plan import UnsuitableStrategy

if TYPE_CHECKING:
    from whence.network.strategy import NodeState, Surroundings

SECONDS = 1.0  # after which batched shipping tells what it held back
ROWS = 1000  # or from how many rows on


@dataclass(frozen=True)
class Selection:
    """Aggregates that all uses of a relation come down to: rows that none of them needs are not propagated.

    `by` names the attributes that make groups, and each aggregate is an operation and an attribute, `("min", "length")`.
    """

    relation: str
    by: tuple[str, ...]
    aggregates: tuple[tuple[str, str | None], ...]

    @classmethod
    def parse(cls, text: str) -> Selection:
        """From `path by src, dst: min hops, min cost`. Raises ValueError if it is not like that.

        >>> Selection.parse("path by src, dst: min hops, count").aggregates
        (('min', 'hops'), ('count', None))
        """
        front, _, aggregates = text.partition(":")
        match front.split(maxsplit=2), [each.split() for each in aggregates.split(",")]:
            case [relation, "by", by], wanted if all(1 <= len(each) <= 2 for each in wanted):
                found = tuple((each[0], each[1] if len(each) > 1 else None) for each in wanted)
                return cls(relation, tuple(each.strip() for each in by.split(",")), found)
        raise ValueError(f"{text} is not like path by src, dst: min hops, min cost")

    def of(self, program: Program) -> AggregateSelection:
        relation = program.relations.get(self.relation)
        if relation is None:
            raise UnsuitableStrategy(f"there is no relation {self.relation} to select from")
        columns = {each.name: at for at, each in enumerate(relation.fields)}
        named = [*self.by, *(name for _, name in self.aggregates if name is not None)]
        for name in named:
            if name not in columns:
                raise UnsuitableStrategy(f"{self.relation} has no attribute {name}; it has {', '.join(columns)}")
        by = tuple(columns[name] for name in self.by)
        if relation.location is not None and relation.location not in by:
            place = relation.fields[relation.location].name
            raise UnsuitableStrategy(f"groups of {self.relation} have to be by {place} too, which is where they live")
        try:
            wanted = [Wanted(op, None if name is None else columns[name]) for op, name in self.aggregates]
            return AggregateSelection(by, wanted)
        except ValueError as reason:
            raise UnsuitableStrategy(f"cannot select from {self.relation}: {reason}") from None


@dataclass
class _Annotating(LinearProgram):
    """A program on one network: its nodes share what is not a node's own to decide. `algebra` is None if each has its own."""

    algebra: Algebra[Any] | None = None
    serials: Serials = field(default_factory=Serials)
    selections: Mapping[int, AggregateSelection] = field(default_factory=dict)
    ends: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


class _WithProvenance:
    """`period` and `capacity` are those of batched shipping."""

    name: str
    ships: tuple[str, ...] = ("lazy", "batched", "eager")
    is_shared = True  # whether all nodes have one algebra

    def __init__(
        self,
        *,
        period: float | None = SECONDS,
        capacity: int | None = ROWS,
        selections: Sequence[Selection] = (),
    ) -> None:
        self.batched = Policy(period, capacity)
        self.selections = tuple(selections)

    def _algebra(self) -> Algebra[Any]:
        raise NotImplementedError

    def compile(self, program: Program) -> _Annotating:
        linear = compile_linear(program, strategy=self.name)
        columns = node_columns(linear.placed)
        selections = {each.relation: each.of(program) for each in self.selections}
        return _Annotating(
            **{name: getattr(linear, name) for name in LinearProgram.__dataclass_fields__},
            algebra=self._algebra() if self.is_shared else None,
            selections={linear.tables[name]: each for name, each in selections.items()},
            ends={linear.tables[name]: columns[name] for name in linear.placed.program.base_relations},
        )

    def node(self, around: Surroundings, ship: str | None) -> NodeState:
        compiled = around.compiled
        assert isinstance(compiled, _Annotating)
        policy = {"lazy": Policy(), "batched": self.batched, "eager": None}[ship or self.ships[0]]
        return AnnotatedNode(
            around,
            self._algebra() if compiled.algebra is None else compiled.algebra,
            compiled.serials,
            policy=policy,
            selections=compiled.selections,
            ends=compiled.ends,
        )


class AbsorptionStrategy(_WithProvenance):
    """Annotations are Boolean functions. `order` is that of variables: depth first along links, worked out anew or kept by
    labels, as they arrive, or at each node its own."""

    name = "absorption"

    def __init__(self, *, order: str = ORDERS[0], **settings: Any) -> None:
        super().__init__(**settings)
        if order not in ORDERS:
            raise UnsuitableStrategy(f"there is no order {order}; there are {', '.join(ORDERS)}")
        self.order = order
        self.is_shared = order != OWN

    def _algebra(self) -> Absorption:
        return Absorption(self.order)


class RelativeStrategy(_WithProvenance):
    """Annotations are derivation edges."""

    name = "relative"

    def _algebra(self) -> Relative:
        return Relative()


WITH_PROVENANCE: Mapping[str, type[AbsorptionStrategy | RelativeStrategy]] = {
    each.name: each for each in (RelativeStrategy, AbsorptionStrategy)
}
