"""Every diagnostic with its exact text: the tables are in `diagnostics/`, a file for each range of codes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from whence.lang import ProgramError, load, load_file
from whence.lang import diagnostics as module
from whence.lang.diagnostics import Caution, Diagnostic, render, to_json

TABLES = sorted((Path(__file__).parent / "diagnostics").glob("*.txt"))
# Not of loading: tests/cli/test_evaluate.py shows warnings of commands, tests/plan/test_localize.py what is wrong with places.
ELSEWHERE = {"W0905", "W0906", "W0701", "W0702", "W0703", "W0704", "W0705"}


class Case(NamedTuple):
    title: str
    program: str
    expected: str
    dialect: str


def read(table: Path) -> Iterator[Case]:
    dialect = "sql" if table.stem == "sql" else "datalog"
    for case in re.split(r"^== ", table.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, rest = case.split("\n", 1)
        program, expected = rest.split("--\n", 1)
        yield Case(title, program, expected.strip("\n"), dialect)


CASES = [case for table in TABLES for case in read(table)]


def report(program: str, dialect: str = "datalog") -> str:
    name = "p.sql" if dialect == "sql" else "p.dl"
    try:
        loaded = load(program, name=name, dialect=dialect)
    except ProgramError as error:
        return "\n".join(render(each, error.source) for each in error.diagnostics)
    return "\n".join(render(each, loaded.source) for each in loaded.warnings)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_the_text_is(case: Case) -> None:
    assert report(case.program, case.dialect) == case.expected


def all_classes() -> list[type[Diagnostic]]:
    return [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Diagnostic) and each not in (Diagnostic, Caution)
    ]


def test_every_code_is_shown() -> None:
    shown = {code for case in CASES for code in re.findall(r"\[(W\d{4})\]", case.expected)}
    assert {each.code for each in all_classes()} == shown | ELSEWHERE


def test_codes_are_unique_and_warnings_have_theirs() -> None:
    codes = [each.code for each in all_classes()]
    assert len(set(codes)) == len(codes)
    assert {each.code for each in all_classes() if issubclass(each, Caution)} == {
        code for code in codes if code.startswith("W09")
    }


def test_ten_mistakes_are_reported_together() -> None:
    folder = Path(__file__).parent
    with pytest.raises(ProgramError) as caught:
        load_file(folder / "ten_mistakes.dl")
    source = caught.value.source
    text = "\n".join(render(each, source) for each in caught.value.diagnostics) + "\n"
    assert text.replace(f"{folder}/", "") == (folder / "ten_mistakes.txt").read_text(encoding="utf-8")
    assert len({each.code for each in caught.value.diagnostics if each.severity == "error"}) == 10


# -- order and form ---------------------------------------------------------------------------------------------------


def test_diagnostics_come_in_text_order_and_once() -> None:
    text = report("c(x) :- d(x).\nb(y) :- e(y), e(y).\n")
    assert re.findall(r"p.dl:(\d+):\d+: error\[(W\d+)\]", text) == [("1", "W0201"), ("2", "W0201")]


def test_tabs_do_not_shift_the_underline() -> None:
    assert report("\tb(1) :- c(1).") == (
        "p.dl:1:10: error[W0201]: relation c is not declared and no rule derives it\n"
        "    1 |  b(1) :- c(1).\n"
        "                 ^\n"
        "  hint: declare it with .decl c(…), or give it facts"
    )


def test_a_place_of_several_lines_is_underlined_on_its_first() -> None:
    assert "    1 | a(1) :- b(1,\n                ^\n" in report("a(1) :- b(1,\n 2).")
    assert "    2 | r: c(x) :- a(x),\n        ^^^^^^^^^^^^^^^^\n" in report("r: a(1).\nr: c(x) :- a(x),\n  a(x).")


def test_a_use_of_a_macro_is_underlined_as_written() -> None:
    text = report("#define NODES nodes(x)\na(x) :- NODES.\n")
    assert text.startswith("p.dl:2:9: error[W0201]: relation nodes is not declared")
    assert "    2 | a(x) :- NODES.\n                ^^^^^\n" in text


def test_errors_in_included_files_name_them(tmp_path: Path) -> None:
    (tmp_path / "main.dl").write_text('.include "inner.dl"\na(x) :- b(x).\n')
    (tmp_path / "inner.dl").write_text("\n\nb(1.\n")
    with pytest.raises(ProgramError) as caught:
        load_file(tmp_path / "main.dl")
    (syntax,) = caught.value.diagnostics
    place = caught.value.source.place(syntax.span)
    assert (Path(place.file.name).name, place.line) == ("inner.dl", 3)


def test_json_has_every_place() -> None:
    with pytest.raises(ProgramError) as caught:
        load(".decl a(x: number)\n.decl a(x: symbol)\na(1).\n", name="p.dl")
    assert [to_json(each, caught.value.source) for each in caught.value.diagnostics] == [
        {
            "code": "W0206",
            "severity": "error",
            "message": "relation a is already defined",
            "hint": "rename one of them",
            "file": "p.dl",
            "line": 2,
            "column": 1,
            "end_line": 2,
            "end_column": 19,
            "related": [{"file": "p.dl", "line": 1, "column": 1, "message": "it is defined here"}],
        }
    ]
