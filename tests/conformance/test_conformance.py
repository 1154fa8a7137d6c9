"""Every conformance case: a program with its facts gives the expected output, through the command a user would type."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from whence.cli import app
from whence.cli.functions import load_functions
from whence.lang.printer import print_module
from whence.lang.source import Source
from whence.lang.sql import translate

FOLDER = Path(__file__).parent
CASES = sorted(path.parent for path in FOLDER.glob("*/*/program.*"))


# Rules in Datalog have sets: files with equal rows mean something else there.
SQL_CASES = [case for case in CASES if (case / "program.sql").exists() and case.name != "duplicate_input_rows"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_program_gives_the_expected_output(case: Path, tmp_path: Path) -> None:
    (program,) = case.glob("program.*")
    check(program, case, tmp_path)


@pytest.mark.parametrize("case", SQL_CASES, ids=lambda case: case.name)
def test_the_rules_that_sql_becomes_give_it_too(case: Path, tmp_path: Path) -> None:
    text = (case / "program.sql").read_text(encoding="utf-8")
    functions = case / "functions.py"
    module = translate(Source.of(text), load_functions(functions if functions.exists() else None)).module
    printed = tmp_path / "program.dl"
    printed.write_text(print_module(module), encoding="utf-8")
    check(printed, case, tmp_path)


def check(program: Path, case: Path, tmp_path: Path) -> None:
    command = ["eval", str(program), "-F", str(case / "facts"), "-D", str(tmp_path), "--quiet", "--timeout", "60"]
    if (case / "functions.py").exists():
        command += ["--functions", str(case / "functions.py")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    expected = case / "expected"
    for path in expected.glob("*"):
        if path.name == "stdout.txt":
            assert sorted(result.stdout.splitlines()) == sorted(path.read_text(encoding="utf-8").splitlines())
        else:
            written = (tmp_path / path.name).read_text(encoding="utf-8")
            assert sorted(written.splitlines()) == sorted(path.read_text(encoding="utf-8").splitlines()), path.name


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 150
