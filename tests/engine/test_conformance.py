"""Every conformance program on the incremental engine: its answer is the reference's, forwards and backwards."""

from __future__ import annotations

import random
import warnings
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.conformance.test_conformance import CASES

from whence import Program, Session, Update, load_file
from whence.cli.functions import load_functions
from whence.io import read_relation
from whence.lang.program import lasting
from whence.lang.types import Tuple
from whence.limits import Limits, RunawayError
from whence.reference import evaluate

LIMITS = Limits(max_rounds=400)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_engine_agrees_while_facts_come_and_go(case: Path) -> None:
    """Windows and lifetimes have no effect in a single evaluation, so they are left out here; test_windows has them."""
    (path,) = case.glob("program.*")
    functions = case / "functions.py"
    program = lasting(load_file(path, functions=load_functions(functions if functions.exists() else None)))
    facts: dict[str, set[Tuple]] = {}
    for transfer in program.transfers_of("input"):
        relation = program.relations[transfer.relation]
        facts.setdefault(relation.name, set()).update(read_relation(transfer, relation, program.types, case / "facts"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = Session(program, facts=facts)
        full = evaluate(program, facts, limits=LIMITS)
        assert session.views() == full
        without = evaluated(program, {})
        if without is not None:
            session = Session(program)
            assert session.views() == without
            session.apply(Update("+", name, row) for name, rows in facts.items() for row in rows)
            assert session.views() == full
        gone = [Update("-", name, row) for name, rows in facts.items() for row in sorted(rows, key=repr)]
        random.Random(1).shuffle(gone)
        for part in (gone[::2], gone[1::4], gone[3::4]):
            for _, name, row, _ in part:
                facts[name].remove(row)
            expected = evaluated(program, facts)
            if expected is None:
                return  # it ends with its facts only, and has been compared as far as it does
            session.apply(part)
            assert session.views() == expected


def evaluated(program: Program, facts: Mapping[str, set[Tuple]]) -> dict[str, set[Tuple]] | None:
    """What the reference makes of it; None if it does not end."""
    try:
        return evaluate(program, facts, limits=LIMITS)
    except RunawayError:
        return None
