"""Without what nobody asks for: relations that no wanted one depends on go, and their rules with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from whence.lang.program import Program, Rule, Stratum, Subsumption
from whence.lang.strata import dependencies


def keep_needed(program: Program, wanted: frozenset[str]) -> Program:
    """The program for the wanted relations. Base relations stay, even if nothing reads them: they take updates."""
    reads: dict[str, set[str]] = {}
    everything: list[Rule | Subsumption] = [*program.rules, *program.subsumptions]
    for each in everything:
        for dependency in dependencies(each):
            reads.setdefault(dependency.head, set()).add(dependency.body)
    needed = needed_for(wanted, reads)
    if needed >= program.relations.keys():
        return program
    kept = needed.union(program.base_relations)
    strata = []
    for stratum in program.strata:
        if needed.issuperset(stratum.relations):
            strata.append(stratum)
        else:
            strata += [Stratum((name,)) for name in stratum.relations if name in kept]
    return replace(
        program,
        relations={name: relation for name, relation in program.relations.items() if name in kept},
        rules=tuple(rule for rule in program.rules if rule.head.relation in needed),
        subsumptions=tuple(each for each in program.subsumptions if each.dominated.relation in needed),
        strata=tuple(strata),
        transfers=tuple(transfer for transfer in program.transfers if transfer.relation in kept),
    )


def needed_for(wanted: Iterable[str], reads: Mapping[str, Iterable[str]]) -> set[str]:
    """The wanted relations and all that they depend on, given what each of them reads."""
    needed: set[str] = set()
    pending = list(wanted)
    while pending:
        name = pending.pop()
        if name not in needed:
            needed.add(name)
            pending += reads.get(name, ())
    return needed
