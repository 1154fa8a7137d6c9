"""Splits between sensors and engine: which there are, what they cost, and which is best when."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from whence.cli import app
from whence.optimizer import Column, Statistics, StatisticsError, Table, parse_query
from whence.optimizer.federated import Field, Sensors, best_split, read_field, splits

FOLDER = Path(__file__).parents[2] / "examples" / "building" / "split"


def example(share: float, near: float = 1.0) -> tuple[Statistics, Field]:
    columns = {"rid": Column(distinct=6, width=4), "status": Column(distinct=2, width=8, common={"open": share})}
    seats = {"mid": Column(distinct=36, width=4), "rid": Column(distinct=6, width=4), "weightlevel": Column(width=4)}
    tables = {"roomsensor": Table(rows=6, columns=columns), "seatsensor": Table(rows=36, columns=seats)}
    return Statistics(tables), Field({"seatsensor": Sensors(5.0, {"roomsensor": near}), "roomsensor": Sensors(5.0)})


def test_both_options_of_the_worked_example_are_there_and_selectivity_decides() -> None:
    text = (FOLDER / "free.sql").read_text()
    chosen = []
    for share in (0.05, 0.999):
        statistics, where = example(share, near=3.0)
        found = splits(parse_query(text, statistics), statistics, where)
        assert {tuple(each.relations for each in split.parts) for split in found} == {
            (("ss", "sr"),),  # one subquery, with both predicates
            (("ss",), ("sr",)),  # two, and all joins at the engine
        }
        chosen.append(best_split(found, "messages").parts)
    assert [part.site for part in chosen[0]] == ["in the network"]
    assert all(part.site != "in the network" for part in chosen[1])


def test_at_most_one_join_in_a_part_and_never_a_product() -> None:
    statistics = Statistics()
    where = Field({name: Sensors(3.0, {"b": 1.0}) for name in "abcd"})
    query = parse_query("SELECT a.x FROM a, b, c, d, t WHERE a.x = b.x AND b.y = c.y AND t.z = d.z", statistics)
    found = splits(query, statistics, where)
    joined = {each.relations for split in found for each in split.parts if len(each.relations) > 1}
    assert joined == {("a", "b"), ("b", "c")}
    # d is alone; of the others all are, or one of two pairs is joined, at one of two sites.
    assert len(found) == 1 + 2 * 2
    assert all(sum((each.relations for each in split.parts), ()) for split in found)
    for split in found:
        names = sorted(name for part in split.parts for name in part.relations)
        assert names == ["a", "b", "c", "d"]


def test_partners_that_nobody_knows_the_distance_of_join_at_the_base_station() -> None:
    statistics = Statistics()
    where = Field({"a": Sensors(3.0), "b": Sensors(3.0)})
    found = splits(parse_query("SELECT a.x FROM a, b WHERE a.x = b.x", statistics), statistics, where)
    assert {part.site for split in found for part in split.parts} == {"", "at the base station"}


def test_the_best_is_the_least_by_each_metric() -> None:
    statistics, where = example(0.3)
    found = splits(parse_query((FOLDER / "free.sql").read_text(), statistics), statistics, where)
    for metric in ("latency", "messages", "energy"):
        best = best_split(found, metric)
        assert getattr(best.cost, metric) == min(getattr(each.cost, metric) for each in found)


def test_the_command_prints_all_of_them_the_best_first() -> None:
    words = ["--stats", str(FOLDER / "stats.json"), "--field", str(FOLDER / "field.json"), "--metric", "messages"]
    done = CliRunner().invoke(app, ["optimize", str(FOLDER / "free.sql"), *words])
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("best")
    costs = [float(line[4:].split()[0].replace(",", "")) for line in lines]
    assert costs == sorted(costs)
    done = CliRunner().invoke(app, ["optimize", str(FOLDER / "free.sql"), *words, "--json"])
    assert [each["cost"]["messages"] for each in json.loads(done.stdout)] == pytest.approx(costs, abs=0.05)


def test_a_file_that_describes_no_field(tmp_path: Path) -> None:
    for text in ("[]", "nonsense", '{"sensors": {"a": {}}}', '{"sensors": {"a": {"hops": "far"}}}'):
        (tmp_path / "field.json").write_text(text)
        with pytest.raises(StatisticsError, match="does not describe a field of sensors"):
            read_field(tmp_path / "field.json")
    words = ["--field", str(FOLDER / "field.json"), "--metric", "beauty"]
    done = CliRunner().invoke(app, ["optimize", str(FOLDER / "free.sql"), *words])
    assert done.exit_code == 2
