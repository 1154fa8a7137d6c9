"""State in parts that ship each other what they need, in rounds, all in this process: as a session has it, over restarts."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.faults import workload
from tests.pipeline.parts.carrier import InProcess
from tests.pipeline.parts.test_keeper import SHORT, Told, as_sets, random_epochs

from whence import Changes, Session, Update, load, reference
from whence.io.changes import Epoch
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.limits import Limits, RunawayError
from whence.pipeline.failures import BatchFailed
from whence.pipeline.options import RunOptions
from whence.pipeline.parts import host
from whence.pipeline.parts.calls import Address, Lines, Unreachable
from whence.pipeline.parts.keeper import PartedKeeper
from whence.pipeline.parts.open import open_state, read_state
from whence.pipeline.parts.orders import Done
from whence.pipeline.parts.rounds import Rounds
from whence.pipeline.parts.store import PartedStore
from whence.pipeline.parts.worker import Order
from whence.pipeline.verify import verify

TOGETHER = load(workload.TOGETHER)


def keep(
    folder: Path, program: Program = TOGETHER, parts: int = 3, carrier: InProcess | None = None, **options: object
) -> PartedKeeper:
    told, facts = options.pop("told", None), options.pop("facts", None)
    sinks = [told.sink] if isinstance(told, Told) else []
    store = open_state(folder, program).in_parts(parts, lambda *_: None)
    assert store.manifest.ships
    run = Rounds(carrier or InProcess())
    return PartedKeeper(store, run, RunOptions(sinks=sinks, **options), tasks=2, facts=facts)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("os.fsync", lambda _: None)  # nothing is lost with a process
    yield
    for house in host._houses.values():
        house.close()
    host._houses.clear()


def link(op: str, *row: object) -> Update:
    return Update(op, "link", row)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(40 if "WHENCE_LONG" in os.environ else 2))
def test_views_and_changes_are_those_of_a_session_over_restarts(seed: int, tmp_path: Path) -> None:
    """Windows, lifetimes, negation and aggregates; parts that are lost, keepers that stop, epochs that come together."""
    source = random.Random(seed)
    base: dict[str, set[Tuple]] = {"link": {("a", "b", 1)}, "node": {("c",)}}
    session = Session(TOGETHER, facts=base)
    told = Told()
    keeper = keep(tmp_path, told=told, facts=base, **SHORT)
    assert as_sets(told.epochs[0], keeper.outputs) == as_sets(session.initial, keeper.outputs)
    pending: list[Epoch] = []
    expected: list[Changes] = []
    for epoch in random_epochs(25, seed):
        pending.append(epoch)
        expected.append(session.apply(epoch.updates, epoch.now))
        if source.random() < 0.4:
            continue
        reports = keeper.apply(pending)
        for report, changes in zip(reports, expected, strict=True):
            assert as_sets(told.epochs[report.epoch], keeper.outputs) == as_sets(changes, keeper.outputs)
            assert report.no_ops == changes.ignored
        assert reports[-1].tuples == {name: len(session.relation(name)) for name in keeper.outputs}
        assert {name: keeper.view(name) for name in keeper.outputs} == {
            name: set(session.relation(name)) for name in keeper.outputs
        }
        pending, expected = [], []
        if source.random() < 0.2:
            for house in host._houses.values():
                house.parts.pop(source.randrange(3), None)
        if source.random() < 0.2:
            keeper.close()
            keeper = keep(tmp_path, told=told, **SHORT)
    keeper.close()
    assert list(verify(open_state(tmp_path, TOGETHER), reference.evaluate)) == []


def test_rounds_and_what_was_shipped_are_reported(tmp_path: Path) -> None:
    keeper = keep(tmp_path, parts=2)
    names = "abcdef"
    (report,) = keeper.apply([Epoch([link("+", a, b, 1) for a, b in pairwise(names)])])
    assert report.exchanges > 2
    assert report.shipped > 10
    assert report.shipped_bytes > 100
    assert f"{report.exchanges} exchanges of " in str(report)
    store = read_state(tmp_path)
    assert isinstance(store, PartedStore)
    own = [store.view_of(part, "reach", 1) for part in range(2)]
    assert all(own)
    assert not own[0] & own[1]
    bases = [store.base_of(part).rows["link"] for part in range(2)]
    assert all(bases)
    assert not bases[0] & bases[1]


def test_the_same_parts_go_on_until_one_is_lost(tmp_path: Path) -> None:
    carrier = InProcess()
    keeper = keep(tmp_path, carrier=carrier)
    for epoch in random_epochs(6, 1):
        keeper.apply([epoch])
    assert carrier.makings == 1
    (house,) = host._houses.values()
    assert {each.member.node.backend.shared for each in house.parts.values()} == {house.shared}
    del house.parts[1]
    keeper.apply(random_epochs(1, 2))
    assert carrier.makings == 2
    assert len(host._houses) == 1, "those of before are forgotten"


def test_who_does_not_know_the_secret_is_not_answered(tmp_path: Path) -> None:
    """As from another process. A house that is closed does not answer either, and one process may have several."""
    keeper = keep(tmp_path / "one")
    other = keep(tmp_path / "other")
    keeper.apply(random_epochs(1, 1))
    other.apply(random_epochs(1, 1))
    ((folder, made),) = [key for key in host._houses if key[0] == str(tmp_path / "one")]
    house = host._houses[folder, made]
    lines = keeper._run._team.lines  # type: ignore[attr-defined]
    post, address = host.Post(folder, made, 10**6, ()), house.office.address
    assert lines.call(address, post) == ""
    with pytest.raises(Unreachable, match="AuthenticationError"):
        Lines(b"guessed").call(address, post)
    house.close()
    with pytest.raises(Unreachable, match="does not answer"):
        lines.call(address, post)


def test_what_was_written_without_a_commit_does_not_count(tmp_path: Path) -> None:
    carrier = InProcess()
    keeper = keep(tmp_path, carrier=carrier)
    keeper.apply(random_epochs(2, 1))
    commit = keeper._store.commit

    def interrupted(_: object) -> None:
        raise InterruptedError

    keeper._store.commit = interrupted  # type: ignore[method-assign]
    with pytest.raises(InterruptedError):
        keeper.apply([Epoch([link("+", "a", "z", 1), link("+", "z", "a", 1)])])
    keeper._store.commit = commit  # type: ignore[method-assign]
    keeper.apply([Epoch([link("+", "x", "y", 1)])])
    assert carrier.makings == 2
    assert ("x", "y") in keeper.view("reach")
    assert not any("z" in row for row in keeper.view("reach"))
    keeper.close()
    assert list(verify(open_state(tmp_path, TOGETHER), reference.evaluate)) == []


def test_an_epoch_that_fails_does_not_happen_and_those_before_it_do(tmp_path: Path) -> None:
    program = load(
        ".decl n(x: number, y: number) .input n .decl up(x: number, y: number) .output up "
        "up(x, y) :- n(x, y). up(x + 1, y) :- up(x, y), up(y, _), x > 5, x < 9000."
    )
    told = Told()
    options = {"told": told, "limits": Limits(max_rounds=50)}
    keeper = keep(tmp_path, program, **options)
    good = [Epoch([Update("+", "n", (x, 1))]) for x in range(3)]
    with pytest.raises(RunawayError, match="keeps deriving"):
        keeper.apply([*good, Epoch([Update("+", "n", (7, 7))]), Epoch([Update("+", "n", (8, 1))])])
    assert keeper.epoch == 3
    assert keeper.view("up") == {(0, 1), (1, 1), (2, 1)}
    assert sorted(told.epochs) == [0, 1, 2, 3]
    keeper.apply([Epoch([Update("+", "n", (4, 1))])])
    keeper.close(delivered=False)
    assert (4, 1) in keep(tmp_path, program, **options).view("up")


def test_parts_that_are_lost_again_and_again_are_given_up(tmp_path: Path) -> None:
    class Leaky(InProcess):
        def make(self, order: Order, made: str, secret: bytes) -> dict[int, Address | Done]:
            found = super().make(order, made, secret)
            for house in host._houses.values():
                house.parts.clear()
            return found

    with pytest.raises(BatchFailed, match="could not begin the parts of the state: part 0 is not there any more"):
        keep(tmp_path, carrier=Leaky())


def test_a_state_in_one_piece_goes_on_in_parts(tmp_path: Path) -> None:
    from whence.pipeline.keeper import ResidentKeeper  # noqa: PLC0415

    whole = open_state(tmp_path, TOGETHER).whole()
    resident = ResidentKeeper(TOGETHER, RunOptions(), store=whole, facts=None)
    session = Session(TOGETHER)
    epochs = list(random_epochs(12, 3))
    for epoch in epochs[:6]:
        resident.apply([epoch])
    resident.hand_over()
    store = whole.in_parts(3, lambda *_: None)
    keeper = PartedKeeper(store, Rounds(InProcess()), RunOptions(), tasks=2)
    keeper.apply(epochs[6:])
    for epoch in epochs:
        session.apply(epoch.updates, epoch.now)
    assert {name: keeper.view(name) for name in keeper.outputs} == {
        name: set(session.relation(name)) for name in keeper.outputs
    }
