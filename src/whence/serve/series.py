"""How numbers in a view went over the last epochs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

from whence.lang.program import Relation
from whence.lang.types import FLOAT, NUMBER, UNSIGNED, Tuple
from whence.serve.filters import plain_text
from whence.serve.live import LiveViews

_LINES = 12
_ROWS = 2_000  # views that are drawn over time are small


def series(live: LiveViews, relation: Relation, value: str, by: str, last: int) -> dict[str, object]:
    """For each epoch the sum of a column, or the number of rows, for each value of another column. Raises ValueError."""
    names = [field.name for field in relation.fields]
    for column in filter(None, (value, by)):
        if column not in names:
            raise ValueError(f"{relation.name} has no column {column}; it has {', '.join(names)}")
    if value and relation.fields[names.index(value)].kind not in (NUMBER, UNSIGNED, FLOAT):
        raise ValueError(f"{value} is not a column of numbers")
    past = live.history.newest(last)
    if not value and not by:
        points = [each.sizes.get(relation.name, 0) for each in past]
        return _drawn([each.epoch for each in past], [each.at for each in past], {relation.name: points})
    weigh = _weight(names.index(value) if value else None)
    label = _label(names.index(by) if by else None, value or relation.name)
    current: defaultdict[str, float] = defaultdict(float)
    end = past[-1].epoch if past else live.epoch
    if live.sizes[relation.name] > _ROWS:
        raise ValueError(f"{relation.name} has too many rows to be drawn over time: aggregate them in a view")
    for row in live.rows(relation.name, _ROWS, end):
        current[label(row)] += weigh(row)
    backwards: list[dict[str, float]] = []
    for each in reversed(past):
        backwards.append(dict(current))
        inserted, deleted = each.of(relation.name)
        for rows, sign in ((inserted, -1), (deleted, 1)):
            for row in rows:
                current[label(row)] += sign * weigh(row)
    steps = backwards[::-1]
    shown = [name for name, _ in Counter({name: 1 for step in steps for name in step}).most_common(_LINES)]
    lines = {name: [step.get(name, 0) for step in steps] for name in sorted(shown)}
    return _drawn([each.epoch for each in past], [each.at for each in past], lines)


def _drawn(epochs: list[int], at: list[float], lines: object) -> dict[str, object]:
    return {"epochs": epochs, "at": at, "lines": lines}


def _weight(column: int | None) -> Callable[[Tuple], float]:
    def weight(row: Tuple) -> float:
        value = 1 if column is None else row[column]
        assert isinstance(value, int | float)
        return value

    return weight


def _label(column: int | None, name: str) -> Callable[[Tuple], str]:
    return lambda row: name if column is None else plain_text(row[column])
