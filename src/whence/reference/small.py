"""Evaluation of so little that a faster evaluator would take longer to start.

The engine brings compiled loops with it, and loading them takes as long as a few ten thousand steps of this evaluator. What
ends within that is evaluated here, with the same result; what does not is left to the engine as if nothing had happened.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping

from whence.lang.program import Program, counter_in
from whence.lang.types import Tuple
from whence.limits import Limits, OnRound, RunawayError
from whence.reference.evaluate import evaluate

MOST_FACTS = 1000
# How long is tried, in seconds: less than what would be saved.
PATIENCE = 0.15


def evaluate_if_small(
    program: Program, facts: Mapping[str, Collection[Tuple]], *, on_round: OnRound | None = None
) -> dict[str, set[Tuple]] | None:
    """Every relation of the program; None if that is more than a little work, or not for sure what the engine would give."""
    if not _is_suitable(program) or sum(map(len, facts.values())) > MOST_FACTS:
        return None
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        try:
            views = evaluate(program, facts, limits=Limits(timeout=PATIENCE, within_memory=False), on_round=on_round)
        except RunawayError:
            return None
    for each in met:
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return views


def _is_suitable(program: Program) -> bool:
    """Python functions should not be called twice, and counters depend on the order of evaluation."""
    return not program.functions and not any(map(counter_in, program.rules))
