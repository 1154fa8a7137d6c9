"""Rows and columns of fields: every row meets every column, on grids, fields of radios and networks of any shape."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from whence.sensors import Field, FieldError, Region
from whence.sensors.regions import Regions
from whence.topology import Topology, random_network, scale_free_network, tree_network
from whence.topology.paths import find_paths


def fields() -> list[Field]:
    found = [Field.grid(1, 1), Field.grid(1, 6), Field.grid(5, 4)]
    for seed in range(60):
        draw = Random(seed)
        made: list[Topology] = [
            tree_network(draw.randint(1, 30), seed=seed),
            scale_free_network(draw.randint(4, 30), draw.randint(1, 3), seed=seed),
            random_network(20, 40, seed=seed),
        ]
        for topology in made:
            try:
                found.append(Field.of(topology))
            except FieldError:
                continue  # in several parts
        try:
            found.append(Field.random(draw.randint(2, 60), side=50, radius=draw.choice((12, 20)), seed=seed))
        except FieldError:
            continue
    return found


FIELDS = fields()


def test_every_row_meets_every_column() -> None:
    assert len(FIELDS) > 150
    for field in FIELDS:
        paths = find_paths(field)
        for row in paths.rows:
            for column in paths.columns:
                assert set(row) & set(column)
        for (row_number, column_number), node in paths.crossing.items():
            assert node in paths.rows[row_number]
            assert node in paths.columns[column_number]


def test_ways_go_from_neighbour_to_neighbour() -> None:
    for field in FIELDS:
        paths = find_paths(field)
        for way in (*paths.rows, *paths.columns):
            assert all(b in field.neighbours[a] for a, b in pairwise(way))


def test_where_one_is_stored_any_other_looks() -> None:
    for field in FIELDS[::6]:
        regions = Regions(field)
        assert regions.broken_pair(Region.COLUMN, Region.ROW) is None
        assert regions.broken_pair(Region.ROW, Region.COLUMN) is None
        assert regions.broken_pair(Region.ALL, Region.SELF) is None
        assert regions.broken_pair(Region.SELF, Region.ALL) is None


@pytest.mark.parametrize("reach", [0.0, 3.0, 12.0])
def test_what_is_within_reach_is_met(reach: float) -> None:
    """Of two nodes at most so far apart, the one finds the other though both keep to their part of the ways."""
    for field in FIELDS[::4]:
        paths = find_paths(field)
        for one, here in field.places.items():
            lead, sides = paths.storage(one, reach)
            stored = {one, *lead, *(node for side in sides for node in side)}
            for other, there in field.places.items():
                if max(abs(here[0] - there[0]), abs(here[1] - there[1])) <= reach:
                    assert stored & set(paths.join(other, reach)[1]), (one, other)


def test_rows_of_a_grid_are_its_rows() -> None:
    paths = find_paths(Field.grid(3, 4))
    assert paths.rows[1] == ("n4", "n5", "n6", "n7")
    assert paths.columns[2] == ("n2", "n6", "n10")
    assert paths.storage("n5") == ((), (("n6", "n7"), ("n4",)))
    assert paths.join("n10") == ((), ("n10", "n6", "n2"))


def test_a_field_in_parts_is_refused() -> None:
    with pytest.raises(FieldError, match="do not reach n0"):
        Field.random(20, side=100, radius=5, seed=1)
