"""Random programs after their random epochs."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from tests.properties.excuses import LOOSE, excused, follow
from tests.properties.programs import BASE, DERIVED, Run

from whence import Session
from whence.lang.types import Tuple

SOME = settings(
    max_examples=int(os.environ.get("WHENCE_EXAMPLES", "40")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def session_after(run: Run) -> Session:
    """The session; a program that does not end is thrown away, if the reference does not end either."""
    base: dict[str, set[Tuple]] = {}
    with excused(run.program, base):
        session = Session(run.program, limits=LOOSE)
    for epoch in run.epochs:
        follow(base, epoch)
        with excused(run.program, base):
            session.apply(epoch)
    return session


def base_of(session: Session) -> dict[str, set[Tuple]]:
    return {name: set(session.relation(name)) for name in session.program.base_relations}


def derived_of(session: Session) -> list[str]:
    return [name for name in DERIVED if name not in session.program.base_relations]


__all__ = ["BASE", "DERIVED", "SOME", "base_of", "derived_of", "session_after"]
