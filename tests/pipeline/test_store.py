"""State that goes on where it stopped, and knows what was before."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
from tests.faults.workload import PROGRAM

from whence import Changes, Program, Update, load, reference
from whence.io.changes import Epoch
from whence.lang.types import Tuple, Variant
from whence.pipeline.files import Damaged, StateError, StateWarning
from whence.pipeline.keeper import ResidentKeeper
from whence.pipeline.options import RunOptions
from whence.pipeline.sinks import CallbackSink
from whence.pipeline.sinks.json_lines import JsonLinesSink
from whence.pipeline.store import WholeStore

WORK = load(PROGRAM)
NUMBERS = load(".decl n(x: number) .input n .decl m(x: number) m(x + 1) :- n(x). .output m")


def numbers(*values: int, op: str = "+") -> Epoch:
    return Epoch([Update(op, "n", (value,)) for value in values])


def keeper(folder: Path, program: Program = NUMBERS, **more: object) -> ResidentKeeper:
    facts = more.pop("facts", None)
    return ResidentKeeper(program, RunOptions(**more), store=WholeStore.open(folder, program), facts=facts)  # type: ignore[arg-type]


def test_every_retained_epoch_is_remembered_and_windows_go_on(tmp_path: Path) -> None:
    """Random epochs with restarts in between: views, times and clock are those of a session that never stopped."""
    source = random.Random(4)
    never_stopped = ResidentKeeper(WORK)
    current = keeper(tmp_path, WORK, snapshot_every=7, retain=20)
    remembered: list[dict[str, set[Tuple]]] = [{name: current.view(name) for name in current.outputs}]
    for number in range(1, 60):
        updates = []
        for _ in range(source.randrange(4)):
            time = number + source.random() * 20
            row: Tuple = (source.choice("abcde"), source.choice("abcde"), source.randrange(3))
            updates.append(Update(source.choice("++-"), "link", row, time))
            updates.append(Update("+", "node", (source.choice("abcdefghij"),)))
        epoch = Epoch(updates, now=number + 100.0 if number == 50 else None, source={"line": number})
        never_stopped.apply([epoch])
        current.apply([epoch])
        remembered.append({name: never_stopped.view(name) for name in current.outputs})
        if source.random() < 0.3:
            current.close()
            current = keeper(tmp_path, WORK, snapshot_every=7, retain=20)
            assert (current.epoch, current.source) == (number, {"line": number})
        assert {name: current.view(name) for name in current.outputs} == remembered[-1]
        assert current.session.base() == never_stopped.session.base()
        assert current.session.windows.clock == never_stopped.session.windows.clock
        for name in ("link", "node"):
            assert current.session.windows.times(name) == never_stopped.session.windows.times(name)
    store = WholeStore.read(tmp_path)
    assert 59 - 20 - 7 <= store.oldest_epoch <= 59 - 20
    for number in range(store.oldest_epoch, 60):
        assert {name: store.view_at(name, number) for name in store.outputs} == remembered[number]
    for number in (store.oldest_epoch - 1, 60):
        with pytest.raises(StateError, match=rf"holds epochs {store.oldest_epoch} to 59, not {number}"):
            store.view_at("reach", number)
    assert remembered[-1] == {
        name: reference.evaluate(WORK, current.session.base())[name] for name in ("reach", "lonely", "cheapest")
    }


def test_the_log_is_merged_and_old_snapshots_go(tmp_path: Path) -> None:
    current = keeper(tmp_path, snapshot_every=4, retain=6)
    for number in range(20):
        current.apply([numbers(number)])
    store = WholeStore.read(tmp_path)
    assert [each.epoch for each in store.manifest.snapshots] == [12, 16, 20]
    assert [(each.first, each.last) for each in store.segments] == [(13, 16), (17, 20)]
    assert sorted(path.name for path in (tmp_path / "snapshots").iterdir()) == [
        "000000000012",
        "000000000016",
        "000000000020",
    ]


def test_values_of_every_kind_survive(tmp_path: Path) -> None:
    program = load("""
    .type pair = [a: number, b: symbol]
    .type shape = circle { r: float } | none {}
    .decl t(n: number, u: unsigned, f: float, s: symbol, p: pair, q: shape, l: list<symbol>)
    .input t
    .decl yes()
    yes() :- t(_, _, _, _, _, _, _).
    .decl v(n: number, u: unsigned, f: float, s: symbol, p: pair, q: shape, l: list<symbol>)
    v(n, u, f, s, p, q, l) :- t(n, u, f, s, p, q, l).
    .output v
    .output yes
    """)
    rows: list[Tuple] = [
        (-(2**63), 2**64 - 1, 0.1, "", None, Variant("none"), ()),
        (2**63 - 1, 0, float("inf"), 'ä\n\t,"]', (1, "nil"), Variant("circle", (1.5,)), ("a", "", "b, c]")),
        (0, 1, -0.0, "\ud800", (2, " x"), Variant("circle", (-0.0,)), ("\udfff",)),
    ]
    current = keeper(tmp_path, program)
    current.apply([Epoch([Update("+", "t", row) for row in rows])])
    current.close()
    again = keeper(tmp_path, program)
    again.snapshot()
    again.close()
    assert keeper(tmp_path, program).view("v") == set(rows)
    store = WholeStore.read(tmp_path)
    assert (store.view_at("v", 1), store.view_at("yes", 1)) == (set(rows), {()})


def test_epochs_applied_together_are_durable_together(tmp_path: Path) -> None:
    current = keeper(tmp_path)
    current.apply([numbers(1), numbers(2), numbers(3)])
    assert [(each.first, each.last) for each in WholeStore.read(tmp_path).segments] == [(1, 3)]


def test_a_sink_gets_again_what_it_may_have_missed_and_no_more(tmp_path: Path) -> None:
    seen: list[tuple[int, list[Update]]] = []

    def note(epoch: int, changes: Changes) -> None:
        seen.append((epoch, list(changes)))
        if epoch == fail_at:
            raise RuntimeError("gone")

    fail_at = 0
    with pytest.raises(RuntimeError):
        keeper(tmp_path, sinks=[CallbackSink(note)], facts={"n": {(1,)}})
    fail_at = 2
    current = ResidentKeeper(NUMBERS, RunOptions(sinks=[CallbackSink(note)]), store=_reopened(tmp_path))
    current.apply([numbers(5)])
    with pytest.raises(RuntimeError):
        current.apply([numbers(6)])
    fail_at = -1
    current.close(delivered=False)
    again = keeper(tmp_path, sinks=[CallbackSink(note)])
    again.close()
    keeper(tmp_path, sinks=[CallbackSink(note)]).close()
    first, five, six = ([Update("+", "m", (value + 1,))] for value in (1, 5, 6))
    assert seen == [(0, first), (0, first), (1, five), (2, six), (2, six)]


def _reopened(folder: Path) -> WholeStore:
    """As another process would, after this one has died."""
    (folder / "lock").unlink()
    return WholeStore.open(folder, NUMBERS)


def test_json_lines_replace_an_epoch_that_comes_again(tmp_path: Path) -> None:
    path = tmp_path / "out/changes.jsonl"
    sink = JsonLinesSink(path, NUMBERS)
    for epoch in range(3):
        sink.write(epoch, Changes({"m": [(epoch,)]}))
    whole = path.read_bytes()
    # Another process, after half of a line; long lines before it, so that it has to look far back.
    path.write_bytes(whole[:-5])
    JsonLinesSink(path, NUMBERS).write(2, Changes({"m": [(2,)]}))
    assert path.read_bytes() == whole
    sink.write(1, Changes({"m": [(number,) for number in range(20_000)]}))
    sink.write(2, Changes({"m": [(2,)]}))
    JsonLinesSink(path, NUMBERS).write(1, Changes({"m": [(1,)]}))
    assert path.read_bytes() == whole[: whole.rindex(b'{"epoch": 2')]
    other = tmp_path / "notes.txt"
    other.write_text("mine\n")
    with pytest.raises(StateError, match="holds something else than changes"):
        JsonLinesSink(other, NUMBERS).write(3, Changes())
    assert other.read_text() == "mine\n"


def test_a_second_process_is_refused_with_the_first_ones_number(tmp_path: Path) -> None:
    first = WholeStore.open(tmp_path, NUMBERS)
    with pytest.raises(StateError, match=rf"is in use by process {os.getpid()} on "):
        WholeStore.open(tmp_path, NUMBERS)
    first.close()
    WholeStore.open(tmp_path, NUMBERS).close()


def test_another_program_is_refused(tmp_path: Path) -> None:
    keeper(tmp_path).close()
    with pytest.raises(StateError, match="holds the state of another version"):
        WholeStore.open(tmp_path, load(".decl n(x: number) .input n .output n"))
    with pytest.raises(StateError, match="is not a state folder"):
        WholeStore.read(tmp_path / "log")


# -- damage -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Snapshots of epochs 8 and 12 and a log of three epochs after them."""
    current = keeper(tmp_path, snapshot_every=4, retain=3)
    for number in range(15):
        current.apply([numbers(number)])
    current.close()
    assert [each.epoch for each in WholeStore.read(tmp_path).manifest.snapshots] == [8, 12]
    return tmp_path


def damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    match how:
        case "truncated":
            path.write_bytes(data[: len(data) // 2])
        case "flipped":
            middle = len(data) // 2
            path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
        case "missing":
            path.unlink()


@pytest.mark.parametrize("how", ["truncated", "flipped", "missing"])
@pytest.mark.parametrize("file", ["base/n.parquet", "views/m.parquet"])
def test_a_damaged_snapshot_is_named_and_the_one_before_used(how: str, file: str, state: Path) -> None:
    damage(state / "snapshots/000000000012" / file, how)
    with pytest.warns(StateWarning, match=rf"000000000012/{file}: .*; using the snapshot before it"):
        current = keeper(state, snapshot_every=4)
    assert current.view("m") == {(number + 1,) for number in range(15)}
    # The next snapshot heals it.
    current.apply([numbers(50)])
    current.close()
    assert keeper(state).view("m") == {(number + 1,) for number in (*range(15), 50)}


def test_a_damaged_first_snapshot_is_refused_only_if_it_is_needed(state: Path) -> None:
    damage(state / "snapshots/000000000008/base/n.parquet", "flipped")
    keeper(state).close()
    damage(state / "snapshots/000000000012/base/n.parquet", "flipped")
    with (
        pytest.warns(StateWarning),
        pytest.raises(Damaged, match=r"000000000008/base/n\.parquet: the content is not what"),
    ):
        keeper(state)


@pytest.mark.parametrize("how", ["truncated", "flipped"])
def test_a_damaged_epoch_is_refused_by_name(how: str, state: Path) -> None:
    newest = max((state / "log").iterdir())
    damage(newest, how)
    with pytest.raises(Damaged, match=f"{newest.name}: the content is not what was written there"):
        keeper(state)


def test_a_missing_epoch_is_refused_by_number(state: Path) -> None:
    for path in (state / "log").glob("000000000014-*"):
        path.unlink()
    with pytest.raises(Damaged, match="epochs 14 to 14 are missing"):
        keeper(state)


@pytest.mark.parametrize("how", ["truncated", "flipped", "missing"])
def test_a_damaged_manifest_is_replaced_by_the_one_before(how: str, state: Path) -> None:
    damage(state / "manifest.json", how)
    with pytest.warns(StateWarning, match=r"manifest.json: .*; using the one before it"):
        current = keeper(state)
    assert current.view("m") == {(number + 1,) for number in range(15)}
    current.close()


def test_without_any_manifest_epochs_are_not_given_up(state: Path) -> None:
    for path in state.glob("manifest*"):
        path.unlink()
    with pytest.raises(Damaged, match="the file is missing, though there are epochs"):
        WholeStore.open(state, NUMBERS)


def test_a_format_of_the_future_is_refused(state: Path) -> None:
    from whence.pipeline import manifest  # noqa: PLC0415

    content = json.loads((state / "manifest.json").read_bytes())
    del content["checksum"]
    content["format"] = 2
    body = manifest._canonical(content)
    (state / "manifest.json").write_text(json.dumps({**content, "checksum": manifest.checksum(body)}))
    with pytest.raises(StateError, match="has format 2; this version reads format 1"):
        WholeStore.open(state, NUMBERS)


def test_looking_at_a_state_leaves_what_its_run_is_writing(tmp_path: Path) -> None:
    running = keeper(tmp_path)
    running.apply([numbers(1)])
    unnamed = tmp_path / "snapshots" / "000000000007"
    unnamed.mkdir()
    assert WholeStore.read(tmp_path).recover().base.rows == {"n": {(1,)}}
    assert unnamed.is_dir()
    running.close()
    keeper(tmp_path)
    assert not unnamed.exists()
