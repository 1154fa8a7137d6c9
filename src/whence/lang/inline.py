"""Inline relations, written out where they are used.

An atom of an inline relation says what one of its rules says: each rule makes an alternative, and the rule that uses the atom
is split into as many. So no join is kept that its uses do not ask for. Inside an aggregate the body has alternatives; the
variables that it runs over are named, so that those of the inlined rule do not count. A negated atom is written out where no
variables are left over: none of the rules may apply.

What cannot be written out is left as it is, and so are the relations it uses. Relations that are read, written, kept in a
special way or recursive by themselves are not inlined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

from whence.lang import tree
from whence.lang.lower import equate
from whence.lang.order import names_in, order_body
from whence.lang.program import (
    Aggregation,
    Anything,
    Apply,
    Atom,
    Comparison,
    Const,
    Literal,
    Negation,
    Relation,
    Rule,
    Subsumption,
    Term,
    Transfer,
    Var,
    counter_in,
)
from whence.lang.rewrite import rebuild

MAX_ALTERNATIVES = 64
_NEGATED = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "contains": "!contains",
    "!contains": "contains",
}
_Bodies = list[tuple[Literal, ...]]


@dataclass(frozen=True)
class Inlined:
    """The rules, and the relations that are left."""

    relations: dict[str, Relation]
    rules: list[Rule]
    subsumptions: list[Subsumption]


def inline_relations(
    module: tree.Module,
    relations: Mapping[str, Relation],
    rules: list[Rule],
    subsumptions: list[Subsumption],
    transfers: Iterable[Transfer],
) -> Inlined:
    names = _inlinable(module, relations, rules, subsumptions, transfers)
    if not names:
        return Inlined(dict(relations), rules, subsumptions)
    expansion = Expansion({})
    own = {name: [rule for rule in rules if rule.head.relation == name] for name in names}
    for name in names:  # what a relation uses comes before it
        expansion.definitions[name] = [each for rule in own[name] for each in expansion.rules_of(rule)]
    others = [each for rule in rules if rule.head.relation not in own for each in expansion.rules_of(rule)]
    pairs = [each for subsumption in subsumptions for each in expansion.subsumptions_of(subsumption)]
    # A relation stays if something that stays still reads it.
    gone = set(names)
    while True:
        stays: list[Rule | Subsumption] = [*others, *pairs]
        stays += [each for name in names if name not in gone for each in expansion.definitions[name]]
        read = {part.relation for each in stays for part in tree.walk(each.body) if isinstance(part, Atom)}
        if not gone & read:
            break
        gone -= read
    kept = {name: relation for name, relation in relations.items() if name not in gone}
    ordered = [each for rule in rules if rule.head.relation not in gone for each in expansion.made[id(rule)]]
    return Inlined(kept, ordered, pairs)


def _inlinable(
    module: tree.Module,
    relations: Mapping[str, Relation],
    rules: list[Rule],
    subsumptions: list[Subsumption],
    transfers: Iterable[Transfer],
) -> list[str]:
    """The relations to be written out, each behind those that its rules use."""
    asked = {
        name
        for statement in module.statements
        if isinstance(statement, tree.RelationDecl) and "inline" in statement.qualifiers
        for name in statement.names
    }
    if not asked:
        return []
    used_as_a_whole = {transfer.relation for transfer in transfers}
    used_as_a_whole.update(each.dominated.relation for each in subsumptions)
    names = {name for name in asked - used_as_a_whole if name in relations and _is_plain(relations[name])}
    own: dict[str, list[Rule]] = {name: [] for name in names}
    for rule in rules:
        if rule.head.relation in own:
            own[rule.head.relation].append(rule)
    own = {
        name: each
        for name, each in own.items()
        if not all(rule.is_fact for rule in each) and not any(map(counter_in, each))
    }
    uses = {
        name: {part.relation for rule in each for part in tree.walk(rule.body) if isinstance(part, Atom)} & own.keys()
        for name, each in own.items()
    }
    return list(in_order(uses))


def _is_plain(relation: Relation) -> bool:
    """Whether nothing but its rules says which tuples it holds."""
    return relation == Relation(relation.name, relation.fields, relation.span)


def in_order(uses: Mapping[str, set[str]]) -> Iterator[str]:
    """Those that use no others first; what is in a cycle, or uses such, is left out."""
    done: set[str] = set()
    while ready := [name for name, used in uses.items() if name not in done and used <= done]:
        yield from ready
        done.update(ready)


@dataclass
class Expansion:
    """`definitions` are the rules of inline relations, written out themselves.

    With `only_atoms`, negations and aggregates stay as they are.
    """

    definitions: dict[str, list[Rule]]
    only_atoms: bool = False
    copies: int = 0

    def __post_init__(self) -> None:
        self.made: dict[int, list[Rule]] = {}

    def rules_of(self, rule: Rule) -> list[Rule]:
        """The rules that a rule becomes."""
        bodies = self._bodies(rule.body, ())
        made = [
            replace(rule, name=name, body=body)
            for name, body in zip(_names(rule.name, len(bodies)), bodies, strict=True)
        ]
        self.made[id(rule)] = made
        return made

    def subsumptions_of(self, rule: Subsumption) -> list[Subsumption]:
        bodies = self._bodies(rule.body, ())
        return [
            replace(rule, name=name, body=body)
            for name, body in zip(_names(rule.name, len(bodies)), bodies, strict=True)
        ]

    def _bodies(self, body: tuple[Literal, ...], outer: tuple[str, ...]) -> _Bodies:
        """The alternatives of a body, each in an order in which it can be evaluated; the body itself if that is not so."""
        choices = [self._choices(literal) for literal in body]
        if all(each is None for each in choices) or prod(len(each or (0,)) for each in choices) > MAX_ALTERNATIVES:
            return [body]
        alternatives: list[list[Literal]] = [[]]
        for literal, chosen in zip(body, choices, strict=True):
            ways = [[literal]] if chosen is None else chosen
            alternatives = [[*before, *way] for before in alternatives for way in ways]
        ordered = [order_body(each, frozenset(outer))[0] for each in alternatives]
        whole = all(len(one) == len(other) for one, other in zip(ordered, alternatives, strict=True))
        return [tuple(each) for each in ordered] if whole else [body]

    def _choices(self, literal: Literal) -> list[list[Literal]] | None:
        """What a literal says, in alternatives; None if it says it itself."""
        match literal:
            case Atom(relation=relation) if relation in self.definitions:
                return [self._applied(rule, literal) for rule in self.definitions[relation]]
            case _ if self.only_atoms:
                return None
            case Negation(atom=atom) if atom.relation in self.definitions:
                return self._denied(atom)
            case Aggregation(bodies=bodies, outer=outer):
                made = tuple(each for body in bodies for each in self._bodies(body, outer))
                return None if made == bodies else [[replace(literal, bodies=made)]]
            case _:
                return None

    def _applied(self, rule: Rule, atom: Atom) -> list[Literal]:
        """What a rule says of the arguments of an atom."""
        self.copies += 1
        names: dict[str, Var] = {}
        equal: list[tuple[Term, Term]] = []
        for param, given in zip(rule.head.args, atom.args, strict=True):
            if isinstance(param, Var) and param.name not in names and isinstance(given, Var):
                names[param.name] = given
            elif not isinstance(given, Anything):
                equal.append((param, given))
            elif any(isinstance(part, Apply) for part in tree.walk(param)):
                equal.append((param, Var(f"_#i{self.copies}.{len(equal)}", given.kind)))  # it has to have a value
        suffix = f"#i{self.copies}"

        def renamed(part: object) -> object:
            match part:
                case Var(name=name, kind=kind):
                    return names.get(name) or Var(f"{name}{suffix}", kind)
                case Aggregation(locals=inner, outer=outer):
                    own = tuple(sorted(f"{name}{suffix}" for name in inner))
                    around = tuple(sorted(names[name].name if name in names else f"{name}{suffix}" for name in outer))
                    return replace(part, locals=own, outer=around)
                case _:
                    return part

        tests = [test for param, given in equal for test in equate(rebuild(param, renamed), given, atom.span)]
        return [*tests, *rebuild(rule.body, renamed)]

    def _denied(self, atom: Atom) -> list[list[Literal]] | None:
        """That no rule applies to the arguments of an atom, if it can be said without variables that nothing binds."""
        rules = self.definitions[atom.relation]
        if not all(isinstance(arg, Var | Const) for arg in atom.args) or not all(map(_can_be_denied, rules)):
            return None
        alternatives: list[list[Literal]] = [[]]
        for rule in rules:
            values = {
                param.name: arg for param, arg in zip(rule.head.args, atom.args, strict=True) if isinstance(param, Var)
            }
            literals = _put_in(rule.body, values)
            alternatives = [[*before, _denial(literal)] for before in alternatives for literal in literals]
            if len(alternatives) > MAX_ALTERNATIVES:
                return None
        return alternatives


def _put_in(body: tuple[Literal, ...], values: Mapping[str, Term]) -> tuple[Literal, ...]:
    return rebuild(body, lambda part: values[part.name] if isinstance(part, Var) else part)


def _names(name: str, count: int) -> list[str]:
    return [name] if count == 1 else [f"{name}/{number}" for number in range(1, count + 1)]


def _can_be_denied(rule: Rule) -> bool:
    """Whether its literals have opposites, which speak of the head's variables alone and always have a value."""
    params = {arg.name for arg in rule.head.args if isinstance(arg, Var)}
    if len(params) != len(rule.head.args) or rule.is_fact:
        return False
    for literal in rule.body:
        match literal:
            case Atom(args=args) | Negation(atom=Atom(args=args)):
                terms = args
            case Comparison(op=op, left=left, right=right) if op in _NEGATED:
                terms = (left, right)
            case _:
                return False
        if not all(isinstance(term, Var | Const | Anything) for term in terms):
            return False
        if not {name for term in terms for name in names_in(term)} <= params:
            return False
    return True


def _denial(literal: Literal) -> Literal:
    match literal:
        case Atom():
            return Negation(literal, literal.span)
        case Negation(atom=atom):
            return atom
        case Comparison(op=op):
            return replace(literal, op=_NEGATED[op])
        case _:
            raise AssertionError(literal)
