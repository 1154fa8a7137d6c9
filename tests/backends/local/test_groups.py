"""Groups that several threads find and go through."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from whence import Session, Update, load
from whence.backends.local import parallel

RULES = """.decl r(i:number, k:number, v:number) .input r
.decl told(k:number, n:number, total:number, most:number) .output told
told(k, n, total, most) :-
  r(_, k, _), n = count : { r(_, k, _) }, total = sum v : { r(_, k, v) }, most = max v : { r(_, k, v) }.
.decl whole(n:number) .output whole
whole(n) :- n = count : { r(_, _, _) }.
"""


@pytest.mark.parametrize("cores", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2, 40])
def test_groups_are_shared_by_threads(groups: int, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "LARGE", 8)
    monkeypatch.setattr(parallel, "CORES", cores)
    rng = random.Random(groups)
    rows = {(at, rng.randrange(groups), rng.randrange(-50, 50)) for at in range(300)}
    session = Session(load(RULES), facts={"r": rows})
    for _ in range(4):
        values: defaultdict[int, list[int]] = defaultdict(list)
        for _, k, v in rows:
            values[k].append(v)
        assert set(session.relation("told")) == {(k, len(own), sum(own), max(own)) for k, own in values.items()}
        assert set(session.relation("whole")) == {(len(rows),)}
        gone = set(rng.sample(sorted(rows), 60))
        session.apply(Update("-", "r", row) for row in gone)
        rows -= gone
