from collections.abc import Mapping

import pytest

from whence.io import FactError, read_relation
from whence.lang.diagnostics import Diagnostic, render
from whence.lang.program import Program, Relation, Transfer
from whence.lang.source import Source
from whence.lang.transfers import check_transfers, read_options
from whence.lang.tree import Span
from whence.lang.types import NUMBER, Field, Types

TEXT = ".directive r"
SPAN = Span(0, len(TEXT))


def program(*transfers: Transfer) -> Program:
    fields = (Field("x", "number", NUMBER), Field("y", "number", NUMBER))
    relations = {name: Relation(name, fields, SPAN) for name in ("r", "s")}
    return Program(Source.of(TEXT), Types(), relations, (), (), (), transfers)


def check_program(program: Program) -> list[Diagnostic]:
    return check_transfers(program.transfers, program.relations)


def problems(*transfers: Transfer) -> list[str]:
    return [f"{each.text} / {each.advice}" for each in check_program(program(*transfers))]


@pytest.mark.parametrize(
    ("kind", "params", "problem"),
    [
        ("input", {"IO": "mysql"}, "IO=mysql is not supported for .input / "
         "write IO=file or IO=stdin or IO=jsonfile or IO=json or IO=sqlite or IO=duckdb or IO=postgres"),
        ("input", {"IO": "stdout"}, "IO=stdout is not supported for .input / "
         "write IO=file or IO=stdin or IO=jsonfile or IO=json or IO=sqlite or IO=duckdb or IO=postgres"),
        ("output", {"IO": "stdin"}, "IO=stdin is not supported for .output / "
         "write IO=file or IO=stdout or IO=jsonfile or IO=json or IO=sqlite"),
        ("input", {"filemname": "a"}, ".input r has no parameter filemname / did you mean filename?"),
        ("output", {"zip": "true"}, ".output r has no parameter zip / the parameters are "
         "IO, filename, dbname, name, query, url, delimiter, headers, rfc4180, columns, compress, format"),
        ("input", {"auxArity": "1"}, "the parameter auxArity is not supported / leave it out"),
        ("input", {"headers": "yes"}, "headers=yes is neither true nor false / write headers=true or leave it out"),
        ("input", {"filename": ""}, "the filename is empty or holds a zero byte / leave it out to use r.facts"),
        ("input", {"delimiter": ""}, 'the delimiter is empty or holds a line end / '
         'write a text such as delimiter=","'),
        ("input", {"delimiter": "\n"}, 'the delimiter is empty or holds a line end / '
         'write a text such as delimiter=","'),
        ("input", {"delimiter": '"', "rfc4180": "true"}, "the delimiter of an rfc4180 file cannot hold a quote / "
         'write a text such as delimiter=","'),
        ("output", {"format": "json"}, "format=json is not supported / "
         "write format=list or format=object, with IO=jsonfile"),
        ("input", {"dbname": "a.db"}, "dbname has no meaning for .input without IO / write IO=sqlite, or filename"),
        ("input", {"query": "SELECT 1"}, "query has no meaning for .input without IO / "
         "write IO=sqlite, IO=duckdb or IO=postgres"),
        ("output", {"IO": "sqlite", "query": "SELECT 1"}, "query has no meaning for .output with IO=sqlite / "
         "write IO=sqlite, IO=duckdb or IO=postgres"),
        ("input", {"IO": "postgres", "filename": "a"}, "filename has no meaning for .input with IO=postgres / "
         "a server is named by url"),
        ("input", {"IO": "duckdb", "query": "SELECT 1", "name": "t"}, "a query says which tables it reads: "
         "name has no meaning beside it / leave one out"),
        ("input", {"IO": "sqlite", "delimiter": ","}, "delimiter has no meaning with IO=sqlite / leave it out"),
        ("input", {"columns": "a:b"}, 'columns=a:b is not a list of columns / '
         'write their numbers, from 0: columns="0:2"'),
        ("input", {"columns": "1:1"}, 'columns=1:1 is not a list of columns / '
         'write their numbers, from 0: columns="0:2"'),
        ("input", {"columns": "0:1:2"}, "columns=0:1:2 names 3 columns, but r has 2 / "
         "name one column of the file for each attribute"),
    ],
)  # fmt: skip
def test_a_bad_parameter_is_reported(kind: str, params: Mapping[str, str], problem: str) -> None:
    assert problems(Transfer(kind, "r", params, SPAN)) == [problem]


def test_a_report_points_at_the_directive() -> None:
    bad = program(Transfer("input", "r", {"IO": "mysql"}, SPAN))
    assert render(check_program(bad)[0], bad.source) == (
        "<program>:1:1: error[W0501]: IO=mysql is not supported for .input\n"
        "    1 | .directive r\n"
        "        ^^^^^^^^^^^^\n"
        "  hint: write IO=file or IO=stdin or IO=jsonfile or IO=json or IO=sqlite or IO=duckdb or IO=postgres"
    )


def test_all_bad_parameters_of_all_directives_are_reported() -> None:
    bad = Transfer("input", "r", {"headers": "1", "delimiter": ""}, SPAN)
    assert len(problems(bad, Transfer("output", "r", {"IO": "mysql"}, SPAN))) == 3


def test_the_standard_input_is_read_once() -> None:
    both = [Transfer("input", name, {"IO": "stdin"}, SPAN) for name in ("r", "s")]
    assert problems(*both) == ["s and r are both read from the standard input / read one from a file"]


def test_two_relations_are_not_written_to_one_file() -> None:
    both = [Transfer("output", name, {"filename": "a.csv"}, SPAN) for name in ("r", "s")]
    assert problems(*both) == ["s and r are both written to a.csv / give one another filename"]


def test_two_relations_are_two_tables_of_one_database() -> None:
    params = {"IO": "sqlite", "dbname": "a.db"}
    assert not problems(*(Transfer("output", name, params, SPAN) for name in ("r", "s")))
    both = [Transfer("output", name, {**params, "name": "T"}, SPAN) for name in ("r", "s")]
    assert problems(*both) == ["s and r are both written to T of a.db / give one another filename"]


def test_one_relation_is_written_to_several_files() -> None:
    assert not problems(*(Transfer("output", "r", {"filename": name}, SPAN) for name in ("a.csv", "b.csv")))


@pytest.mark.parametrize(
    ("kind", "params", "filename"),
    [
        ("input", {}, "r.facts"),
        ("input", {"name": "s"}, "s.facts"),
        ("input", {"compress": "true"}, "r.facts.gz"),
        ("input", {"IO": "jsonfile"}, "r.json"),
        ("input", {"IO": "json"}, None),
        ("input", {"IO": "sqlite"}, "r.sqlite"),
        ("input", {"IO": "sqlite", "dbname": "a.db"}, "a.db"),
        ("output", {"IO": "sqlite", "dbname": "a.db", "filename": "b.db"}, "b.db"),
        ("input", {"IO": "stdin"}, None),
        ("output", {}, "r.csv"),
        ("output", {"compress": "true"}, "r.csv.gz"),
        ("output", {"IO": "jsonfile"}, "r.json"),
        ("output", {"IO": "stdout"}, None),
        ("output", {"filename": "a/b.txt"}, "a/b.txt"),
    ],
)
def test_files_have_souffles_names(kind: str, params: Mapping[str, str], filename: str | None) -> None:
    checked = program(Transfer(kind, "r", params, SPAN))
    assert not check_program(checked)
    options = read_options(checked.transfers[0], checked.relations["r"], lambda problem, advice: None)
    assert options.filename == filename


def test_reading_refuses_what_the_check_would_have_reported(tmp_path: object) -> None:
    bad = program(Transfer("input", "r", {"IO": "mysql"}, SPAN))
    with pytest.raises(FactError) as caught:
        read_relation(bad.transfers[0], bad.relations["r"], bad.types, tmp_path)
    assert str(caught.value) == (
        ".input r: IO=mysql is not supported for .input\n"
        "  hint: write IO=file or IO=stdin or IO=jsonfile or IO=json or IO=sqlite or IO=duckdb or IO=postgres"
    )
