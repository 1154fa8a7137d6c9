"""Rows of tables without what tells equal ones apart: the numbers of copies."""

from __future__ import annotations

from dataclasses import replace

from whence.lang.program import Program
from whence.provenance.graph import Absence, Aggregated, Derivation, DerivationGraph, Fact
from whence.provenance.proofs import Proof


class Rows:
    """What facts read as: a copy of a table's row is that row, and every other fact is itself."""

    def __init__(self, program: Program) -> None:
        self._tables: dict[str, str] = {}
        for name, relation in program.relations.items():
            if relation.table is not None and relation.table.copies is not None:
                self._tables[relation.table.copies] = name
                if relation.table.rows is not None:
                    self._tables[relation.table.rows] = name

    def __bool__(self) -> bool:
        return bool(self._tables)

    def table(self, relation: str) -> str:
        """The table that a relation stands behind, or the relation itself."""
        return self._tables.get(relation, relation)

    def of(self, fact: Fact) -> Fact:
        table = self._tables.get(fact.relation)
        return fact if table is None else Fact(table, fact.tuple[:-1])

    def of_absence(self, absence: Absence) -> Absence:
        table = self._tables.get(absence.relation)
        return absence if table is None else Absence(table, absence.pattern[:-1])

    def of_firing(self, firing: Derivation) -> Derivation:
        aggregates = (Aggregated(each.op, each.value, tuple(map(self.of, each.facts))) for each in firing.aggregates)
        absent = tuple(map(self.of_absence, firing.absent))
        return Derivation(firing.rule, firing.head, tuple(map(self.of, firing.body)), absent, tuple(aggregates))


def without_copies(proof: Proof, program: Program) -> Proof:
    """The proof as it reads; what it proves is kept."""
    rows = Rows(program)
    if not rows:
        return proof
    made: dict[int, Proof] = {}
    for part in proof:
        row = rows.of(part.fact)
        if part.fact not in (row, proof.fact):
            made[id(part)] = Proof(row)
        elif part.firing is not None:
            premises = tuple(made[id(each)] for each in part.premises)
            made[id(part)] = replace(part, firing=rows.of_firing(part.firing), premises=premises)
        else:
            made[id(part)] = part
    return made[id(proof)]


def graph_without_copies(graph: DerivationGraph, program: Program) -> DerivationGraph:
    """The graph as it reads: equal rows are one fact, and so are firings that differ in copies alone."""
    rows = Rows(program)
    if not rows:
        return graph
    derivations: dict[Fact, tuple[Derivation, ...]] = {}
    for fact, firings in graph.derivations.items():
        if fact in graph.roots or rows.of(fact) == fact:
            derivations[fact] = tuple(dict.fromkeys(map(rows.of_firing, firings)))
    return DerivationGraph(graph.roots, derivations, frozenset(map(rows.of, graph.base)), graph.cut)
