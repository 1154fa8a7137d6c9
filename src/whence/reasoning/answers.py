"""What a question about two queries is answered with, and how a counter-example is confirmed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from whence.lang.program import Var
from whence.lang.types import Tuple, Value
from whence.limits import Limits, RunawayError
from whence.reasoning.cases import Fact, Frozen
from whence.reasoning.mappings import TooHard
from whence.reasoning.queries import Query
from whence.reference.annotated import evaluate_annotated
from whence.semiring import Semiring
from whence.semiring.tokens import show_token

PATIENCE = 20.0  # seconds that confirming one counter-example may take


class Verdict(StrEnum):
    YES = "yes"
    NO = "no"
    UNDECIDED = "not decided"


@dataclass(frozen=True)
class Mapped:
    """A part of one query goes into a part of another: what each variable becomes, and in which case of equal or ordered
    variables, if there are several."""

    source: str
    target: str
    terms: tuple[tuple[str, str], ...]
    case: str = ""


@dataclass(frozen=True)
class Counterexample:
    """A database, and a tuple whose annotations in the two queries are not as asked."""

    facts: Mapping[Fact, Any]
    row: Tuple
    left: Any
    right: Any


@dataclass(frozen=True)
class Answer:
    """`reason` says what decided it, or why it is not decided."""

    verdict: Verdict
    reason: str
    mappings: tuple[Mapped, ...] = ()
    counterexample: Counterexample | None = None


def confirmed(
    left: Query, right: Query, semiring: Semiring[Any], facts: Mapping[Fact, Any], row: Tuple, *, both_ways: bool
) -> Counterexample | None:
    """The counter-example, if the reference evaluator finds that it is one. Raises TooHard if that takes too long."""
    values = []
    for query in (left, right):
        given: dict[str, set[Tuple]] = {name: set() for name in query.program.relations}
        for name, values_of in facts:
            if name in given:
                given[name].add(values_of)
        try:
            views = evaluate_annotated(
                query.program,
                given,
                semiring,
                lambda name, values_of: facts.get((name, values_of)),
                rules=negative_rules(query, semiring),
                limits=Limits(timeout=PATIENCE),
            )
        except RunawayError:
            raise TooHard(f"evaluating a counter-example took more than {PATIENCE:g} s") from None
        values.append(views[query.relation].get(row, semiring.zero))
    one, other = values
    refuted = one != other if both_ways else not semiring.leq(one, other)
    return Counterexample(facts, row, one, other) if refuted else None


def negative_rules(query: Query, semiring: Semiring[Any]) -> dict[str, Any]:
    """What the rules count for whose derivations are taken away."""
    if not query.minus:
        return {}
    return dict.fromkeys(query.minus, semiring.minus(semiring.zero, semiring.one))


def mapped(source: str, frozen: Frozen, binding: Mapping[Var, Value], *, only_case: bool) -> Mapped:
    """A mapping into a frozen part, in terms of the part's variables."""
    names: dict[Value, list[str]] = {}
    for variable, value in frozen.values.items():
        names.setdefault(value, []).append(variable.name)
    terms = tuple((each.name, names.get(value, [_literal(value)])[0]) for each, value in binding.items())
    return Mapped(source, frozen.part.rule, terms, "" if only_case else case_of(frozen))


def case_of(frozen: Frozen) -> str:
    """Values that show the case."""
    return ", ".join(f"{variable.name} = {_literal(value)}" for variable, value in frozen.values.items())


def _literal(value: Value) -> str:
    return show_token(("", (value,)))[1:-1]
