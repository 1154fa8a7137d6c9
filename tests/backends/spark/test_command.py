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
