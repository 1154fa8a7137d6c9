"""Queries to optimize, made from a seed: chains, stars and cliques of joins, with statistics that fit them."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from whence.optimizer.statistics import Column, Statistics, Table

SHAPES = ("chain", "star", "clique")


def synthetic(shape: str, relations: int, seed: int, *, places: int = 0, parts: int = 0) -> tuple[str, Statistics]:
    """The text of a query over `r0`, `r1`, … and what is known of them. Tables are at `places` sites, or dealt to `parts`.

    >>> synthetic("chain", 3, 1)[0]
    'SELECT r1.v FROM r0, r1, r2 WHERE r0.k01 = r1.k01 AND r1.k12 = r2.k12 AND r0.v < 4 AND r2.v < 49'
    """
    random = Random(seed)  # noqa: S311 - no secrets here
    pairs = list(_pairs(shape, relations))
    tables: dict[str, Table] = {}
    for at in range(relations):
        rows = float(round(10 ** random.uniform(1, 6)))
        keys = [f"k{low}{high}" for low, high in pairs if at in (low, high)]
        columns = {key: Column(distinct=max(1.0, round(rows ** random.uniform(0.3, 1)))) for key in keys}
        columns["v"] = Column(distinct=100, bounds=(0, 50, 100))
        indexes = frozenset(key for key in keys if random.random() < 0.3)
        ordered = random.choice(keys) if keys and random.random() < 0.4 else ""
        place = f"site{random.randrange(places)}" if places else ""
        by = random.choice([*keys, "", "*"]) if parts else ""
        tables[f"r{at}"] = Table(rows, columns, indexes, ordered, place, random.randrange(20, 200), by)
    names = [f"r{at}" for at in range(relations)]
    wheres = [f"r{low}.k{low}{high} = r{high}.k{low}{high}" for low, high in pairs]
    wheres += [f"{name}.v < {random.randrange(1, 100)}" for name in names if random.random() < 0.4]
    tail = random.choice(["", "", f" GROUP BY {random.choice(names)}.v"])
    wanted = tail.rpartition(" ")[2] if tail else f"{random.choice(names)}.v"
    if pairs and random.random() < 0.3:
        low, high = random.choice(pairs)
        tail += f" ORDER BY r{low}.k{low}{high}" if not tail else ""
    text = f"SELECT {wanted} FROM {', '.join(names)} WHERE {' AND '.join(wheres)}{tail}"  # noqa: S608 - it is not run
    return text, Statistics(tables, parts=parts)


def _pairs(shape: str, relations: int) -> Iterator[tuple[int, int]]:
    if shape not in SHAPES:
        raise ValueError(f"there is no shape {shape}; there are {', '.join(SHAPES)}")
    for high in range(1, relations):
        if shape == "clique":
            yield from ((low, high) for low in range(high))
        else:
            yield (high - 1 if shape == "chain" else 0), high
