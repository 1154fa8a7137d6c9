"""Proofs in SQL without what tells equal rows of a table apart: the numbers of copies."""

from __future__ import annotations

from dataclasses import replace

from whence.lang.program import Program
from whence.provenance.graph import Fact
from whence.provenance.proofs import Proof


def without_copies(proof: Proof, program: Program) -> Proof:
    """The proof as it reads: a copy of a table's row is that row."""
    tables: dict[str, str] = {}
    for name, relation in program.relations.items():
        if relation.table is not None and relation.table.copies is not None:
            tables[relation.table.copies] = name
            if relation.table.rows is not None:
                tables[relation.table.rows] = name
    if not tables:
        return proof
    made: dict[int, Proof] = {}
    for part in proof:
        name, row = part.fact
        if name in tables and part.fact != proof.fact:
            made[id(part)] = Proof(Fact(tables[name], row[:-1]))
        else:
            made[id(part)] = replace(part, premises=tuple(made[id(each)] for each in part.premises))
    return made[id(proof)]
