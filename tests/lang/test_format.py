"""Layout changes spaces and line breaks, and nothing else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from whence.cli import app
from whence.lang.format import Written, format_program, tokens
from whence.lang.printer import print_module

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted(path for folder in ("examples", "src", "tests") for path in (ROOT / folder).rglob("*.dl"))


def words(text: str) -> list[str]:
    return [token.text.strip() for token in tokens(text)]


def test_every_program_there_is_keeps_its_meaning_and_stays() -> None:
    assert len(PROGRAMS) > 300
    for path in PROGRAMS:
        text = path.read_text(encoding="utf-8")
        formatted = format_program(text)
        assert words(formatted) == words(text), path
        assert Written.of(formatted).module == Written.of(text).module, path
        assert format_program(formatted) == formatted, path
        assert not [line for line in formatted.splitlines() if line.strip() in (">", ")", "(", "].")], path


@given(st.sampled_from(PROGRAMS), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_whatever_the_spaces_are_the_meaning_stays(path: Path, chosen: random.Random) -> None:
    text = path.read_text(encoding="utf-8")
    text = print_module(Written.of(text).module)
    listed = list(tokens(text))
    spaced = ""
    for token, following in zip(listed, [*listed[1:], None], strict=True):
        gap = "" if following is None else text[token.end : following.start]
        spaced += token.text + (chosen.choice(["\n", " ", "   ", " \n\n "]) if gap else "")
    formatted = format_program(spaced)
    assert words(formatted) == words(text)
    assert Written.of(formatted).module == Written.of(text).module
    assert format_program(formatted) == formatted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p( 1 ).p(2) .\n\n\n\nq(x):-p( x ),x<2 .", "p(1). p(2).\n\nq(x) :- p(x), x < 2.\n"),
        (".decl  p( x : number,y:symbol )", ".decl p(x:number, y:symbol)\n"),
        ("p(-1, - x, x-1, x - -1) :- q(x).", "p(-1, -x, x - 1, x - -1) :- q(x).\n"),
        ("p(x) :- x = 0xFF band 3, q(x ; 1).", "p(x) :- x = 0xFF band 3, q(x ; 1).\n"),
        ("r:p(n):-n=count:{q(_)}.", "r: p(n) :- n = count : { q(_) }.\n"),
        ("p(x) :-\n q(x), r(x).", "p(x) :-\n    q(x),\n    r(x).\n"),
        ("p(x) :- q(x), // so\n   r(x).", "p(x) :- q(x), // so\n    r(x).\n"),
        ("#define N 3\np(N).\n", "#define N 3\np(N).\n"),
        (".comp C<T>{.decl p(x:T)\np(x):-q(x).}", ".comp C<T> {\n    .decl p(x:T)\n    p(x) :- q(x).\n}\n"),
        ("p(x :- q(x).\nr( 1 ).", "p(x :- q(x).\nr(1).\n"),
        ('.input p(IO = "file" , filename="a b")', '.input p(IO="file", filename="a b")\n'),
        ("", ""),
        ("// only a comment", "// only a comment\n"),
    ],
)
def test_layout(text: str, expected: str) -> None:
    assert format_program(text) == expected


def test_long_rules_have_a_line_for_each_literal() -> None:
    literals = [f"relation_{at}(some_variable, another_variable_{at})" for at in range(4)]
    assert format_program(f"head(x) :- {', '.join(literals)}.") == "head(x) :-\n    " + ",\n    ".join(literals) + ".\n"


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "p.dl"
    path.write_text("p( 1 ).")
    assert CliRunner().invoke(app, ["format", str(path), "--check"]).exit_code == 1
    shown = CliRunner().invoke(app, ["format", str(tmp_path), "--diff"])
    assert (shown.exit_code, "-p( 1 )." in shown.stdout, "+p(1)." in shown.stdout) == (1, True, True)
    assert CliRunner().invoke(app, ["format", str(path)]).exit_code == 0
    assert path.read_text() == "p(1).\n"
    assert CliRunner().invoke(app, ["format", str(path), "--check"]).exit_code == 0
    assert CliRunner().invoke(app, ["format", "-"], input="p( 2 ).").stdout == "p(2).\n"
    assert CliRunner().invoke(app, ["format", str(tmp_path / "no.dl")]).exit_code == 2
