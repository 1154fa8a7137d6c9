import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from whence import text_columns
from whence.io import facts as fact_files

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


def test_the_size_of_a_view_is_told_without_its_rows_and_without_pandas(tmp_path: Path) -> None:
    (tmp_path / "program.dl").write_text(
        ".decl e(x:number, y:number) .input e\np(x, y) :- e(x, y), x < y.\n.printsize p\n", encoding="utf-8"
    )
    rows = "".join(f"{at}\t{at * 7 % 50_000}\n" for at in range(300_000))
    (tmp_path / "e.facts").write_text(rows, encoding="utf-8")
    code = """
import sys
from whence.cli import main
from whence.backends.local.words import Dictionary
Dictionary.decode_rows = None
sys.argv = ["whence", "eval", "program.dl", "-q"]
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print("pandas" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    expected = sum(at < at * 7 % 50_000 for at in range(300_000))
    assert ran.stdout == f"p\t{expected}\nFalse\n", ran.stderr
