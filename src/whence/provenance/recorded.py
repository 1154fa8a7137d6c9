"""Derivations that a session has recorded."""

from __future__ import annotations

from collections.abc import Iterator

from whence.lang.program import Atom
from whence.provenance.graph import Derivation, Fact
from whence.reference.solve import Solver
from whence.session import Session


def recorded_derivations(session: Session, rule: str) -> Iterator[Derivation]:
    """Every firing of a rule of a recorded relation. Absences and aggregates are not part of what is recorded.

    >>> from whence import Session, load
    >>> session = Session(load("r: p(x) :- e(x, y), e(y, x). .decl e(x:number, y:number) .input e .output p"),
    ...                   facts={"e": [(1, 2), (2, 1)]}, record=["p"])
    >>> sorted(firing.body[0].tuple for firing in recorded_derivations(session, "r"))
    [(1, 2), (2, 1)]
    """
    recording = session.recordings.get(rule)
    if recording is None:
        raise ValueError(f"rule {rule} is not recorded; recorded are {', '.join(session.recordings) or 'none'}")
    solver = Solver(session.program, {}, recording.rule)
    atoms = [literal for literal in recording.rule.body if isinstance(literal, Atom)]
    names = [each.name for each in recording.variables]
    backend = session.backend
    for row in backend.decode(recording.relation, backend.table(recording.relation).ids()):
        environment = dict(zip(names, row, strict=True))
        head, *body = (
            Fact(atom.relation, tuple(solver.value(arg, environment) for arg in atom.args))
            for atom in (recording.rule.head, *atoms)
        )
        yield Derivation(rule, head, tuple(body))
