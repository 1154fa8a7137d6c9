"""Parts that ship each other what they need have the same views and changes as a session, whatever the program."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.properties.counting import count_sequence
from tests.properties.excuses import LIMITS, LOOSE, follow
from tests.properties.programs import Run, runs
from tests.teams import Team

from whence import Changes, Session
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.limits import RunawayError
from whence.plan.deal import deal
from whence.plan.partition import NotPartitionable
from whence.reference import evaluate

EXAMPLES = min(int(os.environ.get("WHENCE_EXAMPLES", "60")), 4_000)  # each makes several sessions


def as_sets(changes: Changes, names: tuple[str, ...]) -> Mapping[str, tuple[set[Tuple], set[Tuple]]]:
    return {name: (set(changes.inserted.get(name, ())), set(changes.deleted.get(name, ()))) for name in names}


def check_parts(run: Run, program: Program, parts: int) -> None:
    """The same changes per epoch as one process, and the views that the reference has."""
    names = tuple(program.relations)
    try:
        how = deal(program, names)
    except NotPartitionable:
        assume(False)
    base: dict[str, set[Tuple]] = {}
    try:
        evaluate(program, base, limits=LIMITS)
    except RunawayError:
        return
    session, team = Session(program, limits=LOOSE), Team(how, parts, names, LOOSE)
    assert as_sets(team.apply([]), names) == as_sets(session.initial, names)
    for epoch in run.epochs:
        follow(base, epoch)
        try:
            expected = evaluate(program, base, limits=LIMITS)
        except RunawayError:
            return
        changes = team.apply(epoch)
        assert as_sets(changes, names) == as_sets(session.apply(epoch), names)
        assert team.views() == {name: expected[name] for name in names}
    count_sequence()


@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(run=runs(), parts=st.integers(2, 4))
def test_parts_agree_with_one_process(run: Run, parts: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_parts(run, run.program, parts)


@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(run=runs(), parts=st.integers(2, 4), seed=st.integers(0, 10**6))
def test_parts_agree_with_one_process_wherever_relations_are_placed(run: Run, parts: int, seed: int) -> None:
    """Some relations are marked, at any of their columns, or as everywhere."""
    random = Random(seed)
    relations = dict(run.program.relations)
    for name, relation in relations.items():
        if relation.fields and random.random() < 0.5:
            relations[name] = replace(relation, location=random.randrange(relation.arity))
        elif random.random() < 0.2:
            relations[name] = replace(relation, everywhere=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_parts(run, replace(run.program, relations=relations), parts)
