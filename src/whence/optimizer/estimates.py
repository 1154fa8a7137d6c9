"""How many rows each expression has: a sum of logarithms, one for each fact that is known of a part of it.

A fact (a table's size, the share of rows that a filter or a join lets through, a correction by what was observed) holds for
every expression that contains its relations. Sums of whole numbers are the same in any order, and a fact that changes moves
exactly the expressions that contain it.
"""

from __future__ import annotations

from itertools import combinations

from whence.optimizer.cost import to_log
from whence.optimizer.query import ColumnOf, Query, bits_of, places_of
from whence.optimizer.statistics import Column, Statistics

MOST_MEMBERS = 8  # of a class of equal columns, whose subsets are all looked at


def factors_of(query: Query, statistics: Statistics) -> dict[int, int]:
    """The logarithms of what is known, by the relations, as bits, that it is known of."""
    found: dict[int, int] = {}
    for at, relation in enumerate(query.relations):
        _add(found, 1 << at, to_log(statistics.table(relation.table).rows))
    for condition in query.conditions:
        _add(found, bits_of(condition.places), to_log(condition.share(statistics)))
    for members in query.classes:
        _add_class(found, query, statistics, sorted(members))
    return found


def group_log(query: Query, statistics: Statistics) -> int:
    """How many groups there can be, as a logarithm: the columns are taken to be independent."""
    total = 0
    for at, name in query.group or ():
        table = statistics.table(query.relations[at].table)
        total += to_log(min(table.rows, table.column(name).distinct_of(table.rows)))
    return total


def sum_within(factors: dict[int, int], expression: int) -> int:
    return sum(log for bits, log in factors.items() if bits & ~expression == 0)


def _add(found: dict[int, int], bits: int, log: int) -> None:
    found[bits] = found.get(bits, 0) + log


def _add_class(found: dict[int, int], query: Query, statistics: Statistics, members: list[ColumnOf]) -> None:
    """Of equal columns, the one with the fewest values is joined with each of the others.

    Which one that is depends on who is there. So each set of them has a share of its own, and as its fact what the facts of
    its parts leave of it.
    """
    columns = {member: _column(query, statistics, member) for member in members}
    members.sort(key=lambda member: (columns[member][1], member))
    if len(members) > MOST_MEMBERS:
        for other in members[1:]:
            _add(found, bits_of((members[0].at, other.at)), to_log(_joined(columns[members[0]], columns[other])))
        return
    shares: dict[int, int] = {}
    for size in range(2, len(members) + 1):
        for chosen in combinations(members, size):
            first, *others = chosen
            log = sum(to_log(_joined(columns[first], columns[other])) for other in others)
            places = bits_of(member.at for member in chosen)
            if len(places_of(places)) == size:  # two columns of one relation are compared by a filter
                shares[places] = log - sum_within(shares, places)
    for places, log in shares.items():
        _add(found, places, log)


def _column(query: Query, statistics: Statistics, member: ColumnOf) -> tuple[Column, float]:
    table = statistics.table(query.relations[member.at].table)
    column = table.column(member.name)
    return column, min(table.rows, column.distinct_of(table.rows))


def _joined(one: tuple[Column, float], other: tuple[Column, float]) -> float:
    """The share of pairs of rows that are equal: common values one by one, the others spread evenly."""
    (left, left_distinct), (right, right_distinct) = one, other
    share = sum(often * right.common[value] for value, often in left.common.items() if value in right.common)
    left_rest, right_rest = left.rest, right.rest
    left_values = max(1.0, left_distinct - len(left.common))
    right_values = max(1.0, right_distinct - len(right.common))
    share += sum(often * right_rest / right_values for value, often in left.common.items() if value not in right.common)
    share += sum(often * left_rest / left_values for value, often in right.common.items() if value not in left.common)
    return share + left_rest * right_rest / max(left_values, right_values)
