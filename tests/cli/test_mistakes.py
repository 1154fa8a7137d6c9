"""Mistakes in a command are told in two lines, like those in a program, and fit a narrow terminal."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from whence.cli import COMMANDS
from whence.cli.lazy import LazyCommand

Whence = Callable[..., Result]


@pytest.fixture
def program(folder: Path) -> Path:
    path = folder / "program.dl"
    path.write_text('.decl link(x:symbol, y:symbol)\nlink("a", "b").\nreach(x, y) :- link(x, y).\n.output reach\n')
    return path


@pytest.mark.parametrize(
    ("arguments", "problem", "advice"),
    [
        (["evla"], "there is no command evla", "did you mean eval?"),
        (["frobnicate"], "there is no command frobnicate", "whence -h lists the commands"),
        (["exchange", "publsh"], "there is no command publsh", "did you mean publish?"),
        (["--versoin"], "whence has no option --versoin", "did you mean --version?"),
        (["eval", "nofile.dl"], "PROGRAM: there is no file nofile.dl", "whence eval -h tells how it is called"),
        (["eval", "progam.dl"], "PROGRAM: there is no file progam.dl", "did you mean program.dl?"),
        (["eval", "."], "PROGRAM: . is a folder", "did you mean program.dl?"),
        (["eval"], "PROGRAM is missing", "whence eval [OPTIONS] PROGRAM; whence eval -h tells how it is called"),
        (["eval", "program.dl", "b", "c"], "too many arguments: b c", "whence eval [OPTIONS] PROGRAM; "),
        (["eval", "program.dl", "--fact-dri", "x"], "whence eval has no option --fact-dri", "did you mean --fact-dir?"),
        (["eval", "program.dl", "-x"], "whence eval has no option -x", "whence eval -h lists its options"),
        (["eval", "program.dl", "--engine", "loca"], "--engine: loca is not one of auto, local, reference", "local?"),
        (["eval", "program.dl", "--max-tuples", "x"], "--max-tuples: x is not a whole number", "whence eval -h"),
        (["eval", "program.dl", "--timeout", "soon"], "--timeout: soon is not a number", "whence eval -h"),
        (["eval", "program.dl", "--max-tuples", "0"], "--max-tuples: 0 is out of range: it has to be at least 1", ""),
        (["eval", "program.dl", "--max-tuples"], "--max-tuples needs a value", "write --max-tuples VALUE"),
        (["eval", "program.dl", "--quiet=3"], "--quiet takes no value", "write --quiet alone"),
        (["eval", "program.dl", "--semiring", "tropcal"], "--semiring: there is no semiring tropcal", "tropical?"),
        (
            ["eval", "program.dl", "--semiring", "zz"],
            "--semiring: there is no semiring zz",
            "there are boolean, natural",
        ),
        (["eval", "program.dl", "--functions", "no.py"], "--functions: there is no file no.py", "whence eval -h"),
        (["run", "program.dl", "-F", "nowhere"], "--fact-dir: there is no folder nowhere", "whence run -h"),
        (["run", "program.dl", "--sink", "here"], "--sink: here names no kind of sink", "write parquet:FOLDER, delta:"),
        (["why", "program.dl", "x("], "FACT: x( is not a fact", 'write it as in the program, such as link("a", 1)'),
        (["why", "program.dl", 'raech("a", "b")'], "FACT: there is no relation raech", "did you mean reach?"),
        (["whatif", "program.dl"], "nothing is supposed", "give facts with -e or -i, or ask for --rank"),
    ],
)
def test_a_mistake_is_told_with_its_remedy(
    arguments: list[str], problem: str, advice: str, program: Path, whence: Whence
) -> None:
    result = whence(*arguments)
    lines = result.stderr.splitlines()
    assert result.exit_code == 2
    assert lines[0] == f"error: {problem}"
    assert lines[1].startswith("  hint: ")
    assert advice in " ".join(" ".join(lines[1:]).split())
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_tells_of_an_unknown_option_in_two_lines(command: LazyCommand, whence: Whence) -> None:
    result = whence(str(command.name), "--qqq")
    assert (result.exit_code, result.stderr) == (
        2,
        f"error: whence {command.name} has no option --qqq\n  hint: whence {command.name} -h lists its options\n",
    )


def test_long_values_are_not_broken(whence: Whence) -> None:
    path = "a" * 100
    first, second, *_ = whence("eval", path).stderr.splitlines()
    assert (first, second) == ("error: PROGRAM: there is no file", f"       {path}")
