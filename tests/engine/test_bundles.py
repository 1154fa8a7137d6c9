"""Derivations that are counted line by line leave what those counted row by row leave: rows, derivations, ranks, flags."""

from __future__ import annotations

import pytest
from tests.engine.kept import batch_by_batch, followed

from whence import load
from whence.backends.local import blocks, bundles, parallel, spreading
from whence.backends.local.bundles import Source, find_source
from whence.plan import compile_plan

LINK = ".decl link(x: number, y: number) .input link\n"
STORE = ".decl store(x: number, y: number) .input store\n"
REACH = LINK + "reach(x, y) :- link(x, y). "
SQUARED = REACH + "reach(x, z) :- reach(x, y), reach(y, z)."
GUARDED = REACH + "reach(x, z) :- reach(x, y), reach(y, z), x != y, !link(y, x)."
POINTS_TO = (
    LINK
    + STORE
    + "pt(v, o) :- link(v, o). pt(v, o) :- pt(w, o), store(w, v). heap(p, o) :- store(v, w), pt(v, p), pt(w, o). "
    + "pt(v, o) :- heap(p, o), pt(w, p), store(v, w)."
)
THREE = (
    LINK
    + "way(x, 1, y) :- link(x, y). way(x, k, z) :- way(x, k, y), way(y, _, z). way(x, 2, z) :- way(z, _, x), link(x, z)."
)
TURNED = (
    REACH + "back(y, x) :- reach(x, y). reach(x, z) :- back(y, x), reach(y, z). back(x, z) :- reach(x, y), back(y, z)."
)
CONSTANT = REACH + "reach(7, z) :- reach(x, z), link(z, x). reach(x, z) :- reach(x, y), reach(y, z), link(7, y)."
PROGRAMS = {
    "squared": SQUARED,
    "guarded": GUARDED,
    "points to": POINTS_TO,
    "three columns": THREE,
    "turned": TURNED,
    "a constant": CONSTANT,
}


@pytest.fixture(autouse=True, params=["", "blocks", "changing"])
def layout(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "FORCED", request.param)
    monkeypatch.setattr(blocks, "SMALL", 64)


@pytest.mark.parametrize("scale", [1, -37, 1 << 33])
@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_bundles_are_like_rows(text: str, scale: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bundled: list[bool] = []
    start = spreading.Spreading.start

    def watched(self: spreading.Spreading, *args: object, **options: object) -> None:
        start(self, *args, **options)  # type: ignore[arg-type]
        bundled.append(any(each.source is not None for each in self.running))

    monkeypatch.setattr(spreading.Spreading, "start", watched)
    program = load(text)

    for seed in range(4):
        in_bundles = followed(program, seed, scale)
        with batch_by_batch():
            assert followed(program, seed, scale) == in_bundles
    assert any(bundled) or (blocks.FORCED == "" and scale != 1)


def test_whose_rows_are_passed_on() -> None:
    def found(text: str) -> list[Source | None]:
        program = load(text)
        stratum = next(each for each in compile_plan(program).strata if each.recursive)
        arities = {name: relation.arity for name, relation in program.relations.items()}
        plans = [plan for plan in stratum.deltas if plan.scan is not None and plan.scan.relation in stratum.relations]
        return [find_source(plan, arities) for plan in plans]

    assert found(SQUARED) == [Source("reach", True, True), Source("reach", True, False)]
    assert found(SQUARED.replace("reach(y, z).", "reach(y, z), x != z.")) == [None, None], "it is looked at"
    assert found(SQUARED.replace("reach(x, z) :-", "reach(z, x) :-")) == [None, None], "it does not come last"
    assert found(REACH + "reach(y, y) :- reach(x, y).") == [None], "it comes twice"
    assert found(LINK + "reach(x, y) :- link(x, y). reach(x, z) :- reach(y, x), link(y, z).")[0] == Source(
        "link", False, True
    )


def test_several_threads_count_like_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds that are large enough for so many, or are taken for that."""
    monkeypatch.setattr(parallel, "LARGE", 8)
    monkeypatch.setattr(bundles, "MANY", 4)
    for text in PROGRAMS.values():
        program = load(text)
        found = []
        for cores in (1, 2, 3, 5):
            monkeypatch.setattr(parallel, "CORES", cores)
            found.append(followed(program, 1))
        assert all(states == found[0] for states in found)
