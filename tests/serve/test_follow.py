"""Views of a state: while another process keeps it, from its first epoch on, and going on from it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
from playwright.sync_api import Browser, expect
from tests.pipeline.parts.test_keeper import EVERYTHING, SHORT, keep, random_epochs
from tests.serve.asking import Client
from tests.serve.test_page import SLOW, Viewer
from tests.waiting import wait_for

from whence import Session, Update, load
from whence.io.changes import Epoch
from whence.pipeline.files import StateError
from whence.pipeline.keeper import ResidentKeeper
from whence.pipeline.options import RunOptions
from whence.pipeline.parts import worker
from whence.pipeline.parts.open import read_state
from whence.pipeline.store import WholeStore
from whence.pipeline.upgrade import upgrade
from whence.serve.follow import Follower, recall
from whence.serve.history import NotRetained
from whence.serve.live import LiveViews

PROGRAM = load(
    """.decl link(x:number, y:number) .input link
    .decl reach(x:number, y:number) .output reach
    reach(x, y) :- link(x, y).
    reach(x, z) :- reach(x, y), link(y, z).
    .decl seen(x:number, at:number) .input seen .window seen(rows=2)
    .decl lately(x:number) .output lately lately(x) :- seen(x, _)."""
)


def _epoch(*updates: tuple[str, str, int, int]) -> Epoch:
    return Epoch([Update(op, name, (x, y)) for op, name, x, y in updates])


@contextmanager
def _kept(folder: Path, **options: int) -> Iterator[ResidentKeeper]:
    keeper = ResidentKeeper(PROGRAM, RunOptions(**options), store=WholeStore.open(folder, PROGRAM))  # type: ignore[arg-type]
    yield keeper
    keeper.close()


def _wait(follower: Follower, epoch: int) -> None:
    def has_it() -> bool:
        follower.catch_up()
        return follower.live.epoch == epoch

    wait_for(has_it)


def test_a_state_is_followed_while_it_is_written_and_compacted(tmp_path: Path) -> None:
    views: list[dict[str, set[object]]] = []
    with _kept(tmp_path, snapshot_every=3, retain=4) as keeper:
        keeper.apply([_epoch(("+", "link", 1, 2))])
        follower = Follower(tmp_path)
        assert follower.live.epoch == 1
        for number in range(2, 12):
            keeper.apply(
                [
                    _epoch(
                        ("+", "link", number, number + 1),
                        ("+", "seen", number, 0),
                        ("-", "link", number - 3, number - 2),
                    )
                ]
            )
            views.append({name: set(keeper.session.relation(name)) for name in ("link", "reach", "seen", "lately")})
            _wait(follower, keeper.epoch)
            for name, rows in views[-1].items():
                assert set(follower.live.rows(name, 99)) == rows
        for back, before in enumerate(reversed(views)):
            for name, rows in before.items():
                assert set(follower.live.rows(name, 99, follower.live.epoch - back)) == rows


def test_a_state_is_known_from_its_oldest_epoch_on(tmp_path: Path) -> None:
    with _kept(tmp_path, snapshot_every=3, retain=4) as keeper:
        for number in range(1, 12):
            keeper.apply([_epoch(("+", "link", number, number + 1))])
        oldest = keeper.store.oldest_epoch if keeper.store else 0
    live = Follower(tmp_path).live
    assert (live.history.oldest, live.epoch) == (oldest, 11)
    assert len(live.rows("link", 99, oldest)) == oldest
    with pytest.raises(NotRetained):
        live.rows("link", 99, oldest - 1)


def test_who_goes_on_from_a_state_recalls_the_epochs_before(tmp_path: Path) -> None:
    with _kept(tmp_path) as keeper:
        for number in range(1, 6):
            keeper.apply([_epoch(("+", "link", number, number + 1))])
    with _kept(tmp_path) as keeper:
        live = LiveViews(keeper.session, epoch=keeper.epoch, lock=keeper.lock)
        assert live.history.oldest == 5
        recall(live, tmp_path)
        assert live.history.oldest == 0
        assert [len(live.rows("reach", 99, epoch)) for epoch in range(6)] == [0, 1, 3, 6, 10, 15]


def test_a_state_whose_program_changes_has_to_be_served_again(tmp_path: Path) -> None:
    with _kept(tmp_path) as keeper:
        keeper.apply([_epoch(("+", "link", 1, 2))])
    follower = Follower(tmp_path)
    revised = load(PROGRAM.source.text + " .decl ends(x:number) .output ends ends(x) :- link(_, x).")
    upgrade(tmp_path, revised)
    keeper = ResidentKeeper(revised, store=WholeStore.open(tmp_path, revised))
    keeper.apply([_epoch(("+", "link", 2, 3))])
    keeper.close()
    with pytest.raises(StateError, match="has become another one"):
        _wait(follower, keeper.epoch)
    live = Follower(tmp_path).live
    assert (live.history.oldest, live.epoch, live.rows("ends", 9)) == (2, 3, [(2,), (3,)])


def test_a_state_in_parts_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With windows and lifetimes, from some epoch in the middle on."""
    monkeypatch.setattr("os.fsync", lambda _: None)
    session = Session(EVERYTHING)
    keeper = keep(tmp_path, **SHORT)
    follower: Follower | None = None
    for number, epoch in enumerate(random_epochs(30, 5)):
        keeper.apply([epoch])
        session.apply(epoch.updates, epoch.now)
        if number == 12:
            follower = Follower(tmp_path)
            assert follower.live.history.oldest == read_state(tmp_path).oldest_epoch
        if follower is not None:
            _wait(follower, keeper.epoch)
            for name in EVERYTHING.relations:
                assert set(follower.live.rows(name, 999)) == set(session.relation(name)), (name, number)
    keeper.close()
    worker._remembered.clear()


# -- the command


class Command:
    """`whence serve`, in a process of its own; `server` is what a client needs to know of it."""

    started: ClassVar[list[Command]] = []

    def __init__(self, *words: object, port: int = 0) -> None:
        command = [sys.executable, "-m", "whence", "serve", *map(str, words), "--port", str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.started.append(self)
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        found = re.search(r"(http://127\.0\.0\.1:(\d+)/)\?token=(\S+)", self.said)
        assert found is not None, self.said + (self.process.stderr.read() if self.process.stderr else "")
        self.server = SimpleNamespace(url=found[1], address=found[0], port=int(found[2]), token=found[3])
        self.client = Client(self.server)  # type: ignore[arg-type]

    def end(self, how: int = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """Whatever a test leaves running."""
    yield
    for each in Command.started:
        each.process.kill()
        each.process.communicate(timeout=60)
    Command.started.clear()


def test_the_command_runs_a_program_and_goes_on_after_a_kill(tmp_path: Path, browser: Browser) -> None:
    program, updates, state = tmp_path / "p.dl", tmp_path / "u.jsonl", tmp_path / "state"
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123\n")
    program.write_text(
        ".decl link(x:symbol, y:symbol) .input link .decl reach(x:symbol, y:symbol) .output reach"
        " reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z)."
    )

    def add(*lines: str) -> None:
        with updates.open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))

    add('{"op": "+", "relation": "link", "tuple": ["a", "b"]}', '{"commit": true}', '{"op": "+", "relation": "lnk"}')
    words = (program, "--updates", updates, "--state", state, "--writable", "--token-file", token)
    first = Command(*words)
    viewer = Viewer(browser)
    page = viewer.page
    page.goto(first.server.address)
    expect(page.locator("#main tbody tr")).to_have_count(1)
    expect(page.locator(".figure", has_text="dead letters").locator("b")).to_have_text("1")
    page.goto(f"{first.server.url}#/letters")
    expect(page.locator("#main tbody tr")).to_contain_text("lnk")
    page.goto(f"{first.server.url}#/view/reach")
    add('{"op": "+", "relation": "link", "tuple": ["b", "c"]}', '{"commit": true}')
    expect(page.locator("#main tbody tr")).to_have_count(3)
    status, done = first.client.post([{"op": "+", "fact": 'link("c", "d")'}])
    assert (status, done["epoch"]) == (200, 3)
    expect(page.locator("#main tbody tr")).to_have_count(6)
    first.end(signal.SIGKILL)
    expect(page.locator(".state")).to_have_text("reconnecting…")
    second = Command(*words, port=first.server.port)
    expect(page.locator(".state")).to_have_text("live")
    about = second.client.get("about")
    assert (about["epoch"], about["lag"]) == (3, {"bytes": 0})
    wait_for(lambda: second.client.get("status")["oldest"] == 0)
    assert second.client.get("views/reach", epoch=1)["total"] == 1
    second.client.post([{"op": "+", "fact": 'link("d", "e")'}])
    expect(page.locator("#main tbody tr")).to_have_count(10)
    viewer.context.close()
    assert all("Failed to load resource" in each for each in viewer.problems), (
        "the first server was gone, and that is all"
    )
    follower = Command(state)
    assert follower.client.get("about")["writable"] is False
    second.client.post([{"op": "-", "fact": 'link("a", "b")'}])
    wait_for(lambda: follower.client.get("about")["epoch"] == 5)
    assert follower.client.get("views/reach")["total"] == 6
    assert (second.end(), follower.end(signal.SIGINT)) == (0, 0)


def test_mistakes_are_said_before_anything_is_served(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(".decl link(x:symbol, y:symbol) .input link .output link")
    (tmp_path / "p.dashboard.toml").write_text('[[widget]]\nkind = "number"\nview = "lnk"\n')
    command = [sys.executable, "-m", "whence", "serve", str(program), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SLOW, check=False)
    assert done.returncode == 1
    assert "p.dashboard.toml:3:8: error[W1303]: there is no view lnk" in done.stderr
    done = subprocess.run([*command, "--host", "0.0.0.0"], capture_output=True, text=True, timeout=SLOW, check=False)
    assert done.returncode == 2
    assert "can be reached from other machines" in done.stderr.replace("│", "").replace("\n", " ")
