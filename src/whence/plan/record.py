"""Derivations as relations: a table for each rule, with a row for each of its firings.

`r: h(x) :- b(x, y).` becomes

    r!derivations(x, y) :- b(x, y).
    h(x) :- r!derivations(x, y).

A row holds the values of all variables, wildcards included, so that it tells which tuples were used; the tuples' own values
identify them and no numbers are needed. Rules that share a body, as the heads of one statement do, share the table.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from whence.lang.order import binds
from whence.lang.program import Atom, Literal, Program, Relation, Rule, Stratum, Var
from whence.lang.tree import walk
from whence.lang.types import Field
from whence.plan.wildcards import name_wildcards


@dataclass(frozen=True, slots=True)
class Recording:
    """Where the firings of a rule are: a relation with a column for each of `variables`. `rule` has no wildcards."""

    relation: str
    variables: tuple[Var, ...]
    rule: Rule


def record_derivations(program: Program, relations: Collection[str]) -> tuple[Program, dict[str, Recording]]:
    """The program with tables for the rules of some relations, and where they are, by rule."""
    unknown = [name for name in relations if name not in program.relations]
    if unknown:
        raise ValueError(f"there is no relation {unknown[0]}")
    recorder = _Recorder(program)
    for stratum in program.strata:
        recorder.add(stratum, [name for name in stratum.relations if name in relations])
    rules = [rule for rule in program.rules if rule.name not in recorder.recordings]
    changed = replace(
        program,
        relations={**program.relations, **recorder.relations},
        rules=(*rules, *recorder.rules),
        strata=tuple(recorder.strata),
    )
    return changed, recorder.recordings


@dataclass
class _Recorder:
    program: Program
    relations: dict[str, Relation] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    strata: list[Stratum] = field(default_factory=list)
    recordings: dict[str, Recording] = field(default_factory=dict)
    shared: dict[tuple[Literal, ...], str] = field(default_factory=dict)

    def add(self, stratum: Stratum, chosen: list[str]) -> None:
        # A table inside a recursion belongs to it; any other may serve the strata above as well.
        made = {} if stratum.recursive else self.shared
        before = len(made)
        for rule in self.program.rules:
            if rule.head.relation in chosen and not rule.is_fact:
                self._record(rule, made)
        tables = list(made.values())[before:]
        if stratum.recursive:
            self.strata.append(replace(stratum, relations=(*stratum.relations, *tables)))
        else:
            self.strata += [*(Stratum((name,)) for name in tables), stratum]

    def _record(self, rule: Rule, made: dict[tuple[Literal, ...], str]) -> None:
        named = replace(rule, body=name_wildcards(rule.body))
        bound = dict.fromkeys(name for literal in named.body for name in binds(literal))
        kinds = {part.name: part.kind for part in walk(named.body) if isinstance(part, Var)}
        variables = tuple(Var(name, kinds[name]) for name in bound)
        table = made.get(named.body)
        if table is None:
            table = made[named.body] = f"{rule.name}!derivations"
            fields = tuple(Field(each.name, str(each.kind), each.kind) for each in variables)
            self.relations[table] = Relation(table, fields, rule.span)
            self.rules.append(replace(named, name=f"{rule.name}!fires", head=Atom(table, variables, rule.span)))
        self.rules.append(replace(rule, body=(Atom(table, variables, rule.span),)))
        self.recordings[rule.name] = Recording(table, variables, named)
