"""Facts of every conformance program are proved, whatever the rules use, and the proofs are checked."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from tests.conformance.test_conformance import CASES

from whence import Session, load_file
from whence.cli.functions import load_functions
from whence.io import read_relation
from whence.lang.types import Tuple
from whence.provenance.check import Checker
from whence.provenance.derive import Deriver
from whence.provenance.graph import Fact
from whence.provenance.proofs import smallest_proof

SAMPLE = 3
SLOW = {"collatz", "sieve"}  # a search from the head finds no index to use
REFUSED = {"rounds_are_counted"}  # which row came in which round is not kept: test_proofs


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.name not in SLOW | REFUSED],
    ids=lambda case: f"{case.parent.name}/{case.name}",
)
def test_facts_have_proofs_that_check(case: Path) -> None:
    (path,) = case.glob("program.*")
    functions = case / "functions.py"
    program = load_file(path, functions=load_functions(functions if functions.exists() else None))
    if any(relation.window or relation.lifetime for relation in program.relations.values()):
        pytest.skip("windows forget facts that the checker is given")
    facts: dict[str, set[Tuple]] = {}
    for transfer in program.transfers_of("input"):
        relation = program.relations[transfer.relation]
        facts.setdefault(relation.name, set()).update(read_relation(transfer, relation, program.types, case / "facts"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = Session(program, facts=facts)
        checker = Checker(program, facts)
        deriver = Deriver(session)
        for name in program.relations:
            for row in sorted(session.relation(name), key=repr)[:SAMPLE]:
                proof, is_certain = smallest_proof(deriver, Fact(name, row))
                checker.check(proof)
                assert is_certain
