"""`whence simulate --field` and `whence explain-plan --sensors`: runs, pictures, and what is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Whence

EXAMPLES = Path(__file__).parents[2] / "examples" / "sensors"
FIELDS = {"vehicles": "grid:5x5:5", "trajectories": "grid:6x6:4", "tree": "random:40:50:16:4", "fire": "grid:8x8"}


def arguments(name: str, *options: str) -> list[str]:
    return ["simulate", str(EXAMPLES / f"{name}.dl"), "--updates", str(EXAMPLES / f"{name}.jsonl"), *options]


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize(
    "options", [(), ("--jitter", "15", "--skew", "20", "--seed", "3"), ("--scheme", "perpendicular")]
)
def test_examples_are_right(whence: Whence, name: str, options: tuple[str, ...]) -> None:
    result = whence(*arguments(name, "--field", FIELDS[name], "--json", *options))
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert (figures["missed"], figures["false"], figures["late"], figures["beyond_stages"]) == (0, 0, 0, 0)
    assert figures["right"] > 0
    assert figures["messages"] > 0
    assert figures["joules"] > 0
    assert figures["final_seconds"] >= figures["seconds"]


def test_views_are_written_and_rows_traced_with_when_they_are_final(whence: Whence) -> None:
    result = whence(*arguments("vehicles", "--field", "grid:5x5:5", "-D", "out", "--trace", "trace.txt", "-q"))
    assert (result.exit_code, result.output) == (0, "")
    assert Path("out/uncov.csv").read_text() == "2\t2\t1\n4\t3\t2\n"
    lines = Path("trace.txt").read_text().splitlines()
    assert "     0.000  n0  +uncov(2, 2, 1)  tentative until 0.160" in lines
    assert "     1.060  n0  -uncov(2, 2, 1)  tentative until 1.160" in lines


def test_losses_are_told(whence: Whence) -> None:
    options = ("--field", "grid:6x6:4", "--loss", "0.3", "--json", "--seed", "4")
    figures = json.loads(whence(*arguments("trajectories", *options)).stdout)
    assert figures["lost"] > 0
    assert figures["missed"] > 0
    repeated = json.loads(whence(*arguments("trajectories", *options, "--retransmit")).stdout)
    assert (repeated["missed"], repeated["false"]) == (0, 0)
    assert repeated["retransmitted"] > 0


def test_pictures(whence: Whence) -> None:
    for name, field in FIELDS.items():
        result = whence(*arguments(name, "--field", field, "--picture", f"{name}.svg", "-q"))
        assert result.exit_code == 0, result.output
        assert Path(f"{name}.svg").read_text().startswith("<svg ")
    assert whence(*arguments("trajectories", "--field", "grid:6x6:4", "--picture", "t.html", "-q")).exit_code == 0
    page = Path("t.html").read_text()
    assert "src=" not in page
    assert "href=" not in page
    assert 'type="range"' in page


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no browser")
def test_the_slider_shows_what_is_there(whence: Whence) -> None:
    assert whence(*arguments("vehicles", "--field", "grid:5x5:5", "--picture", "v.html", "-q")).exit_code == 0
    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--dump-dom",
        Path("v.html").absolute().as_uri(),
    ]
    page = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "4.060 s: 7 rows, 0 of them tentative" in page  # three views' rows and the four vehicles that are left


def test_the_script_runs_all(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "main.py"), str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split(":")[0] for line in said] == list(FIELDS)
    assert all(line.endswith(" 0 wrong") for line in said)
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.html" for name in FIELDS}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("vehicles", ("--field", "grid:0x3"), "one row and one column"),
        ("vehicles", ("--field", "somewhere"), "is not a field"),
        ("vehicles", ("--field", "random:30:100:5"), "do not reach"),
        ("vehicles", ("--field", "grid:2x2"), "from the nearest node"),
        ("vehicles", ("--field", "grid:5x5:5", "--scheme", "one-hop"), "do not hear each other"),
        ("vehicles", ("--field", "grid:5x5:5", "--hash", "cov"), "does not say what to hash by"),
        ("vehicles", ("--field", "grid:5x5:5", "--server", "x"), "there is no node x"),
    ],
)
def test_what_cannot_be_is_said(whence: Whence, name: str, options: tuple[str, ...], message: str) -> None:
    result = whence(*arguments(name, *options))
    assert result.exit_code == 1
    assert message in result.output
    assert "Traceback" not in result.output


def test_a_limit_of_stages_that_is_too_low_is_told(whence: Whence) -> None:
    result = whence(*arguments("tree", "--field", "grid:4x5", "--stages", "2"))
    assert result.exit_code == 0
    assert "rows are above the limit of 2 stages" in result.output


def test_a_field_from_a_file(whence: Whence) -> None:
    Path("links.txt").write_text("0 1\n1 2\n2 3\n3 0\n")
    figures = json.loads(whence(*arguments("tree", "--field", "links.txt", "--json")).stdout)
    assert (figures["nodes"], figures["missed"], figures["false"]) == (4, 0, 0)


def test_plans_tell_where_tuples_go(whence: Whence) -> None:
    said = whence("explain-plan", str(EXAMPLES / "vehicles.dl"), "--sensors", "grid:20x20:5").stdout
    assert "veh, stored in row, looks for partners in column, 7.5 m far" in said
    assert "uncov: final " in said
    assert "bytes of conditions" in said
    refused = whence("explain-plan", str(EXAMPLES / "vehicles.dl"), "--sensors", "nowhere")
    assert refused.exit_code == 1
