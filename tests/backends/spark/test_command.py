"""`whence eval --backend spark`."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from whence.cli import app

PROGRAM = """.decl link(x:number, y:number)
.input link
.decl reach(x:number, y:number)
.output reach
.printsize reach
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
"""


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text(PROGRAM)
    Path("link.facts").write_text("1\t2\n2\t3\n")
    return tmp_path


def run(*options: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["eval", "p.dl", "--backend", "spark", *options], catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def test_fact_files_in_and_out(folder: Path) -> None:
    code, out, err = run("-D", "out")
    assert (code, out) == (0, "reach\t3\n")
    assert "link, reach: in-task: the whole program" in err
    assert (folder / "out/reach.csv").read_text() == "1\t2\n1\t3\n2\t3\n"


@pytest.mark.parametrize("form", ["parquet", "json", "csv"])
def test_what_is_written_can_be_read(folder: Path, spark: SparkSession, form: str) -> None:
    assert run("-D", "out", "--format", form, "--quiet")[0] == 0
    written = folder / f"out/reach.{form}"
    assert written.is_dir()
    if form == "parquet":
        assert sorted(map(tuple, (row.values() for row in pq.read_table(written).to_pylist()))) == [
            (1, 2),
            (1, 3),
            (2, 3),
        ]
    written.rename(folder / f"link.{form}")
    code, out, _ = run("-D", "again", "--quiet")
    assert (code, out) == (0, "reach\t3\n")


def test_mistakes_are_said(folder: Path) -> None:
    assert run("--mode", "shuffled", "-D", "-", "--format", "json")[0] == 2
    Path("link.facts").write_text("1\tx\n")
    code, _, err = run()
    assert (code, "link.facts:1" in err) == (1, True)
    Path("p.dl").write_text(".decl n(x:number)\n.output n\nn(0). n(x + 1) :- n(x).")
    code, _, err = run("--max-rounds", "5", "--quiet")
    assert (code, "error: stopped after 5 rounds: rule n#2 (p.dl:3) keeps deriving" in err) == (3, True)


def test_options_for_spark_need_spark(folder: Path) -> None:
    for options in (["--mode", "shuffled"], ["--master", "local"], ["--format", "csv"]):
        result = CliRunner().invoke(app, ["eval", "p.dl", *options])
        assert (result.exit_code, "it is for --backend spark" in result.stderr) == (2, True)


COSTS = """.decl link(x: symbol, y: symbol, cost: number, odds: float, level: symbol)
.input link
.decl two(x: symbol, z: symbol)
.output two
.printsize two
two(x, z) :- link(x, y, _, _, _), link(y, z, _, _, _).
"""
ROUTES = (
    COSTS
    + """.decl reach(x: symbol, y: symbol)
.output reach
reach(x, y) :- link(x, y, _, _, _).
reach(x, z) :- reach(x, y), link(y, z, _, _, _).
"""
)


@pytest.mark.parametrize(
    ("semiring", "column"),
    [("tropical", "cost"), ("tropical", ""), ("viterbi", "odds"), ("access", "level"), ("natural", "cost")],
)
def test_annotations_are_those_of_the_local_engine(folder: Path, semiring: str, column: str) -> None:
    Path("p.dl").write_text(COSTS if semiring == "natural" else ROUTES)
    lines = ("a\tb\t3\t0.5\tsecret", "b\tc\t4\t0.25\tpublic", "c\ta\t0\t1\tpublic", "a\tc\t9\t0.75\ttop-secret")
    Path("link.facts").write_text("".join(f"{line}\n" for line in lines))
    options = ["-D", "-", "-q", "--semiring", semiring, *(["--annotate", f"link={column}"] if column else [])]
    local = CliRunner().invoke(app, ["eval", "p.dl", *options])
    assert local.exit_code == 0
    assert run(*options)[:2] == (0, local.stdout)


def test_annotations_are_written_in_every_form(folder: Path) -> None:
    Path("p.dl").write_text(PROGRAM)
    assert run("--semiring", "tropical", "--annotate", "link=y", "-D", "out", "--format", "parquet", "-q")[0] == 0
    found = pq.read_table(folder / "out/reach.parquet").to_pylist()
    assert sorted(found, key=str) == [
        {"x": 1, "y": 2, "annotation": 2.0},
        {"x": 1, "y": 3, "annotation": 5.0},
        {"x": 2, "y": 3, "annotation": 3.0},
    ]


@pytest.mark.parametrize(
    ("code", "options", "message"),
    [
        (1, "--semiring counting", "the local engine meets each once"),
        (1, "--semiring why", "why has no operations on Spark; boolean, natural"),
        (1, "--semiring viterbi --annotate link=y", "is not a value of viterbi"),
        (2, "--semiring tropical --annotate link=price", "link has no column price hint: there are x, y"),
        (2, "--semiring tropical --mode in-task", "with --semiring recursion always runs in rounds of joins"),
    ],
)
def test_mistakes_with_annotations_are_said(folder: Path, code: int, options: str, message: str) -> None:
    result = run("-D", "-", *options.split())
    assert result[0] == code
    assert message in " ".join(result[2].replace("│", " ").split())
