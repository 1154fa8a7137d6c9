"""Every conformance program on the incremental engine: its answer is the reference's, forwards and backwards."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import pytest
from tests.conformance.test_conformance import CASES

from whence import Session, Update, load_file
from whence.cli.functions import load_functions
from whence.io import read_relation
from whence.lang.types import Tuple
from whence.limits import Limits, RunawayError
from whence.reference import evaluate

LIMITS = Limits(max_rounds=400)
PARTS = 4


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_engine_agrees_while_facts_come_and_go(case: Path) -> None:
    (path,) = case.glob("program.*")
    functions = case / "functions.py"
    program = load_file(path, functions=load_functions(functions if functions.exists() else None))
    if any(relation.window or relation.lifetime for relation in program.relations.values()):
        pytest.skip("windows forget facts that a one-shot evaluation keeps: test_windows")
    facts: dict[str, set[Tuple]] = {}
    for transfer in program.transfers_of("input"):
        relation = program.relations[transfer.relation]
        facts.setdefault(relation.name, set()).update(read_relation(transfer, relation, program.types, case / "facts"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        full = evaluate(program, facts, limits=LIMITS)
        try:
            empty = evaluate(program, {}, limits=LIMITS)
        except RunawayError:
            pytest.skip("without its facts this program does not end")
        session = Session(program)
        assert session.views() == empty
        session.apply(Update("+", name, row) for name, rows in facts.items() for row in rows)
        assert session.views() == full
        updates = [Update("-", name, row) for name, rows in facts.items() for row in sorted(rows, key=repr)]
        random.Random(1).shuffle(updates)
        for part in range(PARTS):
            session.apply(updates[part::PARTS])
        assert session.views() == empty
