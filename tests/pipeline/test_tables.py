"""Tables of SQL in a run: copies of rows over restarts, kills and upgrades; what breaks a constraint is a dead letter."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from whence import Update, load
from whence.io.bags import as_often
from whence.io.changes import Changes, Epoch
from whence.lang.bags import changes_of_bag
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.pipeline.files import StateError
from whence.pipeline.keeper import ResidentKeeper
from whence.pipeline.options import RunOptions
from whence.pipeline.parts.open import choose
from whence.pipeline.sinks import CallbackSink
from whence.pipeline.store import WholeStore
from whence.pipeline.upgrade import upgrade
from whence.plan.deal import divide
from whence.plan.partition import NotPartitionable

TEXT = "CREATE TABLE t(a BIGINT NOT NULL, s TEXT); CREATE VIEW v AS SELECT s FROM t; "
COUNTS = "CREATE VIEW n AS SELECT a, COUNT(*) AS n FROM t GROUP BY a;"
PROGRAM = load(TEXT + COUNTS, dialect="sql", name="p.sql")
KEYED = load(
    "CREATE TABLE k(id BIGINT PRIMARY KEY, n BIGINT CHECK (n > 0)); SELECT n FROM k;", dialect="sql", name="p.sql"
)


def keeper(folder: Path, program: Program = PROGRAM, **more: object) -> ResidentKeeper:
    return ResidentKeeper(program, RunOptions(**more), store=WholeStore.open(folder, program))  # type: ignore[arg-type]


def random_updates(random: Random) -> list[Update]:
    rows: list[Tuple] = [(1, "x"), (1, None), (2, "x"), (2, "y")]
    return [Update(random.choice("++-"), "t", random.choice(rows)) for _ in range(random.randint(1, 6))]


def follow(rows: Counter[Tuple], updates: list[Update]) -> None:
    for op, _, row, _ in updates:
        rows[row] = max(0, rows[row] + (1 if op == "+" else -1))


@pytest.mark.parametrize("seed", range(4))
def test_copies_are_there_after_every_restart_however_the_run_ended(tmp_path: Path, seed: int) -> None:
    random, rows, shown = Random(seed), Counter[Tuple](), Counter[Tuple]()
    for _ in range(6):
        received: dict[int, Changes] = {}
        current = keeper(tmp_path, snapshot_every=3, sinks=[CallbackSink(received.__setitem__)])
        for _ in range(random.randint(1, 4)):
            updates = random_updates(random)
            follow(rows, updates)
            current.apply([Epoch(updates)])
            assert Counter(current.session.bag("t")) == +rows
            changes = as_often(PROGRAM, received[current.epoch])
            shown.update(changes.inserted.get("v", ()))
            shown.subtract(changes.deleted.get("v", ()))
            assert +shown == Counter((row[1],) for row in rows.elements())
        current.close(delivered=random.random() < 0.5)


def test_a_kill_in_the_middle_of_a_run_loses_and_repeats_no_copy(tmp_path: Path) -> None:
    random, rows = Random(1), Counter[Tuple]()
    (tmp_path / "p.sql").write_text(TEXT + COUNTS)
    with (tmp_path / "u.jsonl").open("w") as file:
        for _ in range(300):
            updates = random_updates(random)
            follow(rows, updates)
            file.writelines(
                json.dumps({"op": op, "relation": name, "tuple": row}) + "\n" for op, name, row, _ in updates
            )
            file.write('{"commit": true}\n')
    command = [sys.executable, "-m", "whence", "run", "p.sql", "--updates", "u.jsonl", "--no-spark", "--state", "state"]
    command += ["--changes", "changes.jsonl", "--quiet", "--snapshot-every", "50"]
    for epochs in (20, 90, 170):
        running = subprocess.Popen(command, cwd=tmp_path)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and running.poll() is None and last_epoch(tmp_path) < epochs:
            time.sleep(0.01)
        running.send_signal(signal.SIGKILL)
        running.wait()
    assert last_epoch(tmp_path) < 300
    subprocess.run(command, cwd=tmp_path, check=True)
    shown = Counter[Tuple]()
    for line in (tmp_path / "changes.jsonl").read_text().splitlines():
        change = json.loads(line)
        if change["relation"] == "v":
            shown[tuple(change["tuple"])] += 1 if change["op"] == "+" else -1
    assert +shown == Counter((row[1],) for row in rows.elements())
    assert -shown == Counter()
    found = keeper(tmp_path / "state")
    assert Counter(found.session.bag("t")) == +rows
    found.close()


def last_epoch(folder: Path) -> int:
    names = [path.name for path in (folder / "state" / "log").glob("*.parquet")]
    return max((int(name.split("-")[1]) for name in names), default=0)


def test_copies_are_carried_into_another_version(tmp_path: Path) -> None:
    first = keeper(tmp_path)
    first.apply([Epoch([Update("+", "t", (1, "x"))] * 3)])
    first.close()
    other = load(TEXT + "CREATE VIEW total AS SELECT SUM(a) AS total FROM t;", dialect="sql", name="p.sql")
    assert upgrade(tmp_path, other) is not None
    second = keeper(tmp_path, other)
    assert second.session.bag("total") == [(3,)]
    second.apply([Epoch([Update("-", "t", (1, "x"))])])
    assert second.session.bag("total") == [(2,)]
    second.close()
    with pytest.raises(StateError, match=r"(?s)t\.copies has 1 tuples.*cannot keep them"):
        upgrade(tmp_path, load(TEXT.replace("s TEXT", "s TEXT, UNIQUE (a)"), dialect="sql", name="p.sql"))


def test_a_version_with_a_constraint_that_rows_break_is_refused(tmp_path: Path) -> None:
    first = keeper(tmp_path, KEYED)
    first.apply([Epoch([Update("+", "k", (1, 5))])])
    first.close()
    other = load(
        "CREATE TABLE k(id BIGINT PRIMARY KEY, n BIGINT CHECK (n > 9)); SELECT n FROM k;", dialect="sql", name="p.sql"
    )
    with pytest.raises(StateError, match=r"k\(1, 5\) breaks CHECK \(n > 9\)"):
        upgrade(tmp_path, other)


def test_what_breaks_a_constraint_is_told_and_the_rest_of_the_epoch_goes_on() -> None:
    told: list[tuple[int, str]] = []
    current = ResidentKeeper(KEYED)
    updates = [("+", (1, 5)), ("+", (1, 6)), ("-", (1, 5)), ("+", (1, 6)), ("+", (2, 0)), ("+", (3, None))]
    epoch = Epoch([Update(op, "k", row) for op, row in updates], refuse=lambda at, reason: told.append((at, reason)))
    (report,) = current.apply([epoch])
    assert set(current.session.relation("k")) == {(1, 6), (3, None)}
    assert report.updates == 4
    assert told == [
        (1, "k(1, 6) breaks PRIMARY KEY (id): k(1, 5) is there already"),
        (4, "k(2, 0) breaks CHECK (n > 0)"),
    ]


def test_changes_of_a_bag_are_as_many_as_copies_came_and_went() -> None:
    assert changes_of_bag(([], [("a",)]), ([], [("a", 3)])) == ([], [("a",)] * 3)
    assert changes_of_bag(([], []), ([("a", 2)], [])) == ([("a",)], [])
    assert changes_of_bag(([], []), ([], [("a", 2)])) == ([], [("a",)])
    assert changes_of_bag(([("a",)], [("b",)]), ([("a", 2)], [])) == ([("a",)] * 2, [("b",)])


def test_a_table_without_a_key_is_kept_in_one_piece_and_keys_are_not_enforced_in_parts(tmp_path: Path) -> None:
    with pytest.raises(NotPartitionable, match="the rows of t may be equal"):
        divide(PROGRAM, PROGRAM.outputs)
    store = WholeStore.open(tmp_path, KEYED)
    asked = choose(store, {}, partitions=2, limit=10, cores=lambda: 2)
    assert asked.reason == "as asked for; the constraints of its tables are not enforced in parts"
    grown = choose(store, {"k": range(20)}, partitions=None, limit=10, cores=lambda: 2)
    assert (grown.parts, grown.reason) == (None, "20 rows are more than 10, but constraints of tables are enforced")
    store.close()
