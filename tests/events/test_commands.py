"""`whence events`, as people and scripts use it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.events.programs import PACKETS
from typer.testing import CliRunner, Result

from whence.cli import app

EXAMPLE = Path(__file__).parents[2] / "examples" / "events"


def invoke(*args: object) -> Result:
    return CliRunner().invoke(app, ["events", *map(str, args)])


@pytest.fixture
def packets(tmp_path: Path) -> Path:
    (tmp_path / "program.dl").write_text(PACKETS)
    (tmp_path / "route.facts").write_text("n1\tn3\tn2\nn2\tn3\tn3\n")
    return tmp_path


def write_events(folder: Path, *records: tuple[str, str, list[object]]) -> Path:
    path = folder / "events.jsonl"
    lines = [
        json.dumps({"op": op, "relation": name, "tuple": row, "time": at}) for at, (op, name, row) in enumerate(records)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_keys_as_json(packets: Path) -> None:
    found = json.loads(invoke("keys", packets / "program.dl", "--json", "--quiet").output)
    assert (found["event"], found["keys"]) == ("packet", [0, 2])


@pytest.mark.parametrize("scheme", ["exspan", "basic", "advanced"])
def test_run_then_why(packets: Path, scheme: str) -> None:
    events = write_events(
        packets,
        ("+", "packet", ["n1", "n1", "n3", "x"]),
        ("-", "route", ["n1", "n3", "n2"]),
        ("+", "route", ["n1", "n3", "n3"]),
        ("+", "packet", ["n1", "n1", "n3", "x"]),
    )
    command = ["run", packets / "program.dl", "-F", packets, "--events", events, "--store", packets / "store"]
    ran = json.loads(invoke(*command, "--scheme", scheme, "--json").stdout)
    assert (ran["events"], ran["outputs"], ran["changes"], ran["dead_letters"]) == (2, 2, 2, 0)
    answer = json.loads(invoke("why", packets / "store", 'recv("n3", "n1", "n3", "x")', "--json").stdout)
    assert answer["complete"]
    assert [tree["height"] for tree in answer["trees"]] == [3, 2]
    assert answer["trees"][1]["tree"]["premises"][0]["premises"][1]["tuple"] == ["n1", "n3", "n3"]
    assert [tree["runs"] for tree in answer["trees"]] == [
        [{"run": 0, "time": 0.0, "configuration": 2}],
        [{"run": 1, "time": 3.0, "configuration": 4}],
    ]


def test_a_run_goes_on_where_it_stopped(packets: Path) -> None:
    events = write_events(packets, ("+", "packet", ["n1", "n1", "n3", "x"]))
    command = ["run", packets / "program.dl", "-F", packets, "--events", events, "--store", packets / "store", "--json"]
    assert json.loads(invoke(*command).stdout)["events"] == 1
    with events.open("a") as file:
        file.write('{"op": "+", "relation": "packet", "tuple": ["n1", "n1", "n3", "y"]}\n')
    again = json.loads(invoke(*command).stdout)
    assert (again["events"], again["runs"]) == (1, 2)


def test_bad_events_stop_nothing_and_are_set_aside_with_the_reason(packets: Path) -> None:
    events = write_events(
        packets,
        ("+", "packet", ["n1", "n1", 3, "x"]),
        ("-", "packet", ["n1", "n1", "n3", "x"]),
        ("+", "recv", ["n1", "n1", "n3", "x"]),
        ("+", "packet", ["n9", "n9", "n3", "x"]),
        ("+", "packet", ["n1", "n1", "n3", "x"]),
    )
    result = invoke(
        "run", packets / "program.dl", "-F", packets, "--events", events, "--store", packets / "store", "--json"
    )
    assert json.loads(result.stdout)["outputs"] == 1
    letters = [json.loads(line) for line in (packets / "store" / "dead-letters.jsonl").read_text().splitlines()]
    assert [letter["line"] for letter in letters] == [1, 2, 3, 4]
    assert "3 is not a symbol" in letters[0]["reason"]
    assert "cannot be taken back" in letters[1]["reason"]
    assert "derived by rules" in letters[2]["reason"]
    assert 'r1 misses route("n9", "n3", N)' in letters[3]["reason"]


def test_a_loop_is_reported_with_its_places(packets: Path) -> None:
    (packets / "route.facts").write_text("n1\tn3\tn2\nn2\tn3\tn1\n")
    events = write_events(packets, ("+", "packet", ["n1", "n1", "n3", "x"]))
    command = ["run", packets / "program.dl", "-F", packets, "--events", events, "--store", packets / "store", "--json"]
    assert json.loads(invoke(*command).stdout)["dead_letters"] == 1
    (letter,) = (packets / "store" / "dead-letters.jsonl").read_text().splitlines()
    assert "went round: n2 -> n1 -> n2" in letter


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (PACKETS.replace(".event packet", ""), "W0801", "no relation is marked .event"),
        (PACKETS.replace(".output recv", ""), "W0801", "no .output"),
        (PACKETS + "r3 recv(@L,S,S,S) :- packet(@L,S,_,_), recv(@L,S,_,_).", "W0802", "2 event atoms, packet and recv"),
        (PACKETS + "r3 recv(@L,S,L,S) :- route(@L,S,_).", "W0802", "no event atom"),
        (PACKETS + "r3 route(@L,S,S) :- packet(@L,S,_,_). .slow route", "W0803", "route is .slow, but rule r3 derives it"),
        (PACKETS + "r3 recv(@L,D,D,D) :- packet(@L,_,D,_), route(@D,L,_).", "W0805", "looked up at D"),
        (PACKETS + "r3 recv(@L,D,D,D) :- packet(@L,_,D,_), !route(@L,D,D).", "W0806", "negation"),
        (PACKETS + ".decl p(@x:symbol, y:number) r3 p(@L, n) :- packet(@L,_,_,_), n = count : route(@L,_,_).",
         "W0806", "an aggregate"),
        (PACKETS + ".decl a(@x:symbol) .decl b(@x:symbol) r3 b(@L) :- a(@L). r4 a(@L) :- b(@L).",
         "W0804", "no event packet leads to"),
    ],
)  # fmt: skip
def test_what_keeps_a_program_from_being_an_event_program_is_named(
    tmp_path: Path, text: str, code: str, said: str
) -> None:
    (tmp_path / "program.dl").write_text(text)
    result = invoke("keys", tmp_path / "program.dl")
    assert result.exit_code == 1
    assert code in result.stderr
    assert said in result.stderr


def test_another_scheme_or_other_rules_are_refused(packets: Path) -> None:
    events = write_events(packets, ("+", "packet", ["n1", "n1", "n3", "x"]))
    command = ["run", packets / "program.dl", "-F", packets, "--events", events, "--store", packets / "store"]
    assert invoke(*command).exit_code == 0
    assert "is kept by advanced, not by basic" in invoke(*command, "--scheme", "basic").stderr
    (packets / "program.dl").write_text(PACKETS.replace("D == L", "L == D, S != D"))
    assert "was made by other rules" in invoke(*command).stderr


def test_a_damaged_store_is_never_answered_from_shorter(packets: Path) -> None:
    events = write_events(packets, ("+", "packet", ["n1", "n1", "n3", "x"]))
    invoke("run", packets / "program.dl", "-F", packets, "--events", events, "--store", packets / "store")
    assert invoke("verify", packets / "store").output.startswith("ok: 1 events")
    next((packets / "store" / "links").iterdir()).unlink()
    assert "the file is missing" in invoke("verify", packets / "store").output
    answer = invoke("why", packets / "store", 'recv("n3", "n1", "n3", "x")')
    assert answer.exit_code == 1
    assert "missing" in answer.stderr


def test_retention_forgets_what_only_the_forgotten_needed(packets: Path) -> None:
    records = [("+", "packet", ["n1", "n1", "n3", f"x{at}"]) for at in range(5)]
    change = ("-", "route", ["n1", "n3", "n2"]), ("+", "route", ["n1", "n3", "n3"])
    events = write_events(packets, *records, *change, ("+", "packet", ["n1", "n1", "n3", "last"]))
    invoke("run", packets / "program.dl", "-F", packets, "--events", events, "--store", packets / "store")
    assert "outputs: 5 rows went" in invoke("retain", packets / "store", "--count", 1).output
    assert invoke("verify", packets / "store").output == "ok: 6 events, 1 outputs\n"
    assert invoke("why", packets / "store", 'recv("n3", "n1", "n3", "x1")').exit_code == 1
    assert invoke("why", packets / "store", 'recv("n3", "n1", "n3", "last")').exit_code == 0
    assert "nothing went" in invoke("retain", packets / "store", "--count", 1).output


@pytest.mark.parametrize("shape", ["dot", "svg", "html", "prov"])
def test_trees_as_pictures(packets: Path, shape: str) -> None:
    events = write_events(packets, ("+", "packet", ["n1", "n1", "n3", "x"]))
    invoke("run", packets / "program.dl", "-F", packets, "--events", events, "--store", packets / "store")
    shown = invoke("why", packets / "store", 'recv("n3", "n1", "n3", "x")', "--format", shape)
    assert shown.exit_code == 0
    assert "recv" in shown.output


def test_the_example_runs() -> None:
    done = subprocess.run([sys.executable, EXAMPLE / "main.py"], capture_output=True, text=True, check=True)
    rows = {
        line.split("  ")[0]: line.split()
        for line in done.stdout.splitlines()
        if line[:4] in ("pack", "dns ", "dns,", "dhcp", "arp ", "mesh")
    }
    assert len(rows) == 6
    for name, row in rows.items():
        exspan, _, advanced = (int(number.replace(",", "")) for number in row[-3:])
        assert advanced < exspan / 2, name
    assert 'route("n5", "n3", "n3")' in done.stdout


def test_the_picture_of_the_page_is_what_the_command_draws(tmp_path: Path) -> None:
    files = [EXAMPLE / "packets.dl", "-F", EXAMPLE / "facts", "--events", EXAMPLE / "packets.jsonl"]
    invoke("run", *files, "--store", tmp_path / "store", "--quiet")
    drawn = invoke("why", tmp_path / "store", "--class", '["n1", "n3"]', "--format", "svg")
    assert drawn.output == (EXAMPLE.parents[1] / "docs" / "events-ways.svg").read_text(encoding="utf-8")
