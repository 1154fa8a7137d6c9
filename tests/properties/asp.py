"""Programs in the language of clingo, which was written by others: an oracle for what the reference evaluator means.

Numbers only, and what both languages have: atoms, negation, comparisons, sums and products, aggregates that no recursion goes
through. Everything else is refused, and left to the oracles written by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import clingo

from whence import Program
from whence.lang.program import (
    Aggregation,
    Anything,
    Apply,
    Atom,
    Comparison,
    Const,
    Literal,
    Negation,
    Rule,
    Term,
    Var,
)
from whence.lang.types import NUMBER, Tuple

OPERATORS = {"+": "+", "-": "-", "*": "*"}
EMPTY = {"min": "#sup", "max": "#inf"}


class Untranslatable(Exception):
    """The other language does not have it, or means something else by it."""


def to_asp(program: Program) -> str:
    """Raises Untranslatable."""
    if program.subsumptions or any(stratum.stages or stratum.monotone for stratum in program.strata):
        raise Untranslatable
    for relation in program.relations.values():
        if relation.choices or relation.equivalence or any(field.kind != NUMBER for field in relation.fields):
            raise Untranslatable
    return "\n".join(_rule(rule) for rule in program.rules)


def solve(text: str, facts: Mapping[str, Iterable[Tuple]], arities: Mapping[str, int]) -> dict[str, set[Tuple]]:
    """The relations in the only model there is."""
    control = clingo.Control(["--warn=none"])
    given = [
        f"{_name(name)}({','.join(map(str, row))})." if row else f"{_name(name)}."
        for name, rows in facts.items()
        for row in rows
    ]
    control.add("base", [], "\n".join([text, *given]))
    control.ground([("base", [])])
    found: list[dict[str, set[Tuple]]] = []
    with control.solve(yield_=True) as handle:
        for model in handle:
            views: dict[str, set[Tuple]] = {name: set() for name in arities}
            for symbol in model.symbols(atoms=True):
                views[symbol.name.removeprefix("r_")].add(tuple(each.number for each in symbol.arguments))
            found.append(views)
    (model_of_all,) = found
    return model_of_all


def _name(relation: str) -> str:
    return f"r_{relation}"


def _rule(rule: Rule) -> str:
    body = [text for literal in rule.body for text in _literal(literal)]
    return f"{_atom(rule.head)} :- {', '.join(body)}." if body else f"{_atom(rule.head)}."


def _literal(literal: Literal) -> list[str]:
    match literal:
        case Atom():
            return [_atom(literal)]
        case Negation(atom=atom):
            return [f"not {_atom(atom)}"]
        case Comparison(op=op, left=left, right=right):
            return [f"{_term(left)} {op} {_term(right)}"]
        case Aggregation(target=target, op=op, value=value, bodies=bodies, locals=names) if op != "mean":
            weight = [] if value is None else [_term(value)]
            key = ", ".join([*weight, *(_variable(name) for name in names)]) or "0"
            parts = (f"{key} : {', '.join(text for each in body for text in _inner(each))}" for body in bodies)
            own = f"{_term(target)} = #{op} {{ {' ; '.join(parts)} }}"
            return [own, f"{_term(target)} != {EMPTY[op]}"] if op in EMPTY else [own]
        case _:
            raise Untranslatable


def _inner(literal: Literal) -> list[str]:
    if isinstance(literal, Aggregation):
        raise Untranslatable
    return _literal(literal)


def _atom(atom: Atom) -> str:
    return f"{_name(atom.relation)}({', '.join(map(_term, atom.args))})" if atom.args else _name(atom.relation)


def _term(term: Term) -> str:
    match term:
        case Var(name=name):
            return _variable(name)
        case Anything():
            return "_"
        case Const(value=int(value)):
            return str(value)
        case Apply(functor=functor, args=(left, right)) if functor in OPERATORS:
            return f"({_term(left)} {OPERATORS[functor]} {_term(right)})"
        case _:
            raise Untranslatable


def _variable(name: str) -> str:
    return "V" + "".join(letter if letter.isalnum() else f"_{ord(letter)}_" for letter in name)
