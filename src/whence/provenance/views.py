"""Derivations in terms of the tables and views of a user who wrote SQL.

One query of SQL takes several rules: the rows of a join, of a partition or of a bag have helper relations of their own, which the
user never named. What is shown has none of them: what a helper's firing used, the firing above it uses. Rows of a bag are rows of
its view, without the columns that tell equal ones apart, and so are rows of tables. What proofs rest on stays the same, base
facts and absences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

from whence.lang.bags import bag_rows
from whence.lang.program import Program
from whence.provenance.copies import Rows, graph_without_copies, without_copies
from whence.provenance.graph import (
    Absence,
    Aggregated,
    Cut,
    Derivation,
    DerivationGraph,
    Fact,
    UnnamedAbsence,
    Wildcard,
)
from whence.provenance.proofs import Proof
from whence.provenance.show import show_value, source_text

T = TypeVar("T")
_LONGEST = 70


def proof_of_views(proof: Proof, program: Program) -> Proof:
    """The proof without helpers; what it proves is kept, even if it is a row of one."""
    folding = Folding(program)
    return without_copies(folding.proof(proof) if folding.is_needed else proof, program)


def graph_of_views(graph: DerivationGraph, program: Program) -> DerivationGraph:
    """The graph without helpers, but for its roots and for those that were not looked into."""
    folding = Folding(program)
    return graph_without_copies(folding.graph(graph) if folding.is_needed else graph, program)


@dataclass(frozen=True, slots=True)
class _Used:
    """What a firing used, helpers taken apart."""

    body: tuple[Fact, ...] = ()
    absent: tuple[Absence, ...] = ()
    aggregates: tuple[Aggregated, ...] = ()

    @property
    def facts(self) -> tuple[Fact, ...]:
        return (*self.body, *(fact for each in self.aggregates for fact in each.facts))


class Folding:
    """What is shown of a program's facts and firings."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.helpers = {name for name, relation in program.relations.items() if relation.helper}
        # By what is shown: rows of a bag are rows of its view, those of a query with a name in WITH or FROM are its own.
        self.rows = Rows(program)
        self.rows_of = dict(bag_rows(program)) | {
            name: name
            for name, relation in program.relations.items()
            if relation.hidden and not relation.helper and self.rows.table(name) == name
        }

    @property
    def is_needed(self) -> bool:
        return bool(self.helpers or self.rows_of)

    def proof(self, root: Proof) -> Proof:
        used: dict[int, _Used] = {}
        shown: dict[int, dict[Fact, Proof]] = {}  # by part: the proofs of what it stands for
        for part in root:
            if part.firing is None:
                shown[id(part)] = {part.fact: part}
                continue
            below = {fact: proof for each in part.premises for fact, proof in shown[id(each)].items()}
            meant = [used[id(each)] if id(each) in used else _Used((self.fact(each.fact),)) for each in part.premises]
            everything = self._combined(part.firing, meant)
            if part is not root and self.is_folded(part.fact):
                used[id(part)], shown[id(part)] = everything, below
            elif part is not root and self._is_wrapped(part.firing):
                shown[id(part)] = {self.fact(part.fact): below[self.fact(part.fact)]}
            else:
                made = self._firing(part.firing, everything, is_root=part is root)
                premises = tuple(below[fact] for fact in made.premises)
                height = 1 + max((each.height for each in premises), default=0)
                proof = Proof(made.head, made, premises, height)
                if part is root and self._is_wrapped(part.firing):
                    proof = premises[0]
                shown[id(part)] = {made.head: proof}
        return next(iter(shown[id(root)].values()))

    def graph(self, graph: DerivationGraph) -> DerivationGraph:
        cut = graph.cut.facts if graph.cut else frozenset()
        opened: dict[Fact, list[_Used]] = {}

        def meanings(fact: Fact) -> list[_Used]:
            if fact in cut or not self.is_folded(fact):
                return [_Used((self.fact(fact),))]
            if fact not in opened:
                opened[fact] = [each for firing in graph.derivations.get(fact, ()) for each in combinations(firing)]
            return opened[fact]

        def combinations(firing: Derivation) -> Iterator[_Used]:
            # An aggregate ran over all the rows, however they are derived.
            whole = [_together(meanings(fact)) for fact in firing.premises[len(firing.body) :]]
            for chosen in product(*map(meanings, firing.body)):
                yield self._combined(firing, [*chosen, *whole])

        made: dict[Fact, dict[Derivation, None]] = {}
        for fact, firings in graph.derivations.items():
            is_root = fact in graph.roots
            if self.is_folded(fact) and not is_root:
                continue
            for firing in firings:
                if not self._is_wrapped(firing):
                    for each in combinations(firing):
                        derived = self._firing(firing, each, is_root=is_root)
                        made.setdefault(derived.head, {})[derived] = None
        reached = {fact for firings in made.values() for firing in firings for fact in firing.premises} | {*graph.roots}
        left = Cut(graph.cut.reason, frozenset(map(self.fact, cut)) & reached) if graph.cut else None
        return DerivationGraph(graph.roots, {fact: tuple(each) for fact, each in made.items()}, graph.base, left)

    def is_folded(self, fact: Fact) -> bool:
        """Whether the fact is of a helper, and so not shown itself."""
        return fact.relation in self.helpers and fact.relation not in self.rows_of

    def _is_wrapped(self, firing: Derivation) -> bool:
        """Whether a row of a view is there because it is in its bag."""
        used = firing.body[0].relation if len(firing.body) == 1 else ""
        return self.rows_of.get(used) == firing.head.relation != used

    def fact(self, fact: Fact) -> Fact:
        view = self.rows_of.get(fact.relation)
        return fact if view is None else Fact(view, fact.tuple[: self._width(view)])

    def _width(self, view: str) -> int:
        relation = self.program.relations[view]
        return relation.arity - relation.hidden

    def _firing(self, firing: Derivation, used: _Used, *, is_root: bool) -> Derivation:
        view = self.rows_of.get(firing.head.relation)
        if view is None or is_root:
            return Derivation(firing.rule, firing.head, used.body, used.absent, used.aggregates)
        rule = f"{view}#{firing.rule.rpartition('#')[2]}"
        return Derivation(rule, self.fact(firing.head), used.body, used.absent, used.aggregates)

    def _combined(self, firing: Derivation, meant: Sequence[_Used]) -> _Used:
        """`meant` has what each premise stands for, in their order."""
        at = len(firing.body)
        body, absent = list(meant[:at]), [self.absence(each) for each in firing.absent]
        aggregates = [each for used in body for each in used.aggregates]
        for each in firing.aggregates:
            over = meant[at : at + len(each.facts)]
            at += len(each.facts)
            facts = _once(fact for used in over for fact in used.facts)
            # The list that a window or STRING_AGG goes through has the columns of a helper: what counts are its rows.
            op, value = ("rows", len(over)) if each.op == "collect" else (each.op, each.value)
            aggregates.append(Aggregated(op, value, facts))
            absent += [missing for used in over for missing in used.absent]
        absent += [missing for used in body for missing in used.absent]
        rows = _once(fact for used in body for fact in used.body)
        if self.is_folded(firing.head) or all(each.op != "rows" for each in aggregates):
            # One row of a group or partition is there to say that there is one: the aggregate has it too.
            among = {fact for each in aggregates for fact in each.facts}
            rows = tuple(fact for fact in rows if fact not in among)
        return _Used(rows, _once(absent), _once(aggregates))

    def absence(self, absence: Absence) -> Absence:
        """What is missing, in words if the relation is a helper."""
        relation, pattern = absence = self.rows.of_absence(absence)
        view = self.rows_of.get(relation)
        if view is not None:
            return Absence(view, pattern[: self._width(view)])
        if relation not in self.helpers:
            return absence
        declared = self.program.relations[relation]
        fields = zip(declared.fields, pattern, strict=True)
        known = [f"{each.name} = {show_value(value)}" for each, value in fields if not isinstance(value, Wildcard)]
        text = f"{declared.helper}{' with ' if known else ''}{' and '.join(known)}"
        queries = [source_text(self.program, rule.span) for rule in self.program.rules_for(relation)]
        query = queries[0] if len(queries) == 1 and len(queries[0]) <= _LONGEST else ""
        return UnnamedAbsence(f"{text} in ({query})" if query else text, ())


def _together(meanings: Iterable[_Used]) -> _Used:
    listed = list(meanings)
    return _Used(
        _once(fact for each in listed for fact in each.facts), _once(gone for each in listed for gone in each.absent)
    )


def _once(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))
