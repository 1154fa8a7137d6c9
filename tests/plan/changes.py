"""Random changes of base relations."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from whence import Update
from whence.lang.types import Tuple

EPOCHS = 20


def random_epochs(
    seed: int, arities: Mapping[str, int], values: int
) -> Iterator[tuple[list[Update], dict[str, set[Tuple]]]]:
    """Epochs of a few updates, each with the rows that are there after it."""
    rng = random.Random(seed)
    base: dict[str, set[Tuple]] = {name: set() for name in arities}
    for _ in range(EPOCHS):
        updates = []
        for _ in range(rng.randint(1, 6)):
            name = rng.choice(list(base))
            row = tuple(rng.randrange(values) for _ in range(arities[name]))
            op = "+" if rng.random() < 0.6 else "-"
            (base[name].add if op == "+" else base[name].discard)(row)
            updates.append(Update(op, name, row))
        yield updates, base
