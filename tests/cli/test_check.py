import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Whence = Callable[..., Result]

PATHS = """\
.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.output path
"""


def test_a_good_program_is_summed_up(whence: Whence) -> None:
    Path("path.dl").write_text(PATHS)
    result = whence("check", "path.dl")
    assert (result.exit_code, result.stdout) == (0, "ok: 2 relations, 2 rules, 2 strata\n")


def test_the_program_may_come_from_the_standard_input(whence: Whence) -> None:
    result = whence("check", "-", stdin=PATHS)
    assert (result.exit_code, result.stdout) == (0, "ok: 2 relations, 2 rules, 2 strata\n")


def test_warnings_alone_are_no_failure(whence: Whence) -> None:
    Path("path.dl").write_text(PATHS + ".decl spare(x: number)\n")
    result = whence("check", "path.dl")
    assert result.exit_code == 0
    assert result.stdout == (
        "path.dl:7:1: warning[W0901]: relation spare is never used\n"
        "    7 | .decl spare(x: number)\n"
        "        ^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: use it in a rule, add .output spare, or remove it\n"
        "ok: 3 relations, 2 rules, 3 strata, 1 warning\n"
    )


def test_all_errors_are_printed_and_counted(whence: Whence) -> None:
    Path("path.dl").write_text(PATHS + "path(p, x) :- edge(x, _).\npath(x, q) :- edge(x, _).\n")
    result = whence("check", "path.dl")
    assert result.exit_code == 1
    headlines = [line for line in result.stdout.split("\n") if line.startswith("path.dl")]
    assert headlines == [
        "path.dl:7:6: error[W0203]: variable p is bound by no positive atom of this rule",
        "path.dl:8:9: error[W0203]: variable q is bound by no positive atom of this rule",
    ]
    assert result.stdout.endswith("\n2 errors\n")
    assert "\x1b" not in result.stdout


def test_parameters_of_directives_are_checked(whence: Whence) -> None:
    Path("path.dl").write_text(PATHS.replace(".input edge", '.input edge(IO="mysql")'))
    result = whence("check", "path.dl")
    assert result.exit_code == 1
    assert "error[W0501]: IO=mysql is not supported for .input\n" in result.stdout


def test_json_is_for_scripts(whence: Whence) -> None:
    Path("good.dl").write_text(PATHS)
    Path("bad.dl").write_text(PATHS + "path(x, q) :- edge(x, _).\n")
    good = whence("check", "--json", "good.dl")
    bad = whence("check", "--json", "bad.dl")
    assert (good.exit_code, json.loads(good.stdout)) == (0, {"ok": True, "diagnostics": []})
    found = json.loads(bad.stdout)
    assert bad.exit_code == 1
    assert found["ok"] is False
    assert {"code": "W0203", "file": "bad.dl", "line": 7, "column": 9}.items() <= found["diagnostics"][0].items()


def test_a_missing_program_is_a_usage_error(whence: Whence) -> None:
    result = whence("check", "nowhere.dl")
    assert result.exit_code == 2
    assert "there is no file nowhere.dl" in result.stderr


def test_a_program_that_is_not_utf_8_is_a_usage_error(whence: Whence) -> None:
    Path("path.dl").write_bytes(b'p("caf\xe9").')
    result = whence("check", "path.dl")
    assert result.exit_code == 2
    assert "path.dl is not UTF-8: byte 0xe9 at offset 6" in result.stderr
