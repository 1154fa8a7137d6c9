"""`whence optimize`."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.cli.conftest import Whence

QUERY = "SELECT a.x FROM a, b, c WHERE a.k = b.k AND b.m = c.m AND c.x = 3"
STATS = {"tables": {"a": {"rows": 100}, "b": {"rows": 10000, "indexes": ["k"]}, "c": {"rows": 1000}}}


@pytest.fixture(autouse=True)
def query(folder: Path) -> None:
    (folder / "q.sql").write_text(QUERY)
    (folder / "s.json").write_text(json.dumps(STATS))


def test_a_plan_is_printed_and_found_again(whence: Whence) -> None:
    result = whence(
        "optimize", "q.sql", "--stats", "s.json", "--change", "scan(b) x 4", "--change", "rows(c) = 1000000"
    )
    assert result.exit_code == 0
    assert "a, b, c" in result.stdout
    assert "scan(b) x 4: " in result.stdout
    assert "rows(c) = 1000000: another plan" in result.stdout
    assert "bounding" in result.stdout


def test_prunings_change_the_work_and_not_the_plan(whence: Whence) -> None:
    options = ["optimize", "q.sql", "--stats", "s.json", "--json", "--change", "rows(a) x 1/8; rows(b) x 3"]
    pruned = json.loads(whence(*options).stdout)
    plain = json.loads(
        whence(*options, *(f"--without={each}" for each in ("suppression", "references", "bounding"))).stdout
    )
    assert _operators(pruned["plan"]) == _operators(plain["plan"])
    assert _operators(pruned["changes"][0]["plan"]) == _operators(plain["changes"][0]["plan"])
    assert pruned["pruned"]["nodes_seen"] < plain["pruned"]["nodes_seen"] == plain["pruned"]["nodes"]
    assert pruned["changes"][0]["alternatives"] < plain["changes"][0]["alternatives"]


def _operators(plan: dict[str, object]) -> list[object]:
    inputs = plan["inputs"]
    assert isinstance(inputs, list)
    return [plan["operator"], plan["cost_with_inputs"], *(_operators(each) for each in inputs)]


def test_pictures_have_a_box_for_each_operator(whence: Whence, folder: Path) -> None:
    found = json.loads(
        whence("optimize", "q.sql", "--stats", "s.json", "--json", "--svg", "p.svg", "--html", "p.html").stdout
    )
    drawn = ET.parse(folder / "p.svg")
    boxes = drawn.findall(".//{http://www.w3.org/2000/svg}g")
    assert len(boxes) == json.dumps(found["plan"]).count('"cost_with_inputs"')
    page = (folder / "p.html").read_text(encoding="utf-8")
    assert "What was pruned" in page
    assert page.count('class="chosen"') == json.dumps(found["plan"]).count('"inputs": [{')


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--change", "scan(b) + 4"], "is not a change"),
        (["--change", "scan(d) x 4"], "there is no relation d"),
        (["--change", "speed(a) x 4"], "there is no speed"),
        (["--change", "scan(a, b) x 4"], "one table is scanned at a time"),
        (["--change", "cost(a) x 4"], "is scan(a)"),
        (["--change", "rows(a) x 0"], "above 0"),
        (["--change", "rows(a) x 1/0"], "rows(a) x 1/0"),
        (["--change", "scan(a) = 4"], "only rows can be said"),
        (["--without", "luck"], "there is no pruning luck"),
    ],
)
def test_what_cannot_be_used_is_named(options: list[str], message: str, whence: Whence) -> None:
    result = whence("optimize", "q.sql", "--stats", "s.json", *options)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", "").split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELEC x", "one SELECT is wanted"),
        ("SELECT x FROM (SELECT x FROM a) t", "subquery"),
        ("SELECT a.x FROM a LEFT JOIN b ON a.k = b.k", "only inner joins"),
        ("SELECT x FROM a, b WHERE a.k = m", "column m may be of any relation"),
        ("SELECT a.x FROM a, a", "two relations are called a"),
        ("SELECT a.x FROM a WHERE a.x IN (SELECT 1)", "subquery"),
        ("SELECT 1", "reads from no table"),
        ("", "there is no query"),
        ("SELECT a.x FROM a UNION SELECT b.x FROM b", "this is UNION"),
        ("SELECT a.x FROM a NATURAL JOIN b", "NATURAL JOIN"),
        ("SELECT a.x FROM a ASOF JOIN b ON a.k = b.k", "ASOF JOIN"),
        ("SELECT sum(a.x) OVER () FROM a", "a window function"),
        ("SELECT a.x FROM a TABLESAMPLE (10)", "TABLESAMPLE"),
        ("SELECT x FROM generate_series(1, 3)", "is not a table"),
        ("SELECT a.x FROM a, b WHERE d.k = a.k", "there is no relation d"),
    ],
)
def test_queries_that_are_more_than_a_block_are_refused(text: str, message: str, whence: Whence, folder: Path) -> None:
    (folder / "bad.sql").write_text(text)
    result = whence("optimize", "bad.sql", "--stats", "s.json")
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "statistics are an object"),
        ('{"tables": {"a": {"size": 3}}}', "table a has size"),
        ('{"tables": {"a": {"rows": -3}}}', "rows of table a is -3"),
        ('{"tables": {"a": {"columns": {"k": {"common": [3]}}}}}', "a list of [value, share of rows]"),
        ('{"tables": {"a": {"columns": {"k": {"common": [[[1], 0.5]]}}}}}', "hold numbers and texts"),
        ('{"tables": {"a": {"columns": {"k": {"common": [[1, "x"]]}}}}}', "share of common of column k of a"),
        ('{"tables": {"a": {"columns": {"k": {"histogram": [3, 1]}}}}}', "not in ascending order"),
        ('{"tables": {"a": {"columns": {"k": {"histogram": 3}}}}}', "hold numbers and texts"),
        ('{"tables": {"a": {"columns": 3}}}', "columns of table a is an object"),
        ('{"tables": {"a": {"indexes": "k"}}}', "indexes of table a is a list"),
        ('{"tables": {"a": {"place": 3}}}', "place of table a is 3"),
        ('{"tables": {"a": 3}}', "table a is an object"),
    ],
)
def test_statistics_that_cannot_be_used_are_named(text: str, message: str, whence: Whence, folder: Path) -> None:
    (folder / "bad.json").write_text(text)
    result = whence("optimize", "q.sql", "--stats", "bad.json")
    assert result.exit_code == 2
    assert message in result.stderr


def test_files_that_cannot_be_read_or_written_are_named(whence: Whence, folder: Path) -> None:
    (folder / "latin.sql").write_bytes(b"SELECT a.x FROM a WHERE a.x = '\xe9'")
    assert "is not UTF-8" in whence("optimize", "latin.sql").stderr
    result = whence("optimize", "q.sql", "--svg", "nowhere/p.svg")
    assert (result.exit_code, "cannot write nowhere/p.svg" in result.stderr) == (2, True)
