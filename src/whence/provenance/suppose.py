"""What would hold if base facts came and went: a session that is asked as if an epoch had been, and is not changed by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from whence.io.changes import Changes, Update
from whence.lang.program import lasting
from whence.limits import RunawayError
from whence.provenance.derive import Deriver
from whence.provenance.graph import Fact
from whence.provenance.show import show_fact
from whence.reference import FunctionError
from whence.session import Session


class Change(NamedTuple):
    """A base fact that comes (`+`) or goes (`-`)."""

    op: str
    fact: Fact


def show_change(change: Change) -> str:
    return f"{change.op} {show_fact(change.fact)}"


class Supposition:
    """Tries out sets of changes. `deriver` finds the derivations of the state that is supposed."""

    def __init__(self, session: Session) -> None:
        self.session = _showing_all(session)
        self.deriver = Deriver(self.session)
        self._outcomes: dict[frozenset[Change], Changes] = {}

    @property
    def trials(self) -> int:
        """How many sets of changes have been tried out."""
        return len(self._outcomes)

    def outcome(self, changes: frozenset[Change]) -> Changes:
        """What the changes lead to."""
        if changes not in self._outcomes:
            updates = [Update(op, *fact) for op, fact in sorted(changes, key=show_change)]
            self._outcomes[changes] = self._tried(updates)
            self.deriver.forget()
        return self._outcomes[changes]

    def _tried(self, updates: list[Update]) -> Changes:
        try:
            return self.session.trial(updates)
        except (RunawayError, FunctionError):
            return Changes()  # with them the program has no result: they bring nothing

    @contextmanager
    def suppose(self, changes: frozenset[Change]) -> Iterator[Deriver]:
        """The state after the changes, for as long as the context lasts."""
        state = self.deriver.state
        state.suppose(self.outcome(changes), {each.fact: each.op == "+" for each in changes})
        try:
            yield self.deriver
        finally:
            state.suppose(Changes(), {})

    def brings(self, fact: Fact, changes: Iterable[Change]) -> bool:
        """Whether a fact that does not hold would hold with the changes."""
        return fact.tuple in self.outcome(frozenset(changes)).inserted.get(fact.relation, ())


def _showing_all(session: Session) -> Session:
    """The session; if it shows only some of its relations, one that shows all, since every change has to be seen."""
    try:
        for name in session.program.relations:
            session.relation(name)
    except ValueError:
        return Session(lasting(session.program), facts=session.base())
    return session
