"""Relations that rewrites bring in for parts of bodies: one for all parts that are the same but for names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from whence.lang.diagnostics import Diagnostic
from whence.lang.program import Atom, Comparison, Literal, Negation, Program, Relation, Rule, Var
from whence.lang.rewrite import rebuild
from whence.lang.strata import stratify
from whence.lang.tree import NOWHERE
from whence.lang.types import Field


class Helpers:
    """Those of one rewrite, whose names say which relation they come from and what they are there for."""

    def __init__(self, purpose: str) -> None:
        self.purpose = purpose
        self.rules: dict[tuple[tuple[Var, ...], tuple[Literal, ...]], Rule] = {}

    def atom(self, columns: Sequence[Var], part: Sequence[Literal]) -> Atom:
        """What stands for a part, whose first literal is an atom, where only these columns of it matter."""
        names: dict[str, str] = {}

        def renamed(each: object) -> object:
            match each:
                case Var(name=name, kind=kind):
                    return Var(names.setdefault(name, f"v{len(names)}"), kind)
                case Atom() | Comparison() | Negation():
                    return replace(each, span=NOWHERE)
                case _:
                    return each

        body = rebuild(tuple(part), renamed)
        own = tuple(Var(names[each.name], each.kind) for each in columns)
        first = part[0]
        assert isinstance(first, Atom)
        if (own, body) not in self.rules:
            digest = hashlib.sha256(repr((own, body)).encode()).hexdigest()[:6]
            relation = f"{first.relation}!{self.purpose}:{digest}"
            self.rules[own, body] = Rule(f"{relation}#1", Atom(relation, own, first.span), body, first.span)
        return Atom(self.rules[own, body].head.relation, tuple(columns), first.span)

    def added_to(self, program: Program, rules: Iterable[Rule]) -> Program:
        """The program with these rules, which use the helpers, and with the helpers."""
        made = self.rules.values()
        return with_helpers(program, (*rules, *made), made) if made else program


def with_helpers(program: Program, rules: Iterable[Rule], helpers: Iterable[Rule]) -> Program:
    """The program with these rules, among which are those of helpers, one for each."""
    every, relations = tuple(rules), dict(program.relations)
    for helper in helpers:
        columns = [arg for arg in helper.head.args if isinstance(arg, Var)]
        fields = tuple(Field(each.name, str(each.kind), each.kind) for each in columns)
        relations[helper.head.relation] = Relation(helper.head.relation, fields, helper.span)
    return rewritten(program, relations, every)


def rewritten(program: Program, relations: Mapping[str, Relation], rules: Iterable[Rule]) -> Program:
    """The program with these relations and rules, which a rewrite made of its own: they can be put in order as those could."""
    every, refused = tuple(rules), list[Diagnostic]()
    strata = stratify(relations, list(every), list(program.subsumptions), refused)
    assert not refused
    transfers = tuple(each for each in program.transfers if each.relation in relations)
    return replace(program, relations=relations, rules=every, strata=strata, transfers=transfers)
