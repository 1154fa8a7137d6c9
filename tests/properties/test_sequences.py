"""Many sequences of epochs for each random program, on every kind of table.

Programs are drawn as in `test_maintenance`, and planned once for all their sequences, so that there can be many of them. Values
are not only the small numbers that rules speak of: they fill several lines of a block, lie far apart, or need 64 bits.
`WHENCE_EXAMPLES` is how many sequences there are for each kind of table.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.properties.counting import count_sequence
from tests.properties.excuses import LIMITS, follow
from tests.properties.programs import BASE, Run, runs
from tests.properties.test_maintenance import TABLES, Followed, kept

from whence import Update
from whence.lang.types import Tuple
from whence.limits import RunawayError
from whence.prepared import prepare
from whence.reference import FunctionError, evaluate

SEQUENCES = 10  # of a program
EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "40"))
VALUES = (
    (0, 1, 2, 3),
    (0, 1, 62, 63, 64, 65),
    (-130, -1, 0, 1, 2, 700),
    (0, 1, 2, 3, (1 << 31) - 1, 1 << 31, -(1 << 63), (1 << 63) - 1),
)
Facts = dict[str, set[Tuple]]


def epochs(rng: Random, names: list[str], values: tuple[int, ...]) -> Iterator[list[Update]]:
    """The first one fills the base relations. The others take a few rows away, bring some back, and put new ones in."""

    def new_row(name: str) -> tuple[str, Tuple]:
        return name, tuple(rng.choice(values) for _ in range(BASE[name]))

    there = {new_row(name): None for name in names for _ in range(rng.choice((0, 4, 8, 16)))}
    gone: list[tuple[str, Tuple]] = []
    yield [Update("+", *each) for each in there]
    for _ in range(rng.randint(2, 5)):
        epoch = []
        for _ in range(rng.randint(1, 6)):
            chosen = rng.random()
            if there and chosen < 0.5:
                each = rng.choice(list(there))
                del there[each]
                gone.append(each)
                epoch.append(Update("-", *each))
            else:
                each = rng.choice(gone) if gone and chosen < 0.75 else new_row(rng.choice(names))
                there[each] = None
                epoch.append(Update("+", *each))
        yield epoch


@pytest.mark.parametrize("tables", TABLES)
def test_many_sequences_match_the_reference(tables: str) -> None:
    @settings(
        max_examples=-(-EXAMPLES // SEQUENCES),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(run=runs(), seed=st.integers(0, 1 << 32))
    def match(run: Run, seed: int) -> None:
        # A range over numbers that lie far apart has too many values. Where costs that wrap around get better than those of
        # shorter ways, what the least ones are depends on who came first.
        choices = VALUES[:1] if "range(" in run.text else VALUES[:3] if "c + d" in run.text else VALUES
        names = sorted({update.relation for epoch in run.epochs for update in epoch}) or list(BASE)
        prepared = prepare(run.program)
        rng = Random(seed)
        with warnings.catch_warnings(), kept(tables):
            warnings.simplefilter("ignore")
            for _ in range(SEQUENCES):
                sequence = list(epochs(rng, names, rng.choice(choices)))
                base: Facts = {}
                followed: Followed | None = None
                for epoch in sequence:
                    follow(base, epoch)
                    try:
                        expected = evaluate(run.program, base, limits=LIMITS)
                    except (RunawayError, FunctionError):  # negative numbers in a sum inside recursion
                        break
                    if followed is None:  # at the beginning, half of them are given as facts
                        as_facts = rng.random() < 0.5
                        followed = Followed(prepared, base if as_facts else None)
                        if not as_facts:
                            followed.apply(epoch)
                    else:
                        followed.apply(epoch)
                    followed.check(expected)
                else:
                    count_sequence()

    match()
