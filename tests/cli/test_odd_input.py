"""Updates that are odd and paths that are not what they should be: nothing of it stops a run for good."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from whence import Session
from whence.io.json_text import Json, read_json, write_json
from whence.pipeline.manifest import read_manifest, write_manifest

Whence = Callable[..., Result]

LISTS = """\
.type List = [head: number, tail: List]
.type Tree = Leaf {} | Node {value: number, next: Tree}
.decl given(xs: List)
.input given
.decl tree(t: Tree)
.input tree
.decl twice(xs: List)
twice([1, [2, xs]]) :- given(xs).
.decl counted(n: number, t: Tree)
counted(0, $Leaf()).
counted(n + 1, $Node(n, t)) :- counted(n, t), goal(m), n < m.
.decl goal(n: number)
.input goal
.decl longest(t: Tree)
longest(t) :- counted(n, t), goal(n).
.decl same(xs: List)
same(xs) :- given(xs), twice([1, [2, xs]]).
.output twice, same, longest, tree
"""
DEPTH = 3000
REACH = """\
.decl link(src: symbol, dst: symbol)
.input link
.decl reach(src: symbol, dst: symbol)
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
.output reach
"""


@pytest.fixture
def run(folder: Path, whence: Whence) -> Callable[..., Result]:
    def run(*options: str, program: str = "program.dl", updates: str = "updates.jsonl") -> Result:
        return whence("run", program, "--updates", updates, "--no-spark", "--quiet", *options)

    return run


def update(op: str, relation: str, value: Json) -> str:
    return write_json({"op": op, "relation": relation, "tuple": [value]})


def linked(count: int) -> Json:
    value: Json = None
    for each in range(count):
        value = [each, value]
    return value


def nested_text(count: int) -> str:
    return "".join(f"$Node({count - 1 - at}, " for at in range(count)) + "$Leaf" + ")" * count


def test_values_may_be_as_deep_as_memory_allows(run: Callable[..., Result], whence: Whence) -> None:
    Path("program.dl").write_text(LISTS)
    deep = linked(DEPTH)
    lines = [
        update("+", "given", deep),
        update("+", "tree", nested_text(DEPTH)),
        '{"commit": true}',
        update("+", "goal", 1200),
        '{"commit": true}',
    ]
    Path("updates.jsonl").write_text("\n".join(lines) + "\n")
    options = ("--state", "state", "--changes", "changes.jsonl")
    assert run(*options).exit_code == 0
    # Again, as after a restart: the same list is a no-op, then it goes.
    lines += [update("+", "given", linked(DEPTH)), '{"commit": true}', update("-", "given", linked(DEPTH))]
    Path("updates.jsonl").write_text("\n".join(lines) + "\n")
    assert run(*options).exit_code == 0
    # As text, since Python compares lists recursively.
    changes = [read_json(line) for line in Path("changes.jsonl").read_text().splitlines()]
    found = {(each["epoch"], each["op"], each["relation"]): write_json(each["tuple"]) for each in changes}  # type: ignore[index,call-overload]
    assert found[1, "+", "twice"] == write_json([[1, [2, deep]]])
    assert found[1, "+", "same"] == found[4, "-", "same"] == write_json([deep])
    assert found[1, "+", "tree"] == write_json([nested_text(DEPTH)])
    assert found[2, "+", "longest"] == write_json([nested_text(1200)])
    assert not any(key[0] == 3 for key in found)
    assert not Path("program.dead.jsonl").exists()
    for options in ((), ("--reference",)):
        assert whence("state", "verify", "state", *options).stdout.startswith("ok:")
    assert whence("state", "compact", "state").exit_code == 0
    assert json.loads(whence("state", "ls", "state", "--json").stdout)["tuples"]["longest"] == 1


def letters() -> list[tuple[str | None, int]]:
    found = [json.loads(line) for line in Path("program.dead.jsonl").read_text().splitlines() if line.startswith("{")]
    return [(each.get("file"), each["line"]) for each in found]


def test_dead_letters_of_one_source_do_not_hide_those_of_another(run: Callable[..., Result], whence: Whence) -> None:
    Path("program.dl").write_text(REACH)
    Path("one.jsonl").write_text("bad\n" * 5)
    Path("two.jsonl").write_text("bad\n" * 2)
    Path("folder").mkdir()
    Path("folder/a.jsonl").write_text("bad\n")
    Path("folder/b.jsonl").write_text("bad\n")
    options = ("--state", "state", "--changes", "changes.jsonl")
    sources = ("one.jsonl", "two.jsonl", "folder", "one.jsonl")
    for updates in sources:
        assert run(*options, updates=updates).exit_code == 0
    expected = [("one.jsonl", line) for line in range(1, 6)] + [("two.jsonl", 1), ("two.jsonl", 2)]
    expected += [("folder/a.jsonl", 1), ("folder/b.jsonl", 1)]
    assert letters() == expected
    result = whence("run", "program.dl", "--updates", "-", "--no-spark", "--quiet", *options, stdin="bad\n")
    assert result.exit_code == 0
    assert letters() == [*expected, (None, 1)]


@pytest.mark.parametrize("last", ["\n", "not JSON\n", "7\n", '{"line": "x"}\n', '{"line": 1, "reason'])
def test_a_dead_letter_file_that_somebody_touched_is_gone_on_with(last: str, run: Callable[..., Result]) -> None:
    Path("program.dl").write_text(REACH)
    Path("updates.jsonl").write_text("bad\n")
    options = ("--state", "state", "--changes", "changes.jsonl")
    assert run(*options).exit_code == 0
    with Path("program.dead.jsonl").open("a") as file:
        file.write(last)
    with Path("updates.jsonl").open("a") as updates:
        updates.write("bad again\n")
    assert run(*options).exit_code == 0
    found = Path("program.dead.jsonl").read_text().splitlines()
    assert [json.loads(found[0])["line"], json.loads(found[-1])["line"]] == [1, 2]


def test_updates_may_come_through_a_named_pipe(run: Callable[..., Result]) -> None:
    Path("program.dl").write_text(REACH)
    os.mkfifo("pipe")
    link = '{"op": "+", "relation": "link", "tuple": ["a", "b"]}\n'
    writer = threading.Thread(target=lambda: Path("pipe").write_text(link))
    writer.start()
    result = run(updates="pipe")
    writer.join()
    assert (result.exit_code, result.stdout.count("reach")) == (0, 1)


@pytest.mark.parametrize("updates", ["socket", "folder"])
def test_a_path_that_cannot_be_read_is_an_error(
    updates: str, run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("program.dl").write_text(REACH)
    Path("folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    # Who runs the tests may be allowed to read everything.
    refused = PermissionError(13, "Permission denied")
    monkeypatch.setattr(Path, "iterdir", lambda _: (_ for _ in ()).throw(refused))
    result = run(updates=updates)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"cannot read {updates}: ")


def test_files_of_others_in_a_state_stay_and_stop_nothing(run: Callable[..., Result], whence: Whence) -> None:
    Path("program.dl").write_text(REACH)
    link = '{"op": "+", "relation": "link", "tuple": ["a", "%s"]}\n{"commit": true}\n'
    Path("updates.jsonl").write_text("".join(link % each for each in "bcd"))
    options = ("--state", "state", "--changes", "changes.jsonl", "--snapshot-every", "2")
    assert run(*options).exit_code == 0
    foreign = ("log/notes.parquet", "log/notes.txt", "snapshots/notes.txt", "snapshots/old/x", "log/a-b-c.json")
    for name in foreign:
        Path("state", name).parent.mkdir(exist_ok=True)
        Path("state", name).write_text("mine")
    with Path("updates.jsonl").open("a") as updates:
        updates.write("".join(link % each for each in "efghi"))
    result = run(*options)
    assert (result.exit_code, result.stderr) == (0, "")
    assert all(Path("state", name).read_text() == "mine" for name in foreign)
    assert whence("state", "verify", "state").stdout.startswith("ok: ")
    assert whence("state", "ls", "state").exit_code == 0


@pytest.mark.parametrize("line", ['{"epoch": "x"}', '{"epoch": null}', "[1]", "\\", '"epoch"', "1"])
def test_a_changes_file_with_something_else_is_refused(line: str, run: Callable[..., Result]) -> None:
    Path("program.dl").write_text(REACH)
    Path("updates.jsonl").write_text("")
    Path("changes.jsonl").write_text(line + "\n")
    result = run("--state", "state", "--changes", "changes.jsonl")
    assert result.exit_code == 1
    assert result.stderr.startswith("changes.jsonl holds something else than changes\n")


def test_too_little_memory_is_said(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("program.dl").write_text(REACH)
    Path("updates.jsonl").write_text('{"op": "+", "relation": "link", "tuple": ["a", "b"]}\n')

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Session, "apply", fail)
    result = run()
    assert result.exit_code == 3
    assert result.stderr.startswith("error: there is not enough memory for this\n")


# -- what is lost, and what is shown that is not so -------------------------------------------------------------------


@pytest.fixture
def state(run: Callable[..., Result], whence: Whence) -> Path:
    """Of five epochs from the standard input, which nobody can read again."""
    Path("program.dl").write_text(REACH)
    link = '{"op": "+", "relation": "link", "tuple": ["a", "%s"]}\n{"commit": true}\n'
    options = ("--updates", "-", "--state", "state", "--changes", "changes.jsonl", "--no-spark", "--quiet")
    assert whence("run", "program.dl", *options, stdin="".join(link % each for each in "bcdef")).exit_code == 0
    return Path("state")


@pytest.mark.parametrize("is_delivered", [True, False])
def test_a_lost_end_of_the_log_is_noticed(is_delivered: bool, state: Path, whence: Whence) -> None:
    newest = max((state / "log").iterdir())
    newest.unlink()
    if not is_delivered:  # as after a crash: only the figures know of the last epoch
        manifest = read_manifest(state)
        assert manifest is not None
        write_manifest(state, replace(manifest[0], delivered=0))
    verified = whence("state", "verify", "state")
    assert (verified.exit_code, verified.stdout) == (1, "state/log: epochs 5 to 5 are missing\n")
    result = whence("run", "program.dl", "--updates", "-", "--state", "state", "--no-spark", stdin="")
    assert result.exit_code == 1
    assert result.stderr.startswith(
        "state/log: epochs 5 to 5 have happened, but are missing\n  hint: restore the folder from a copy"
    )


def test_published_views_are_checked_and_written_again(state: Path, whence: Whence) -> None:
    table = state / "current/reach.parquet"
    sound = table.read_bytes()
    table.write_bytes(sound[:-1])
    verified = whence("state", "verify", "state")
    assert (verified.exit_code, "reach.parquet: the content is not what was written" in verified.stdout) == (1, True)
    result = whence("run", "program.dl", "--updates", "-", "--state", "state", "--no-spark", stdin="")
    assert result.exit_code == 0
    assert "reach.parquet: the content is not what was written there; written again" in result.stderr
    assert whence("state", "verify", "state").exit_code == 0


def test_published_views_of_another_epoch_are_noticed(state: Path, whence: Whence) -> None:
    own = (state / "current").resolve()
    other = next(each for each in (state / "views").iterdir() if each != own)
    (state / "current").unlink()
    shutil.rmtree(own)
    other.rename(own)
    (state / "current").symlink_to(Path("views") / own.name)
    verified = whence("state", "verify", "state")
    assert verified.exit_code == 1
    assert verified.stdout.startswith("state/current: reach after epoch 5 lacks ")


def test_a_copy_that_cannot_be_written_can_be_verified(
    state: Path, whence: Whence, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.lstat().st_mtime_ns for path in state.rglob("*")}
    opened = os.open

    def reading(path: str | Path, flags: int, *more: Any, **others: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(30, "Read-only file system")
        return opened(path, flags, *more, **others)

    monkeypatch.setattr(os, "open", reading)
    assert whence("state", "verify", "state").stdout.startswith("ok: ")
    assert before == {path: path.lstat().st_mtime_ns for path in state.rglob("*")}
    (state / "lock").unlink()
    assert whence("state", "verify", "state").stdout.startswith("ok: ")
    assert not (state / "lock").exists()
