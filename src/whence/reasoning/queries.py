"""Queries that can be reasoned about: unions of conjunctive queries, from the rules of a relation.

Views are written out where they are used, so that atoms are over base relations only; equalities are solved, so that what
remains of comparisons is `<`, `<=` and `!=`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from math import isfinite

from whence.lang.program import Anything, Atom, Comparison, Const, Program, Rule, Term, Var
from whence.lang.tables import bag_tables
from whence.lang.tree import Span
from whence.lang.types import FLOAT, NUMBER, SYMBOL, UNSIGNED, Kind

MOST_PARTS = 1_000
_FLIPPED = {">": "<", ">=": "<="}
_SIMPLE = frozenset({"<", "<=", "!="})

Simple = Var | Const
Compared = tuple[str, Simple, Simple]
Equalities = Iterable[tuple[Simple, Simple]]


class NotConjunctive(ValueError):
    """Something that no mapping between queries decides, with its place."""


@dataclass(frozen=True, slots=True)
class Conjunctive:
    """One way to derive a tuple; `rule` is the rule it begins with. Derivations of one with `sign` -1 count less than none."""

    rule: str
    head: tuple[Simple, ...]
    atoms: tuple[tuple[str, tuple[Simple, ...]], ...]
    comparisons: tuple[Compared, ...] = ()
    sign: int = 1

    @property
    def variables(self) -> tuple[Var, ...]:
        return tuple(dict.fromkeys(term for term in self.terms() if isinstance(term, Var)))

    def terms(self) -> Iterator[Simple]:
        yield from self.head
        for _, args in self.atoms:
            yield from args
        for _, left, right in self.comparisons:
            yield from (left, right)


@dataclass(frozen=True)
class Query:
    """A relation by its rules. `program` holds nothing but what the relation needs, and no facts of base relations.

    `minus` names the rules whose derivations are taken away.
    """

    program: Program
    relation: str
    parts: tuple[Conjunctive, ...]
    minus: frozenset[str] = frozenset()

    @property
    def signature(self) -> tuple[Kind, ...]:
        return tuple(field.kind for field in self.program.relations[self.relation].fields)

    @property
    def base(self) -> Mapping[str, tuple[Kind, ...]]:
        """The base relations that it reads, with the kinds of their columns."""
        names = {name for part in self.parts for name, _ in part.atoms}
        return {name: tuple(field.kind for field in self.program.relations[name].fields) for name in sorted(names)}


def query_of(
    program: Program, relation: str, *, minus: frozenset[str] = frozenset(), kept: frozenset[str] = frozenset()
) -> Query:
    """The query that a relation is. Raises NotConjunctive, naming the place, for what is not a union of conjunctive ones.

    `minus` names the rules whose derivations are taken away, `kept` the relations that count as base relations.
    """
    if relation not in program.relations:
        raise NotConjunctive(f"there is no relation {relation}; there are {', '.join(program.relations)}")
    program = _with_annotated_tables(program)
    parts = Unfolding(program, kept, minus).parts_of(relation)
    return Query(_needed(program, relation), relation, parts, minus)


def _with_annotated_tables(program: Program) -> Program:
    """How often a row of a table is there is its annotation here: without the rules that look at copies."""
    companions = {*bag_tables(program).values()}
    read = [{literal.relation for literal in rule.body if isinstance(literal, Atom)} for rule in program.rules]
    rules = tuple(rule for rule, names in zip(program.rules, read, strict=True) if not names & companions)
    return replace(program, rules=rules)


def _needed(program: Program, relation: str) -> Program:
    derived = derived_relations(program)
    reached, pending = {relation}, [relation]
    while pending:
        for rule in program.rules_for(pending.pop()):
            fresh = {literal.relation for literal in rule.body if isinstance(literal, Atom)} - reached
            reached |= fresh
            pending += fresh
    return replace(
        program,
        relations={name: each for name, each in program.relations.items() if name in reached},
        rules=tuple(each for each in program.rules if each.head.relation in reached & derived),
        subsumptions=(),
        strata=tuple(stratum for stratum in program.strata if reached.issuperset(stratum.relations)),
        transfers=tuple(each for each in program.transfers_of("input") if each.relation in reached),
    )


def derived_relations(program: Program) -> set[str]:
    """Those with a rule that is not a fact. The facts of the others are data."""
    return {rule.head.relation for rule in program.rules if not rule.is_fact}


class Unfolding:
    """Writes out the views of a program. Relations in `kept` count as base relations whatever derives them, and derivations of
    the rules in `minus` are taken away."""

    def __init__(
        self, program: Program, kept: frozenset[str] = frozenset(), minus: frozenset[str] = frozenset()
    ) -> None:
        self._program = program
        self._minus = minus
        self._derived = derived_relations(program) - kept
        self._fed = {each.relation for each in program.transfers_of("input")}
        self._recursive = {name for stratum in program.strata if stratum.recursive for name in stratum.relations}
        self._dominated = {each.dominated.relation for each in program.subsumptions}
        self._known: dict[str, tuple[Conjunctive, ...]] = {}
        self._fresh = count(1)

    def parts_of(self, relation: str) -> tuple[Conjunctive, ...]:
        if relation not in self._known:
            self._refuse_odd(relation)
            rules = self._program.rules_for(relation)
            parts = tuple(part for rule in rules for part in self.parts_of_rule(rule))
            self._known[relation] = _few(parts, relation)
        return self._known[relation]

    def parts_of_rule(self, rule: Rule) -> tuple[Conjunctive, ...]:
        part = self._conjunctive(rule)
        pending, done = [] if part is None else [part], []
        while pending:
            part = pending.pop()
            at = next((i for i, (name, _) in enumerate(part.atoms) if name in self._derived), None)
            if at is None:
                done.append(part)
                continue
            for view in self.parts_of(part.atoms[at][0]):
                solved = written_out(part, at, view, next(self._fresh))
                pending += [] if solved is None else [solved]
            _few(pending, rule.head.relation)
        return tuple(reversed(done))

    def _refuse_odd(self, name: str) -> None:
        relation = self._program.relations[name]
        if name in self._recursive:
            raise NotConjunctive(f"{name} is recursive: equivalence of recursive relations cannot be decided")
        if relation.equivalence or relation.choices or relation.limit is not None or name in self._dominated:
            raise NotConjunctive(f"{name} is an eqrel, or bounded by choice-domain, .limitsize or subsumption")
        if name in self._fed and name in self._derived:
            raise NotConjunctive(
                f"{name} is read with .input and derived by rules too: give what is read a name of its own"
            )
        if name not in self._derived:
            raise NotConjunctive(f"{name} is a base relation: name one that rules derive")

    def _conjunctive(self, rule: Rule) -> Conjunctive | None:
        """The rule as it is written, or None if it derives nothing."""
        atoms, comparisons, equalities = [], [], []
        for literal in rule.body:
            match literal:
                case Atom(relation, args):
                    self._check_base(relation)
                    atoms.append((relation, tuple(self._simple(each, rule) for each in args)))
                case Comparison(op, left, right, span):
                    one, other = self._simple(left, rule), self._simple(right, rule)
                    if op in _FLIPPED:
                        op, one, other = _FLIPPED[op], other, one
                    if op == "=":
                        equalities.append((one, other))
                    elif op not in _SIMPLE:
                        raise self._refusal(f"{op} is not a comparison that can be reasoned about", span)
                    elif op != "!=" and one.kind == SYMBOL:
                        raise self._refusal("the order of symbols cannot be reasoned about, only = and !=", span)
                    else:
                        comparisons.append((op, one, other))
                case _:
                    what = type(literal).__name__.lower()
                    raise self._refusal(f"a rule with a literal of kind {what} is not conjunctive", literal.span)
        head = tuple(self._simple(each, rule) for each in rule.head.args)
        sign = -1 if rule.name in self._minus else 1
        return solved(Conjunctive(rule.name, head, tuple(atoms), tuple(comparisons), sign), equalities)

    def _check_base(self, name: str) -> None:
        relation = self._program.relations[name]
        if name not in self._derived and (relation.equivalence or relation.choices or relation.limit is not None):
            raise NotConjunctive(f"{name} is an eqrel, or bounded by choice-domain or .limitsize")

    def _simple(self, term: Term, rule: Rule) -> Simple:
        if term.kind not in (NUMBER, UNSIGNED, FLOAT, SYMBOL):
            raise self._refusal(f"values of type {term.kind} cannot be reasoned about", rule.span)
        match term:
            case Anything(kind):
                return Var(f"_{next(self._fresh)}", kind)
            case Const(float(value)) if not isfinite(value):
                raise self._refusal("numbers without end cannot be reasoned about", rule.span)
            case Var() | Const():
                return term
        raise self._refusal("terms other than variables and constants cannot be reasoned about", rule.span)

    def _refusal(self, reason: str, span: Span) -> NotConjunctive:
        place = self._program.source.place(span)
        return NotConjunctive(f"{place.file.name}:{place.line}: {reason}")


def written_out(part: Conjunctive, at: int, view: Conjunctive, number: int) -> Conjunctive | None:
    """The part with one way to derive a view in place of an atom of it, or None if that derives nothing.

    `number` tells the view's variables from others of the same name.
    """
    renamed = _renamed(view, number)
    whole = replace(
        part,
        atoms=part.atoms[:at] + renamed.atoms + part.atoms[at + 1 :],
        comparisons=part.comparisons + renamed.comparisons,
        sign=part.sign * view.sign,
    )
    # The view's variables go first: those of the rule keep their names.
    return solved(whole, zip(renamed.head, part.atoms[at][1], strict=True))


def _renamed(view: Conjunctive, number: int) -> Conjunctive:
    names = {each: Var(f"{each.name.partition('.')[0]}.{number}", each.kind) for each in view.variables}
    if len(set(names.values())) < len(names):
        names = {each: Var(f"{each.name}.{number}", each.kind) for each in names}
    return substituted(view, dict(names))


def _few(parts: tuple[Conjunctive, ...] | list[Conjunctive], relation: str) -> tuple[Conjunctive, ...]:
    if len(parts) > MOST_PARTS:
        raise NotConjunctive(
            f"{relation} is a union of more than {MOST_PARTS:,} queries once its views are written out"
        )
    return tuple(parts)


def solved(part: Conjunctive, equalities: Equalities) -> Conjunctive | None:
    """The part with equal terms made the same, or None if that cannot be."""
    found: dict[Var, Simple] = {}

    def root(term: Simple) -> Simple:
        while isinstance(term, Var) and term in found:
            term = found[term]
        return term

    for left, right in equalities:
        one, other = root(left), root(right)
        if one == other:
            continue
        if isinstance(one, Var):
            found[one] = other
        elif isinstance(other, Var):
            found[other] = one
        else:
            return None
    solved = substituted(part, {each: root(each) for each in found})
    kept = []
    for op, one, other in solved.comparisons:
        if isinstance(one, Const) and isinstance(other, Const):
            if not holds(op, one.value, other.value):
                return None
        elif one == other and op != "<=":
            return None
        elif one != other:
            kept.append((op, one, other))
    return replace(solved, comparisons=tuple(kept))


def substituted(part: Conjunctive, terms: Mapping[Var, Simple]) -> Conjunctive:
    def put(term: Simple) -> Simple:
        return terms.get(term, term) if isinstance(term, Var) else term

    return replace(
        part,
        head=tuple(map(put, part.head)),
        atoms=tuple((name, tuple(map(put, args))) for name, args in part.atoms),
        comparisons=tuple((op, put(left), put(right)) for op, left, right in part.comparisons),
    )


def holds(op: str, left: object, right: object) -> bool:
    if op == "!=":
        return left != right
    return left < right if op == "<" else left <= right  # type: ignore[operator,no-any-return]


def constants_of(parts: Iterable[Conjunctive]) -> dict[Kind, tuple[int | float | str, ...]]:
    """The constants by their kind, sorted."""
    found: dict[Kind, set[int | float | str]] = {}
    for part in parts:
        for term in part.terms():
            if isinstance(term, Const):
                assert isinstance(term.value, int | float | str)
                found.setdefault(term.kind, set()).add(float(term.value) if term.kind == FLOAT else term.value)
    return {kind: tuple(sorted(values)) for kind, values in found.items()}
