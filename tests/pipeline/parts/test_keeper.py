"""State in parts, its tasks run one after the other in this process: the same views and changes as a session's."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.faults.workload import PROGRAM

from whence import Changes, Session, Update, load, reference
from whence.io.changes import Epoch
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.limits import Limits, RunawayError
from whence.pipeline.files import StateError, StateWarning
from whence.pipeline.folder import Store
from whence.pipeline.keeper import ResidentKeeper
from whence.pipeline.log import Entry
from whence.pipeline.options import RunOptions
from whence.pipeline.parts import worker
from whence.pipeline.parts.keeper import PartedKeeper
from whence.pipeline.parts.open import Division, choose, open_state, read_state
from whence.pipeline.parts.store import PartedStore
from whence.pipeline.parts.worker import Done, Order
from whence.pipeline.sinks import CallbackSink
from whence.pipeline.store import WholeStore
from whence.pipeline.verify import verify
from whence.plan.record import with_derivations
from whence.reference import EvaluationWarning

EVERYTHING = load(PROGRAM)
SHORT = {"snapshot_every": 4, "retain": 5}


class Told:
    """A sink that knows what it has been told, and when."""

    def __init__(self) -> None:
        self.epochs: dict[int, Changes] = {}
        self.sink = CallbackSink(self.epochs.__setitem__)


def in_turn(order: Order) -> list[Done]:
    return [done for index in range(order.tasks) for done in order(index)]


def keep(
    folder: Path, program: Program = EVERYTHING, parts: int = 3, run: object = in_turn, **options: object
) -> PartedKeeper:
    told = options.pop("told", None)
    sinks = [told.sink] if isinstance(told, Told) else []
    facts, nap = options.pop("facts", None), options.pop("nap", None)
    store = open_state(folder, program).in_parts(parts, lambda *_: None)
    return PartedKeeper(store, run, RunOptions(sinks=sinks, **options), tasks=2, facts=facts, nap=nap)  # type: ignore[arg-type]


def random_epochs(count: int, seed: int) -> Iterator[Epoch]:
    source = random.Random(seed)
    for number in range(count):
        updates = []
        for _ in range(source.randrange(6)):
            op, time = source.choice("++-"), None if source.random() < 0.3 else number + source.random() * 10 - 5
            names = "abcdefgh"
            if source.random() < 0.8:
                row: Tuple = (source.choice(names), source.choice(names), source.randrange(3))
                updates.append(Update(op, "link", row, time))
            else:
                updates.append(Update(op, "node", (source.choice(names),), time))
        yield Epoch(updates, now=number * 3.0 if source.random() < 0.2 else None, source={"line": number})


def as_sets(changes: Changes, names: tuple[str, ...]) -> dict[str, tuple[set[Tuple], set[Tuple]]]:
    return {name: (set(changes.inserted.get(name, ())), set(changes.deleted.get(name, ()))) for name in names}


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("os.fsync", lambda _: None)  # nothing is lost with a process
    yield
    worker._remembered.clear()


@pytest.mark.parametrize("seed", range(40 if "WHENCE_LONG" in os.environ else 2))
def test_views_and_changes_are_those_of_a_session_over_restarts(seed: int, tmp_path: Path) -> None:
    """Windows, lifetimes, negation and aggregates; workers that forget, keepers that stop, epochs that come together."""
    source = random.Random(seed)
    base: dict[str, set[Tuple]] = {"link": {("a", "b", 1)}, "node": {("c",)}}
    session = Session(EVERYTHING, facts=base)
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
            worker._remembered.clear()
        if source.random() < 0.2:
            keeper.close()
            keeper = keep(tmp_path, told=told, **SHORT)
    keeper.close()
    assert list(verify(open_state(tmp_path, EVERYTHING), reference.evaluate)) == []


def test_a_part_holds_its_share_alone(tmp_path: Path) -> None:
    keeper = keep(tmp_path, parts=2)
    links = [Update("+", "link", (a, b, 1)) for a, b in zip("abcdef", "bcdefa", strict=True)]
    keeper.apply([Epoch(links)])
    keeper.close()
    store = read_state(tmp_path)
    assert isinstance(store, PartedStore)
    own = [store.view_of(part, "reach", 1) for part in range(2)]
    assert all(own)
    assert not own[0] & own[1]
    assert own[0] | own[1] == {(a, b) for a in "abcdef" for b in "abcdef"}
    assert {len(store.base_of(part).rows["link"]) for part in range(2)} == {6}
    tables = [pq.read_table(tmp_path / "current" / "reach.parquet" / f"part-{part}.parquet") for part in range(2)]
    assert [table.num_rows for table in tables] == [len(rows) for rows in own]
    assert pq.read_table(tmp_path / "current" / "reach.parquet").num_rows == 36


def test_a_worker_keeps_no_more_than_its_share_and_finds_it_again(tmp_path: Path) -> None:
    seen: list[Done] = []

    def watched(order: Order) -> list[Done]:
        # As if every task had a worker of its own.
        done = []
        for index in range(order.tasks):
            worker._remembered.clear()
            worker._remembered.update(memories[index])
            done += order(index)
            memories[index] = dict(worker._remembered)
        if order.action is worker.Action.APPLY:  # views are published in between
            seen[:] = done
        return done

    memories: list[dict[tuple[str, str], worker._Memory]] = [{}, {}]
    keeper = keep(tmp_path, parts=4, run=watched, snapshot_every=3)
    for epoch in random_epochs(8, 1):
        keeper.apply([epoch])
        assert all(each.remembered for each in seen)
        assert [len(each.held) for memory in memories for each in memory.values()] == [2, 2]
    # A worker that has slept catches up; one that knows nothing reads the files.
    memories.reverse()
    keeper.apply(random_epochs(1, 2))
    assert all(each.remembered for each in seen)
    memories[0] = {}
    keeper.apply(random_epochs(1, 3))
    assert not all(each.remembered for each in seen)
    keeper.close()
    assert list(verify(open_state(tmp_path, EVERYTHING), reference.evaluate)) == []


def test_workers_are_kept_awake_between_epochs(tmp_path: Path) -> None:
    recalled = Event()

    def listening(order: Order) -> list[Done]:
        done = in_turn(order)
        if order.action is worker.Action.RECALL:
            recalled.set()
        return done

    keeper = keep(tmp_path, parts=2, run=listening, nap=0.05)
    session = Session(EVERYTHING)
    for epoch in random_epochs(4, 5):
        recalled.clear()
        assert recalled.wait(60)
        keeper.apply([epoch])
        session.apply(epoch.updates, epoch.now)
    assert keeper.view("reach") == set(session.relation("reach"))
    keeper.close()


def test_the_parts_of_a_worker_share_their_words(tmp_path: Path) -> None:
    keeper = keep(tmp_path)
    keeper.apply(random_epochs(3, 4))
    (memory,) = worker._remembered.values()
    assert len(memory.held) > 1
    assert {each.session.backend.shared for each in memory.held.values()} == {memory.shared}
    assert keeper.stats()["values"] == len(memory.shared.dictionary)
    keeper.close()


def test_a_session_that_was_stolen_catches_up(tmp_path: Path) -> None:
    session = Session(EVERYTHING)
    keeper = keep(tmp_path, parts=1)
    applied = worker._Task._session
    made = []

    def counted(self: worker._Task, *given: Any) -> Session:
        made.append(self.part)
        return applied(self, *given)

    epochs = list(random_epochs(6, 8))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker._Task, "_session", counted)
        keeper.apply(epochs[:1])
        asleep = {key: replace(each, held=dict(each.held)) for key, each in worker._remembered.items()}
        worker._remembered.clear()
        keeper.apply(epochs[1:2])
        keeper.apply(epochs[2:4])
        assert made == [0]
        worker._remembered.clear()
        worker._remembered.update(asleep)
        keeper.apply(epochs[4:])
        assert made == [0]
    for epoch in epochs:
        session.apply(epoch.updates, epoch.now)
    assert keeper.view("reach") == set(session.relation("reach"))


def test_an_epoch_that_fails_does_not_happen_and_those_before_it_do(tmp_path: Path) -> None:
    program = load(
        ".decl n(x: number, y: number) .input n .decl up(x: number, y: number) .output up "
        "up(x, y) :- n(x, y). up(x, y + 1) :- up(x, y), y > 5, y < 9000."
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
    keeper.apply([Epoch([Update("+", "n", (9, 1))])])
    keeper.close(delivered=False)
    assert keep(tmp_path, program, **options).view("up") == {(0, 1), (1, 1), (2, 1), (9, 1)}


@pytest.mark.parametrize("after", [1, 2, 3])
def test_what_tasks_wrote_without_a_commit_does_not_count(after: int, tmp_path: Path) -> None:
    """All parts, some, or none had written when it stopped; the epoch that comes instead is another one."""
    keeper = keep(tmp_path)
    keeper.apply(random_epochs(2, 1))

    def interrupted(order: Order) -> list[Done]:
        for index in range(after if after < 3 else order.tasks):
            order(index)
        raise InterruptedError

    keeper._run = interrupted
    with pytest.raises(InterruptedError):
        keeper.apply([Epoch([Update("+", "link", ("a", "z", 1)), Update("+", "link", ("z", "a", 1))])])
    if after == 3:
        worker._remembered.clear()
    keeper._run = in_turn
    keeper.apply([Epoch([Update("+", "link", ("x", "y", 1))])])
    assert ("x", "y") in keeper.view("reach")
    assert not any("z" in row for row in keeper.view("reach"))
    keeper.close()
    assert list(verify(open_state(tmp_path, EVERYTHING), reference.evaluate)) == []


def test_the_last_epochs_are_delivered_again_unless_all_have_them(tmp_path: Path) -> None:
    keeper = keep(tmp_path)
    first, second, third = random_epochs(3, 3)
    keeper.apply([first])
    keeper.apply([second, third])
    views = {epoch: keeper.view_at("reach", epoch) for epoch in range(4)}
    keeper.close(delivered=False)
    told = Told()
    again = keep(tmp_path, told=told)
    assert sorted(told.epochs) == [2, 3]
    assert {epoch: again.view_at("reach", epoch) for epoch in range(4)} == views
    again.close()
    told = Told()
    keep(tmp_path, told=told).close()
    assert told.epochs == {}


def test_a_damaged_snapshot_of_a_part_is_passed_over(tmp_path: Path) -> None:
    keeper = keep(tmp_path, **SHORT)
    keeper.apply(random_epochs(4, 4))
    keeper.apply(random_epochs(4, 5))
    views = {name: keeper.view(name) for name in keeper.outputs}
    keeper.close()
    (tmp_path / "snapshots" / "000000000008" / "part-1" / "base" / "link.parquet").write_bytes(b"?")
    assert "part-1/base/link.parquet: the content is not" in "".join(read_state(tmp_path).damages())
    again = keep(tmp_path)
    with pytest.warns(StateWarning, match="link.parquet: the content is not what was written there; using"):
        again.apply([Epoch([Update("-", "node", ("q",))])])
    assert {name: again.view(name) for name in again.outputs} == views


def test_a_missing_segment_of_a_part_is_named(tmp_path: Path) -> None:
    keeper = keep(tmp_path)
    keeper.apply(random_epochs(3, 4))
    keeper.close()
    worker._remembered.clear()
    (segment,) = (tmp_path / "log" / "part-2").iterdir()
    segment.unlink()
    assert list(read_state(tmp_path).damages()) == [f"{segment}: the file is missing"]
    with pytest.raises(StateError, match="the file is missing"):
        keep(tmp_path).apply(random_epochs(1, 1))


def test_compacting_keeps_the_views(tmp_path: Path) -> None:
    keeper = keep(tmp_path)
    for epoch in random_epochs(7, 6):
        keeper.apply([epoch])
    views = {name: keeper.view(name) for name in keeper.outputs}
    keeper.close()
    store = open_state(tmp_path, EVERYTHING)
    store.compact(0)
    assert [len(list((tmp_path / "log" / f"part-{part}").iterdir())) for part in range(3)] == [1, 1, 1]
    assert {name: store.view_at(name, 7) for name in store.outputs} == views
    assert list(verify(store, reference.evaluate)) == []
    store.close()
    again = keep(tmp_path)
    assert again.epoch == 7
    assert again.sizes == {name: len(rows) for name, rows in views.items()}


def test_warnings_of_tasks_are_told_once(tmp_path: Path) -> None:
    text = ".decl n(x: number) .input n .decl d(x: number, y: number) .output d d(x, 1 / x) :- n(x)."
    keeper = keep(tmp_path, load(text))
    with pytest.warns(EvaluationWarning):
        keeper.apply([Epoch([Update("+", "n", (0,))])])
    worker._remembered.clear()
    keeper.apply([Epoch([Update("-", "n", (0,))]), Epoch([Update("+", "n", (0,))])])


def test_verify_finds_parts_that_do_not_go_together(tmp_path: Path) -> None:
    """A part is given an update that the others never got."""
    keeper = keep(tmp_path)
    keeper.apply([Epoch([Update("+", "link", ("a", "b", 1))])])
    routed = keeper._routed

    def astray(entries: Sequence[Entry]) -> list[list[Entry]]:
        first, *rest = routed(entries)
        return [[replace(each, updates=[]) for each in first], *rest]

    keeper._routed = astray  # type: ignore[method-assign]
    keeper.apply([Epoch([Update("+", "link", ("b", "c", 1))])])
    keeper.close()
    found = list(verify(open_state(tmp_path, EVERYTHING), reference.evaluate))
    assert found == ["link in part 1 after epoch 2 is not what belongs there"]


def test_recorded_derivations_are_in_parts_too(tmp_path: Path) -> None:
    program = with_derivations(EVERYTHING, ["reach"])
    keeper = keep(tmp_path / "parts", program)
    whole = ResidentKeeper(program, store=WholeStore.open(tmp_path / "whole", program))
    for epoch in random_epochs(6, 9):
        keeper.apply([epoch])
        whole.apply([epoch])
    assert len(keeper.view("reach.2.derivations")) > 3
    assert {name: keeper.view(name) for name in keeper.outputs} == {name: whole.view(name) for name in keeper.outputs}
    whole.close()


# -- from one piece to parts ------------------------------------------------------------------------------------------


def test_a_state_in_one_piece_goes_on_in_parts(tmp_path: Path) -> None:
    session = Session(EVERYTHING)
    told = Told()
    store = WholeStore.open(tmp_path, EVERYTHING)
    keeper = ResidentKeeper(EVERYTHING, RunOptions(sinks=[told.sink]), store=store)
    epochs = list(random_epochs(20, 12))
    keeper.apply(epochs[:10])
    keeper.close(delivered=False)
    told.epochs.clear()
    store = WholeStore.open(tmp_path, EVERYTHING)
    parted = PartedKeeper(store.in_parts(3, told.sink.write), in_turn, RunOptions(sinks=[told.sink]), tasks=2)
    assert sorted(told.epochs) == list(range(1, 11))
    assert (parted.epoch, parted.source) == (10, {"line": 9})
    for epoch in epochs[:10]:
        session.apply(epoch.updates, epoch.now)
    for number, epoch in enumerate(epochs[10:], 11):
        changes = session.apply(epoch.updates, epoch.now)
        parted.apply([epoch])
        assert as_sets(told.epochs[number], parted.outputs) == as_sets(changes, parted.outputs)
    assert {name: parted.view(name) for name in parted.outputs} == {
        name: set(session.relation(name)) for name in parted.outputs
    }
    parted.close()
    assert not list((tmp_path / "log").glob("*.parquet"))
    with pytest.raises(StateError, match="holds a state in 3 parts"):
        WholeStore.open(tmp_path, EVERYTHING)
    with pytest.raises(StateError, match="holds a state in 3 parts"):
        WholeStore.read(tmp_path)
    reopened = open_state(tmp_path, EVERYTHING)
    assert list(verify(reopened, reference.evaluate)) == []
    assert reopened.oldest_epoch == 10


def chosen(state: Store, facts: dict[str, list[Tuple]] | None = None, **options: int | None) -> Division:
    wanted: dict[str, int | None] = {"partitions": None, "limit": 10, **options}
    return choose(state, facts or {}, cores=lambda: 8, **wanted)  # type: ignore[arg-type]


def test_the_choice_follows_what_is_asked_for_what_is_there_and_size(tmp_path: Path) -> None:
    state = open_state(tmp_path, EVERYTHING)
    assert str(chosen(state)) == "state in the driver: 0 rows, at most 10 are kept there"
    assert str(chosen(state, partitions=3)) == "state in 3 parts: as asked for"
    with pytest.raises(ValueError, match="in one part at least, not in 0"):
        chosen(state, partitions=0)
    many = {"node": [(str(number),) for number in range(11)]}
    assert str(chosen(state, many)) == "state in 8 parts: 11 rows are more than 10"
    keeper = ResidentKeeper(EVERYTHING, store=state.whole(), facts=many)
    keeper.close()
    state = open_state(tmp_path, EVERYTHING)
    assert str(chosen(state)) == "state in 8 parts: 12 rows are more than 10"  # node has a window of 6, lonely as many
    parted = state.in_parts(2, lambda *_: None)
    assert str(chosen(parted)) == "state in 2 parts: it is so already"
    assert str(chosen(parted, partitions=3)) == "state in 3 parts: as asked for, instead of 2"


def test_a_program_that_cannot_be_taken_apart_is_refused(tmp_path: Path) -> None:
    text = ".decl n(x: number, y: number) .input n .decl c(x: number, y: number) choice-domain x .output c c(x, y) :- n(x, y)."
    with pytest.raises(StateError, match="cannot be in parts: c has a choice-domain"):
        chosen(open_state(tmp_path, load(text)), partitions=2)


def test_parts_that_need_each_other_are_made_only_where_they_are_asked_for(tmp_path: Path) -> None:
    program = load(".decl n(x: number) .input n .decl c(k: number) .output c all: c(k) :- k = count : { n(_) }.")
    state = open_state(tmp_path, program)
    assert str(chosen(state, partitions=2)) == "state in 2 parts: as asked for"
    choice = chosen(state, {"n": [(number,) for number in range(20)]})
    assert choice.parts is None
    assert choice.reason.startswith("20 rows are more than 10, but c cannot be split")
