"""Rules that read several nodes, as rules that read one each.

A body is evaluated at one place after the other. At each, the literals of that place are joined; what the rest of the rule needs
of the result goes on to the next place as a tuple of a helper relation, and the head to its own place:

    reach(@x, y) :- link(@x, z), reach(@z, y).       becomes      link!z(@z, x) :- link(@x, z).
                                                                  reach(@x, y) :- link!z(@z, x), reach(@z, y).

A place can be next if it is a constant or a value that is known by then; atoms that do not name each other's places are shipped
to one that both name. Of all orders, the one is taken that ships least: tuples that come out of the rule's own recursion weigh
most, then steps count, then columns. Relations that are everywhere are read wherever the body is. What only asks whether
something is not there, or aggregates, is asked at the place it names.

Where places are dealt to a few parts, as processes share the work on one state, nothing has to be refused: any value is a place,
and what has no way otherwise is read from a copy of its relation, which every part gets:

    pair(@x, y) :- up(@x), up(@y).       becomes      up!all(x) :- up(@x).        (everywhere)
                                                      pair(@x, y) :- up(@x), up!all(y).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from itertools import combinations

from whence.lang.diagnostics import (
    Diagnostic,
    ProgramError,
    UnnamableNode,
    UnplacedRelation,
)
from whence.lang.order import names_in, names_met, order_body
from whence.lang.program import (
    Aggregation,
    Anything,
    Atom,
    Comparison,
    Const,
    Literal,
    Negation,
    Program,
    Relation,
    Rule,
    Subsumption,
    Term,
    Var,
)
from whence.lang.strata import stratify
from whence.lang.tree import NOWHERE, walk
from whence.lang.types import NUMBER, SYMBOL, UNSIGNED, Field, Kind
from whence.plan.itinerary import RECURSIVE, NoWay, Search, Stop, Way, place_of
from whence.plan.partition import in_own_part

HERE = "here!"  # holds the node's own name, at each node
_TO_ALL = 3  # what shipping a tuple to every part weighs, against one of them
_MANY = 6  # literals of a rule of which every choice is tried


@dataclass(frozen=True)
class Placed:
    """A program all of whose bodies are local. `sites` says by rule where its body is; None means wherever a node has the rows.

    `helpers` are the relations that carry partial results, with the rule they were made for.
    """

    program: Program
    sites: Mapping[str, Term | None]
    helpers: Mapping[str, str]

    def is_shipped(self, rule: Rule) -> bool:
        """Whether heads of the rule may live elsewhere than its body."""
        relation = self.program.relations[rule.head.relation]
        if rule.is_fact or rule.head.relation == HERE:
            return False
        if relation.everywhere:
            return self.sites[rule.name] is not None
        return relation.location is not None and rule.head.args[relation.location] != self.sites[rule.name]


def is_placed(program: Program) -> bool:
    return any(relation.location is not None for relation in program.relations.values())


def localize(program: Program) -> Placed:
    """The program with local bodies. Raises `ProgramError` with every relation without a place and every rule that has no way."""
    found: list[Diagnostic] = [
        UnplacedRelation(relation.span, name=name)
        for name, relation in program.relations.items()
        if relation.location is None and not relation.everywhere
    ]
    found += _unnamable(program)
    if found:
        raise ProgramError(program.source, tuple(found))
    localizer = _Localizer(program, found)
    for rule in program.rules:
        localizer.add(rule)
    if not any(isinstance(part, Atom) and part.relation == HERE for rule in localizer.rules for part in rule.body):
        del localizer.relations[HERE]
    strata = stratify(localizer.relations, localizer.rules, program.subsumptions, found)
    if found:
        raise ProgramError(program.source, tuple(found))
    planned = replace(program, relations=localizer.relations, rules=tuple(localizer.rules), strata=strata)
    return Placed(planned, localizer.sites, localizer.helpers)


def localize_in_parts(program: Program, unshipped: Set[str]) -> Placed:
    """The same for places that are dealt to parts. All relations have a place or are everywhere, those in `unshipped` are.

    Those are derived by every part for itself: all that their rules read is everywhere, or copied.
    """
    localizer = _Localizer(program, [], unshipped)
    for rule in program.rules:
        localizer.add(rule)
    subsumptions = tuple(map(localizer.with_copies, program.subsumptions))
    del localizer.relations[HERE]
    found: list[Diagnostic] = []
    strata = stratify(localizer.relations, localizer.rules, subsumptions, found)
    if found:
        raise ProgramError(program.source, tuple(found))
    rules = tuple(localizer.rules)
    planned = replace(program, relations=localizer.relations, rules=rules, subsumptions=subsumptions, strata=strata)
    return Placed(planned, localizer.sites, localizer.helpers)


def shipping_weight(program: Program, rule: Rule, unshipped: Set[str]) -> int:
    """What it weighs to evaluate a rule in parts, were the places of relations those of the program."""
    localizer = _Localizer(program, [], unshipped)
    localizer.add(rule)
    return localizer.weight


def _unnamable(program: Program) -> Iterator[Diagnostic]:
    """Relations whose places cannot name nodes, or name other ones than the rest."""
    first: Relation | None = None
    for name, relation in program.relations.items():
        if relation.location is None:
            continue
        kind = relation.fields[relation.location].kind
        if kind not in (NUMBER, UNSIGNED, SYMBOL):
            yield UnnamableNode(relation.span, name=name, kind=kind, problem="which is not a name")
        elif first is None:
            first = relation
        elif kind != _kind_of_place(first):
            problem = f"those of {first.name} by {_kind_of_place(first)}"
            yield UnnamableNode(
                relation.span, name=name, kind=kind, problem=problem, related=[(first.span, "it is here")]
            )


def _kind_of_place(relation: Relation) -> Kind:
    assert relation.location is not None
    return relation.fields[relation.location].kind


class _Localizer:
    """With a set of relations that are `unshipped`, for parts."""

    def __init__(self, program: Program, found: list[Diagnostic], unshipped: Set[str] | None = None) -> None:
        self.program = program
        self.found = found
        self.unshipped = unshipped
        self.weight = 0
        here = Field("node", "symbol", NUMBER if self.in_parts else place_kind(program))
        self.relations: dict[str, Relation] = {**program.relations, HERE: Relation(HERE, (here,), NOWHERE, location=0)}
        self.rules: list[Rule] = []
        self.sites: dict[str, Term | None] = {}
        self.helpers: dict[str, str] = {}
        self.shared: dict[str, str] = {}
        self.recursive = {
            name: frozenset(stratum.relations)
            for stratum in program.strata
            for name in stratum.relations
            if stratum.recursive
        }

    @property
    def in_parts(self) -> bool:
        return self.unshipped is not None

    # -- one rule

    def add(self, rule: Rule) -> None:
        if rule.is_fact:
            self._keep(rule, None)
            return
        rule = self._with_named_places(rule)
        if self.unshipped is not None and rule.head.relation in self.unshipped:
            rule = self._copied(rule, self._placed_literals(rule.body))
        try:
            way = Search(self, rule).best()
        except NoWay as refused:
            meeting = self._meeting(rule)
            if meeting is None and self.in_parts:
                meeting = self._with_copies(rule)
            if meeting is None:
                self.found.append(refused.diagnostic)
                return
            rule, way = meeting
        self.weight += 10 * way.weight[0] + way.weight[1]
        self._write(rule, way)

    # -- copies that every part gets

    def with_copies(self, subsumption: Subsumption) -> Subsumption:
        """The same, asking copies for what lives elsewhere."""
        literals = self._placed_literals(subsumption.body)
        return replace(subsumption, body=self._about_copies(subsumption.body, literals, subsumption.name))

    def _placed_literals(self, body: tuple[Literal, ...]) -> tuple[int, ...]:
        return tuple(
            at
            for at, literal in enumerate(body)
            if any(isinstance(part, Atom) and place_of(part, self.relations) is not None for part in walk(literal))
        )

    def _with_copies(self, rule: Rule) -> tuple[Rule, Way]:
        """The rule with some of its literals about copies: those that weigh least to copy, and let it have a way."""
        literals = self._placed_literals(rule.body)
        sizes = range(1, len(literals) + 1) if len(literals) <= _MANY else (len(literals) - 1, len(literals))
        chosen = [each for size in sizes for each in combinations(literals, size)]
        for each in sorted(chosen, key=lambda each: (sum(self._weight_of_copies(rule, at) for at in each), each)):
            trial = _Localizer(self.program, [], self.unshipped)
            trial.relations = dict(self.relations)
            try:
                Search(trial, trial._copied(rule, each)).best()
            except NoWay:
                continue
            changed = self._copied(rule, each)
            return changed, Search(self, changed).best()
        raise AssertionError("what is everywhere can be evaluated anywhere")

    def _weight_of_copies(self, rule: Rule, at: int) -> int:
        own = self.recursive.get(rule.head.relation, frozenset())
        return sum(
            (RECURSIVE if part.relation in own else 1) * (_TO_ALL + len(part.args))
            for part in walk(rule.body[at])
            if isinstance(part, Atom) and place_of(part, self.relations) is not None
        )

    def _copied(self, rule: Rule, literals: tuple[int, ...]) -> Rule:
        self.weight += 10 * sum(self._weight_of_copies(rule, at) for at in literals)
        return replace(rule, body=self._about_copies(rule.body, literals, rule.name))

    def _about_copies(self, body: tuple[Literal, ...], literals: tuple[int, ...], name: str) -> tuple[Literal, ...]:
        names = {
            part.relation: self._copy_of(self.relations[part.relation], name)
            for at in literals
            for part in walk(body[at])
            if isinstance(part, Atom) and place_of(part, self.relations) is not None
        }
        return tuple(_about(each, names) if at in literals else each for at, each in enumerate(body))

    def _copy_of(self, relation: Relation, made_for: str) -> str:
        name = f"{relation.name}!all"
        if name not in self.relations:
            args = tuple(Var(f"c{at}", each.kind) for at, each in enumerate(relation.fields))
            self.relations[name] = Relation(name, relation.fields, relation.span, everywhere=True)
            self.helpers[name] = made_for
            atom = Atom(relation.name, args, relation.span)
            self._keep(
                Rule(f"{name}#1", Atom(name, args, relation.span), (atom,), relation.span),
                place_of(atom, self.relations),
            )
        return name

    def _meeting(self, rule: Rule) -> tuple[Rule, Way] | None:
        """The rule with what lives apart shipped to a third place: one that an argument of both names.

        In `reach(x, @y) :- link(@x, z), reach(z, @y).` neither atom names the other's place, but both name z.
        """
        kind = None if self.in_parts else place_kind(self.program)
        atoms = [each for each in rule.body if isinstance(each, Atom) and place_of(each, self.relations) is not None]
        names = [{arg for arg in each.args if isinstance(arg, Var) and kind in (None, arg.kind)} for each in atoms]
        shared = [each for at, one in enumerate(names) for other in names[at + 1 :] for each in one & other]
        for place in sorted(set(shared), key=lambda each: each.name):
            body = list(rule.body)
            moves: list[tuple[int, Atom]] = []
            for atom, known in zip(atoms, names, strict=True):
                if place in known and place_of(atom, self.relations) != place:
                    moves.append((body.index(atom), atom))
            moved = {at: Atom(f"{atom.relation}!", (place, *_variables(atom, place)), atom.span) for at, atom in moves}
            trial = _Localizer(self.program, [], self.unshipped)
            trial.relations = dict(self.relations)
            for atom in moved.values():
                trial._declare(atom, 0)
            changed = replace(rule, body=tuple(moved.get(at, each) for at, each in enumerate(body)))
            try:
                Search(trial, changed).best()
            except NoWay:
                continue
            return self._shipped_together(rule, place, moves)
        return None

    def _shipped_together(self, rule: Rule, place: Var, moves: list[tuple[int, Atom]]) -> tuple[Rule, Way]:
        body = list(rule.body)
        for at, atom in moves:
            others = tuple(each for each in body if each is not atom)
            stops = (Stop(place_of(atom, self.relations), (atom,)), Stop(place, others))
            body[at] = self._helper(rule, [atom], set(names_met(atom)), stops)
        changed = replace(rule, body=tuple(body))
        return changed, Search(self, changed).best()

    def _with_named_places(self, rule: Rule) -> Rule:
        """A place that is `_` or is computed gets a variable, so that the rest of the rule can speak of it."""
        body: list[Literal] = []
        for at, literal in enumerate(rule.body):
            if isinstance(literal, Atom):
                column = self.relations[literal.relation].location
                place = None if column is None else literal.args[column]
                if column is not None and not isinstance(place, Var | Const | None):
                    name = Var(f"place#{at}", self.relations[literal.relation].fields[column].kind)
                    args = (*literal.args[:column], name, *literal.args[column + 1 :])
                    body.append(replace(literal, args=args))
                    if not isinstance(place, Anything):
                        assert place is not None
                        body.append(Comparison("=", name, place, literal.span))
                    continue
            body.append(literal)
        return replace(rule, body=tuple(body))

    def _write(self, rule: Rule, way: Way) -> None:
        known: Atom | None = None
        last = len(way.stops) - 1
        for number, stop in enumerate(way.stops):
            body = [*([known] if known is not None else ()), *stop.literals]
            if number == 0 and stop.place is not None and not self._is_local_already(stop):
                here = Atom(HERE, (stop.place,), rule.span)
                body.insert(0, in_own_part(stop.place, rule.span) if self.in_parts else here)
            ordered, bound = order_body(body, set())
            if number == last:
                self._finish(rule, tuple(ordered), stop.place)
                return
            known = self._helper(rule, ordered, bound, way.stops[number:])

    def _is_local_already(self, stop: Stop) -> bool:
        return any(isinstance(each, Atom) and place_of(each, self.relations) == stop.place for each in stop.literals)

    def _finish(self, rule: Rule, body: tuple[Literal, ...], place: Term | None) -> None:
        head = self.relations[rule.head.relation]
        is_local = place is None or (head.location is not None and rule.head.args[head.location] == place)
        if is_local or not any(isinstance(each, Aggregation) for each in body):
            self._keep(replace(rule, body=body), place)
            return
        # Groups are made where their rows are; the head is shipped by a rule that has no aggregate.
        args = tuple(dict.fromkeys(part for part in walk(rule.head.args) if isinstance(part, Var)))
        groups = Atom(f"{rule.name}!groups", args, rule.head.span)
        self._declare(groups, None)
        self._keep(Rule(f"{groups.relation}#1", groups, body, rule.span), place)
        self._keep(replace(rule, body=(groups,)), place)

    def _helper(self, rule: Rule, body: list[Literal], bound: set[str], stops: tuple[Stop, ...]) -> Atom:
        """The relation that carries what is known at one place to the next; one that does it already is taken."""
        target = stops[1].place
        assert target is not None
        later = [literal for after in stops[1:] for literal in after.literals]
        kinds = {part.name: part.kind for part in walk(tuple(body)) if isinstance(part, Var)}
        needed = {name for literal in later for name in names_met(literal)}
        needed |= {name for arg in rule.head.args for name in names_in(arg)}
        carried = [
            Var(name, kinds[name]) for name in kinds if name in bound & needed and Var(name, kinds[name]) != target
        ]
        args = (target, *carried)
        key = _canonical(args, body)
        if key is not None and key in self.shared:
            return Atom(self.shared[key], args, rule.span)
        name = self._name(rule, body, target)
        head = Atom(name, args, rule.span)
        if key is not None:
            self.shared[key] = name
        self.helpers[name] = rule.name
        self._declare(head, 0)
        self._keep(Rule(f"{name}#1", head, tuple(body), rule.span), stops[0].place)
        return head

    def _name(self, rule: Rule, body: list[Literal], target: Term) -> str:
        only = body[0] if len(body) == 1 else None
        if isinstance(only, Atom) and target in only.args and only.relation != HERE:
            column = self.relations[only.relation].fields[only.args.index(target)].name
            name = f"{only.relation}!{column}"
            if name not in self.relations:
                return name
        number = sum(made_for == rule.name for made_for in self.helpers.values()) + 1
        return f"{rule.name}!{number}"

    def _declare(self, head: Atom, location: int | None) -> None:
        fields = tuple(
            Field(arg.name if isinstance(arg, Var) else f"c{at}", str(arg.kind), arg.kind)
            for at, arg in enumerate(head.args)
        )
        self.relations[head.relation] = Relation(head.relation, fields, head.span, location=location)

    def _keep(self, rule: Rule, place: Term | None) -> None:
        self.rules.append(rule)
        self.sites[rule.name] = place


def _variables(atom: Atom, apart: Var) -> list[Var]:
    return list(dict.fromkeys(part for part in walk(atom.args) if isinstance(part, Var) and part != apart))


def place_kind(program: Program) -> Kind:
    """The kind of the values that name nodes."""
    return next(_kind_of_place(each) for each in program.relations.values() if each.location is not None)


def _about(literal: Literal, names: Mapping[str, str]) -> Literal:
    """The literal with other relations in it."""
    match literal:
        case Atom(relation=relation):
            return replace(literal, relation=names.get(relation, relation))
        case Negation(atom=atom):
            return replace(literal, atom=replace(atom, relation=names.get(atom.relation, atom.relation)))
        case Aggregation(bodies=bodies):
            return replace(literal, bodies=tuple(tuple(_about(each, names) for each in body) for body in bodies))
        case _:
            return literal


def _canonical(args: tuple[Term, ...], body: list[Literal]) -> str | None:
    """The same text for helpers that hold the same, whatever their variables are called; None if that is not easily told."""
    names: dict[str, str] = {}
    text: list[str] = []
    for literal in body:
        if not isinstance(literal, Atom):
            return None
        text.append(literal.relation)
        for arg in literal.args:
            match arg:
                case Var(name=name):
                    text.append(names.setdefault(name, f"v{len(names)}"))
                case Const(value=value):
                    text.append(repr(value))
                case Anything():
                    text.append("_")
                case _:
                    return None
    shown = [names[arg.name] if isinstance(arg, Var) else str(arg) for arg in args]
    return " ".join([*shown, ":-", *text])
