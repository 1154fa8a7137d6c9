import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.lang.programs import originals

from whence.lang import parser
from whence.lang.diagnostics import Diagnostics, render
from whence.lang.parser import MAX_DEPTH, MAX_SYNTAX_ERRORS, parse
from whence.lang.source import Source


def complaints(text: str) -> list[str]:
    source = Source.of(text)
    found = Diagnostics(source, parse(source).errors)
    return [render(each, source).split(" ", 1)[1] for each in found.sorted()]


# -- going on after an error ------------------------------------------------------------------------------------------


def test_every_broken_statement_is_reported_and_the_others_are_kept() -> None:
    parsed = parse(Source.of("a(1.\nb(2).\n.decl c(x number)\nd(x) :- b(x).\ne(x :- b(x).\nf(1)."))
    assert [each.span.start for each in parsed.errors] == [3, 21, 47]
    assert [statement.heads[0].relation for statement in parsed.module.statements] == ["b", "d", "f"]  # type: ignore[union-attr]


def test_the_names_of_broken_statements_are_remembered() -> None:
    assert parse(Source.of("a(1).\nb(x) : c(x).\n.decl d(x number)\n")).lost >= {"b", "c", "d", "x"}


def test_a_broken_statement_of_a_component_leaves_the_component() -> None:
    parsed = parse(Source.of(".comp C {\n  a(1).\n  b(.\n  c(3).\n}\n.init x = C"))
    assert len(parsed.errors) == 1
    assert len(parsed.module.statements) == 2


def test_the_statements_around_broken_ones_are_read_in_order() -> None:
    text = "".join(f"a{at}(1).\n" + (f"b{at}(.\n" if at % 3 == 0 else "") for at in range(12))
    parsed = parse(Source.of(text))
    assert [statement.heads[0].relation for statement in parsed.module.statements] == [f"a{at}" for at in range(12)]  # type: ignore[union-attr]
    assert [each.span.start for each in parsed.errors] == [text.index(f"b{at}(.") + 3 for at in range(0, 12, 3)]


def test_only_the_first_errors_of_many_are_reported() -> None:
    assert len(parse(Source.of("a(.\n" * 100)).errors) == MAX_SYNTAX_ERRORS


def test_our_loop_reads_what_lark_reads() -> None:
    for text in originals():
        parser._builder.begin(text)
        found = parser._machine().run(text)
        if found is not None:
            parser._builder.begin(text)
            assert parser._parser().parse(text) == found


# -- depth ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"p({'(' * 5000}1{')' * 5000}).",
        f"p(x) :- {'(' * 5000}q(x){')' * 5000}.",
        f"p([{', '.join('1' * 3000)}]).",
        f"p({', '.join('1' * 5000)}).",
        f"p(x) :- {', '.join(['q(x)'] * 5000)}.",
        f"p({'+'.join('1' * (MAX_DEPTH - 3))}).",
    ],
    ids=["parentheses", "groups", "list", "arguments", "body", "sum"],
)
def test_what_is_wide_or_only_parenthesized_is_read(text: str) -> None:
    assert complaints(text) == []


@pytest.mark.parametrize(
    "text",
    [
        f"p({'+'.join('1' * 5000)}).",
        f"p({'^'.join('1' * 5000)}).",
        f"p({'-' * 5000}x).",
        f"p({'[' * 5000}1{']' * 5000}).",
        f"p({'f(' * 5000}1{')' * 5000}).",
        f"p({'$f(' * 5000}1{')' * 5000}).",
        f"p({'as(' * 5000}1{', number)' * 5000}).",
        f"p(x) :- {'!' * 5000}q(x).",
        f"p(x) :- {'x = sum y : { q(y), ' * 5000}q(x){'}' * 5000}.",
        f".decl p(x: {'list<' * 5000}number{'>' * 5000})",
        f"{'.comp C { ' * 5000}{'}' * 5000}",
    ],
    ids="sum power signs list call branch cast negation aggregate type component".split(),
)
def test_what_is_nested_too_deeply_is_refused_with_its_place(text: str) -> None:
    (complaint,) = complaints(text)
    assert complaint.startswith("error[W0110]: this is nested too deeply\n")


# -- the parser's tables ----------------------------------------------------------------------------------------------


def load_in_new_process(cache: Path) -> None:
    code = "from whence.lang import load; load('p(1).')"
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("", "")


def test_tables_are_kept_and_made_again_if_they_cannot_be_read(tmp_path: Path) -> None:
    load_in_new_process(tmp_path)
    (tables,) = (tmp_path / "whence").iterdir()
    whole = tables.read_bytes()
    for broken in (b"", b"no tables", whole[: len(whole) // 2]):
        tables.write_bytes(broken)
        load_in_new_process(tmp_path)
        assert len(tables.read_bytes()) > len(whole) // 2


def test_a_cache_folder_that_cannot_be_made_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    load_in_new_process(tmp_path / "file")


def test_sql_is_imported_only_for_sql() -> None:
    code = "import sys; from whence.lang import load; load('p(1).'); print('sqlglot' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_an_item_at_the_end_of_a_list_has_its_functor() -> None:
    assert "append(l, x) puts an item at its end" in complaints("t([x | r, s]) :- t([x | r]), u(s).")[0]
