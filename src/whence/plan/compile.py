"""A checked program to a plan: what is not needed dropped, wildcards out of negations, delta plans for every stratum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from whence.lang.program import (
    Anything,
    Apply,
    Atom,
    Generator,
    Literal,
    Negation,
    Program,
    Relation,
    Rule,
    Stratum,
    Term,
    Var,
)
from whence.lang.tree import walk
from whence.plan.delta_plans import delta_plans
from whence.plan.extract_aggregates import AggregateSpec, extract_aggregates, is_extractable
from whence.plan.steps import StratumPlan


@dataclass(frozen=True)
class Plan:
    """`program` is the program as planned, with the helper relations that rewrites brought in (their names hold a `!`)."""

    program: Program
    strata: tuple[StratumPlan, ...]

    def is_helper(self, relation: str) -> bool:
        return "!" in relation


def compile_plan(program: Program) -> Plan:
    """A plan under which as much as can be is maintained."""
    program, specs = extract_aggregates(program, frozenset(_maintained(program)))
    program = project_wildcards(program)
    return Plan(program, tuple(_plan_stratum(program, stratum, specs) for stratum in program.strata))


def compile_recomputation(program: Program) -> Plan:
    """A plan under which every stratum is evaluated anew when one of its inputs changes."""
    strata = []
    for stratum in program.strata:
        rules = [rule for rule in program.rules if rule.head.relation in stratum.relations]
        inputs = tuple(sorted(_reads(program, rules, frozenset(stratum.relations))))
        strata.append(
            StratumPlan(stratum.relations, stratum.recursive, False, "recomputation was asked for", inputs=inputs)
        )
    return Plan(program, tuple(strata))


def _maintained(program: Program) -> Iterator[str]:
    """The relations of strata that are maintained, or would be without their aggregates."""
    for stratum in program.strata:
        rules = [rule for rule in program.rules if rule.head.relation in stratum.relations]
        if not _why_not_native(program, stratum, rules):
            yield from stratum.relations


def project_wildcards(program: Program) -> Program:
    """Gives atoms that only ask whether some row is there a relation of their own that holds the columns that matter.

    These are negated atoms with wildcards, and positive ones with nothing else. `!e(_, x)` asks whether any row has x: the
    helper relation counts them, so that a change is seen when the first comes and when the last goes, and a rule with
    `e(_, _)` does not have as many derivations as e has rows.
    """
    stratum_of = {name: stratum.relations for stratum in program.strata for name in stratum.relations}
    projection = _Projection(dict(program.relations))
    rules = []
    for rule in program.rules:
        body: list[Literal] = []
        for literal in rule.body:
            match literal:
                case Negation(atom=atom) if any(isinstance(arg, Anything) for arg in atom.args):
                    body.append(Negation(projection.of(atom), literal.span))
                case Atom(relation=relation, args=args) if (
                    _asks_nothing(args) and relation not in stratum_of[rule.head.relation]
                ):
                    body.append(projection.of(literal))
                case _:
                    body.append(literal)
        rules.append(replace(rule, body=tuple(body)))
    strata: list[Stratum] = []
    for stratum in program.strata:
        strata.append(stratum)
        strata += [Stratum((name,)) for name, (source, _) in projection.made.items() if source in stratum.relations]
    rules += [rule for _, rule in projection.made.values()]
    return replace(program, relations=projection.relations, rules=tuple(rules), strata=tuple(strata))


def _asks_nothing(args: tuple[Term, ...]) -> bool:
    return bool(args) and all(isinstance(arg, Anything) for arg in args)


class _Projection:
    """Relations that hold some columns of others, made as they are asked for: name to source and rule."""

    def __init__(self, relations: dict[str, Relation]) -> None:
        self.relations = relations
        self.made: dict[str, tuple[str, Rule]] = {}

    def of(self, atom: Atom) -> Atom:
        kept = [at for at, arg in enumerate(atom.args) if not isinstance(arg, Anything)]
        name = f"{atom.relation}!{','.join(str(at) for at in kept)}"
        if name not in self.made:
            fields = self.relations[atom.relation].fields
            variables = [Var(f"c{at}", each.kind) for at, each in enumerate(fields)]
            args = tuple(each if at in kept else Anything(each.kind) for at, each in enumerate(variables))
            head = Atom(name, tuple(variables[at] for at in kept), atom.span)
            self.relations[name] = Relation(name, tuple(fields[at] for at in kept), atom.span)
            self.made[name] = (
                atom.relation,
                Rule(f"{name}#1", head, (Atom(atom.relation, args, atom.span),), atom.span),
            )
        return Atom(name, tuple(atom.args[at] for at in kept), atom.span)


def _plan_stratum(program: Program, stratum: Stratum, specs: Mapping[str, AggregateSpec]) -> StratumPlan:
    members = frozenset(stratum.relations)
    rules = [rule for rule in program.rules if rule.head.relation in members]
    own = tuple(specs[name] for name in stratum.relations if name in specs)
    sources = {source for spec in own for source in spec.sources} - members
    inputs = tuple(sorted(_reads(program, rules, members) | sources))
    reason = _why_not_native(program, stratum, rules)
    if reason:
        return StratumPlan(stratum.relations, stratum.recursive, False, reason, inputs=inputs)
    plans = [plan for rule in rules for plan in delta_plans(rule, members)]
    return StratumPlan(
        stratum.relations,
        stratum.recursive,
        True,
        deltas=tuple(plan for plan in plans if plan.scan is not None),
        statics=tuple(plan for plan in plans if plan.scan is None),
        inputs=inputs,
        aggregates=own,
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
        for part in walk(rule):
            if isinstance(part, Generator):
                return f"rule {rule.name} has a range"
            if isinstance(part, Apply) and part.functor == "autoinc":
                return f"rule {rule.name} has autoinc()"
    return ""
