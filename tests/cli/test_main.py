import subprocess
import sys
from collections.abc import Callable

import pytest
from click.testing import Result

import whence as package
from whence.cli import COMMANDS
from whence.cli.lazy import LazyCommand

Whence = Callable[..., Result]


def test_the_version_is_the_packages(whence: Whence) -> None:
    result = whence("--version")
    assert (result.exit_code, result.stdout) == (0, f"whence {package.__version__}\n")


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_the_commands_and_shows_examples(flag: str, whence: Whence) -> None:
    result = whence(flag)
    assert result.exit_code == 0
    for text in ("check", "eval", "--install-completion", "Examples", "whence eval path.dl -F facts -D -"):
        assert text in result.stdout


def test_without_arguments_help_is_shown(whence: Whence) -> None:
    result = whence()
    assert result.exit_code == 2
    assert "Examples" in result.output


def test_help_of_a_command_says_what_its_exit_codes_mean(whence: Whence) -> None:
    assert "3 if a limit was" in " ".join(whence("eval", "--help").stdout.split())
    assert "0 if there are none or only warnings" in " ".join(whence("check", "--help").stdout.split())


def test_an_unknown_command_is_a_usage_error(whence: Whence) -> None:
    assert whence("evaluate").exit_code == 2


def test_the_entry_point_runs() -> None:
    code = "from whence.cli import main; main()"
    ran = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout == f"whence {package.__version__}\n"


def test_help_loads_no_engine_and_no_parser() -> None:
    code = (
        "import sys; from whence.cli import app; app(['--help'], standalone_mode=False);"
        "print([each for each in ('numba', 'numpy', 'lark', 'sqlglot', 'pyspark') if each in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_summary_of_a_command_is_how_its_help_begins(command: LazyCommand, whence: Whence) -> None:
    assert command.help in " ".join(whence(command.name, "--help").stdout.split())


def test_spark_is_not_loaded() -> None:
    code = "import sys, whence.cli.run, whence.cli.evaluate; print('pyspark' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
