"""What would change if base facts went or came, and how much depends on each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from whence.constraints import ConstraintError
from whence.io.bags import as_often
from whence.io.changes import Changes, Update
from whence.lang.bags import named_relations
from whence.lang.program import output_names
from whence.lang.tables import bag_tables, taking_updates
from whence.lang.types import Tuple
from whence.provenance.base import fact_of
from whence.provenance.derivations import CannotExplain
from whence.provenance.graph import Fact
from whence.provenance.live import LiveState
from whence.provenance.show import show_fact
from whence.session import Session


class Dependence(NamedTuple):
    """A base fact, and of the views the facts that would go with it and those that would get another value.

    `cost` is what that costs, by the weights given: what goes counts with its weight, another value with the difference.
    """

    fact: Fact
    lost: int
    changed: int = 0
    cost: float = 0.0


def whatif(
    session: Session,
    *,
    without: Iterable[str | tuple[str, Tuple]] = (),
    given: Iterable[str | tuple[str, Tuple]] = (),
) -> Changes:
    """The exact changes if base facts went (`without`) or came (`given`), as text or tuples. The session stays as it is.

    >>> from whence import Session, load
    >>> session = Session(load("reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z)."
    ...                        ".decl link(x:symbol, y:symbol) .input link .output reach"),
    ...                   facts={"link": [("a", "b"), ("b", "c")]})
    >>> whatif(session, without=[Fact("link", ("b", "c"))]).deleted["reach"]
    [('b', 'c'), ('a', 'c')]
    """
    gone = [fact_of(session.program, each) for each in without]
    come = [fact_of(session.program, each) for each in given]
    state = LiveState(session)
    for fact in gone:
        if not state.is_external(*fact):
            raise CannotExplain(f"{show_fact(fact)} is not among the base facts that were put in, so it cannot go")
    bags = bag_tables(session.program)
    for fact in come:
        if fact.relation not in bags and state.is_external(*fact):
            raise CannotExplain(f"{show_fact(fact)} is there already")
    try:
        changes = session.trial([Update("-", *fact) for fact in gone] + [Update("+", *fact) for fact in come])
    except ConstraintError as error:
        raise CannotExplain(f"{error.broken}; {error.broken.advice}") from None
    return _told(session, changes)


def _told(session: Session, changes: Changes) -> Changes:
    """What would change in the tables and views that people know, rows as often as they would come and go."""
    return as_often(session.program, changes, named_relations(session.program))


def rank_dependence(
    session: Session,
    facts: Sequence[Fact] | None = None,
    *,
    of: Iterable[str] | None = None,
    weight: Callable[[Fact], float | None] | None = None,
    on_fact: Callable[[int], None] = lambda _: None,
) -> list[Dependence]:
    """Base facts by how many facts of the views, or of the relations given, each alone keeps as they are; the most needed first.

    Rows that refer to a fact stay without it. With weights the first is the one whose loss costs most: `weight` gives that of a
    fact of the views, or None for nothing.
    """
    if facts is None:
        state = LiveState(session)
        rows = ((name, row) for name in taking_updates(session.program) for row in session.relation(name))
        facts = [Fact(name, row) for name, row in rows if state.is_external(name, row)]
    views = [name for name in output_names(session.program) if name not in session.program.base_relations]
    shown = frozenset(views if of is None else of)
    found = []
    for at, fact in enumerate(facts):
        on_fact(at)
        outcome = session.trial([Update("-", *fact)], referring=False)
        changes = [each for each in _told(session, outcome) if each.relation in shown]
        replaced = replacements(changes)
        lost = [each for each in changes if each.op == "-" and Fact(each.relation, each.tuple) not in replaced]
        cost = 0.0 if weight is None else _cost([Fact(each.relation, each.tuple) for each in lost], replaced, weight)
        found.append(Dependence(fact, len(lost), len(replaced), cost))
    return sorted(found, key=lambda each: (-each.cost, -each.lost - each.changed, show_fact(each.fact)))


def _cost(lost: Iterable[Fact], replaced: Mapping[Fact, Fact], weight: Callable[[Fact], float | None]) -> float:
    gone = sum(weight(fact) or 0.0 for fact in lost)
    return gone + sum(abs((weight(before) or 0.0) - (weight(after) or 0.0)) for before, after in replaced.items())


def replacements(changes: Iterable[Update]) -> dict[Fact, Fact]:
    """Facts that go while another one comes that differs in the last value only, as a distance or a count does."""
    sides: dict[tuple[str, Tuple], dict[str, list[Tuple]]] = {}
    for op, relation, row, _ in changes:
        if len(row) > 1 and not isinstance(row[-1], str):
            sides.setdefault((relation, row[:-1]), {"+": [], "-": []})[op].append(row)
    return {
        Fact(relation, each["-"][0]): Fact(relation, each["+"][0])
        for (relation, _), each in sides.items()
        if len(each["-"]) == len(each["+"]) == 1
    }
