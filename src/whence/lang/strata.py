"""Strata: which relations depend on each other, and in what order they can be evaluated.

Negation and aggregation inside a cycle of relations are accepted in two cases: all aggregates are monotone (`monotone.py`),
or an argument counts stages so that nothing depends on its own negation at the same stage (`stages.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from whence.lang.diagnostics import (
    AggregateCycle,
    BadChoice,
    Diagnostic,
    NegationCycle,
    RecursiveCounter,
    RoundlessRule,
)
from whence.lang.graph import components
from whence.lang.monotone import NotMonotone, check_monotone
from whence.lang.program import Aggregation, Apply, Atom, Literal, Negation, Relation, Rule, Stratum, Subsumption
from whence.lang.stages import find_stages
from whence.lang.tree import Span, walk

MAX_STEPS = 10


@dataclass(frozen=True, slots=True)
class Dependency:
    """`head` depends on `body` through one literal of a rule; `strict` if through negation or an aggregate."""

    head: str
    body: str
    rule: Rule | Subsumption
    strict: str | None
    span: Span


def dependencies(rule: Rule | Subsumption) -> Iterator[Dependency]:
    head = rule.head.relation if isinstance(rule, Rule) else rule.dominated.relation
    for literal in rule.body:
        for relation, strict, span in _reads(literal, None):
            yield Dependency(head, relation, rule, strict, span)


def _reads(literal: Literal, strict: str | None) -> Iterator[tuple[str, str | None, Span]]:
    match literal:
        case Atom(relation=relation):
            yield relation, strict, literal.span
        case Negation(atom=atom):
            yield atom.relation, "negation", literal.span
        case Aggregation(bodies=bodies):
            for body in bodies:
                for inner in body:
                    # A negation inside an aggregate stays one: no aggregate is monotone in what it negates.
                    for relation, inside, span in _reads(inner, literal.op):
                        yield relation, inside, span if inside == "negation" else literal.span


def stratify(
    relations: Mapping[str, Relation],
    rules: Iterable[Rule],
    subsumptions: Iterable[Subsumption],
    found: list[Diagnostic],
) -> tuple[Stratum, ...]:
    edges: dict[str, list[Dependency]] = {name: [] for name in relations}
    everything: list[Rule | Subsumption] = [*rules, *subsumptions]
    for rule in everything:
        if rule.body:
            for dependency in dependencies(rule):
                if dependency.head in edges and dependency.body in edges:
                    edges[dependency.head].append(dependency)
    strata = []
    for component in components({head: [each.body for each in out] for head, out in edges.items()}):
        inside = set(component)
        internal = [each for head in component for each in edges[head] if each.body in inside]
        strata.append(_stratum(component, internal, relations, found))
    _check_rounds(rules, subsumptions, strata, found)
    return tuple(strata)


def _check_rounds(
    rules: Iterable[Rule], subsumptions: Iterable[Subsumption], strata: list[Stratum], found: list[Diagnostic]
) -> None:
    """Rounds are counted where a recursion goes on by adding tuples alone."""
    subsumed = {each.dominated.relation for each in subsumptions}
    for rule in rules:
        if not _counts_rounds(rule):
            continue
        stratum = next(each for each in strata if rule.head.relation in each.relations)
        reads = {literal.relation for literal in rule.body if isinstance(literal, Atom)}
        advice = ""
        if not reads.intersection(stratum.relations):
            advice = "it counts the rounds of a recursion: use it in a recursive rule"
        elif stratum.monotone or stratum.stages:
            advice = "count in an argument: this recursion has aggregates or negation"
        elif subsumed.intersection(stratum.relations):
            advice = "count in an argument: this recursion has subsumption"
        if advice:
            found.append(RoundlessRule(rule.span, advice=advice))
    found += [
        RoundlessRule(each.span, advice="subsumption goes by the tuples alone")
        for each in subsumptions
        if _counts_rounds(each)
    ]


def _counts_rounds(rule: Rule | Subsumption) -> bool:
    return any(isinstance(part, Apply) and part.functor == "recursive_iteration_cnt" for part in walk(rule))


def _stratum(
    component: tuple[str, ...], internal: list[Dependency], relations: Mapping[str, Relation], found: list[Diagnostic]
) -> Stratum:
    if not internal:
        return Stratum(component)
    rules = _unique(each.rule for each in internal)
    for rule in rules:
        if any(isinstance(part, Apply) and part.functor == "autoinc" for part in walk(rule)):
            head = rule.head if isinstance(rule, Rule) else rule.dominated
            found.append(RecursiveCounter(rule.span, relation=head.relation))
    strict = [each for each in internal if each.strict]
    _refuse_choices(component, rules, strict, relations, found)
    if not strict:
        return Stratum(component, recursive=True)
    stages = find_stages(component, rules, relations)
    if stages is not None:
        return Stratum(component, recursive=True, stages=stages.columns, groups=stages.groups)
    negations = [each for each in strict if each.strict == "negation"]
    if negations:
        first = negations[0]
        advice = (
            "negate a relation that does not depend on this one, "
            "or count stages in an argument so that each stage only negates earlier ones"
        )
        found.append(
            NegationCycle(
                first.span,
                relation=first.head,
                cycle=_cycle(first, internal),
                advice=advice,
                related=_notes(first, internal),
            )
        )
        return Stratum(component, recursive=True)
    try:
        check_monotone(set(component), rules)
    except NotMonotone as refusal:
        first = strict[0]
        found.append(
            AggregateCycle(
                refusal.span,
                relation=first.head,
                cycle=_cycle(first, internal),
                reason=str(refusal),
                related=_notes(first, internal),
            )
        )
    return Stratum(component, recursive=True, monotone=True)


def _refuse_choices(
    component: tuple[str, ...],
    rules: list[Rule | Subsumption],
    strict: list[Dependency],
    relations: Mapping[str, Relation],
    found: list[Diagnostic],
) -> None:
    """A choice, once made, stays; what subsumption and recursive aggregates derive may go again."""
    aggregates = any(each.strict != "negation" for each in strict)
    what = "subsumption" if any(isinstance(rule, Subsumption) for rule in rules) else "a recursive aggregate"
    for name in component if aggregates or what == "subsumption" else ():
        if relations[name].choices:
            problem = f"the choice-domain of {name} does not go together with {what}"
            advice = "choose in a relation that is derived from this one"
            found.append(BadChoice(relations[name].span, problem=problem, advice=advice))


def _unique(rules: Iterable[Rule | Subsumption]) -> list[Rule | Subsumption]:
    return list({id(rule): rule for rule in rules}.values())


def _path(first: Dependency, internal: list[Dependency]) -> list[Dependency]:
    """A shortest way from the body of a dependency back to its head."""
    ways: dict[str, list[Dependency]] = {first.body: [first]}
    frontier = [first.body]
    while first.head not in ways and frontier:
        following = []
        for relation in frontier:
            for each in internal:
                if each.head == relation and each.body not in ways:
                    ways[each.body] = [*ways[relation], each]
                    following.append(each.body)
        frontier = following
    return [first] if first.head == first.body else ways.get(first.head, [first])


def _cycle(first: Dependency, internal: list[Dependency]) -> str:
    """The cycle as `a <- !b <- a`, each step with the rule that makes it."""
    path = _path(first, internal)
    steps = [f"{_read(each)} ({each.rule.name})" for each in path]
    if len(steps) > MAX_STEPS:
        steps[MAX_STEPS // 2 : -MAX_STEPS // 2] = ["…"]
    return " <- ".join([first.head, *steps])


def _notes(first: Dependency, internal: list[Dependency]) -> list[tuple[Span, str]]:
    path = _path(first, internal)[1:MAX_STEPS]
    return [(each.span, f"{each.head} depends on {_read(each)} in rule {each.rule.name}") for each in path]


def _read(dependency: Dependency) -> str:
    if dependency.strict is None:
        return dependency.body
    return f"!{dependency.body}" if dependency.strict == "negation" else f"{dependency.strict} of {dependency.body}"
