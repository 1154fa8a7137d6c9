"""The prompt: what lines mean, what is completed, and the whole of it in a terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from whence import Session, load
from whence.cli.shell_lines import Mistake, Shell
from whence.cli.shell_words import Words, painted

PROGRAM = """\
.decl link(a:symbol, b:symbol) .input link
direct: reach(x, y) :- link(x, y).
onward: reach(x, z) :- reach(x, y), link(y, z).
.output reach
"""
FACTS = [("a", "b"), ("b", "c"), ("c - d", "e, (f")]


@pytest.fixture
def shell() -> Shell:
    return Shell(Session(load(PROGRAM), facts={"link": FACTS}))


def said(shell: Shell, line: str) -> str:
    return "".join(f"{each}\n" for each in shell.execute(line))


def test_queries(shell: Shell) -> None:
    assert said(shell, 'reach("a", x)').split() == ["x", "b", "c", "2", "rows"]
    assert said(shell, 'reach("a", "c")') == "yes\n"
    assert said(shell, 'reach("c", "a")') == "no\n"
    assert said(shell, "SELECT count(*) AS n FROM link").split() == ["n", "3", "1", "row"]
    assert said(shell, 'reach("z", x)').split() == ["x", "0", "rows"]
    assert said(shell, "") == ""


TABLES = """\
CREATE TABLE t(a BIGINT, s TEXT);
CREATE VIEW v AS WITH w AS (SELECT s, a + 1 AS b FROM t) SELECT s, CASE WHEN b > 1 THEN b END AS c FROM w WHERE b < 9 OR s = 'x';
"""


def test_what_stands_behind_tables_and_views_of_sql_is_not_listed() -> None:
    shell = Shell(Session(load(TABLES, dialect="sql"), facts={"t": [(1, "a"), (1, "a")]}))
    listed = said(shell, ".relations")
    assert [line.split("(")[0] for line in listed.splitlines()] == ["t", "w", "v"]
    assert "w(s:symbol?, b:number?) " in listed
    assert [line.split()[0] for line in said(shell, ".rules").splitlines()] == ["w#1", "v#1"]
    assert said(shell, ".rules v").startswith("v#1  WITH w AS (SELECT s, a + 1 AS b FROM t) SELECT s, CASE")
    offered = Words(shell).get_completions(Document("SELECT x FROM "), CompleteEvent())
    assert not [each.text for each in offered if "." in each.text]


def test_changes_of_sql_tables_are_told_as_often_as_rows_come() -> None:
    shell = Shell(Session(load(TABLES, dialect="sql")))
    assert said(shell, '+ t(1, "a") + t(1, "a")') == '+ v("a", 2)\n+ v("a", 2)\n'
    assert said(shell, 'whatif - t(1, "a")') == '- v("a", 2)\n'
    assert said(shell, 'how v("a", 2)').splitlines()[2].split(None, 1) == ["lineage", '{t(1, "a")}']


def test_long_answers_come_in_pages() -> None:
    shell = Shell(Session(load(PROGRAM), facts={"link": [(f"n{at:02}", "z") for at in range(45)]}))
    first = said(shell, "link(x, _)")
    assert "25 more of 45 rows: .more" in first
    assert "n19" in first
    assert "n20" not in first
    assert "n20" in said(shell, ".more")
    assert said(shell, ".more").endswith("45 rows\n")
    assert said(shell, ".more") == "there is nothing more\n"


def test_questions(shell: Shell) -> None:
    assert said(shell, 'why reach("a", "c")').startswith('reach("a", "c")  by onward')
    assert "by direct" in said(shell, "why 'reach(_, \"b\")'")
    assert 'it would hold with  + link("c", "a")' in said(shell, 'whynot reach("c", "a")')
    assert said(shell, 'whatif - link("a", _)') == '- reach("a", "b")\n- reach("a", "c")\n'
    assert "counting    1" in said(shell, 'how reach("a", "c")')
    assert said(shell, "reach(_, _)") == "yes\n"
    assert said(shell, 'reach("a", "c")') == "yes\n"  # nothing was done


def test_updates_are_epochs(shell: Shell) -> None:
    told = said(shell, '+ link("c", "a") - link("a", "b"), - link("c - d", "e, (f")')
    assert told.splitlines() == [
        '- reach("a", "b")',
        '- reach("a", "c")',
        '- reach("c - d", "e, (f")',
        '+ reach("b", "a")',
        '+ reach("c", "a")',
    ]
    assert said(shell, '+ link("c", "a")') == "nothing changes\n"
    assert "round" in said(shell, ".stats")


def test_rules_are_tried_out_dropped_and_kept(shell: Shell, tmp_path: Path) -> None:
    assert '+ two("a", "c")' in said(shell, "two: two(x, z) :- link(x, y), link(y, z).")
    assert '+ back("b", "a")' in said(shell, "back(y, x) :- link(x, y).")
    assert "two(x, z)" in said(shell, ".rules two")
    dropped = said(shell, ".drop two").splitlines()
    assert dropped[-1] == "dropped two"
    assert '- two("a", "c")' in dropped
    assert said(shell, f".keep {tmp_path / 'tried.dl'}") == f"1 rule in {tmp_path / 'tried.dl'}\n"
    assert (tmp_path / "tried.dl").read_text() == "back(y, x) :- link(x, y).\n"
    with pytest.raises(Mistake, match="is there already"):
        said(shell, f".keep {tmp_path / 'tried.dl'}")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (".nothing", "error: there is no command .nothing\n  hint: .help shows those that there are"),
        (".hlep", "error: there is no command .hlep\n  hint: did you mean .help?"),
        ("reech(x, y)", "did you mean reach?"),
        ("why", "say which fact"),
        ('why reach("a")', "does not fit reach"),
        ('why reach("z", _)', "no fact fits"),
        ('+ reach("a", "z")', "reach is derived by rules"),
        ('- link("a", "z") x', "is not a fact"),
        ("whatif", "say which facts"),
        ("p(x) :- q(x).", "relation q is not declared"),
        (".drop nobody", "there is no rule nobody"),
        (".keep", "say to which file"),
        (".rules nowhere", "there is no relation nowhere"),
    ],
)
def test_mistakes_are_said_and_change_nothing(shell: Shell, line: str, problem: str) -> None:
    before = shell.session.views()
    with pytest.raises(Mistake) as mistake:
        said(shell, line)
    assert problem in str(mistake.value)
    assert str(mistake.value).count("error") == 1
    assert shell.session.views() == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("re", {"reach("}),
        (".ru", {".rules"}),
        ("why", {"why ", "whynot "}),
        ("why r", {"reach("}),
        ("link(", {'"a"', '"b"', '"c - d"'}),
        ('link("a", ', {'"b"', '"c"', '"e, (f"'}),
        ("link(b", {'"b"'}),
        ("SELECT l", {"link"}),
        ("SELECT link.", set()),
    ],
)
def test_tab_completes(shell: Shell, text: str, expected: set[str]) -> None:
    found = {each.text for each in Words(shell).get_completions(Document(text), CompleteEvent())}
    assert found == expected


def test_colours_leave_the_text_as_it_is() -> None:
    for line in ('why reach("a\\" b", _), x != 3.5', "+ link('x', 1)", "SELECT a FROM b", '"never closed', ""):
        assert "".join(text for _, text in painted(line)) == line


def test_in_a_terminal(tmp_path: Path) -> None:
    """Typed at a real prompt: completion with Tab, an answer, a mistake, and Ctrl-D."""
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "link.facts").write_text("a\tb\nb\tc\n")
    main, terminal = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-c", "from whence.cli import main; main()", "shell", "p.dl"],
        cwd=tmp_path,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "TERM": "xterm"},
        close_fds=True,
    )
    os.close(terminal)
    seen = ""

    def wait_for(text: str) -> None:
        nonlocal seen
        end = time.monotonic() + 60
        while text not in seen:
            assert time.monotonic() < end, seen
            if select.select([main], [], [], 0.5)[0]:
                seen += os.read(main, 65536).decode(errors="replace")
                if "\x1b[6n" in seen:  # asks where the cursor is
                    seen = seen.replace("\x1b[6n", "")
                    os.write(main, b"\x1b[1;1R")
        seen = seen[seen.index(text) + len(text) :]

    wait_for(".help shows what can be asked")
    wait_for("whence>")
    os.write(main, b"rea\t")
    wait_for("reach")
    os.write(main, b'"a", x)\r')
    wait_for("2 rows")
    wait_for("whence>")
    os.write(main, b"reech(x, y)\r")
    wait_for("did you mean reach?")
    wait_for("whence>")
    os.write(main, b"\x04")
    assert running.wait(60) == 0
    os.close(main)
    assert '+reach("a", x)' in (tmp_path / "state" / "whence" / "shell_history").read_text()
