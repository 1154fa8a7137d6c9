"""Answers as plain data, for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from math import isfinite

from whence.io.changes import Update
from whence.io.json_text import Json
from whence.io.values import format_float
from whence.lang.deep import Steps, without_recursion
from whence.lang.program import Program
from whence.lang.scalars import text_of
from whence.lang.types import Value, Variant
from whence.provenance.attempts import Attempt
from whence.provenance.graph import DerivationGraph, Fact
from whence.provenance.probability import Probability
from whence.provenance.proofs import Proof
from whence.provenance.responsibility import Contribution
from whence.provenance.show import rule_texts, show_fact, show_value
from whence.provenance.tree import rules_of
from whence.provenance.whatif import Dependence
from whence.provenance.why import Why
from whence.provenance.whynot import WhyNot

JsonObject = dict[str, object]


def fact_to_json(fact: Fact) -> JsonObject:
    return {"relation": fact.relation, "tuple": [_to_json(each) for each in fact.tuple], "text": show_fact(fact)}


def _to_json(value: Value) -> Json:
    """As in the records of updates and changes: branches, and numbers that JSON has no form for, are text."""
    return without_recursion(_steps_to_json(value))


def _steps_to_json(value: Value) -> Steps[Json]:
    match value:
        case Variant():
            return show_value(value)
        case tuple():
            parts = []
            for each in value:
                parts.append((yield _steps_to_json(each)))
            return parts
        case float() if not isfinite(value):
            return format_float(value)
        case date() | Decimal():
            return text_of(value)
        case _:
            return value


def proof_to_json(proof: Proof, program: Program) -> JsonObject:
    """The proof as steps, premises before what they prove; the last step proves the fact. Premises are numbers of steps."""
    numbers: dict[int, int] = {}
    steps: list[JsonObject] = []
    for part in proof:
        numbers[id(part)] = len(steps)
        step: JsonObject = fact_to_json(part.fact)
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
        for rule in rule_texts(program, rules_of(proof))
    ]
    return {"height": proof.height, "steps": steps, "rules": rules}


def graph_to_json(graph: DerivationGraph, program: Program) -> JsonObject:
    facts = sorted(graph.facts, key=show_fact)
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
        else {"reason": graph.cut.reason, "facts": [numbers[fact] for fact in sorted(graph.cut.facts, key=show_fact)]},
    }


def why_to_json(answer: Why) -> JsonObject:
    found = [proof_to_json(proof, answer.program) for proof in answer.shown]
    return {"proofs": found, "is_smallest": answer.is_certain}


def how_to_json(fact: Fact, values: Mapping[str, str | None]) -> JsonObject:
    """Values by semiring; None for what was not found in time."""
    return fact_to_json(fact) | {"values": dict(values)}


def whynot_to_json(answer: WhyNot) -> JsonObject:
    return {
        "fact": fact_to_json(answer.fact),
        "beaten_by": [fact_to_json(each) for each in answer.beaten_by],
        "attempts": [_attempt_to_json(each) for each in answer.attempts],
        "repairs": [
            {
                "insert": [fact_to_json(fact) for fact in each.insertions],
                "delete": [fact_to_json(fact) for fact in each.deletions],
            }
            for each in answer.repairs
        ],
        "bound": answer.bound or None,
    }


def _attempt_to_json(attempt: Attempt) -> JsonObject:
    return {
        "rule": attempt.rule,
        "found": [fact_to_json(fact) for fact in attempt.found],
        "missing": [show_fact(pattern) for pattern in attempt.missing],
        "present": [fact_to_json(fact) for fact in attempt.present],
        "failed": list(attempt.failed),
    }


def changes_to_json(changes: Iterable[Update]) -> JsonObject:
    return {"changes": [{"op": op, **fact_to_json(Fact(relation, row))} for op, relation, row, _ in changes]}


def ranking_to_json(ranking: Iterable[Dependence]) -> JsonObject:
    listed = [
        fact_to_json(each.fact) | {"lost": each.lost, "changed": each.changed, "cost": each.cost} for each in ranking
    ]
    return {"facts": listed}


def probability_to_json(fact: Fact, answer: Probability) -> JsonObject:
    return fact_to_json(fact) | {"low": answer.low, "high": answer.high, "exact": answer.is_exact}


def contributions_to_json(fact: Fact, found: Iterable[Contribution]) -> JsonObject:
    listed = [
        fact_to_json(each.fact) | {"responsibility": each.responsibility, "shapley": each.shapley, "error": each.error}
        for each in found
    ]
    return fact_to_json(fact) | {"contributions": listed}
