import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Whence = Callable[..., Result]

PATHS = """\
.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.output path
.printsize path
"""
FRAMED = "---------------\npath\n===============\n1\t2\n1\t3\n2\t3\n===============\npath\t3\n"
COUNTER = ".decl n(x: number)\nn(0).\nup: n(x + 1) :- n(x).\n.output n\n"


@pytest.fixture(autouse=True)
def paths(folder: Path) -> None:
    Path("path.dl").write_text(PATHS)
    Path("facts").mkdir()
    Path("facts/edge.facts").write_text("1\t2\n2\t3\n")


def test_results_go_to_files_of_the_output_folder(whence: Whence) -> None:
    result = whence("eval", "path.dl", "-F", "facts", "-D", "out")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "path\t3\n", "")
    assert Path("out/path.csv").read_text() == "1\t2\n1\t3\n2\t3\n"


def test_folders_are_the_current_one_by_default(whence: Whence) -> None:
    Path("facts/edge.facts").rename("edge.facts")
    assert whence("eval", "path.dl").exit_code == 0
    assert Path("path.csv").read_text() == "1\t2\n1\t3\n2\t3\n"


def test_a_dash_prints_the_results(whence: Whence) -> None:
    result = whence("eval", "path.dl", "-F", "facts", "-D", "-", "--engine", "reference")
    assert (result.exit_code, result.stdout) == (0, FRAMED)
    assert [path.name for path in Path().iterdir() if path.suffix == ".csv"] == []


def test_program_or_facts_may_come_from_the_standard_input(whence: Whence) -> None:
    assert whence("eval", "-", "-F", "facts", "-D", "-", stdin=PATHS).stdout == FRAMED
    Path("path.dl").write_text(PATHS.replace(".input edge", ".input edge(IO=stdin)"))
    assert whence("eval", "path.dl", "-D", "-", stdin="2\t3\n1\t2\n").stdout == FRAMED


def test_program_and_facts_cannot_both_come_from_the_standard_input(whence: Whence) -> None:
    result = whence("eval", "-", stdin=PATHS.replace(".input edge", ".input edge(IO=stdin)"))
    assert result.exit_code == 1
    assert "error[W0501]: edge and the program are both read from the standard input\n" in result.stderr


def test_several_inputs_of_a_relation_add_up(whence: Whence) -> None:
    Path("path.dl").write_text(PATHS + '.input edge(filename="more.facts")\n')
    Path("facts/more.facts").write_text("3\t4\n")
    assert whence("eval", "path.dl", "-F", "facts").stdout == "path\t6\n"


def test_sql_programs_are_evaluated(whence: Whence) -> None:
    Path("views.sql").write_text(
        "CREATE TABLE edge (x INTEGER, y INTEGER);\n"
        "CREATE RECURSIVE VIEW path (x, y) AS\n"
        "  SELECT x, y FROM edge UNION SELECT p.x, e.y FROM path p JOIN edge e ON p.y = e.x;\n"
    )
    result = whence("eval", "views.sql", "-F", "facts", "-D", "out")
    assert (result.exit_code, result.stderr) == (0, "")
    assert Path("out/path.csv").read_text() == "1\t2\n1\t3\n2\t3\n"


# -- what can go wrong ------------------------------------------------------------------------------------------------


def test_a_program_error_stops_before_anything_is_read(whence: Whence) -> None:
    Path("path.dl").write_text(PATHS + "path(x, q) :- edge(x, _).\n")
    result = whence("eval", "path.dl")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("path.dl:8:9: error[W0203]: variable q is bound by no positive atom")
    assert result.stderr.endswith("\n1 error\n")


def test_warnings_are_shown_unless_quiet(whence: Whence) -> None:
    Path("path.dl").write_text(PATHS + ".decl spare(x: number)\n")
    loud = whence("eval", "path.dl", "-F", "facts")
    quiet = whence("eval", "path.dl", "-F", "facts", "--quiet")
    assert (loud.exit_code, quiet.exit_code) == (0, 0)
    assert loud.stderr.startswith("path.dl:8:1: warning[W0901]: relation spare is never used")
    assert quiet.stderr == ""


def test_windows_and_lifetimes_have_no_effect_and_it_is_said(whence: Whence) -> None:
    Path("path.dl").write_text(PATHS + ".window edge(time=1)\n.lifetime edge 2\n")
    result = whence("eval", "path.dl", "-F", "facts", "-D", "out")
    assert result.exit_code == 0
    assert result.stderr == "".join(
        f"path.dl:{line}:1: warning[W0905]: {name} edge has no effect here: all facts are there at once\n"
        f"    {line} | {directive}\n"
        f"        {underline}\n"
        "  hint: it takes effect where updates are streamed\n"
        for line, name, directive, underline in (
            (8, ".window", ".window edge(time=1)", "^" * 20),
            (9, ".lifetime", ".lifetime edge 2", "^" * 14),
        )
    )
    assert Path("out/path.csv").read_text() == "1\t2\n1\t3\n2\t3\n"


@pytest.mark.parametrize(
    ("text", "place", "line", "advice"),
    [
        (
            "n(1).\nm(x) :- n(x).\n",
            "2:1",
            "    2 | m(x) :- n(x).\n        ^^^^^^^^^^^^^\n",
            "add .output m, or .printsize m for",
        ),
        (
            ".decl n(x: number)\n.input n\n",
            "1:1",
            "    1 | .decl n(x: number)\n        ^^^^^^^^^^^^^^^^^^\n",
            "add .output n, or",
        ),
        (
            "// nothing yet\n",
            "1:1",
            "    1 | // nothing yet\n        ^\n",
            "it is empty: write facts and rules, and .output R",
        ),
    ],
)
def test_a_program_without_output_writes_nothing_and_says_so(
    text: str, place: str, line: str, advice: str, whence: Whence
) -> None:
    Path("p.dl").write_text(text)
    Path("n.facts").write_text("1\n")
    result = whence("eval", "p.dl", "-D", "out")
    assert result.exit_code == 0
    shown = f"p.dl:{place}: warning[W0906]: the program has no .output: nothing is written\n{line}  hint: {advice}"
    assert result.stderr[result.stderr.index("p.dl:" + place + ": warning[W0906]") :].startswith(shown)
    assert not Path("out").exists()
    assert whence("eval", "p.dl", "-D", "out", "--quiet").stderr == ""


def test_an_ambiguous_result_file_gets_a_warning(whence: Whence) -> None:
    Path("tab.dl").write_text('.decl s(x: symbol)\ns("a\\tb").\n.output s\n')
    result = whence("eval", "tab.dl")
    assert result.exit_code == 0
    assert result.stderr == (
        "warning: s.csv: a symbol of s holds a line end or the delimiter, so the file is ambiguous; "
        ".output s(rfc4180=true) quotes it\n"
    )


def test_missing_facts_are_named_with_the_folder(whence: Whence) -> None:
    result = whence("eval", "path.dl")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "cannot read edge.facts: there is no such file\n"
        "  hint: .input edge asks for it; -F sets the folder to look in, which is . now\n"
    )


def test_the_errors_of_all_inputs_are_reported(whence: Whence) -> None:
    Path("path.dl").write_text(PATHS + ".decl weight(x: number, w: float)\n.input weight\n.output weight\n")
    Path("facts/edge.facts").write_text("1\t2\n1\ttwo\n")
    Path("facts/weight.facts").write_text("1\t0.5\n1\n")
    result = whence("eval", "path.dl", "-F", "facts")
    assert result.exit_code == 1
    assert result.stderr == (
        "facts/edge.facts:2: column 2 (y: number): 'two' is not a number\n"
        "  hint: columns of type number hold whole numbers from -9223372036854775808 to 9223372036854775807\n"
        "facts/weight.facts:2: 1 column, but weight(x: number, w: float) has 2\n"
        '  hint: columns are separated by a tab; .input weight(delimiter="…") sets another text\n'
    )
    assert not Path("path.csv").exists()


def test_results_that_cannot_be_written_are_an_error(whence: Whence) -> None:
    result = whence("eval", "path.dl", "-F", "facts", "-D", "path.dl")
    assert result.exit_code == 1
    assert result.stderr.startswith("cannot write path.dl/path.csv: ")


@pytest.mark.parametrize("limit", [("--max-rounds", "50"), ("--max-tuples", "50"), ("--timeout", "0.2")])
def test_a_runaway_recursion_is_stopped(limit: tuple[str, str], whence: Whence) -> None:
    Path("count.dl").write_text(COUNTER)
    result = whence("eval", "count.dl", *limit)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith("error: ")
    assert "up" in result.stderr
    assert not Path("n.csv").exists()


def test_a_function_that_fails_is_reported_with_its_rule(whence: Whence) -> None:
    Path("twice.dl").write_text(TWICE)
    Path("f.py").write_text("def twice(x):\n    return 1 // 0\n")
    result = whence("eval", "twice.dl", "--functions", "f.py")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: twice.dl:3: rule ")
    assert "raised ZeroDivisionError: integer division or modulo by zero" in result.stderr


def test_values_may_be_nested_deeper_than_python_recurses(whence: Whence) -> None:
    Path("deep.dl").write_text(
        ".type L = [next: L]\n.decl a(x: L)\n.decl b(x: L)\n.decl both(x: L)\n"
        ".input a\n.input b\nboth(x) :- a(x), b(x).\n.output both\n"
    )
    depth = 10 * sys.getrecursionlimit()
    for name in ("a", "b"):
        Path(f"{name}.facts").write_text("[" * depth + "nil" + "]" * depth + "\n")
    result = whence("eval", "deep.dl")
    assert (result.exit_code, result.stderr) == (0, "")
    assert Path("both.csv").read_text() == Path("a.facts").read_text()


@pytest.mark.parametrize("option", [("--max-rounds", "0"), ("--engine", "magic"), ("--functions", "nowhere.py")])
def test_bad_options_are_usage_errors(option: tuple[str, str], whence: Whence) -> None:
    assert whence("eval", "path.dl", *option).exit_code == 2


# -- functions --------------------------------------------------------------------------------------------------------

TWICE = """\
.functor twice(x: number): number
.decl n(x: number)
n(@twice(21)).
.output n
"""


def test_functions_come_from_a_python_file(whence: Whence) -> None:
    Path("twice.dl").write_text(TWICE)
    Path("f.py").write_text("from math import floor\n\ndef twice(x):\n    return floor(_half(x) * 4)\n\n"
                            "def _half(x):\n    return x / 2\n")  # fmt: skip
    assert whence("check", "twice.dl", "--functions", "f.py").exit_code == 0
    result = whence("eval", "twice.dl", "--functions", "f.py")
    assert (result.exit_code, result.stderr) == (0, "")
    assert Path("n.csv").read_text() == "42\n"


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        ("f.py", "from math import floor\n", "f.py defines no functions"),
        ("f.py", "1 / 0\n", "cannot import f.py: ZeroDivisionError: division by zero (line 1 of"),
        ("f.py", "def twice(:\n", "cannot import f.py: SyntaxError: "),
        ("f.txt", "def twice(x): return x\n", "f.txt is not a Python file: its name has to end in .py"),
    ],
)
def test_a_file_without_usable_functions_is_a_usage_error(
    file: str, content: str, problem: str, whence: Whence
) -> None:
    Path("twice.dl").write_text(TWICE)
    Path(file).write_text(content)
    result = whence("eval", "twice.dl", "--functions", file)
    assert result.exit_code == 2
    assert "".join(problem.split()) in "".join(result.stderr.replace("│", "").split())
