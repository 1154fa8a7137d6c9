"""What tables know of rows, to be compared however it came about; and updates of relations of pairs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from whence import Program, Session, Update
from whence.backends.local.backend import LocalBackend
from whence.backends.local.kernels import WELL
from whence.lang.types import Tuple


def state(session: Session) -> dict[str, object]:
    """All that is known of all rows, and the work it took."""
    found: dict[str, object] = {}
    for name, table in session.backend.tables.items():
        ids = table.ids()
        known = [table.counts(ids), table._halves(ids, WELL), table.ranks(ids), table.flags(ids)]
        found[name] = sorted(zip(session.backend.decode(name, ids), *(each.tolist() for each in known), strict=True))
    return found | {key: session.last_epoch[key] for key in ("rounds", "derivations", "suspended", "rederived")}


def epochs(program: Program, seed: int, scale: int) -> Iterator[list[Update]]:
    """Many rows, then a few that come and go. Values are close together, or far from each other."""
    rng = random.Random(seed)
    nodes = rng.choice([20, 70, 150])
    there: list[tuple[str, Tuple]] = []
    for relation in ("link", "reach", "store"):
        if relation in program.base_relations:
            pairs = {(rng.randrange(nodes), rng.randrange(nodes)) for _ in range(rng.choice([1, 2, 4]) * nodes)}
            there += [(relation, (scale * x, scale * y)) for x, y in sorted(pairs)]
    yield [Update("+", relation, row) for relation, row in there]
    for _ in range(4):
        gone = rng.sample(there, 5)
        yield [Update("-", relation, row) for relation, row in gone]
        yield [Update("+", relation, row) for relation, row in gone]


def followed(program: Program, seed: int, scale: int = 1) -> list[dict[str, object]]:
    """What is known after each of these epochs."""
    session = Session(program)
    found = []
    for epoch in epochs(program, seed, scale):
        session.apply(epoch)
        found.append(state(session))
    return found


@contextmanager
def batch_by_batch() -> Iterator[None]:
    """Has no loop take several batches, or rounds, in one call."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(LocalBackend, "spread_gain", lambda *_, **__: None)
        patched.setattr(LocalBackend, "spread_loss", lambda *_, **__: None)
        yield
