"""Aggregates out of rules: each becomes a relation of its own, which rules then join with.

`h(x, n) :- a(x), n = count : { b(x, y) }.` becomes

    context(x) :- a(x).
    rows(x, y) :- context(x), b(x, y).
    groups(x, n): for each x of context, n = the count of rows with that x.
    h(x, n) :- a(x), groups(x, n).

The context tells for which values of the outer variables the aggregate is asked for, so that an empty group has a count of
zero; where nothing is bound outside there is one group and no context.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from whence.lang.program import Aggregation, Atom, Program, Relation, Rule, Stratum, Term, Var
from whence.lang.tree import walk
from whence.lang.types import Field, Kind


@dataclass(frozen=True, slots=True)
class AggregateSpec:
    """How a `groups` relation follows from its `rows` (whose last column is the value, if there is one) and `context`."""

    op: str
    rows: str
    context: str | None
    keys: int
    value_kind: Kind | None
    kind: Kind


def extract_aggregates(program: Program, relations: frozenset[str]) -> tuple[Program, Mapping[str, AggregateSpec]]:
    """The program with the aggregates in the rules of some relations extracted, and what the new relations are."""
    extraction = _Extraction(program)
    for stratum in program.strata:
        for rule in program.rules:
            if rule.head.relation in stratum.relations:
                extraction.rules.append(extraction.extract(rule) if rule.head.relation in relations else rule)
        extraction.strata.append(stratum)
    result = replace(
        program, relations=extraction.relations, rules=tuple(extraction.rules), strata=tuple(extraction.strata)
    )
    return result, extraction.specs


class _Extraction:
    def __init__(self, program: Program) -> None:
        self.relations: dict[str, Relation] = dict(program.relations)
        self.rules: list[Rule] = []
        self.strata: list[Stratum] = []
        self.specs: dict[str, AggregateSpec] = {}

    def extract(self, rule: Rule) -> Rule:
        """The rule without aggregates; what they become is added before it."""
        for at, literal in enumerate(rule.body):
            if isinstance(literal, Aggregation):
                groups = self._groups(rule, at, literal)
                return self.extract(replace(rule, body=(*rule.body[:at], groups, *rule.body[at + 1 :])))
        return rule

    def _groups(self, rule: Rule, at: int, literal: Aggregation) -> Atom:
        name = f"{rule.name}!{len(self.specs)}"
        kinds = {part.name: part.kind for part in walk((rule.body, rule.head)) if isinstance(part, Var)}
        outer = tuple(Var(each, kinds[each]) for each in literal.outer)
        context = None
        if outer:
            context = Atom(f"{name}:context", outer, literal.span)
            self._add(context, [self.extract(Rule(f"{context.relation}#1", context, rule.body[:at], rule.span))])
        inner: dict[str, Kind] = {part.name: part.kind for part in walk(literal.bodies) if isinstance(part, Var)}
        local = tuple(Var(each, inner[each]) for each in literal.locals)
        value: tuple[Term, ...] = () if literal.value is None else (literal.value,)
        rows = Atom(f"{name}:rows", (*outer, *local, *value), literal.span)
        before = () if context is None else (context,)
        self._add(
            rows,
            [
                self.extract(Rule(f"{rows.relation}#{number}", rows, (*before, *body), rule.span))
                for number, body in enumerate(literal.bodies, 1)
            ],
        )
        groups = Atom(f"{name}:groups", (*outer, literal.target), literal.span)
        self._add(groups, [])
        value_kind = None if literal.value is None else literal.value.kind
        self.specs[groups.relation] = AggregateSpec(
            literal.op,
            rows.relation,
            None if context is None else context.relation,
            len(outer),
            value_kind,
            literal.target.kind,
        )
        return groups

    def _add(self, head: Atom, rules: list[Rule]) -> None:
        fields = tuple(Field(f"c{at}", str(arg.kind), arg.kind) for at, arg in enumerate(head.args))
        self.relations[head.relation] = Relation(head.relation, fields, head.span)
        self.rules += rules
        self.strata.append(Stratum((head.relation,)))
