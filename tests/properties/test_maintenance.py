"""Views are exact (I1) and changes add up (I2), after every epoch, for every strategy."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from tests.properties.counting import count_sequence
from tests.properties.excuses import LIMITS, LOOSE, follow
from tests.properties.programs import DECLARATIONS, SHAPES, Run, runs

from whence import Session, Update, load
from whence.backends.local import blocks, gathered, portions, spreading
from whence.lang.types import Tuple
from whence.limits import RunawayError
from whence.prepared import STRATEGIES, Prepared, prepare
from whence.reference import evaluate

# `make test-long` asks for more.
EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "100"))
# How tables are kept: as they choose; else portions of a recursion, however small, are followed one by one, too.
TABLES = ("", "rows", "blocks", "changing")


@contextmanager
def kept(tables: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "FORCED", tables)
        if tables:
            for name, value in (("LARGE", 1), ("MANY", 2), ("LITTLE", 0)):
                patch.setattr(portions, name, value)
            patch.setattr(gathered, "MANY", 1)
            for name in ("PORTION", "LATER_PORTION", "FIRST_PORTIONS"):
                patch.setattr(spreading, name, 1)
        yield


class Followed:
    """A session, and the sum of the changes it has told of."""

    def __init__(self, prepared: Prepared, facts: Mapping[str, Iterable[Tuple]] | None = None) -> None:
        self.session = Session(prepared, facts=facts, limits=LOOSE)
        self.total: dict[str, set[Tuple]] = {}
        self.add_up(self.session.initial)

    def apply(self, epoch: Iterable[Update]) -> None:
        self.add_up(self.session.apply(epoch))

    def add_up(self, changes: Iterable[Update]) -> None:
        for op, relation, row, _ in changes:
            rows = self.total.setdefault(relation, set())
            assert (row in rows) == (op == "-"), "a change that changes nothing"
            (rows.remove if op == "-" else rows.add)(row)

    def check(self, expected: dict[str, set[Tuple]]) -> None:
        assert self.session.views() == expected
        assert {name: self.total.get(name, set()) for name in expected} == expected


def check_run(run: Run) -> None:
    base: dict[str, set[Tuple]] = {}
    recursive = any(stratum.recursive for stratum in run.program.strata)
    try:
        evaluate(run.program, base, limits=LIMITS)
    except RunawayError:
        return
    chosen = [strategy for strategy in STRATEGIES if strategy != "counting" or not recursive]
    followed = [Followed(prepare(run.program, strategy=strategy)) for strategy in chosen]
    for epoch in run.epochs:
        follow(base, epoch)
        try:
            expected = evaluate(run.program, base, limits=LIMITS)
        except RunawayError:
            return
        for each in followed:
            each.apply(epoch)
            each.check(expected)
        if epoch is run.epochs[0]:
            followed.append(Followed(prepare(run.program), base))
            followed[-1].check(expected)
    count_sequence()


@pytest.mark.parametrize("tables", TABLES)
def test_views_and_changes_match_the_reference(tables: str) -> None:
    few = EXAMPLES if "WHENCE_EXAMPLES" in os.environ or not tables else EXAMPLES // 4

    @settings(
        max_examples=few, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
    )
    @given(run=runs())
    def match(run: Run) -> None:
        with warnings.catch_warnings(), kept(tables):
            warnings.simplefilter("ignore")
            check_run(run)

    match()


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_a_program(shape: str) -> None:
    words = {"OUT": "s", "BINARY": "e", "UNARY": "f", "TERNARY": "w"}
    text = SHAPES[shape]
    for word, name in words.items():
        text = text.replace(word, name)
    load(DECLARATIONS + text)
