"""`whence trees`: what it prints, and what it says of wrong arguments."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from whence.cli import app

EXAMPLE = Path(__file__).parents[2] / "examples" / "trees"
DOCUMENT = f"d={EXAMPLE / 'patients.xml'}"
POLICY = ("--annotate", str(EXAMPLE / "clearances.txt"))


def trees(*args: str) -> Result:
    return CliRunner().invoke(app, ["trees", *args])


@pytest.mark.parametrize("engine", ["rules", "recursion"])
def test_a_query_prints_its_answer_as_json(engine: str) -> None:
    result = trees(
        "query", "$d/patient/name", DOCUMENT, *POLICY, "--semiring", "access", "--engine", engine, "--format", "json"
    )
    assert result.exit_code == 0
    assert json.loads(result.output)[-1] == {"label": "name", "annotation": "secret", "children": [{"label": "Cyd"}]}


def test_a_reader_sees_what_his_clearance_allows() -> None:
    result = trees("query", "$d//name", DOCUMENT, *POLICY, "--as", "public")
    assert result.output == "name = Ada\nname = Ben\n"


def test_the_rules_of_a_query_give_the_nodes_of_its_answer(tmp_path: Path) -> None:
    document = tmp_path / "doc.xml"
    document.write_text("<a><b>one\ttwo</b><c>x</c></a>")
    shredded = trees("shred", "for $x in $d/* return <q>{ annot true $x }</q>", f"d={document}", "-F", str(tmp_path))
    (tmp_path / "rules.dl").write_text(shredded.output)
    found = CliRunner().invoke(app, ["eval", str(tmp_path / "rules.dl"), "-F", str(tmp_path), "-D", str(tmp_path)])
    assert found.exit_code == 0
    assert (tmp_path / "member.csv").read_text() == "e1(d.2)\tq\ne1(d.3)\tq\n"


def test_changes_are_json_for_machines() -> None:
    result = trees(
        "follow", "$d//disease", DOCUMENT, f"d={EXAMPLE / 'patients_next.xml'}", "--semiring", "access", "--json"
    )
    records = [json.loads(line) for line in result.output.splitlines()]
    assert [(each["op"], each["path"], each["tree"]["label"], each["after"]) for each in records] == [
        ("-", ["disease"], "asthma", None),
        ("+", ["disease"], "bronchitis", "public"),
        ("=", [], "disease", "public"),
    ]


def test_worlds_without_probabilities() -> None:
    result = trees("worlds", "$d//finding", f"d={EXAMPLE / 'doubtful.xml'}", "--quiet", "--format", "json")
    assert len(json.loads(result.output)) == 4


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["query", "$d", "doc.xml"], "is not NAME=FILE"),
        (["query", "$d", "d=nowhere.xml"], "there is no file nowhere.xml"),
        (["query", "nowhere.xq", DOCUMENT], "there is no file nowhere.xq"),
        (["query", "$d", DOCUMENT, "--semiring", "numbers"], "there is no semiring numbers"),
        (["query", "$d", DOCUMENT, "--as", "nobody"], "there is no clearance nobody"),
        (["query", "$d", DOCUMENT, "--as", "secret", "--semiring", "natural"], "needs annotations in access"),
        (["query", "$d", DOCUMENT, "-p", "x=2"], "is not VARIABLE=P"),
        (["worlds", "$d", DOCUMENT, "-p", "x=0.5"], "nothing is said of secret"),
        (["shred", "$d", DOCUMENT], "a folder needs documents"),
    ],
)
def test_wrong_commands_are_said(args: list[str], said: str) -> None:
    result = trees(*args)
    assert result.exit_code == 2
    assert said in " ".join(result.output.replace("│", " ").split())


def test_wrong_documents_and_queries_exit_with_1() -> None:
    assert trees("query", "$e", DOCUMENT, "--semiring", "access").exit_code == 1
    assert trees("query", "$d", DOCUMENT).exit_code == 1


def test_the_example_runs() -> None:
    done = subprocess.run([sys.executable, str(EXAMPLE / "main.py")], capture_output=True, text=True, check=True)
    assert "case[disease[measles], name[Cyd], ward[south]]: secret -> confidential" in done.stdout
