import gzip
import io
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from whence.io import FactError, FactWarning, print_size, write_relation
from whence.lang.program import Relation, Transfer
from whence.lang.tree import NOWHERE
from whence.lang.types import Types, Variant

Write = Callable[..., str]


def test_rows_are_sorted_and_separated_by_tabs(write: Write) -> None:
    assert write({(10, "b"), (9, "a"), (10, "")}, "x: number, y: symbol") == "9\ta\n10\t\n10\tb\n"


def test_an_empty_relation_gives_an_empty_file(write: Write) -> None:
    assert write(set(), "x: number") == ""
    assert write({("",)}, "x: symbol") == "\n"


def test_a_relation_without_columns_is_a_pair_of_parentheses(write: Write) -> None:
    assert write({()}, "") == "()\n"
    assert write(set(), "") == ""


def test_values_have_their_text(write: Write) -> None:
    row = (2**63, 4.0, (1, "a"), Variant("Literal", (0.5,)), ("a", "b, c"))
    columns = "u: unsigned, f: float, p: Pair, e: Expr, l: symbols"
    assert write({row}, columns) == '9223372036854775808\t4\t[1, a]\t$Literal(0.5)\t[a, "b, c"]\n'


def test_headers_and_delimiter(write: Write) -> None:
    assert write({(1, 2)}, "x: number, y: number", headers="true", delimiter="BOB") == "xBOBy\n1BOB2\n"


def test_rfc4180_quotes_everything_but_numbers(write: Write) -> None:
    rows = {(1, "a b", None), (2, 'say "hi"', (1, "x")), (3, "a,b", None), (4, "two\nlines", None)}
    assert write(rows, "n: number, s: symbol, p: Pair", rfc4180="true") == (
        '1,"a b","nil"\n2,"say ""hi""","[1, x]"\n3,"a,b","nil"\n4,"two\nlines","nil"\n'
    )


def test_a_symbol_that_breaks_the_line_gets_a_warning(write: Write) -> None:
    with pytest.warns(FactWarning) as caught:
        assert write({("a\tb",)}, "x: symbol") == "a\tb\n"
    assert [str(each.message) for each in caught] == [
        "r.csv: a symbol of r holds a line end or the delimiter, so the file is ambiguous; "
        ".output r(rfc4180=true) quotes it"
    ]


def test_compressed_files_are_the_same_each_time(write: Write) -> None:
    write_once = [_compressed(write) for _ in range(2)]
    assert gzip.decompress(write_once[0]) == b"1\n"
    assert write_once[0] == write_once[1]


def _compressed(write: Write) -> bytes:
    with pytest.raises(UnicodeDecodeError):
        write({(1,)}, "x: number", compress="true", file="r.csv.gz")
    return Path("r.csv.gz").read_bytes()


def test_files_go_into_folders_that_are_made(tmp_path: Path, relation: Callable[..., Relation], types: Types) -> None:
    transfer = Transfer("output", "r", {"filename": "sub/a.txt"}, NOWHERE)
    write_relation(transfer, relation("x: number"), types, {(1,)}, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out" / "sub").iterdir()] == ["a.txt"]


def test_a_file_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relation: Callable[..., Relation], types: Types
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("out").write_text("in the way")
    with pytest.raises(FactError) as caught:
        write_relation(Transfer("output", "r", {}, NOWHERE), relation("x: number"), types, {(1,)}, Path("out"))
    assert str(caught.value) == (
        "cannot write out/r.csv: file exists\n  hint: -D sets the folder that results are written to"
    )


def test_the_old_file_stays_when_writing_fails(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write({(1,)}, "x: number")

    def full_disk(self: Path, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full_disk)
    with pytest.raises(FactError, match=r"cannot write r\.csv: no space left on device"):
        write({(2,)}, "x: number")
    assert Path("r.csv").read_text() == "1\n"
    assert [path.name for path in Path().iterdir()] == ["r.csv"]


def test_links_and_permissions_of_the_old_file_are_kept(write: Write, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.csv"
    target.write_text("old")
    target.chmod(0o640)
    (tmp_path / "r.csv").symlink_to(target)
    assert write({(1,)}, "x: number") == "1\n"
    assert (tmp_path / "r.csv").is_symlink()
    assert target.read_text() == "1\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_device_is_written_to_and_not_replaced(write: Write) -> None:
    assert write({(1,)}, "x: number", filename=os.devnull, file=os.devnull) == ""
    assert not Path(os.devnull).is_file()


def test_half_a_surrogate_pair_is_refused(write: Write) -> None:
    with pytest.raises(FactError) as caught:
        write({("\ud800",)}, "x: symbol")
    assert str(caught.value) == (
        "cannot write r.csv: '\\ud800' has no UTF-8 form\n"
        "  hint: half of a surrogate pair is not a character: look where it comes from"
    )


# -- printing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("params", [{}, {"IO": "stdout"}, {"IO": "jsonfile"}])
def test_without_a_folder_relations_are_printed_in_a_frame(params: dict[str, str], printed: Write) -> None:
    assert printed({(2, 3), (1, 2)}, "x: number, y: number", **params) == (
        "---------------\nr\n===============\n1\t2\n2\t3\n===============\n"
    )


def test_headers_are_printed_in_the_frame(printed: Write) -> None:
    assert printed({(1, 2)}, "x: number, y: number", headers="true", name="s") == (
        "---------------\ns\nx\ty\n===============\n1\t2\n===============\n"
    )


def test_a_character_that_cannot_be_printed_is_refused(
    monkeypatch: pytest.MonkeyPatch, relation: Callable[..., Relation], types: Types
) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    with pytest.raises(FactError) as caught:
        write_relation(Transfer("output", "r", {}, NOWHERE), relation("x: symbol"), types, {("é",)}, None)
    assert str(caught.value) == (
        "cannot print 'é': the output's encoding is ascii\n"
        "  hint: write to files with -D DIR, or set PYTHONIOENCODING=utf-8"
    )


def test_printsize_prints_the_number_of_tuples(
    capsys: pytest.CaptureFixture[str], relation: Callable[..., Relation]
) -> None:
    print_size(Transfer("printsize", "r", {}, NOWHERE), relation("x: number"), {(1,), (2,)})
    assert capsys.readouterr().out == "r\t2\n"
