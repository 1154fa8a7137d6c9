"""How a fact comes from base facts: the value of its derivations in a semiring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from whence.lang.program import Program
from whence.provenance.copies import Rows
from whence.provenance.graph import DerivationGraph, Fact
from whence.provenance.show import show_fact
from whence.provenance.solve import solve_graph
from whence.semiring import SEMIRINGS


def how(
    graph: DerivationGraph,
    fact: Fact,
    semiring: str = "posbool",
    annotate: Callable[[Fact], Any] | None = None,
    *,
    program: Program | None = None,
) -> str:
    """The annotation of a fact, as text; `annotate` gives those of base facts, which else stand for themselves.

    Equal rows of a table go by the same name if the `program` is given.

    Raises NotInThisSemiring where the semiring has no value for it.

    >>> from whence import Session, load
    >>> from whence.provenance.why import graph_of
    >>> session = Session(load("p(x) :- e(x). p(x) :- f(x), e(x). .decl e(x:number) .input e .decl f(x:number) .input f"),
    ...                   facts={"e": [(1,)], "f": [(1,)]})
    >>> graph = graph_of(session, "p", (1,))
    >>> how(graph, Fact("p", (1,)), "polynomial"), how(graph, Fact("p", (1,)))
    ('e(1) + e(1)*f(1)', '{{e(1)}}')
    """
    algebra = SEMIRINGS[semiring]
    row_of = Rows(program).of if program is not None else None

    def annotation(base: Fact) -> Any:
        named = base if row_of is None else row_of(base)
        given = None if annotate is None else annotate(named)
        return algebra.variable(show_fact(named)) if given is None else given

    return algebra.format(solve_graph(graph, algebra, annotation)[fact])
