from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from whence.cli import app

PROGRAM = """
.decl link(x: symbol, y: symbol, cost: number)
.input link
reach(x, y) :- link(x, y, _).
reach(x, z) :- reach(x, y), link(y, z, _).
.output reach
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("route.dl").write_text(PROGRAM)
    Path("link.facts").write_text("a\tb\t1\nb\ta\t2\nb\tc\t5\n")


def run(*options: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["eval", "route.dl", "-D", "-", *options])
    return result.exit_code, result.output


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize(
    ("semiring", "cheapest"),
    [("tropical", "a\tc\t6"), ("counting", "a\tc\t∞"), ("posbool", "a\tc\t{{1, 5}}")],
)
def test_the_annotation_is_the_last_column(engine: str, semiring: str, cheapest: str) -> None:
    code, text = run("-q", "--semiring", semiring, "--annotate", "link=cost", "--engine", engine)
    assert code == 0
    assert cheapest in text.splitlines()
    assert len(text.splitlines()) == 10


def test_tuples_stand_for_themselves_without_annotations() -> None:
    assert 'b\tc\t{link("a", "b", 1), link("b", "a", 2), link("b", "c", 5)}' in run("--semiring", "lineage")[1]


@pytest.mark.parametrize(
    ("code", "options", "message"),
    [
        (1, "--semiring natural", "has infinitely many derivations, because it depends on itself"),
        (
            1,
            "--semiring viterbi --annotate link=cost",
            'link("b", "c", 5), column cost: 5 is not a degree between 0 and 1',
        ),
        (2, "--semiring magic", "there is no semiring magic hint: there are"),
        (2, "--semiring tropical --annotate link=price", "link has no column price hint: there are x, y, cost"),
        (2, "--semiring tropical --annotate reach=x", "there is no base relation reach hint: there are link"),
        (2, "--annotate link=cost", "needs --semiring"),
    ],
)
def test_mistakes_are_explained(code: int, options: str, message: str) -> None:
    got, text = run(*options.split())
    assert got == code
    flat = " ".join(text.split())
    assert " ".join(message.split()) in flat
