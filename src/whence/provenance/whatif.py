"""What would change if base facts went or came, and how much depends on each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from whence.io.changes import Changes, Update
from whence.lang.program import output_names
from whence.provenance.derivations import CannotExplain
from whence.provenance.graph import Fact
from whence.provenance.live import LiveState
from whence.provenance.show import show_fact
from whence.session import Session


class Dependence(NamedTuple):
    """A base fact and the view facts that would go with it."""

    fact: Fact
    lost: int


def whatif(session: Session, *, without: Iterable[Fact] = (), given: Iterable[Fact] = ()) -> Changes:
    """The exact changes if base facts went (`without`) or came (`given`). The session stays as it is.

    >>> from whence import Session, load
    >>> session = Session(load("reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z)."
    ...                        ".decl link(x:symbol, y:symbol) .input link .output reach"),
    ...                   facts={"link": [("a", "b"), ("b", "c")]})
    >>> whatif(session, without=[Fact("link", ("b", "c"))]).deleted["reach"]
    [('b', 'c'), ('a', 'c')]
    """
    gone, come = list(without), list(given)
    state = LiveState(session)
    for fact in gone:
        if not state.is_external(*fact):
            raise CannotExplain(f"{show_fact(fact)} is not among the base facts that were put in, so it cannot go")
    for fact in come:
        if state.is_external(*fact):
            raise CannotExplain(f"{show_fact(fact)} is there already")
    return session.trial([Update("-", *fact) for fact in gone] + [Update("+", *fact) for fact in come])


def rank_dependence(
    session: Session,
    facts: Sequence[Fact] | None = None,
    *,
    of: Iterable[str] | None = None,
    on_fact: Callable[[int], None] = lambda _: None,
) -> list[Dependence]:
    """Base facts by how many facts of the views, or of the relations given, each alone keeps there; the most needed first."""
    if facts is None:
        state = LiveState(session)
        rows = ((name, row) for name in session.program.base_relations for row in session.relation(name))
        facts = [Fact(name, row) for name, row in rows if state.is_external(name, row)]
    views = [name for name in output_names(session.program) if name not in session.program.base_relations]
    shown = views if of is None else list(of)
    found = []
    for at, fact in enumerate(facts):
        on_fact(at)
        deleted = session.trial([Update("-", *fact)]).deleted
        found.append(Dependence(fact, sum(len(deleted.get(name, ())) for name in shown)))
    return sorted(found, key=lambda each: (-each.lost, show_fact(each.fact)))
