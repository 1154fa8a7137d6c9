"""States in parts that become others: another version of the program, another number of parts, and kills on the way."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from tests.pipeline.parts.carrier import InProcess
from tests.pipeline.parts.test_keeper import Told, as_sets, in_turn

from whence import Program, Update, load, reference, session
from whence.io.changes import Epoch
from whence.lang.types import Tuple
from whence.pipeline import files
from whence.pipeline.files import StateError
from whence.pipeline.options import RunOptions
from whence.pipeline.parts import worker
from whence.pipeline.parts.keeper import PartedKeeper
from whence.pipeline.parts.open import choose, open_state, read_state
from whence.pipeline.parts.rounds import Rounds
from whence.pipeline.parts.store import PartedStore
from whence.pipeline.upgrade import upgrade
from whence.pipeline.verify import verify

LINK = ".decl link(a:number, b:number) .input link\n"
REACH = "reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z). .output reach\n"
VERSIONS = [
    LINK + REACH,
    LINK + REACH + "loop(x) :- reach(x, x). .output loop",
    LINK + "reach(x, y) :- link(x, y), x < y. reach(x, z) :- reach(x, y), link(y, z), y != z. .output reach",
    LINK + "reach(x, y, 1) :- link(x, y). .decl reach(a:number, b:number, hops:number) .output reach",
    LINK + "far(x, y) :- link(x, y), !link(y, x). .output far .decl mark(x:number) .input mark",
    LINK + REACH + "degree(x, n) :- link(x, _), n = count : { link(x, _) }. .output degree",
]


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)  # nothing is lost with a process
    worker._remembered.clear()


def keeper(folder: Path, program: Program, parts: int, told: Told | None = None, **options: object) -> PartedKeeper:
    store = open_state(folder, program).in_parts(parts, lambda *_: None)
    run = Rounds(InProcess()) if store.manifest.ships else in_turn
    sinks = [] if told is None else [told.sink]
    return PartedKeeper(store, run, RunOptions(sinks=sinks, **options), tasks=2)  # type: ignore[arg-type]


def epoch(link: tuple[int, int], op: str = "+") -> Epoch:
    return Epoch([Update(op, "link", link)])


def expected(program: Program, links: set[Tuple]) -> dict[str, set[Tuple]]:
    found = reference.evaluate(program, {"link": links})
    return {name: found[name] for name in program.outputs}


def test_random_versions_in_turn_in_changing_numbers_of_parts(tmp_path: Path) -> None:
    """Every epoch, those before a change included, is remembered; what sinks hear adds up; the state verifies."""
    draw = random.Random(5)
    for sequence in range(4):
        folder, links = tmp_path / str(sequence), set[Tuple]()
        remembered: dict[int, dict[str, set[Tuple]]] = {}
        heard: dict[str, set[Tuple]] = {}
        text, parts = VERSIONS[0], 3
        for _ in range(5):
            program, told = load(text), Told()
            current = keeper(folder, program, parts, told, snapshot_every=draw.choice([2, 100]), retain=99)
            for _ in range(draw.randrange(4)):
                remembered[current.epoch] = {name: current.view(name) for name in current.outputs}
                link, op = (draw.randrange(5), draw.randrange(5)), draw.choice("++-")
                links = links | {link} if op == "+" else links - {link}
                current.apply([epoch(link, op)])
            remembered[current.epoch] = {name: current.view(name) for name in current.outputs}
            assert remembered[current.epoch] == expected(program, links)
            _hear(heard, told)
            assert {name: heard.get(name, set()) for name in current.outputs} == expected(program, links)
            current.close()
            after = draw.choice(VERSIONS)
            shapes = {name: program.relations[name].fields for name in program.outputs}
            done = upgrade(folder, load(after))
            assert (done is None) == (after == text)
            now = load(after)
            heard = {name: rows for name, rows in heard.items() if shapes.get(name) == _fields(now, name)}
            text, parts = after, draw.choice([parts, 2, 4])
        found = read_state(folder)
        for number, views in remembered.items():
            assert {name: found.view_at(name, number) for name in views} == views
        assert list(verify(found, session.evaluate)) == []


def _fields(program: Program, name: str) -> object:
    return program.relations[name].fields if name in program.outputs else None


def _hear(heard: dict[str, set[Tuple]], told: Told) -> None:
    for _, changes in sorted(told.epochs.items(), key=lambda each: each[0]):
        for name, (come, gone) in as_sets(changes, (*changes.inserted, *changes.deleted)).items():
            heard.setdefault(name, set()).difference_update(gone)
            heard[name] |= come


def test_a_dry_run_tells_and_writes_nothing(tmp_path: Path) -> None:
    current = keeper(tmp_path, load(VERSIONS[0]), 2)
    current.apply([epoch((1, 2)), epoch((2, 3)), epoch((3, 2))])
    current.close()
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    done = upgrade(tmp_path, load(VERSIONS[2]), dry_run=True)
    assert done is not None
    assert (done.epoch, done.gained, done.lost) == (4, {"reach": 0}, {"reach": 2})
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def test_columns_are_gained_with_defaults(tmp_path: Path) -> None:
    current = keeper(tmp_path, load(VERSIONS[0]), 2)
    current.apply([epoch((1, 2))])
    current.close()
    wider = ".decl link(cost:number, a:number, b:number) .input link reach(x, y) :- link(c, x, y), c > 4. .output reach"
    with pytest.raises(StateError, match="has no default"):
        upgrade(tmp_path, load(wider))
    upgrade(tmp_path, load(wider), defaults={"link": {"cost": "5"}})
    again = keeper(tmp_path, load(wider), 2)
    again.apply([Epoch([Update("+", "link", (4, 7, 8)), Update("+", "link", (6, 7, 9))])])
    assert again.view("reach") == {(1, 2), (7, 9)}
    again.close()


def test_a_program_that_cannot_be_in_parts_is_refused_with_the_reason(tmp_path: Path) -> None:
    keeper(tmp_path, load(VERSIONS[0]), 2).close()
    alone = LINK + "e(x) :- link(x, _). .decl e(x:number) choice-domain x .output e"
    with pytest.raises(StateError, match="which the program cannot be"):
        upgrade(tmp_path, load(alone))
    assert read_state(tmp_path).view_at("reach", 0) == set()


def test_another_number_of_parts_is_as_asked_for(tmp_path: Path) -> None:
    program = load(VERSIONS[0])
    keeper(tmp_path, program, 2).close()
    store = open_state(tmp_path, program)
    division = choose(store, {}, partitions=5, limit=10, cores=lambda: 1)
    assert str(division) == "state in 5 parts: as asked for, instead of 2"
    store.close()


@pytest.mark.parametrize("after", [VERSIONS[1], VERSIONS[3]])
def test_a_kill_at_any_write_leaves_one_version_or_the_other(
    after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "made"
    current = keeper(made, load(VERSIONS[0]), 2)
    current.apply([epoch((1, 2)), epoch((2, 1))])
    current.close()
    killed = 0
    while True:
        folder = tmp_path / f"killed-{killed}"
        shutil.copytree(made, folder, symlinks=True)
        left = [killed]

        def write(path: Path, data: bytes, left: list[int] = left, real: object = files.write_file) -> None:
            if left[0] == 0:
                raise _Killed
            left[0] -= 1
            real(path, data)  # type: ignore[operator]

        with monkeypatch.context() as patched:
            for module in ("snapshots", "manifest"):
                patched.setattr(f"whence.pipeline.{module}.write_file", write)
            try:
                upgrade(folder, load(after))
            except _Killed:
                is_done = False
            else:
                is_done = True
        version = load(after) if read_state(folder).manifest.is_of(load(after)) else load(VERSIONS[0])
        again = keeper(folder, version, 2)
        assert {name: again.view(name) for name in again.outputs} == expected(version, {(1, 2), (2, 1)})
        again.apply([epoch((2, 3))])
        assert {name: again.view(name) for name in again.outputs} == expected(version, {(1, 2), (2, 1), (2, 3)})
        again.close()
        killed += 1
        if is_done:
            break
    assert killed > 4
    assert isinstance(read_state(folder), PartedStore)


class _Killed(BaseException):
    pass
