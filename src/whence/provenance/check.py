"""A proof checker that knows a program's rules and base facts, and nothing of sessions, ranks or searches.

A step is right if its rule, given its premises one per atom and nothing else, derives its head. What a negation found missing
and what an aggregate ran over is compared with the reference evaluation of the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from whence.lang.program import Program, Rule
from whence.lang.types import Tuple
from whence.provenance.graph import Derivation, Fact
from whence.provenance.patterns import fits
from whence.provenance.proofs import Proof
from whence.provenance.replay import contributions_of, may_fire, premises_of, replayed
from whence.provenance.show import show_fact
from whence.reference import evaluate
from whence.reference.solve import Solver
from whence.reference.tables import TupleSet


class WrongProof(Exception):
    """A step of a proof does not hold."""


class Checker:
    """Checks proofs against a program and its base facts."""

    def __init__(self, program: Program, facts: Mapping[str, Iterable[Tuple]]) -> None:
        self.program = program
        self.given = {name: set(rows) for name, rows in facts.items()}
        self.model = evaluate(program, self.given)
        self.rules: dict[str, list[Rule]] = {}
        for rule in program.rules:
            self.rules.setdefault(rule.name, []).append(rule)

    def check(self, proof: Proof) -> None:
        """Raises WrongProof at the first step that does not hold."""
        for part in proof:
            if part.firing is None:
                self._check_base(part.fact)
            else:
                self._check_step(part, part.firing)

    def _check_base(self, fact: Fact) -> None:
        stated = any(
            fact.tuple in set(Solver(self.program, {}).heads(rule))
            for rule in self.program.rules_for(fact.relation)
            if rule.is_fact
        )
        _demand(stated or fact.tuple in self.given.get(fact.relation, ()), f"{show_fact(fact)} is not a base fact")

    def _check_step(self, proof: Proof, firing: Derivation) -> None:
        _demand(firing.head == proof.fact, f"the firing makes {show_fact(firing.head)}, not {show_fact(proof.fact)}")
        _demand(tuple(each.fact for each in proof.premises) == firing.premises, "premises and proofs differ")
        _demand(proof.height == 1 + max((each.height for each in proof.premises), default=0), "the height is wrong")
        for absence in firing.absent:
            present = any(all(map(fits, absence.pattern, row)) for row in self.model[absence.relation])
            _demand(not present, f"{show_fact(absence)} is there")
        if firing.rule == "eqrel":
            self._check_equivalence(firing)
            return
        right = any(self._derives(rule, firing) for rule in self.rules.get(firing.rule, ()))
        _demand(right, f"rule {firing.rule} does not derive {show_fact(firing.head)} from its premises")

    def _check_equivalence(self, firing: Derivation) -> None:
        _demand(self.program.relations[firing.head.relation].equivalence, f"{firing.head.relation} is not an eqrel")
        pairs = {each.tuple for each in firing.body if each.relation == firing.head.relation}
        values = {firing.head.tuple[0]}
        for _ in pairs:
            values |= {value for pair in pairs if values & set(pair) for value in pair}
        _demand(bool(pairs) and firing.head.tuple[1] in values, f"{show_fact(firing.head)} does not follow")

    def _derives(self, rule: Rule, firing: Derivation) -> bool:
        """Whether the rule derives the head from the premises alone, and what aggregates ran over is complete and enough."""
        if not may_fire(rule, firing):
            return False
        tables = {name: TupleSet(rows) for name, rows in self.model.items()}
        tables |= premises_of(firing)
        only_premises = replayed(rule, ())
        if firing.head.tuple not in set(Solver(self.program, tables).heads(only_premises)):
            return False
        for at, each in enumerate(firing.aggregates):
            if any(fact.tuple not in self.model[fact.relation] for fact in each.facts):
                return False
            alone = tables | contributions_of(at, each, self.program)
            only_contributions = replayed(rule, (at,))
            if firing.head.tuple not in set(Solver(self.program, alone).heads(only_contributions)):
                return False
        return True


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise WrongProof(otherwise)
