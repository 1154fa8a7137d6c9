"""A confederation: peers with their relations, the mappings between them, and what each peer trusts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from whence.lang import tree
from whence.lang.source import Source
from whence.lang.tree import NOWHERE, Span

Files = tuple[tuple[str, str], ...]  # of a confederation: name and text of each


def _span() -> Span:
    return field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of a peer's schema. `key` holds positions; no key, no conflicts."""

    peer: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[int, ...] = ()
    span: Span = _span()

    @property
    def full_name(self) -> str:
        return f"{self.peer}.{self.name}"


@dataclass(frozen=True, slots=True)
class SchemaMapping:
    """`name: body -> exists variables. heads.` Relations have full names, and every `_` of the body a name of its own."""

    name: str
    atoms: tuple[tree.Atom, ...]
    conditions: tuple[tree.Formula, ...]
    heads: tuple[tree.Atom, ...]
    exists: tuple[str, ...] = ()
    span: Span = _span()
    # The mapping that the other direction of a `<->` became.
    reverse: str | None = None

    @property
    def peers(self) -> frozenset[str]:
        return frozenset(peer_of(atom.relation) for atom in (*self.atoms, *self.heads))

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the body, in the order in which they are met."""
        return tuple(dict.fromkeys(variables_of((*self.atoms, *self.conditions))))

    @property
    def shared(self) -> tuple[str, ...]:
        """The variables of the body that the heads use: what an invented value depends on."""
        used = set(variables_of(self.heads))
        return tuple(name for name in self.variables if name in used)


@dataclass(frozen=True, slots=True)
class Distrust:
    """Which derivations of its rows a peer does not count.

    All that is given has to hold of a derivation: it makes a row of `atom` (with `condition`), by its last step `by`; it uses
    base rows of the peer `source`, the mapping `through`, a row that `used` matches; `only_base` if that is to be a base row.
    """

    name: str
    peer: str
    atom: tree.Atom | None = None
    condition: tuple[tree.Formula, ...] = ()
    by: str | None = None
    source: str | None = None
    through: str | None = None
    used: tree.Atom | None = None
    only_base: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Charge:
    """What base rows or the use of a mapping cost in the eyes of `peer`: all rows of a peer, or those that `rows` matches."""

    peer: str
    subject: str | None
    cost: float
    rows: tree.Atom | None = None
    condition: tuple[tree.Formula, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Preference:
    """Peers and mappings in the order in which `peer` likes them. One place more costs more than any charge should."""

    peer: str
    subjects: tuple[str, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Acceptance:
    """`peer` lets rows of its own go that `source` rejected and had got through a mapping in both directions."""

    peer: str
    source: str
    span: Span = _span()


Policy = Distrust | Charge | Preference | Acceptance


@dataclass(frozen=True)
class Confederation:
    source: Source = field(repr=False, compare=False)
    peers: tuple[str, ...]
    relations: Mapping[str, Relation]
    mappings: Mapping[str, SchemaMapping]
    distrusts: tuple[Distrust, ...] = ()
    charges: tuple[Charge, ...] = ()
    acceptances: tuple[Acceptance, ...] = ()
    preferences: tuple[Preference, ...] = ()
    functors: tuple[tree.FunctorDecl, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)

    def relations_of(self, peer: str) -> list[Relation]:
        return [relation for relation in self.relations.values() if relation.peer == peer]

    def policies_of(self, peer: str) -> list[Policy]:
        every: list[Policy] = [*self.distrusts, *self.charges, *self.preferences, *self.acceptances]
        return [policy for policy in every if policy.peer == peer]

    def text_of(self, span: Span) -> str:
        return " ".join(self.source.text[span.start : span.end].split())


def peer_of(relation: str) -> str:
    return relation.partition(".")[0]


def variables_of(nodes: object) -> Iterator[str]:
    return (part.name for part in tree.walk(nodes) if isinstance(part, tree.Variable))
