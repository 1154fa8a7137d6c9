"""Proofs as trees of lines, and derivation graphs as lists of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whence.lang.program import Program
from whence.provenance.derive import EQREL
from whence.provenance.graph import Derivation, DerivationGraph, Fact
from whence.provenance.proofs import Proof
from whence.provenance.show import absences, show_aggregate, show_fact, show_rules


@dataclass(frozen=True, slots=True)
class _Line:
    """What stands on a line, and the lines below it."""

    text: str
    parts: tuple[Proof | _Line, ...] = ()


def show_proofs(proofs: Sequence[Proof], program: Program) -> str:
    """Proofs as indented trees, and the rules that they use."""
    rules = list(show_rules(program, {rule for proof in proofs for rule in rules_of(proof)}))
    trees = ["\n".join(_tree(proof)) + ("" if proof.firing else "  base") for proof in proofs]
    return "\n\n".join([*trees, "\n".join(rules)] if rules else trees)


def rules_of(proof: Proof) -> set[str]:
    return {part.firing.rule for part in proof if part.firing is not None}


def parts_of(proof: Proof) -> tuple[Proof, ...]:
    """The proofs below one, with steps of an equivalence's closure run together: a chain of pairs that rules derive."""
    if proof.firing is None or proof.firing.rule != EQREL:
        return proof.premises
    chain: list[Proof] = []
    pending = list(reversed(proof.premises))
    while pending:
        part = pending.pop()
        if part.firing is not None and part.firing.rule == EQREL:
            pending += reversed(part.premises)
        else:
            chain.append(part)
    return tuple(chain)


def _tree(root: Proof) -> Iterator[str]:
    shown: set[Fact] = set()
    stack: list[tuple[Proof | _Line, str, str]] = [(root, "", "")]
    while stack:
        part, first, rest = stack.pop()
        line = part if isinstance(part, _Line) else _line(part, shown)
        yield first + line.text
        last = len(line.parts) - 1
        below = [
            (each, rest + ("└─ " if at == last else "├─ "), rest + ("   " if at == last else "│  "))
            for at, each in enumerate(line.parts)
        ]
        stack += reversed(below)


def _line(proof: Proof, shown: set[Fact]) -> _Line:
    text = show_fact(proof.fact)
    if proof.firing is None:
        return _Line(text)
    if proof.fact in shown:
        return _Line(f"{text}  as above")
    shown.add(proof.fact)
    firing = proof.firing
    missing = tuple(_Line(each) for each in absences(firing))
    if not firing.aggregates:
        return _Line(f"{text}  by {firing.rule}", (*parts_of(proof), *missing))
    groups: list[_Line] = []
    at = len(firing.body)
    for each in firing.aggregates:
        groups.append(_Line(show_aggregate(each), proof.premises[at : at + len(each.facts)]))
        at += len(each.facts)
    return _Line(f"{text}  by {firing.rule}", (*proof.premises[: len(firing.body)], *missing, *groups))


def show_graph(graph: DerivationGraph, program: Program) -> str:
    """Each fact with the ways it is derived, and the rules."""
    lines: list[str] = []
    cut = graph.cut.facts if graph.cut else frozenset()
    for fact, firings in graph.derivations.items():
        if firings:
            lines.append(show_fact(fact) + ("  base" if fact in graph.base else ""))
            lines += [f"  by {firing.rule}: {_used(firing)}" for firing in firings]
    lines += [f"{show_fact(fact)}  not looked into" for fact in sorted(cut, key=show_fact)]
    leaves = [show_fact(fact) for fact in sorted(graph.base, key=show_fact) if not graph.derivations.get(fact)]
    rules = {firing.rule for firings in graph.derivations.values() for firing in firings}
    return "\n".join([*lines, *(f"{leaf}  base" for leaf in leaves), "", *show_rules(program, rules)])


def _used(firing: Derivation) -> str:
    groups = [f"{show_aggregate(each)} over {len(each.facts)} facts" for each in firing.aggregates]
    return ", ".join([*map(show_fact, firing.body), *absences(firing), *groups])
