"""What notebooks show: objects show themselves, cells and lines do what they say, and the example is what a reader gets."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from tools.write_notebook import executed

import whence
from whence import Session, Update, load, why, whynot
from whence.notebook import Cells
from whence.pipeline.keeper import ResidentKeeper
from whence.pipeline.parts.open import open_state, read_state
from whence.profile import Profile, report
from whence.provenance import Fact, contributions, probability, whatif

EXAMPLE = Path(__file__).parents[2] / "examples" / "notebook" / "links.ipynb"
REACH = """
.decl link(x:symbol, y:symbol) .input link
direct: reach(x, y) :- link(x, y).
onward: reach(x, z) :- reach(x, y), link(y, z).
.output reach
"""
ODD = '<img src=x onerror="alert(1)">'


def test_the_notebook_shows_what_a_reader_gets() -> None:
    stored = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    for made, kept in zip(executed(stored)["cells"], stored["cells"], strict=True):
        assert made == kept


@pytest.fixture
def session() -> Session:
    return Session(load(REACH), facts={"link": [("a", "b"), ("b", ODD)]})


def shown(thing: object) -> str:
    page = thing._repr_html_()  # type: ignore[attr-defined]
    assert isinstance(page, str)
    assert "<img" not in page
    assert "http" not in page
    return page


def test_everything_shows_itself_and_escapes_values(session: Session, tmp_path: Path) -> None:
    assert "3 tuples" in shown(session.relation("reach"))
    assert "&lt;img" in shown(session.relation("reach"))
    assert 'class="out"' in shown(session.trial([Update("-", "link", ("b", ODD))]))
    assert "nothing changes" in shown(session.trial([]))
    assert "by onward" in shown(why(session, "reach", ("a", ODD)))
    assert "join link by index" in shown(session.plan)
    assert "onward: reach(x, z)" in shown(session.program)
    assert "reach(x:symbol, y:symbol)" in shown(session)
    assert "&lt;img" in shown(session.query('link("b", x)'))
    assert ">yes<" in shown(session.query('link("a", "b")'))
    profile = Profile()
    assert "derivations" in shown(report(profile, Session(load(REACH), profile=profile)))
    store = open_state(tmp_path / "state", load(REACH))
    assert "nothing yet" in shown(store)
    ResidentKeeper(load(REACH), store=store.whole()).close()
    store.close()
    assert "in one piece" in shown(read_state(tmp_path / "state"))


def test_large_relations_are_shown_in_part() -> None:
    session = Session(load(".decl p(x:number) .input p .output p"), facts={"p": [(x,) for x in range(30_000)]})
    page = shown(session.relation("p"))
    assert "29,980 more" in page
    assert len(page) < 5_000


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    made = InteractiveShell()
    made.run_line_magic("load_ext", "whence")
    yield made
    made.history_manager.end_session()


def test_cells_make_sessions_and_add_to_them(shell: InteractiveShell) -> None:
    shell.run_cell_magic("whence", "net", "link(1, 2). reach(x, y) :- link(x, y). .output reach")
    assert set(shell.user_ns["net"].relation("reach")) == {(1, 2)}
    changes = shell.run_cell_magic("whence", "net", "link(2, 3). reach(x, z) :- reach(x, y), link(y, z).")
    assert {name: set(rows) for name, rows in changes.inserted.items()} == {"link": {(2, 3)}, "reach": {(2, 3), (1, 3)}}
    gone = shell.run_line_magic("whence", "net: - link(1, 2)")
    assert set(gone.deleted["reach"]) == {(1, 2), (1, 3)}
    # A cell that comes later does not bring back what was taken out.
    shell.run_cell_magic("whence", "net", "reach(x, x) :- link(x, _).")
    assert set(shell.user_ns["net"].relation("link")) == {(2, 3)}
    shell.run_cell_magic("whence", "net --new", "p(1). .output p")
    assert list(shell.user_ns["net"].program.relations) == ["p"]


def test_lines_ask(shell: InteractiveShell) -> None:
    shell.run_cell_magic("whence", "", f'link("a", "b"). link("b", "c"). {REACH}')
    assert shell.run_line_magic("whence", 'reach("a", x)').rows == [("b",), ("c",)]
    assert shell.run_line_magic("whence", "SELECT max(reach.y) AS last FROM reach").rows == [("c",)]
    assert len(shell.run_line_magic("whence", 'why reach(_, "c")').proofs) == 2
    assert "it would hold with" in repr(shell.run_line_magic("whence", 'whynot reach("c", "a")'))
    assert 'link("a", "b")' in repr(shell.run_line_magic("whence", 'how reach("a", "b")'))
    assert len(shell.run_line_magic("whence", 'whatif - link("a", _); + link("c", "d")')) == 6
    assert shell.run_line_magic("whence", "") is shell.user_ns["session"]


def test_mistakes_are_told_without_a_traceback(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run_line_magic("whence", "p(x)") is None
    assert "there is no session" in capsys.readouterr().err
    assert shell.run_cell_magic("whence", "", "p(x) :- q(x).") is None
    assert "<session>:1:9: error[W0201]" in capsys.readouterr().err
    assert "session" not in shell.user_ns


def test_dir_shows_what_there_is() -> None:
    listed = dir(whence)
    assert {"Session", "load", "why", "provenance", "spark", "profile"} <= set(listed)
    assert not [name for name in listed if name.startswith("_") and name != "__version__"]
    light = [name for name in listed if name not in ("spark", "serve")]
    assert all(getattr(whence, name) is not None for name in light)
    # Looking does not load: a new interpreter has neither engine nor Spark after it.
    code = "import sys, whence; dir(whence); sys.exit(any(m in sys.modules for m in ('numba', 'pyspark', 'IPython')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_facts_and_questions_are_text_or_tuples_alike() -> None:
    program = load(REACH)
    one = Session(program, facts=['link("a", "b")', ("link", ("b", "c"))])
    other = Session(program, facts={"link": [("a", "b"), ("b", "c")]})
    assert one.views() == other.views()
    assert one.apply(['- link("a", "b")', '+ link("c", "d").']) == other.apply(
        [("-", "link", ("a", "b")), Update("+", "link", ("c", "d"))]
    )
    text, fact = 'reach("b", "d")', Fact("reach", ("b", "d"))
    assert str(why(one, text)) == str(why(one, fact)) == str(why(one, *fact))
    assert whynot(one, 'reach("a", "b")').repairs == whynot(one, "reach", ("a", "b")).repairs
    assert whatif(one, without=['link("c", "d")']) == whatif(one, without=[Fact("link", ("c", "d"))])
    assert contributions(one, text) == contributions(one, *fact)
    assert probability(one, text, chances=lambda _: 0.5) == probability(one, *fact, lambda _: 0.5)
    with pytest.raises(ValueError, match="is not an update"):
        one.apply(['link("a", "b")'])
    with pytest.raises(ValueError, match="does not fit"):
        one.apply(['+ link("a")'])
    with pytest.raises(TypeError, match="an epoch is a list"):
        one.apply('+ link("a", "b")')


def test_cells_need_no_ipython() -> None:
    variables: dict[str, object] = {}
    Cells(variables).cell("", "p(1). .output p")
    assert isinstance(variables["session"], Session)
