"""Random programs after their random epochs."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, assume, settings
from tests.properties.programs import BASE, DERIVED, Run

from whence import Session
from whence.lang.types import Tuple
from whence.limits import Limits, RunawayError

LIMITS = Limits(max_rounds=100, max_tuples=5_000)
SOME = settings(
    max_examples=int(os.environ.get("WHENCE_EXAMPLES", "40")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def session_after(run: Run) -> Session:
    """The session; a program that does not end is thrown away."""
    try:
        session = Session(run.program, limits=LIMITS)
        for epoch in run.epochs:
            session.apply(epoch)
    except RunawayError:
        assume(False)
    return session


def base_of(session: Session) -> dict[str, set[Tuple]]:
    return {name: set(session.relation(name)) for name in session.program.base_relations}


def derived_of(session: Session) -> list[str]:
    return [name for name in DERIVED if name not in session.program.base_relations]


__all__ = ["BASE", "DERIVED", "SOME", "base_of", "derived_of", "session_after"]
