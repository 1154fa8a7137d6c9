"""`--confined`: a program reads and writes below the folders it is given, and nowhere else."""

from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from whence.cli import app

COPY = ".decl r(x:symbol)\n.input r({})\n.output r({})\n"


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("program/below", "facts/below", "out"):
        Path(name).mkdir(parents=True)
    Path("secret.txt").write_text("secret\n")
    for name in ("r.facts", "below/r.txt"):
        Path("facts", name).write_text("open\n")
    Path("facts/link.txt").symlink_to(Path("secret.txt").resolve())
    Path("facts/elsewhere").symlink_to(Path().resolve())


def evaluate(text: str, *options: str) -> Result:
    Path("program/p.dl").write_text(text)
    return CliRunner().invoke(app, ["eval", "program/p.dl", "-F", "facts", "-D", "out", *options])


@pytest.mark.parametrize(
    "name", ["../secret.txt", "{here}/secret.txt", "link.txt", "elsewhere/secret.txt", "below/../../secret.txt"]
)
def test_inputs_come_from_below_the_fact_folder(name: str) -> None:
    text = COPY.format(f'filename="{name.format(here=Path().resolve())}"', "")
    assert evaluate(text).exit_code == 0
    assert Path("out/r.csv").read_text() == "secret\n"
    Path("out/r.csv").unlink()
    result = evaluate(text, "--confined")
    assert result.exit_code == 1
    assert "error[W0501]" in result.stderr
    assert "is not below facts" in result.stderr
    assert not Path("out/r.csv").exists()


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ('IO=sqlite, query="SELECT 1"', "a query may read whatever the database can"),
        ("IO=duckdb, query=\"SELECT * FROM read_text('/etc/passwd')\"", "a query may read whatever the database can"),
        ('IO=postgres, url="postgresql://db/"', "a server is not below a folder"),
    ],
)
def test_databases_are_asked_nothing(params: str, problem: str) -> None:
    result = evaluate(COPY.format(params, ""), "--confined")
    assert (result.exit_code, problem in result.stderr) == (1, True)


@pytest.mark.parametrize("params", ['filename="../stolen.csv"', 'name="../stolen"'])
def test_outputs_go_below_the_output_folder(params: str) -> None:
    result = evaluate(COPY.format("", params), "--confined")
    assert result.exit_code == 1
    assert "../stolen.csv is not below out" in result.stderr
    assert not Path("stolen.csv").exists()


def test_what_stays_inside_is_let_through() -> None:
    text = COPY.format('filename="below/../below/r.txt"', 'filename="deep/in/r.csv"')
    assert evaluate(text, "--confined").exit_code == 0
    assert Path("out/deep/in/r.csv").read_text() == "open\n"


@pytest.mark.parametrize("name", ["../other.dl", "{here}/other.dl", "below/../../other.dl"])
@pytest.mark.parametrize("command", ["check", "eval", "explain-plan"])
def test_includes_come_from_below_the_folder_of_the_program(command: str, name: str) -> None:
    Path("other.dl").write_text("r(1).\n")
    Path("program/p.dl").write_text(f'.include "{name.format(here=Path().resolve())}"\n.output r\n')
    assert CliRunner().invoke(app, [command, "program/p.dl"]).exit_code == 0
    result = CliRunner().invoke(app, [command, "program/p.dl", "--confined"])
    assert result.exit_code == 1
    assert "it is not below the program's folder" in result.output
    assert "r(1)" not in result.output


def test_includes_from_below_may_include_from_there() -> None:
    Path("program/below/a.dl").write_text('.include "../b.dl"\n')
    Path("program/b.dl").write_text("r(1).\n")
    assert evaluate('.include "below/a.dl"\n.output r\n', "--confined").exit_code == 0


def test_a_table_of_sql_has_no_name_that_leads_out() -> None:
    Path("secret.facts").write_text("secret\n")
    Path("p.sql").write_text('CREATE TABLE "../secret"(x TEXT);\nCREATE VIEW v AS SELECT x FROM "../secret";\n')
    result = CliRunner().invoke(app, ["eval", "p.sql", "-F", "facts", "-D", "-", "--confined"])
    assert "secret\n=" not in result.output


def test_a_run_reads_below_the_fact_folder() -> None:
    Path("program/p.dl").write_text(COPY.format('filename="../secret.txt"', ""))
    Path("updates.jsonl").write_text("")
    command = ["run", "program/p.dl", "--updates", "updates.jsonl", "-F", "facts", "--no-spark", "--confined"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert "is not below facts" in result.stderr


VIEW = ".decl r(x:symbol)\n.input r({})\n.decl copy(x:symbol)\n.output copy\ncopy(x) :- r(x).\n"


@pytest.mark.parametrize(
    "question",
    [
        ["why", 'copy("open")'],
        ["how", 'copy("open")'],
        ["whynot", 'copy("shut")'],
        ["whatif", "--except", 'r("open")'],
        ["probability", 'copy("open")', "-p", "r=0.5"],
        ["responsibility", 'copy("open")'],
    ],
    ids=lambda question: question[0],
)
def test_questions_are_answered_from_below_the_fact_folder(question: list[str]) -> None:
    command, *rest = question
    Path("program/p.dl").write_text(VIEW.format('filename="below/r.txt"'))
    assert CliRunner().invoke(app, [command, "program/p.dl", *rest, "-F", "facts", "--confined"]).exit_code == 0
    Path("program/p.dl").write_text(VIEW.format('filename="../secret.txt"'))
    result = CliRunner().invoke(app, [command, "program/p.dl", *rest, "-F", "facts", "--confined"])
    assert result.exit_code == 1
    assert "../secret.txt is not below facts" in result.stderr


EVENTS = """
.decl packet(at:symbol, to:symbol) .event packet
.decl route(at:symbol, to:symbol) .slow route
.input route({})
.decl got(at:symbol, to:symbol) .output got
got(@at, to) :- packet(@at, to), route(@at, to).
"""


def test_events_read_below_the_fact_folder_too() -> None:
    Path("program/p.dl").write_text('.include "../other.dl"\n')
    Path("other.dl").write_text(EVENTS.format(""))
    assert CliRunner().invoke(app, ["events", "keys", "program/p.dl"]).exit_code == 0
    result = CliRunner().invoke(app, ["events", "keys", "program/p.dl", "--confined"])
    assert "it is not below the program's folder" in result.output
    assert result.exit_code == 1
    Path("program/p.dl").write_text(EVENTS.format('filename="../secret.txt"'))
    Path("events.jsonl").write_text("")
    command = ["events", "run", "program/p.dl", "--events", "events.jsonl", "--store", "store", "-F", "facts"]
    result = CliRunner().invoke(app, [*command, "--confined"])
    assert result.exit_code == 1
    assert "../secret.txt is not below facts" in result.stderr
