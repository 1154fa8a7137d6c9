"""Tables of SQL on the command line: equal rows in files and feeds, constraints, and what never ends."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from tests.cli.conftest import Whence

PROGRAM = """CREATE TABLE sale(shop TEXT NOT NULL, amount BIGINT NOT NULL);
CREATE TABLE shop(name TEXT PRIMARY KEY, city TEXT UNIQUE, size BIGINT CHECK (size > 0));
CREATE VIEW total AS SELECT shop, SUM(amount) AS total, COUNT(*) AS n FROM sale GROUP BY shop;
CREATE VIEW amounts AS SELECT amount FROM sale;
"""


@pytest.fixture
def program(folder: Path) -> None:
    (folder / "p.sql").write_text(PROGRAM)
    (folder / "sale.facts").write_text("A\t5\nA\t5\nB\t7\n")
    (folder / "shop.csv").write_text("name,city,size\nA,Rome,3\nB,,2\n")


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("engine", ["local", "reference", "auto"])
def test_equal_rows_of_a_file_count_each(whence: Whence, folder: Path, engine: str) -> None:
    assert whence("eval", "p.sql", "--engine", engine).exit_code == 0
    assert (folder / "total.csv").read_text() == "A\t10\t2\nB\t7\t1\n"
    assert (folder / "amounts.csv").read_text() == "5\n5\n7\n"


@pytest.mark.usefixtures("program")
def test_equal_rows_of_a_parquet_file_and_of_a_large_one_count_each(whence: Whence, folder: Path) -> None:
    (folder / "sale.facts").unlink()
    pd.DataFrame({"shop": ["A", "A", "B"], "amount": [5, 5, 7]}).to_parquet(folder / "sale.parquet")
    assert whence("eval", "p.sql").exit_code == 0
    assert (folder / "total.csv").read_text() == "A\t10\t2\nB\t7\t1\n"
    (folder / "sale.parquet").unlink()
    (folder / "sale.facts").write_text("shop-with-a-long-name\t5\n" * 60_000)
    assert whence("eval", "p.sql").exit_code == 0
    assert (folder / "total.csv").read_text() == "shop-with-a-long-name\t300000\t60000\n"


@pytest.mark.usefixtures("program")
def test_rows_of_files_that_break_constraints_are_errors_with_their_places(whence: Whence, folder: Path) -> None:
    (folder / "shop.csv").write_text("name,city,size\nA,Rome,3\nA,,2\nC,Rome,1\nD,,0\n")
    result = whence("eval", "p.sql", "-D", "-", "--quiet")
    assert result.exit_code == 1
    assert result.stderr == (
        'shop.csv, row 2: shop("A", nil, 2) breaks PRIMARY KEY (name): shop("A", "Rome", 3) is there already\n'
        'shop.csv, row 3: shop("C", "Rome", 1) breaks UNIQUE (city): shop("A", "Rome", 3) is there already\n'
        'shop.csv, row 4: shop("D", nil, 0) breaks CHECK (size > 0)\n'
        "  hint: correct the rows, or take the constraint out of the CREATE TABLE\n"
    )


def test_a_key_that_a_large_file_has_twice_is_an_error(whence: Whence, folder: Path) -> None:
    (folder / "p.sql").write_text(
        "CREATE TABLE k(id BIGINT PRIMARY KEY, s TEXT NOT NULL); SELECT COUNT(*) AS n FROM k;"
    )
    lines = [f"{at}\tsome text of some length\n" for at in range(60_000)]
    (folder / "k.facts").write_text("".join([*lines, "7\tanother one\n"]))
    result = whence("eval", "p.sql", "-D", "-")
    assert result.exit_code == 1
    assert result.stderr.startswith('k, row 60001: k(7, "another one") breaks PRIMARY KEY (id)')


UPDATES = [
    ("+", "sale", ["A", 5]),
    ("+", "shop", ["A", "Oslo", 1]),
    ("-", "shop", ["A", "Rome", 3]),
    ("+", "shop", ["A", "Oslo", 1]),
    ("+", "shop", ["D", None, -1]),
    ("+", "shop", [None, None, 1]),
    ("-", "sale", ["B", 7]),
]


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_run_counts_copies_and_buries_what_breaks_a_constraint(whence: Whence, folder: Path, form: str) -> None:
    if form == "jsonl":
        records = [{"op": op, "relation": name, "tuple": row} for op, name, row in UPDATES]
        (folder / "u.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        (folder / "sale.csv").write_text("op,shop,amount\n+,A,5\n-,B,7\n")
    updates = "u.jsonl" if form == "jsonl" else "sale.csv"
    command = ["run", "p.sql", "-F", ".", "--updates", updates, "--no-spark", "--json"]
    result = whence(*command, "--dead-letters", "dead.jsonl")
    assert result.exit_code == 0
    shown = [json.loads(line) for line in result.stdout.splitlines()]
    last = [each["tuple"] for each in shown if each["epoch"] == 1 and each["op"] == "+"]
    assert last == [["A", 15, 3], [5]]
    if form == "csv":
        return
    assert json.loads(result.stderr)["dead_letters"] == 3
    letters = [json.loads(line) for line in (folder / "dead.jsonl").read_text().splitlines()]
    assert sorted((each["line"], each["reason"]) for each in letters) == [
        (2, 'shop("A", "Oslo", 1) breaks PRIMARY KEY (name): shop("A", "Rome", 3) is there already'),
        (5, 'shop("D", nil, -1) breaks CHECK (size > 0)'),
        (6, "shop(name: symbol, city: symbol?, size: number?): name: null is not a symbol"),
    ]
    assert json.loads(letters[1]["record"]) == {"op": "+", "relation": "shop", "tuple": ["A", "Oslo", 1]}
    (folder / "u.jsonl").write_text("".join((folder / "u.jsonl").read_text().splitlines(keepends=True)[:2]))
    strict = whence(*command, "--strict")
    assert strict.exit_code == 1
    assert strict.stderr.startswith('u.jsonl:2: shop("A", "Oslo", 1) breaks PRIMARY KEY (name)')


@pytest.mark.usefixtures("program")
def test_letters_of_a_state_are_not_repeated_by_the_next_run(whence: Whence, folder: Path) -> None:
    record = {"op": "+", "relation": "shop", "tuple": ["A", "Oslo", 1]}
    (folder / "u.jsonl").write_text(json.dumps(record) + "\n")
    command = ["run", "p.sql", "-F", ".", "--updates", "u.jsonl", "--no-spark", "--state", "state"]
    for _ in range(2):
        assert whence(*command, "--dead-letters", "dead.jsonl").exit_code == 0
    assert len((folder / "dead.jsonl").read_text().splitlines()) == 1


@pytest.mark.usefixtures("program")
def test_plans_tell_sets_from_bags_and_proofs_show_rows_as_they_are(whence: Whence) -> None:
    plan = whence("explain-plan", "p.sql").stdout
    assert "table sale: a bag, with the second and later copies of a row in sale.copies, counted by the views\n" in plan
    assert "table shop: a set, by PRIMARY KEY (name), UNIQUE (city)\nbags: amounts; sets: total\n" in plan
    why = whence("why", "p.sql", 'total("A", 10, 2)').stdout
    assert why.splitlines()[:7] == [
        'total("A", 10, 2)  by total#1',
        "├─ sum = 10",
        '│  ├─ sale("A", 5)',
        '│  └─ sale("A", 5)',
        "└─ count = 2",
        '   ├─ sale("A", 5)',
        '   └─ sale("A", 5)',
    ]
    assert whence("why", "p.sql", "amounts(5)").stdout.splitlines()[:2] == [
        "amounts(5)  by amounts#1",
        '└─ sale("A", 5)',
    ]


def test_a_recursion_without_an_end_is_reported_alike_by_eval_and_run(whence: Whence, folder: Path) -> None:
    (folder / "p.sql").write_text(
        "CREATE TABLE link(src TEXT, dst TEXT, PRIMARY KEY (src, dst));\n"
        "CREATE RECURSIVE VIEW r(src, dst) AS SELECT src, dst FROM link UNION ALL\n"
        "  SELECT r.src, l.dst FROM r JOIN link l ON l.src = r.dst;\n"
    )
    (folder / "link.facts").write_text("a\tb\nb\ta\n")
    (folder / "u.jsonl").write_text('{"op": "+", "relation": "link", "tuple": ["c", "a"]}\n')
    for command in (["eval", "p.sql"], ["run", "p.sql", "-F", ".", "--updates", "u.jsonl", "--no-spark"]):
        result = whence(*command)
        assert result.exit_code == 3
        assert "r (p.sql:2) has no end: with UNION ALL, a row that comes from itself" in result.stderr
        assert "  hint: write UNION, which ends on every cycle" in result.stderr
