"""A proof as a tree of lines, and as plain data for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from whence.io.json_text import Json
from whence.io.values import format_float
from whence.lang.program import Program
from whence.lang.types import Value, Variant
from whence.provenance.derive import EQREL
from whence.provenance.graph import Derivation, DerivationGraph, Fact
from whence.provenance.proofs import Proof
from whence.provenance.show import absences, rule_texts, show_aggregate, show_fact, show_rules, show_value

JsonFact = dict[str, object]


@dataclass(frozen=True, slots=True)
class _Line:
    """What stands on a line, and the lines below it."""

    text: str
    parts: tuple[Proof | _Line, ...] = ()


def show_proofs(proofs: Sequence[Proof], program: Program) -> str:
    """Proofs as indented trees, and the rules that they use."""
    rules = list(show_rules(program, {rule for proof in proofs for rule in _rules_of(proof)}))
    trees = ["\n".join(_tree(proof)) + ("" if proof.firing else "  base") for proof in proofs]
    return "\n\n".join([*trees, "\n".join(rules)] if rules else trees)


def _rules_of(proof: Proof) -> set[str]:
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


# -- JSON


def fact_to_json(fact: Fact) -> JsonFact:
    return {"relation": fact.relation, "tuple": [_to_json(each) for each in fact.tuple], "text": show_fact(fact)}


def _to_json(value: Value) -> Json:
    """As in the records of updates and changes: branches, and numbers that JSON has no form for, are text."""
    match value:
        case Variant():
            return show_value(value)
        case tuple():
            return [_to_json(each) for each in value]
        case float() if not isfinite(value):
            return format_float(value)
        case _:
            return value


def proof_to_json(proof: Proof, program: Program) -> dict[str, object]:
    """The proof as steps, premises before what they prove; the last step proves the fact. Premises are numbers of steps."""
    numbers: dict[int, int] = {}
    steps: list[dict[str, object]] = []
    for part in proof:
        numbers[id(part)] = len(steps)
        step: dict[str, object] = fact_to_json(part.fact)
        if part.firing is not None:
            firing = part.firing
            step |= {"rule": firing.rule, "premises": [numbers[id(each)] for each in part.premises]}
            if firing.absent:
                step["absent"] = [show_fact(each) for each in firing.absent]
            if firing.aggregates:
                step["aggregates"] = [{"op": each.op, "value": _to_json(each.value)} for each in firing.aggregates]
        steps.append(step)
    rules = [
        {"name": rule.name, "file": rule.file, "line": rule.line, "text": rule.text}
        for rule in rule_texts(program, _rules_of(proof))
    ]
    return {"height": proof.height, "steps": steps, "rules": rules}


def show_graph(graph: DerivationGraph, program: Program) -> str:
    """Each fact with the ways it is derived, and the rules."""
    lines: list[str] = []
    cut = graph.cut.facts if graph.cut else frozenset()
    for fact, firings in graph.derivations.items():
        if firings:
            lines.append(show_fact(fact) + ("  base" if fact in graph.base else ""))
            lines += [f"  by {firing.rule}: {_used(firing)}" for firing in firings]
    lines += [f"{show_fact(fact)}  not looked into" for fact in sorted(cut, key=repr)]
    leaves = [show_fact(fact) for fact in sorted(graph.base, key=repr) if not graph.derivations.get(fact)]
    rules = {firing.rule for firings in graph.derivations.values() for firing in firings}
    return "\n".join([*lines, *(f"{leaf}  base" for leaf in leaves), "", *show_rules(program, rules)])


def _used(firing: Derivation) -> str:
    groups = [f"{show_aggregate(each)} over {len(each.facts)} facts" for each in firing.aggregates]
    return ", ".join([*map(show_fact, firing.body), *absences(firing), *groups])


def graph_to_json(graph: DerivationGraph, program: Program) -> dict[str, object]:
    facts = sorted(graph.facts, key=repr)
    numbers = {fact: at for at, fact in enumerate(facts)}
    firings = [firing for each in graph.derivations.values() for firing in each]
    return {
        "roots": [numbers[root] for root in graph.roots],
        "facts": [fact_to_json(fact) | {"base": fact in graph.base} for fact in facts],
        "derivations": [
            {
                "rule": firing.rule,
                "head": numbers[firing.head],
                "body": [numbers[fact] for fact in firing.body],
                "absent": [show_fact(each) for each in firing.absent],
                "aggregates": [
                    {"op": each.op, "value": _to_json(each.value), "facts": [numbers[fact] for fact in each.facts]}
                    for each in firing.aggregates
                ],
            }
            for firing in firings
        ],
        "rules": [
            {"name": rule.name, "file": rule.file, "line": rule.line, "text": rule.text}
            for rule in rule_texts(program, {firing.rule for firing in firings})
        ],
        "cut": None
        if graph.cut is None
        else {"reason": graph.cut.reason, "facts": [numbers[fact] for fact in sorted(graph.cut.facts, key=repr)]},
    }
