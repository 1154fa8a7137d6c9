import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

import pytest
from click.testing import Result
from tests.waiting import wait_for, wait_until_read

from whence import Update, reference
from whence.io import updates as records
from whence.lang import load_file
from whence.lang.types import Tuple

Whence = Callable[..., Result]

EXAMPLE = Path(__file__).parents[2] / "examples" / "link_failures"
REACH = """\
.decl link(src: symbol, dst: symbol)
.input link
.decl reach(src: symbol, dst: symbol)
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
.output reach
"""
COMMIT = '{"commit": true}'
PATIENCE = 30.0


@pytest.fixture(autouse=True)
def reach(folder: Path) -> None:
    Path("reach.dl").write_text(REACH)


@pytest.fixture
def whence(whence: Whence) -> Whence:
    """Without Spark, which is slow to start; test_run_on_spark.py compares the two."""
    return lambda *arguments, **more: whence(*arguments, "--no-spark", **more)


def update(op: str, *row: object, relation: str = "link", **more: object) -> str:
    return json.dumps({"op": op, "relation": relation, "tuple": row, **more})


def write(*lines: str) -> None:
    Path("updates.jsonl").write_text("".join(f"{line}\n" for line in lines))


def change(epoch: int, op: str, *row: object, relation: str = "reach") -> str:
    return json.dumps({"epoch": epoch, "op": op, "relation": relation, "tuple": row})


def lines(*each: str) -> str:
    return "".join(f"{line}\n" for line in each)


def summary(result: Result) -> dict[str, object]:
    found: dict[str, object] = json.loads(result.stderr)
    return found


# -- epochs and changes -----------------------------------------------------------------------------------------------


def test_a_commit_ends_an_epoch_and_so_does_the_end_of_the_updates(whence: Whence) -> None:
    write(
        update("+", "a", "b"), "", update("+", "b", "c"), COMMIT, update("-", "b", "c"), COMMIT, update("+", "b", "a")
    )
    result = whence("run", "reach.dl", "--updates", "updates.jsonl", "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == lines(
        change(1, "+", "a", "b"),
        change(1, "+", "a", "c"),
        change(1, "+", "b", "c"),
        change(2, "-", "a", "c"),
        change(2, "-", "b", "c"),
        change(3, "+", "a", "a"),
        change(3, "+", "b", "a"),
        change(3, "+", "b", "b"),
    )


def test_an_epoch_ends_after_so_many_updates(whence: Whence) -> None:
    # The commit speaks of the epoch that its size has just ended.
    write(update("+", "a", "b"), update("+", "c", "d"), COMMIT, update("+", "e", "f"), COMMIT)
    result = whence("run", "reach.dl", "--updates", "updates.jsonl", "--epoch-size", "2", "--json")
    assert result.stdout == lines(change(1, "+", "a", "b"), change(1, "+", "c", "d"), change(2, "+", "e", "f"))
    assert summary(result)["epochs"] == 2


def test_an_empty_epoch_counts_if_it_was_committed(whence: Whence) -> None:
    write(COMMIT, COMMIT, update("+", "a", "b"), COMMIT)
    assert whence("run", "reach.dl", "--updates", "updates.jsonl", "--quiet").stdout == lines(change(3, "+", "a", "b"))


def test_only_net_changes_of_an_epoch_are_told(whence: Whence) -> None:
    write(update("+", "a", "b"), COMMIT, update("-", "a", "b"), update("+", "a", "b"), COMMIT)
    result = whence("run", "reach.dl", "--updates", "updates.jsonl", "--json")
    assert result.stdout == lines(change(1, "+", "a", "b"))


def test_deletions_come_first_and_relations_in_the_order_of_their_outputs(whence: Whence) -> None:
    Path("reach.dl").write_text(REACH + ".output link\n")
    write(update("+", "a", "b"), update("+", "b", "c"), COMMIT, update("-", "b", "c"), update("+", "a", "z"))
    result = whence("run", "reach.dl", "--updates", "updates.jsonl", "--quiet")
    assert result.stdout.splitlines()[5:] == [
        change(2, "-", "a", "c"),
        change(2, "-", "b", "c"),
        change(2, "-", "b", "c", relation="link"),
        change(2, "+", "a", "z"),
        change(2, "+", "a", "z", relation="link"),
    ]


def test_facts_that_are_there_and_those_of_the_program_make_epoch_0(whence: Whence) -> None:
    Path("reach.dl").write_text(REACH + '.decl more(x: symbol)\n.input more\nlink("x", "y").\n.output more\n')
    Path("facts").mkdir()
    Path("facts/link.facts").write_text("a\tb\n")
    write(update("+", "b", "c"))
    without = whence("run", "reach.dl", "--updates", "updates.jsonl", "--quiet")
    result = whence("run", "reach.dl", "--updates", "updates.jsonl", "-F", "facts", "--quiet")
    assert without.stdout == lines(change(0, "+", "x", "y"), change(1, "+", "b", "c"))
    assert result.stdout == lines(
        change(0, "+", "a", "b"), change(0, "+", "x", "y"), change(1, "+", "a", "c"), change(1, "+", "b", "c")
    )


def test_ticks_move_the_clock_in_the_epoch_they_stand_in(whence: Whence) -> None:
    Path("reach.dl").write_text(REACH + ".lifetime link 10\n")
    write(update("+", "a", "b", time=1), COMMIT, '{"tick": 5}', COMMIT, '{"tick": 11}', '{"tick": 6}')
    result = whence("run", "reach.dl", "--updates", "updates.jsonl", "--json")
    assert result.stdout == lines(change(1, "+", "a", "b"), change(3, "-", "a", "b"))
    assert summary(result)["epochs"] == 3


@pytest.mark.parametrize("strategy", ["support", "recompute"])
def test_changes_add_up_to_the_views(strategy: str, whence: Whence) -> None:
    source = random.Random(7)
    base: set[Tuple] = set()
    given: list[str] = []
    for number in range(300):
        link = (source.choice("abcdefgh"), source.choice("abcdefgh"))
        op = source.choice("++-")
        (base.add if op == "+" else base.discard)(link)
        given += [update(op, *link), *([COMMIT] if number % 7 == 0 else [])]
    write(*given)
    result = whence("run", "reach.dl", "--updates", "updates.jsonl", "--strategy", strategy, "--json")
    assert result.exit_code == 0
    expected = reference.evaluate(load_file(Path("reach.dl")), {"link": base})["reach"]
    assert total(result.stdout.splitlines()) == {"reach": expected}
    assert summary(result)["tuples"] == {"reach": len(expected)}
    again = whence("run", "reach.dl", "--updates", "updates.jsonl", "--strategy", strategy, "--quiet")
    assert again.stdout == result.stdout


def total(changes: Iterable[str]) -> dict[str, set[Tuple]]:
    views: dict[str, set[Tuple]] = {}
    for each in map(json.loads, changes):
        view, row = views.setdefault(each["relation"], set()), tuple(each["tuple"])
        assert (row in view) == (each["op"] == "-"), each
        (view.add if each["op"] == "+" else view.remove)(row)
    return views


# -- records that cannot be applied -----------------------------------------------------------------------------------


def test_dead_letters_stop_nothing(whence: Whence) -> None:
    Path("updates.jsonl").write_bytes(
        f"{update('+', 'a', 'b')}\n{update('+', 'a', 'b', relation='reach')}\n".encode()
        + b'{"op": "\xff"}\n'
        + f"{update('+', 'b', 'c')}\n".encode()
    )
    result = whence("run", "reach.dl", "--updates", "updates.jsonl", "--json")
    assert result.exit_code == 0
    assert result.stdout == lines(change(1, "+", "a", "b"), change(1, "+", "a", "c"), change(1, "+", "b", "c"))
    assert summary(result)["dead_letters"] == 2
    assert [json.loads(line) for line in Path("reach.dead.jsonl").read_text().splitlines()] == [
        {
            "line": 2,
            "reason": "reach is derived by rules: only base relations take updates",
            "record": update("+", "a", "b", relation="reach"),
        },
        {"line": 3, "reason": "byte 0xff at offset 8 is not UTF-8", "record": '{"op": "\\xff"}'},
    ]


def test_dead_letters_lie_beside_the_changes_or_where_asked(whence: Whence) -> None:
    write("?")
    whence("run", "reach.dl", "--updates", "updates.jsonl", "--changes", "out/changes.jsonl", "--quiet")
    assert Path("out/reach.dead.jsonl").exists()
    assert Path("out/changes.jsonl").read_text() == ""
    whence("run", "reach.dl", "--updates", "updates.jsonl", "--dead-letters", "d/x.jsonl", "--quiet")
    assert json.loads(Path("d/x.jsonl").read_text())["line"] == 1
    assert not Path("reach.dead.jsonl").exists()


def test_without_dead_letters_there_is_no_file(whence: Whence) -> None:
    write(update("+", "a", "b"))
    whence("run", "reach.dl", "--updates", "updates.jsonl")
    assert not Path("reach.dead.jsonl").exists()


def test_strict_stops_at_the_first_bad_record_before_its_epoch(whence: Whence) -> None:
    write(update("+", "a", "b"), COMMIT, update("+", "b", "c"), update("+", "b"), COMMIT)
    result = whence("run", "reach.dl", "--updates", "updates.jsonl", "--strict")
    assert (result.exit_code, result.stdout) == (1, lines(change(1, "+", "a", "b")))
    assert result.stderr == (
        "updates.jsonl:4: link(src: symbol, dst: symbol): 1 values, but 2 expected\n"
        "  hint: without --strict the run goes on\n"
    )
    assert not Path("reach.dead.jsonl").exists()


# -- the summary ------------------------------------------------------------------------------------------------------


def test_the_summary_counts_what_happened(whence: Whence) -> None:
    write(
        update("+", "a", "b"), update("+", "b", "c"), COMMIT, update("+", "a", "b"), update("-", "x", "y"), COMMIT, "?"
    )
    table = whence("run", "reach.dl", "--updates", "updates.jsonl").stderr
    rows = dict([part.strip() for part in line.split("│")[1:3]] for line in table.splitlines() if "│" in line)
    times = [
        rows.pop(f"{name}") for name in ("time in total", "median of an epoch", "p99 of an epoch", "max of an epoch")
    ]
    assert all(text.endswith(" ms") for text in (*times, rows.pop("time by phase")))
    assert rows.pop("memory of the views").endswith(" MB")
    assert rows == {
        "epochs": "2",
        "updates": "4",
        "no-ops": "2",
        "dead letters": "1 in reach.dead.jsonl",
        "changes": "+3 -0",
        "tuples of reach": "3",
        "derivations enumerated": "3",
        "suspended, re-derived": "0, 0",
    }


def test_the_summary_is_json_for_scripts(whence: Whence) -> None:
    # A program with a warning: nothing else may be on the standard error.
    Path("reach.dl").write_text(REACH + ".decl spare(x: symbol)\n")
    write(update("+", "a", "b"), COMMIT, update("-", "a", "b"))
    found = summary(whence("run", "reach.dl", "--updates", "updates.jsonl", "--json"))
    seconds = found.pop("seconds")
    assert isinstance(seconds, dict)
    assert list(seconds) == ["total", "median", "p99", "max"]
    work = found.pop("work")
    assert isinstance(work, dict)
    assert (work["derivations"], work["suspended"], work["rederived"]) == (2, 2, 0)
    assert 0 < seconds["median"] <= seconds["p99"] <= seconds["max"] <= seconds["total"]
    assert found == {
        "epochs": 2,
        "updates": 2,
        "no_ops": 0,
        "dead_letters": 0,
        "changes": {"+": 1, "-": 1},
        "tuples": {"reach": 0},
    }


# -- other ways in and out --------------------------------------------------------------------------------------------


def test_updates_come_from_the_standard_input(whence: Whence) -> None:
    result = whence("run", "reach.dl", "--updates", "-", "--quiet", stdin=update("+", "a", "b"))
    assert (result.exit_code, result.stdout) == (0, lines(change(1, "+", "a", "b")))
    strict = whence("run", "reach.dl", "--updates", "-", "--strict", stdin=b"\xe9\n")
    assert strict.stderr.startswith("<stdin>:1: byte 0xe9 at offset 0 is not UTF-8\n")


def test_the_program_comes_from_the_standard_input(whence: Whence) -> None:
    write(update("+", "a", "b"), "?")
    result = whence("run", "-", "--updates", "updates.jsonl", "--quiet", stdin=REACH)
    assert (result.exit_code, result.stdout) == (0, lines(change(1, "+", "a", "b")))
    assert Path("stdin.dead.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("reach.dl",), "--updates"),
        (("reach.dl", "--updates", "nowhere.jsonl"), "nowhere.jsonl"),
        (("reach.dl", "--updates", "updates.jsonl", "-F", "nowhere"), "nowhere"),
        (("-", "--updates", "-"), "PROGRAM comes from the standard input already"),
        (("reach.dl", "--updates", "-", "--follow"), "the standard input is read until it ends anyway"),
        (("reach.dl", "--updates", "updates.jsonl", "--changes", "updates.jsonl"), "is the file of --updates"),
        (("reach.dl", "--updates", "updates.jsonl", "--dead-letters", "./reach.dl"), "is the file of PROGRAM"),
        (
            ("reach.dl", "--updates", "updates.jsonl", "--changes", "x", "--dead-letters", "x"),
            "x is the file of --changes",
        ),
        (("reach.dl", "--updates", "updates.jsonl", "--epoch-size", "0"), "--epoch-size"),
        (("reach.dl", "--updates", "updates.jsonl", "--strategy", "magic"), "magic"),
    ],
)
def test_bad_commands_are_usage_errors_and_touch_nothing(
    arguments: tuple[str, ...], problem: str, whence: Whence
) -> None:
    write(update("+", "a", "b"))
    result = whence("run", *arguments, stdin=REACH)
    assert result.exit_code == 2
    assert "".join(problem.split()) in "".join(result.stderr.replace("│", "").split())
    assert Path("updates.jsonl").read_text() == lines(update("+", "a", "b"))
    assert Path("reach.dl").read_text() == REACH


def test_compressed_updates_are_no_dead_letters(whence: Whence) -> None:
    Path("updates.jsonl.gz").write_bytes(b"\x1f\x8b")
    result = whence("run", "reach.dl", "--updates", "updates.jsonl.gz")
    assert result.exit_code == 2
    first, second, *_ = result.stderr.splitlines()
    assert first == "error: --updates: updates.jsonl.gz is compressed"
    assert second.startswith("  hint: write gunzip -c updates.jsonl.gz | whence run")
    assert not Path("reach.dead.jsonl").exists()


def test_errors_of_program_and_facts_leave_earlier_changes_alone(whence: Whence) -> None:
    write(update("+", "a", "b"))
    Path("changes.jsonl").write_text("earlier")
    Path("link.facts").write_text("a\n")
    Path("wrong.dl").write_text(REACH + "reach(x, q) :- link(x, _).\n")
    for arguments in (("reach.dl", "-F", "."), ("wrong.dl",)):
        result = whence("run", *arguments, "--updates", "updates.jsonl", "--changes", "changes.jsonl")
        assert result.exit_code == 1
        assert result.stderr.startswith(("link.facts:1: 1 column, but ", "wrong.dl:7:10: error[W0203]"))
    assert Path("changes.jsonl").read_text() == "earlier"


def test_changes_that_cannot_be_written_are_an_error(whence: Whence) -> None:
    write(update("+", "a", "b"))
    result = whence("run", "reach.dl", "--updates", "updates.jsonl", "--changes", "reach.dl/changes")
    assert result.exit_code == 1
    assert result.stderr.startswith("cannot write reach.dl/changes: ")


def test_a_runaway_recursion_is_stopped(whence: Whence) -> None:
    Path("count.dl").write_text(
        ".decl from(x: number)\n.input from\n.decl n(x: number)\nn(x) :- from(x).\nn(x + 1) :- n(x).\n.output n\n"
    )
    write(COMMIT, update("+", 1, relation="from"))
    result = whence("run", "count.dl", "--updates", "updates.jsonl", "--max-tuples", "50")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith("error: stopped at ")


def test_a_function_that_fails_ends_the_run_after_the_epochs_before(whence: Whence) -> None:
    Path("half.dl").write_text(
        ".functor half(x: number): number\n.decl n(x: number)\n.input n\n.decl h(x: number)\n"
        "h(@half(x)) :- n(x).\n.output h\n"
    )
    Path("f.py").write_text("def half(x):\n    return 84 // x\n")
    write(update("+", 2, relation="n"), COMMIT, update("+", 0, relation="n"))
    result = whence("run", "half.dl", "--updates", "updates.jsonl", "--functions", "f.py")
    assert (result.exit_code, result.stdout) == (1, lines(change(1, "+", 42, relation="h")))
    assert "raised ZeroDivisionError" in result.stderr


# -- while it runs ----------------------------------------------------------------------------------------------------


def test_follow_applies_at_commits_sizes_and_pauses_until_interrupted(
    whence: Whence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "POLL", 0.02)
    monkeypatch.setattr(records, "IDLE", 0.2)
    write(update("+", "a", "b"), COMMIT)
    changes = Path("changes.jsonl")
    steps = [
        (change(1, "+", "a", "b"), lines(update("+", "c", "d"), update("+", "e", "f"))),  # a pause ends it
        (change(2, "+", "e", "f"), lines(COMMIT, update("-", "c", "d"), COMMIT)),
        (change(3, "-", "c", "d"), lines(*(update("+", "x", str(at)) for at in range(3)))),  # its size ends it
        (change(4, "+", "x", "2"), update("+", "un", "finished")),
    ]

    failures: list[BaseException] = []

    def append() -> None:
        try:
            for awaited, text in steps:
                wait_for(lambda awaited=awaited: changes.exists() and awaited in changes.read_text())  # type: ignore[misc]
                with Path("updates.jsonl").open("a") as file:
                    file.write(text)
        except AssertionError as error:
            failures.append(error)
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=append)
    thread.start()
    result = whence(
        "run", "reach.dl", "--updates", "updates.jsonl", "--follow", "--changes", "changes.jsonl", "--epoch-size", "3", "--json"
    )  # fmt: skip
    thread.join()
    assert not failures
    assert result.exit_code == 0
    # The line without an end was still being written.
    assert summary(result)["epochs"] == 4
    assert summary(result)["tuples"] == {"reach": 5}
    assert changes.read_text().splitlines()[-1] == change(4, "+", "x", "2")


Started = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def started(folder: Path) -> Iterator[Started]:
    running: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        code = "from whence.cli import main; main()"
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def tell(stream: IO[str] | None, *each: str) -> None:
    assert stream is not None
    stream.write(lines(*each))
    stream.flush()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_epoch_under_way_and_the_run(number: signal.Signals, started: Started) -> None:
    process = started("run", "reach.dl", "--updates", "-", "--json", "--no-spark")
    tell(process.stdin, update("+", "a", "b"), COMMIT)
    assert process.stdout is not None
    # Changes come as soon as their epoch ends, while the updates go on.
    assert process.stdout.readline() == change(1, "+", "a", "b") + "\n"
    tell(process.stdin, update("+", "b", "c"))
    assert process.stdin is not None
    wait_until_read(process.stdin)
    process.send_signal(number)
    # The standard input stays open until it has ended by itself.
    assert process.wait(PATIENCE) == 0
    stdout, stderr = process.stdout.read(), process.stderr.read() if process.stderr else ""
    assert stdout == lines(change(2, "+", "a", "c"), change(2, "+", "b", "c"))
    assert json.loads(stderr)["epochs"] == 2


def test_a_reader_that_goes_away_ends_the_run_quietly(started: Started) -> None:
    process = started("run", "reach.dl", "--updates", "-", "--no-spark")
    tell(process.stdin, update("+", "a", "b"), COMMIT)
    assert process.stdout is not None
    assert process.stdout.readline() == change(1, "+", "a", "b") + "\n"
    process.stdout.close()
    tell(process.stdin, update("+", "b", "c"), COMMIT)
    assert process.wait(PATIENCE) == 0
    assert process.stderr is not None
    assert "Error" not in process.stderr.read()


# -- the example ------------------------------------------------------------------------------------------------------


def test_the_example_gives_its_expected_changes(whence: Whence) -> None:
    program = EXAMPLE / "program.dl"
    result = whence("run", str(program), "--updates", str(EXAMPLE / "updates.jsonl"), "--changes", "out/changes.jsonl")
    assert result.exit_code == 0
    written = {path.name: path.read_text() for path in Path("out").iterdir()}
    assert written == {path.name: path.read_text() for path in (EXAMPLE / "expected").iterdir()}
    links: set[Tuple] = set()
    schema = records.Schema.of(load_file(program))
    for line in (EXAMPLE / "updates.jsonl").read_bytes().splitlines():
        record = records.parse_record(line, 1, schema)
        if isinstance(record, Update):
            (links.add if record.op == "+" else links.discard)(record.tuple)
    views = reference.evaluate(load_file(program), {"link": links})
    assert total(written["changes.jsonl"].splitlines()) == {name: views[name] for name in ("reach", "hops")}


@pytest.mark.parametrize("strategy", ["support", "dred", "recompute"])
def test_every_strategy_gives_the_same_changes(whence: Whence, strategy: str) -> None:
    write(update("+", "a", "b"), update("+", "b", "a"), COMMIT, update("-", "a", "b"))
    result = whence("run", "reach.dl", "--updates", "updates.jsonl", "--quiet", "--strategy", strategy)
    expected = [("+", pair) for pair in (["a", "a"], ["a", "b"], ["b", "a"], ["b", "b"])]
    expected += [("-", pair) for pair in (["a", "a"], ["a", "b"], ["b", "b"])]
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert sorted((change["op"], change["tuple"]) for change in found) == expected


def test_a_strategy_that_does_not_suit_the_program_is_refused(whence: Whence) -> None:
    write(update("+", "a", "b"))
    result = whence("run", "reach.dl", "--updates", "updates.jsonl", "--strategy", "counting")
    assert result.exit_code == 2
    assert "counting does not maintain recursion (reach)" in " ".join(result.stderr.replace("│", " ").split())


def test_changes_go_to_named_sinks_besides(whence: Whence) -> None:
    write(update("+", "a", "b"), COMMIT, update("-", "a", "b"), COMMIT)
    options = ("--sink", "parquet:files", "--sink", "delta:tables", "--quiet")
    for _ in range(2):  # the second run begins anew
        whence("run", "reach.dl", "--updates", "updates.jsonl", *options)
        assert sorted(each.name for each in Path("files/reach").iterdir()) == [
            "000000000001.parquet",
            "000000000002.parquet",
        ]
    assert Path("tables/reach/_delta_log").is_dir()


def test_a_sink_that_there_is_not_is_an_error_before_anything_runs(whence: Whence) -> None:
    write(update("+", "a", "b"))
    result = whence("run", "reach.dl", "--updates", "updates.jsonl", "--sink", "csv:out")
    assert (result.exit_code, "there is no sink csv" in result.stderr) == (2, True)
    assert not result.stdout


def test_a_table_cannot_be_followed(whence: Whence) -> None:
    Path("link.csv").write_text("src,dst\na,b\n")
    result = whence("run", "reach.dl", "--updates", "link.csv", "--follow")
    assert (result.exit_code, "follow a folder" in result.stderr) == (2, True)
