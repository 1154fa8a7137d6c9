"""Wildcards out of atoms that only ask whether some row is there."""

from __future__ import annotations

from dataclasses import replace

from whence.lang.program import Anything, Atom, Literal, Negation, Program, Relation, Rule, Stratum, Term, Var


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
