"""What would hold if base facts came and went: a session that is asked as if an epoch had been, and is not changed by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from whence.constraints import Broken, ConstraintError
from whence.io.changes import Changes, Update
from whence.lang.program import lasting
from whence.limits import RunawayError
from whence.provenance.copies import Rows
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
    """Tries out sets of changes. `deriver` finds the derivations of the state that is supposed.

    Of a table's equal rows, a change says which copy comes or goes (`lang.tables`), so that a set can hold several.
    """

    def __init__(self, session: Session) -> None:
        self.session = _showing_all(session)
        self.deriver = Deriver(self.session)
        self.rows = Rows(session.program)
        self._outcomes: dict[frozenset[Change], Changes] = {}
        self._refused: dict[frozenset[Change], Broken] = {}

    @property
    def trials(self) -> int:
        """How many sets of changes have been tried out."""
        return len(self._outcomes)

    def outcome(self, changes: frozenset[Change]) -> Changes:
        """What the changes lead to."""
        if changes not in self._outcomes:
            self._outcomes[changes] = self._tried(changes)
            self.deriver.forget()
        return self._outcomes[changes]

    def _tried(self, changes: frozenset[Change]) -> Changes:
        # What goes makes room for a row with the same key.
        ordered = sorted(changes, key=lambda each: (each.op == "+", show_change(each)))
        updates = [Update(op, *self.rows.of(fact)) for op, fact in ordered]
        try:
            return self.session.trial(updates)
        except ConstraintError as error:
            self._refused[changes] = error.broken
        except (RunawayError, FunctionError):
            pass  # with them the program has no result: they bring nothing
        return Changes()

    def refused(self, changes: frozenset[Change]) -> Broken | None:
        """What the changes would break, if a table does not take them."""
        self.outcome(changes)
        return self._refused.get(changes)

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
