"""Wildcards out of atoms that only ask whether some row is there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from whence.lang.program import (
    Anything,
    Atom,
    Cons,
    Literal,
    Make,
    Negation,
    Program,
    Relation,
    Rule,
    Stratum,
    Term,
    Var,
)
from whence.lang.tree import walk
from whence.lang.types import Field


def project_wildcards(program: Program) -> Program:
    """Gives atoms that only ask whether some row is there a relation of their own that holds the columns that matter.

    These are negated atoms with wildcards, and positive ones with nothing else. `!e(_, x)` asks whether any row has x: the
    helper relation counts them, so that a change is seen when the first comes and when the last goes, and a rule with
    `e(_, _)` does not have as many derivations as e has rows. For `!e([_, x])` it holds the second fields of records.
    """
    stratum_of = {name: stratum.relations for stratum in program.strata for name in stratum.relations}
    projection = _Projection(dict(program.relations))
    rules = []
    for rule in program.rules:
        body: list[Literal] = []
        for literal in rule.body:
            match literal:
                case Negation(atom=atom) if any(isinstance(part, Anything) for part in walk(atom.args)):
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
        pattern = _Pattern()
        args = tuple(pattern.of(arg) for arg in atom.args)
        name = f"{atom.relation}!{_shape(atom.args)}"
        if name not in self.made:
            columns = tuple(Var(f"c{at}", term.kind) for at, term in enumerate(pattern.asked))
            self.relations[name] = Relation(
                name, tuple(Field(each.name, str(each.kind), each.kind) for each in columns), atom.span
            )
            source = Atom(atom.relation, args, atom.span)
            self.made[name] = (atom.relation, Rule(f"{name}#1", Atom(name, columns, atom.span), (source,), atom.span))
        return Atom(name, tuple(pattern.asked), atom.span)


@dataclass
class _Pattern:
    """Terms with variables for what they ask for, which is all that is not a wildcard."""

    asked: list[Term] = field(default_factory=list)

    def of(self, term: Term) -> Term:
        match term:
            case Anything():
                return term
            case Make(args=args) if _has_wildcards(term):
                return replace(term, args=tuple(self.of(arg) for arg in args))
            case Cons(items=items, rest=rest) if _has_wildcards(term):
                return replace(term, items=tuple(self.of(item) for item in items), rest=self.of(rest))
            case _:
                self.asked.append(term)
                return Var(f"c{len(self.asked) - 1}", term.kind)


def _has_wildcards(term: Term) -> bool:
    return any(isinstance(part, Anything) for part in walk(term))


def _shape(args: tuple[Term, ...]) -> str:
    """Which columns are asked for, by number; of those with wildcards inside, where these are."""
    shown = []
    for at, arg in enumerate(args):
        if not isinstance(arg, Anything):
            shown.append(f"{at}{_inside(arg)}" if _has_wildcards(arg) else str(at))
    return ",".join(shown)


def _inside(term: Term) -> str:
    match term:
        case Make(args=args, branch=branch) if _has_wildcards(term):
            return f"{branch or ''}({' '.join(map(_inside, args))})"
        case Cons(items=items, rest=rest) if _has_wildcards(term):
            return f"[{' '.join(map(_inside, items))} | {_inside(rest)}]"
        case _:
            return "_" if isinstance(term, Anything) else "."
