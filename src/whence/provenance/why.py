"""Why a fact holds."""

from __future__ import annotations

from dataclasses import dataclass

from whence.html import shown_block, shown_text
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.provenance.base import fact_of
from whence.provenance.derivations import CannotExplain, Derivations
from whence.provenance.derive import derivations_of
from whence.provenance.enough import with_enough
from whence.provenance.expand import Bounds, derivation_graph
from whence.provenance.graph import DerivationGraph
from whence.provenance.proofs import Proof, smallest_proof, smallest_proofs
from whence.provenance.show import show_fact
from whence.provenance.tree import show_proofs
from whence.provenance.views import proof_of_views
from whence.session import Session


@dataclass(frozen=True)
class Why:
    """Proofs, smallest first. `is_certain` tells whether it is known that none is smaller than the first."""

    program: Program
    proofs: tuple[Proof, ...]
    is_certain: bool

    @property
    def shown(self) -> tuple[Proof, ...]:
        """The proofs in terms of the user's tables and views, which is how they are told."""
        return tuple(proof_of_views(each, self.program) for each in self.proofs)

    @property
    def proof(self) -> Proof:
        return self.proofs[0]

    def __str__(self) -> str:
        return show_proofs(self.shown, self.program)

    def _repr_html_(self) -> str:
        return shown_block(shown_text(str(self)))


def why(
    subject: Session | Derivations,
    relation: str | tuple[str, Tuple],
    row: Tuple | None = None,
    *,
    number: int = 1,
    bounds: Bounds = Bounds(),  # noqa: B008 - immutable
) -> Why:
    """The smallest proof of a fact, or the `number` smallest distinct ones. Raises CannotExplain if it does not hold.

    The fact is a relation and a tuple, or a text: `why(session, 'reach("a", "c")')`.

    >>> from whence import Session, load
    >>> session = Session(load("reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z)."
    ...                        ".decl link(x:symbol, y:symbol) .input link .output reach"),
    ...                   facts={"link": [("a", "b"), ("b", "c")]})
    >>> print(why(session, "reach", ("a", "c")))
    reach("a", "c")  by reach#2
    ├─ reach("a", "b")  by reach#1
    │  └─ link("a", "b")
    └─ link("b", "c")
    <BLANKLINE>
    reach#1  <program>:1  reach(x, y) :- link(x, y).
    reach#2  <program>:1  reach(x, z) :- reach(x, y), link(y, z).
    """
    source = derivations_of(subject)
    fact = fact_of(source.program, relation, row)
    if number == 1:
        proof, is_certain = smallest_proof(source, fact, bounds)
        return Why(source.program, (proof,), is_certain)
    graph = with_enough(derivation_graph(source, [fact], bounds), source.program)
    found = smallest_proofs(graph, fact, number)
    if not found:
        raise CannotExplain(f"no proof of {show_fact(fact)} was found within the bounds")
    return Why(source.program, tuple(found), graph.cut is None)


def graph_of(
    subject: Session | Derivations,
    relation: str | tuple[str, Tuple],
    row: Tuple | None = None,
    *,
    bounds: Bounds = Bounds(),  # noqa: B008 - immutable
) -> DerivationGraph:
    """Everything that a fact can be derived from."""
    return derivation_graph(subject, [fact_of(derivations_of(subject).program, relation, row)], bounds)
