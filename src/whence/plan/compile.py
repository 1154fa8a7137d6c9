"""A checked program to a plan: rewritten for what is wanted of it, then delta plans for every stratum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from whence.html import shown_block, shown_text
from whence.lang.program import (
    Anything,
    Atom,
    Generator,
    Program,
    Relation,
    Rule,
    Stratum,
    Var,
    counter_in,
)
from whence.lang.tree import walk
from whence.plan.ask_closures import ask_closures
from whence.plan.ask_early import ask_early
from whence.plan.delta_plans import delta_plans
from whence.plan.drop_columns import drop_columns
from whence.plan.extract_aggregates import AggregateSpec, extract_aggregates, is_extractable
from whence.plan.join_order import JoinOrder, most_bound
from whence.plan.magic import restrict_to_demand
from whence.plan.meet_halfway import meet_halfway
from whence.plan.narrow import narrow
from whence.plan.needed import keep_needed
from whence.plan.project_early import project_early
from whence.plan.project_wildcards import project_wildcards
from whence.plan.self_support import why_values_may_rest
from whence.plan.set_apart import set_apart
from whence.plan.share_joins import share_joins
from whence.plan.steps import DeltaPlan, StratumPlan


@dataclass(frozen=True)
class Plan:
    """`program` is the program as planned, with the helper relations that rewrites brought in (their names hold a `!`)."""

    program: Program
    strata: tuple[StratumPlan, ...]

    def _repr_html_(self) -> str:
        from whence.plan.describe import describe_plan  # noqa: PLC0415 - it describes these

        return shown_block(shown_text(describe_plan(self, compile_evaluation(self.program))))


class UnsuitableStrategy(ValueError):
    """A strategy that cannot maintain the program."""


# Why recursion through aggregates is left as it is in a plan for evaluating once.
AGGREGATES_INSIDE = "aggregates inside recursion"
# Rewrites for the sake of the wanted relations, in this order. The others are gone after them, or incomplete.
REWRITES: tuple[Callable[[Program, frozenset[str]], Program], ...] = (keep_needed, restrict_to_demand)
# These take apart relations that explanations would go through: for those who look at wanted rows only, and never ask why.
LEAN_REWRITES = (*REWRITES, drop_columns, ask_closures)


def restrict(program: Program, wanted: Iterable[str] | None, *, lean: bool = False) -> Program:
    """The program as far as it is needed for the wanted relations; all of it if None. If `lean`, the others need not be whole."""
    if wanted is not None:
        for rewrite in LEAN_REWRITES if lean else REWRITES:
            program = rewrite(program, frozenset(wanted))
    return program


def compile_plan(
    program: Program,
    wanted: Iterable[str] | None = None,
    sizes: Mapping[str, int] | None = None,
    join_order: JoinOrder = most_bound,
    *,
    lean: bool = False,
) -> Plan:
    """A plan under which as much as can be is maintained. `sizes` tells how many rows relations have, where that is known; if
    `lean`, relations that are not wanted need not be whole."""
    program = restrict(program, wanted, lean=lean)
    if lean:
        known = sizes or {}
        program = program if wanted is None else ask_early(program, frozenset(wanted), known)
        program = project_early(narrow(meet_halfway(share_joins(program)), known), known)
    return _planned(program, dict(_reasons_to_recompute(program)), sizes, join_order)


def compile_evaluation(program: Program) -> Plan:
    """A plan for evaluating once: recursion through aggregates is left in the rules."""
    inside = (stratum for stratum in program.strata if stratum.monotone)
    reasons = {name: AGGREGATES_INSIDE for stratum in inside for name in stratum.relations}
    return _planned(program, reasons | dict(_reasons_to_recompute(program)))


def _planned(
    program: Program,
    reasons: dict[str, str],
    sizes: Mapping[str, int] | None = None,
    join_order: JoinOrder = most_bound,
) -> Plan:
    extracted, specs = extract_aggregates(program, frozenset(program.relations) - frozenset(reasons))
    resting = dict(_resting_values(extracted, specs))
    if resting:
        reasons |= resting
        extracted, specs = extract_aggregates(program, frozenset(program.relations) - frozenset(reasons))
    planned = project_wildcards(set_apart(extracted, reasons))
    plans_of = partial(delta_plans, sizes=sizes, join_order=join_order)
    strata = (_plan_stratum(planned, each, specs, reasons, plans_of) for each in planned.strata)
    return Plan(planned, tuple(strata))


def compile_counting(
    program: Program,
    wanted: Iterable[str] | None = None,
    sizes: Mapping[str, int] | None = None,
    join_order: JoinOrder = most_bound,
    *,
    lean: bool = False,
) -> Plan:
    """A plan for counting derivations alone, which cannot tell rows that only support each other. Raises `UnsuitableStrategy`."""
    plan = compile_plan(program, wanted, sizes, join_order, lean=lean)
    for stratum in plan.strata:
        if stratum.recursive:
            names = ", ".join(name for name in stratum.relations if "!" not in name)
            raise UnsuitableStrategy(f"counting does not maintain recursion ({names}): use the strategy support")
    return plan


def compile_recomputation(
    program: Program,
    wanted: Iterable[str] | None = None,
    _sizes: Mapping[str, int] | None = None,
    _join_order: JoinOrder = most_bound,
    *,
    lean: bool = False,
) -> Plan:
    """A plan under which every stratum is evaluated anew when one of its inputs changes: it has no joins of its own."""
    program = restrict(program, wanted, lean=lean)
    strata = []
    for stratum in program.strata:
        rules = [rule for rule in program.rules if rule.head.relation in stratum.relations]
        inputs = tuple(sorted(_reads(program, rules, frozenset(stratum.relations))))
        strata.append(
            StratumPlan(stratum.relations, stratum.recursive, False, "recomputation was asked for", inputs=inputs)
        )
    return Plan(program, tuple(strata))


def _reasons_to_recompute(program: Program) -> Iterator[tuple[str, str]]:
    """Relations of strata that are evaluated anew when an input changes, and why."""
    for stratum in program.strata:
        rules = [rule for rule in program.rules if rule.head.relation in stratum.relations]
        reason = _why_not_native(program, stratum, rules)
        if reason:
            yield from ((name, reason) for name in stratum.relations)


def _resting_values(program: Program, specs: Mapping[str, AggregateSpec]) -> Iterator[tuple[str, str]]:
    """The same, found once aggregates are relations."""
    for stratum in program.strata:
        own = [specs[name] for name in stratum.relations if name in specs and specs[name].recursive]
        rules = [rule for rule in program.rules if rule.head.relation in stratum.relations]
        reason = why_values_may_rest(rules, own) if own else ""
        if reason:
            yield from ((name, reason) for name in stratum.relations)


def _plan_stratum(
    program: Program,
    stratum: Stratum,
    specs: Mapping[str, AggregateSpec],
    reasons: Mapping[str, str],
    plans_of: Callable[[Rule, frozenset[str]], Iterable[DeltaPlan]],
) -> StratumPlan:
    members = frozenset(stratum.relations)
    rules = [rule for rule in program.rules if rule.head.relation in members]
    own = tuple(specs[name] for name in stratum.relations if name in specs)
    sources = {source for spec in own for source in spec.sources} - members
    inputs = tuple(sorted(_reads(program, rules, members) | sources))
    reason = reasons.get(stratum.relations[0])
    if reason:
        return StratumPlan(stratum.relations, stratum.recursive, False, reason, inputs=inputs)
    plans = [plan for rule in rules for plan in plans_of(rule, members)]
    return StratumPlan(
        stratum.relations,
        stratum.recursive,
        True,
        deltas=tuple(plan for plan in plans if plan.scan is not None),
        statics=tuple(plan for plan in plans if plan.scan is None),
        inputs=inputs,
        aggregates=own,
        distinct=frozenset() if own else _distinct(rules),
    )


def _distinct(rules: list[Rule]) -> frozenset[str]:
    """The relations with a single rule whose heads tell everything that its derivations use."""
    rules_of = Counter(rule.head.relation for rule in rules)
    return frozenset(
        rule.head.relation for rule in rules if rules_of[rule.head.relation] == 1 and _tells_its_derivations(rule)
    )


def _tells_its_derivations(rule: Rule) -> bool:
    told = {arg.name for arg in rule.head.args if isinstance(arg, Var)}
    used = [part for literal in rule.body if isinstance(literal, Atom) for part in walk(literal)]
    return (
        not any(isinstance(literal, Generator) for literal in rule.body)
        and not any(isinstance(part, Anything) for part in used)
        and all(part.name in told for part in used if isinstance(part, Var))
    )


def _reads(program: Program, rules: list[Rule], members: frozenset[str]) -> set[str]:
    everything: list[object] = [rule.body for rule in rules]
    everything += [each.body for each in program.subsumptions if each.dominated.relation in members]
    return {part.relation for body in everything for part in walk(body) if isinstance(part, Atom)} - members


def _why_not_native(program: Program, stratum: Stratum, rules: list[Rule]) -> str:
    """Why a stratum is evaluated anew rather than maintained; empty if it is maintained."""
    relations: Mapping[str, Relation] = program.relations
    if stratum.stages:
        return "negation inside recursion, by stages"
    for name in stratum.relations:
        relation = relations[name]
        if relation.equivalence:
            return f"{name} is an eqrel"
        if relation.choices:
            return f"{name} has a choice-domain"
        if relation.limit is not None:
            return f"{name} has a .limitsize"
        if any(each.dominated.relation == name for each in program.subsumptions):
            return f"{name} has subsumption"
    for rule in rules:
        if stratum.recursive and not is_extractable(rule, frozenset(stratum.relations)):
            return f"rule {rule.name} asks for an aggregate inside the recursion"
        if counter := counter_in(rule):
            return f"rule {rule.name} has {counter}()"
    return ""
