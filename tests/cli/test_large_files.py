from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from whence.io import facts as fact_files
from whence.io import text_columns

Whence = Callable[..., Result]
PROGRAM = """.decl e(x: number, y: symbol)
.input e
.decl f(y: symbol, x: number)
.input f
.decl p(y: symbol, x: number)
p(y, x) :- e(x, y).
p(y, x) :- f(y, x).
.output p
.printsize p
"""


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is."""
    monkeypatch.setattr(fact_files, "LARGE_FILE", 0)
    monkeypatch.setattr(text_columns, "MANY_ROWS", 0)


@pytest.mark.usefixtures("large")
def test_large_files_give_the_same_results(whence: Whence, folder: Path) -> None:
    (folder / "p.dl").write_text(PROGRAM)
    (folder / "e.facts").write_text("2\tb\n1\ta\n2\tb\n10\ta\n")
    (folder / "f.facts").write_text("a\t10\r\nc\t0x3\r\n")  # not as plain as can be
    result = whence("eval", "p.dl", "-D", "out")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "p\t4\n", "")
    assert (folder / "out/p.csv").read_text() == "a\t1\na\t10\nb\t2\nc\t3\n"


@pytest.mark.usefixtures("large")
def test_errors_of_large_files_are_the_same(whence: Whence, folder: Path) -> None:
    (folder / "p.dl").write_text(PROGRAM)
    (folder / "e.facts").write_text("2\tb\nx\ta\n")
    (folder / "f.facts").write_text("a\t10\n")
    result = whence("eval", "p.dl", "-D", "out")
    assert result.exit_code == 1
    assert result.stderr.startswith("e.facts:2: ")
