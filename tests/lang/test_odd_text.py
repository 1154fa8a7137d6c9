"""Programs as editors, other systems and generators leave them."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from whence import ProgramError, Session, load
from whence.cli import app

DECLARED = ".decl p(x:number) .output p\n"


def numbers(text: str, **facts: list[tuple[int, ...]]) -> list[int]:
    return sorted(row[0] for row in Session(load(text), facts=facts).views()["p"])


@pytest.mark.parametrize(
    ("text", "found"),
    {
        "windows": (".decl p(x:number)\r\n.output p\r\np(1).\r\n// c\r\np(2).\r\n", [1, 2]),
        "macro on two lines of windows": ("#define A \\\r\n 3\r\n" + DECLARED + "p(A).\r\n", [3]),
        "conditions of windows": (
            "#define X\r\n#ifdef X\r\n" + DECLARED + "#else\r\n.decl q()\r\n#endif\r\np(1).",
            [1],
        ),
        "tabs": ("\t.decl\tp(x:number)\t.output\tp\tp(\t1\t)\t.\t", [1]),
        "comments everywhere": (
            ".decl/*a*/p/*b*/(/*c*/x/*d*/:/*e*/number/*f*/)/*g*/.output/*h*/p//i\np/*j*/(/*k*/1/*l*/)/*m*/./**/p(2)//o\n.p(3)./*/*/",
            [1, 2, 3],
        ),
        "comments in an aggregate": (DECLARED + "p(n) :- n = sum/*a*/x/*b*/:/*c*/{/*d*/x = 4/*e*/}/*f*/.", [4]),
        "quotes in comments": (DECLARED + "// it's \"\np(1). /* don't \" */ p(2).", [1, 2]),
        "a comment in a comment": ("// see http://x/*.html\n" + DECLARED + "p(1).", [1]),
        "a comment in a macro": ("#define A(x) x /* c */ // d\n" + DECLARED + "p(A(1)).", [1]),
        "a comment at the end": (DECLARED + "p(1). //", [1]),
        "a separator in a comment": (DECLARED + "// c\u2028p(1).\u0085\np(2).", [2]),
    }.values(),
)
def test_where_lines_end_and_comments_stand_does_not_matter(text: str, found: list[int]) -> None:
    assert numbers(text) == found


@pytest.mark.parametrize("text", ["", " \r\n\t\n", "// nothing", "/* nothing */", "\ufeff"])
@pytest.mark.parametrize("command", [["check"], ["eval", "-q"], ["run", "--updates", "none.jsonl", "--no-spark", "-q"]])
def test_a_program_may_be_empty(command: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("none.jsonl").write_text("")
    Path("p.dl").write_bytes(text.encode())
    result = CliRunner().invoke(app, [command[0], "p.dl", *command[1:]])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DECLARED + "\ufeffp(1).", "unexpected U+FEFF (ZERO WIDTH NO-BREAK SPACE)"),
        (DECLARED + "p(1\u200b).", "unexpected U+200B (ZERO WIDTH SPACE)"),
        (DECLARED + "p(1)\u00a0.", "unexpected U+00A0 (NO-BREAK SPACE)"),
        (DECLARED + "\0p(1).", "unexpected U+0000 (a control character)"),
        (".decl größe(x:number)", "names are made of the letters a to z and A to Z, digits, _ and ?"),
        (".decl 路由(x:number)", "names are made of the letters a to z and A to Z, digits, _ and ?"),
        (DECLARED + "p(é) :- é = 3.", "names are made of the letters a to z and A to Z, digits, _ and ?"),
    ],
)
def test_what_cannot_be_seen_is_named_and_letters_of_others_are_explained(text: str, said: str) -> None:
    with pytest.raises(ProgramError) as caught:
        load(text)
    assert said in str(caught.value)


def test_symbols_hold_any_characters() -> None:
    text = '.decl p(x:symbol) .output p p("😀"). p("北京"). p("e\u0301"). p("é"). p("a\tb"). p("// no"). p("/* no */").'
    found = {row[0] for row in Session(load(text)).views()["p"]}
    assert found == {"😀", "北京", "e\u0301", "é", "a\tb", "// no", "/* no */"}


def test_rules_may_be_long() -> None:
    tests = ", ".join(f"x != {at}" for at in range(1000))
    assert numbers(f"{DECLARED}.decl q(x:number) .input q\np(x) :- q(x), {tests}.", q=[(5,), (1000,)]) == [1000]
    joins = ", ".join(f"q(x{at}, x{at + 1})" for at in range(60))
    steps = [(at, at + 1) for at in range(61)]
    assert numbers(f"{DECLARED}.decl q(x:number, y:number) .input q\np(x0) :- {joins}.", q=steps) == [0, 1]
