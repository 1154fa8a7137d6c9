"""Relations derived on demand (magic sets): only the tuples that somebody asks for.

    q(y) :- p(1, y).
    p(x, y) :- e(x, y).
    p(x, z) :- p(x, y), e(y, z).

asks for p with its first column bound, and becomes

    p!bf:asked(1).
    q(y) :- p!bf(1, y).
    p!bf(x, y) :- p!bf:asked(x), e(x, y).
    p!bf(x, z) :- p!bf:asked(x), p!bf(x, y), e(y, z).

Bodies are gone through from left to right: what stands before an atom tells for which values it is asked. A relation that is
asked for with nothing bound is derived as a whole, under its own name.

Two things must not get lost. A program that ends has to end still: what is asked for are constants and values found in
relations, never such that a functor or a constructor makes. And what was complete before it was negated or aggregated has to
be so still: where asking would close a cycle through negation, an aggregate or a relation with a life of its own (`eqrel`,
`choice-domain`, …), the relations that are asked for there are derived as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field, replace

from whence.lang.diagnostics import Diagnostic
from whence.lang.graph import components
from whence.lang.order import binds, can_match, is_ready, order_body
from whence.lang.program import (
    Aggregation,
    Anything,
    Apply,
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
    counter_in,
)
from whence.lang.strata import dependencies, stratify
from whence.lang.tree import walk


def restrict_to_demand(program: Program, wanted: frozenset[str]) -> Program:
    """The program with the relations that are marked so derived on demand, unless they are wanted themselves."""
    if not any(relation.on_demand for relation in program.relations.values()):
        return program
    fixed = frozenset(_fixed(program))
    derived = {rule.head.relation for rule in program.rules if not rule.is_fact}
    whole = (
        wanted
        | fixed
        | {name for name, relation in program.relations.items() if not relation.on_demand or name not in derived}
    )
    while True:
        demand = _Demand(program, fixed, whole)
        demand.follow(wanted)
        more = demand.asked_whole.union(demand.in_bad_cycles()) - whole
        if not more:
            return demand.program_on_demand()
        whole |= more


def _fixed(program: Program) -> Iterator[str]:
    """The relations of strata that are left as they are, since more than the set of what is derived matters to them."""
    subsumed = {each.dominated.relation for each in program.subsumptions}
    counting = {rule.head.relation for rule in program.rules if counter_in(rule)}
    for stratum in program.strata:
        relations = [program.relations[name] for name in stratum.relations]
        if (
            stratum.stages
            or stratum.monotone
            or any(each.equivalence or each.choices or each.limit is not None for each in relations)
            or not subsumed.union(counting).isdisjoint(stratum.relations)
        ):
            yield from stratum.relations


@dataclass
class _Demand:
    """One attempt, given the relations that are derived as a whole; `asked_whole` are those that would have to be, too."""

    program: Program
    fixed: frozenset[str]
    whole: frozenset[str]
    asked_whole: set[str] = field(default_factory=set)
    rules: list[Rule] = field(default_factory=list)
    subsumptions: list[Subsumption] = field(default_factory=list)
    # The facts of relations that are derived on demand.
    facts: dict[str, list[Rule]] = field(default_factory=dict)
    # Helper relations, and the relation that each stands for.
    relations: dict[str, Relation] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    # What is asked for and not followed yet: a relation and its bound columns.
    pending: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.given = frozenset(self.program.base_relations)
        self.rules_of: dict[str, list[Rule]] = {}
        for rule in self.program.rules:
            self.rules_of.setdefault(rule.head.relation, []).append(rule)

    def follow(self, wanted: Iterable[str]) -> None:
        """Rewrites the rules of what is wanted, and of all that they ask for."""
        for name in wanted:
            self._ask_whole(name)
        while self.pending:
            name, bound = self.pending.pop()
            if bound:
                self._derive_on_demand(name, bound)
            elif name in self.fixed:
                self._keep(name)
            else:
                self.rules += [self._rewrite(rule) for rule in self.rules_of.get(name, ())]

    def program_on_demand(self) -> Program:
        if not self.relations:
            return self.program
        program = self.program
        rules = [rule for facts in self.facts.values() for rule in facts] + self.rules
        kept = self.asked_whole.union(self.given, self.facts)
        relations = {name: each for name, each in program.relations.items() if name in kept} | self.relations
        refused: list[Diagnostic] = []
        strata = stratify(relations, rules, self.subsumptions, refused)
        assert not refused
        return replace(
            program,
            relations=relations,
            rules=tuple(rules),
            subsumptions=tuple(self.subsumptions),
            strata=strata,
            transfers=tuple(transfer for transfer in program.transfers if transfer.relation in kept),
        )

    def in_bad_cycles(self) -> Iterator[str]:
        """Relations that are asked for in a cycle in which something has to be complete before it is used."""
        everything: list[Rule | Subsumption] = [*self.rules, *self.subsumptions]
        edges = [each for rule in everything for each in dependencies(rule)]
        graph: dict[str, list[str]] = {}
        for edge in edges:
            graph.setdefault(edge.head, []).append(edge.body)
            graph.setdefault(edge.body, [])
        component_of = {name: component for component in components(graph) for name in component}
        strict = {component_of[edge.head] for edge in edges if edge.strict and edge.body in component_of[edge.head]}
        for component in set(component_of.values()):
            if component in strict or not self.fixed.isdisjoint(component):
                yield from (self.origins[name] for name in component if name in self.origins)

    # -- rules

    def _keep(self, name: str) -> None:
        """A relation with its rules as they are, and all that they read."""
        rules = self.rules_of.get(name, [])
        subsumptions = [each for each in self.program.subsumptions if each.dominated.relation == name]
        self.rules += rules
        self.subsumptions += subsumptions
        everything: list[Rule | Subsumption] = [*rules, *subsumptions]
        for each in everything:
            for dependency in dependencies(each):
                self._ask_whole(dependency.body)

    def _derive_on_demand(self, name: str, bound: tuple[int, ...]) -> None:
        helper = _adorned(name, bound, self.program.relations[name].arity)
        facts = [rule for rule in self.rules_of[name] if rule.is_fact]
        if facts or name in self.given:
            # What is given stays where it is, and is taken over as far as it is asked for.
            self.facts[name] = facts
            relation = self.program.relations[name]
            columns = tuple(Var(f"c{at}", each.kind) for at, each in enumerate(relation.fields))
            head = Atom(helper, columns, relation.span)
            given = replace(head, relation=name)
            self.rules.append(Rule(f"{helper}#given", head, (_question(head, bound), given), relation.span))
        for rule in self.rules_of[name]:
            if not rule.is_fact:
                head = replace(rule.head, relation=helper)
                body, _ = order_body((_question(head, bound), *rule.body), set())
                adorned = Rule(f"{rule.name}{helper.removeprefix(name)}", head, tuple(body), rule.span)
                self.rules.append(self._rewrite(adorned))

    def _rewrite(self, rule: Rule) -> Rule:
        return replace(rule, body=self._body(rule, rule.body, set(), []))

    def _body(
        self, rule: Rule, body: tuple[Literal, ...], known: Set[str], before: list[Literal]
    ) -> tuple[Literal, ...]:
        """The body with its atoms asking; `before` holds what leads up to it and binds the variables that are known."""
        known, before = set(known), list(before)
        result: list[Literal] = []
        for literal in body:
            match literal:
                case Atom():
                    result.append(self._ask(rule, literal, known, before))
                case Negation(atom=atom):
                    result.append(replace(literal, atom=self._ask(rule, atom, known, before)))
                case Aggregation(bodies=bodies, outer=outer):
                    inside = tuple(self._body(rule, each, known.intersection(outer), before) for each in bodies)
                    result.append(replace(literal, bodies=inside))
                case _:
                    result.append(literal)
            if _leads_on(result[-1], known):
                before.append(result[-1])
                known.update(binds(result[-1]))
        return tuple(result)

    # -- questions

    def _ask(self, rule: Rule, atom: Atom, known: Set[str], before: list[Literal]) -> Atom:
        name = atom.relation
        if name in self.origins:
            return atom
        bound = tuple(at for at, arg in enumerate(atom.args) if _is_found(arg, known))
        if not bound or name in self.whole:
            self._ask_whole(name)
            return atom
        fields = self.program.relations[name].fields
        asking = replace(atom, relation=_adorned(name, bound, len(fields)))
        question = _question(asking, bound)
        if asking.relation not in self.relations:
            self.relations[asking.relation] = Relation(asking.relation, fields, atom.span)
            self.relations[question.relation] = Relation(
                question.relation, tuple(fields[at] for at in bound), atom.span
            )
            self.origins |= {asking.relation: name, question.relation: name}
            self.pending.append((name, bound))
        if question not in before:
            self.rules.append(Rule(f"{question.relation}#{len(self.rules)}", question, tuple(before), rule.span))
        return asking

    def _ask_whole(self, name: str) -> None:
        if name not in self.asked_whole:
            self.asked_whole.add(name)
            self.pending.append((name, ()))


def _adorned(name: str, bound: tuple[int, ...], arity: int) -> str:
    return f"{name}!{''.join('b' if at in bound else 'f' for at in range(arity))}"


def _question(atom: Atom, bound: tuple[int, ...]) -> Atom:
    return Atom(f"{atom.relation}:asked", tuple(atom.args[at] for at in bound), atom.span)


def _is_found(term: Term, known: Set[str]) -> bool:
    """Whether the term is a value that is written in the program or was found in a relation."""
    if isinstance(term, Var):
        return term.name in known
    return not any(isinstance(part, Var | Anything | Apply) for part in walk(term))


def _leads_on(literal: Literal, known: Set[str]) -> bool:
    """Whether a literal helps to tell what is asked for after it."""
    match literal:
        case Atom():
            return is_ready(literal, known)
        case Comparison() if any(isinstance(part, Apply) for part in walk(literal)):
            return False
        case Comparison(op="=", left=left, right=right):
            return any(
                isinstance(one, Var | Const) and _is_found(one, known) and can_match(other, known)
                for one, other in ((left, right), (right, left))
            )
        case Comparison():
            return is_ready(literal, known)
        case _:
            return False
