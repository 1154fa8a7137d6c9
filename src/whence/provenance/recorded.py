"""Derivations that were recorded: a table for each rule, with a row for each firing, which answers without an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from whence.lang.program import Program, Rule
from whence.lang.types import Tuple
from whence.plan.record import RecordedProgram, Recording, record_derivations
from whence.provenance.derivations import CannotExplain, Derivations, nothing_derives
from whence.provenance.derive import Deriver
from whence.provenance.firings import fact_of, firings, stated_facts
from whence.provenance.graph import Derivation, Fact
from whence.reference.solve import Environment, Solver
from whence.reference.tables import TupleSet
from whence.session import Session


class RecordedDerivations(Derivations):
    """Answers from the tables of recorded derivations and from base facts alone. Nothing is evaluated.

    What a relation holds is what its firings made, so that every derived relation that a question leads to has to be recorded.

    >>> from whence import load
    >>> from whence.plan.record import with_derivations
    >>> from whence.provenance import why
    >>> program = with_derivations(load("r: p(x) :- e(x, y), e(y, x). .decl e(x:number, y:number) .input e .output p"), ["p"])
    >>> tables = {"e": [(1, 2), (2, 1)], "r.derivations": [(1, 2), (2, 1)]}
    >>> why(RecordedDerivations.of_tables(program, tables), "p", (1,)).proof.firing.body
    (Fact(relation='e', tuple=(1, 2)), Fact(relation='e', tuple=(2, 1)))
    """

    def __init__(
        self, program: Program, recordings: Mapping[str, Recording], rows_of: Callable[[str], Iterable[Tuple]]
    ) -> None:
        """`rows_of` gives the rows of a base relation, and those of a table of derivations."""
        self._program = program
        self._recordings = recordings
        self._rows_of = rows_of
        self._recorded = {each.rule.head.relation for each in recordings.values()}
        self._tables = _Tables(self)
        self._solver = Solver(program, self._tables)
        self._base: dict[str, frozenset[Tuple]] = {}
        self._stated: dict[str, dict[Tuple, Rule]] = {}
        self._made: dict[str, dict[Tuple, list[tuple[Rule, Environment]]]] = {}

    @classmethod
    def of_session(cls, session: Session) -> RecordedDerivations:
        """What a session with `record` has recorded."""
        base = session.base()

        def rows_of(name: str) -> Iterable[Tuple]:
            return base[name] if name in base else session.relation(name)

        return cls(session.program, session.recordings, rows_of)

    @classmethod
    def of_tables(cls, program: RecordedProgram, tables: Mapping[str, Iterable[Tuple]]) -> RecordedDerivations:
        """Base relations and tables of derivations by name, as a run with `record` publishes them."""
        _, recordings = record_derivations(program.plain, program.record)

        def rows_of(name: str) -> Iterable[Tuple]:
            if name not in tables:
                raise CannotExplain(f"{name} is not among the tables; there are {', '.join(tables)}")
            return tables[name]

        return cls(program.plain, recordings, rows_of)

    @property
    def program(self) -> Program:
        return self._program

    def holds(self, fact: Fact) -> bool:
        if fact.relation not in self._program.relations:
            raise ValueError(f"there is no relation {fact.relation}; there are {', '.join(self._program.relations)}")
        arity = self._program.relations[fact.relation].arity
        if len(fact.tuple) != arity:
            raise ValueError(f"{fact.relation} has {arity} columns, not {len(fact.tuple)}")
        return self.is_base(fact) or fact.tuple in self._firings(fact.relation)

    def is_base(self, fact: Fact) -> bool:
        return fact.tuple in self._given(fact.relation) or fact.tuple in self._stated_in(fact.relation)

    def base_facts(self, relation: str) -> Iterator[Fact]:
        return (Fact(relation, row) for row in self._given(relation))

    def derivations(self, fact: Fact) -> Iterator[Derivation]:
        for rule, environment in self._firings(fact.relation).get(fact.tuple, ()):
            yield from firings(rule, fact, environment, self._solver)

    def rows(self, relation: str) -> set[Tuple]:
        """All that a relation holds."""
        return {*self._given(relation), *self._stated_in(relation), *self._firings(relation)}

    def _given(self, relation: str) -> frozenset[Tuple]:
        if relation not in self._base:
            rows = self._rows_of(relation) if relation in self._base_relations else ()
            self._base[relation] = frozenset(rows)
        return self._base[relation]

    @cached_property
    def _base_relations(self) -> frozenset[str]:
        return frozenset(self._program.base_relations)

    def _stated_in(self, relation: str) -> Mapping[Tuple, Rule]:
        if relation not in self._stated:
            self._stated[relation] = stated_facts(self._program, relation)
        return self._stated[relation]

    def _firings(self, relation: str) -> Mapping[Tuple, list[tuple[Rule, Environment]]]:
        """The recorded assignments by the row that they make. Raises CannotExplain if they were not recorded."""
        made = self._made.get(relation)
        if made is None:
            if relation not in self._recorded and not nothing_derives(self._program, relation):
                recorded = ", ".join(sorted(self._recorded)) or "none"
                raise CannotExplain(
                    f"the derivations of {relation} were not recorded; recorded are those of {recorded}"
                )
            made = self._made[relation] = {}
            for recording in self._recordings.values():
                if recording.rule.head.relation == relation:
                    for head, environment in assignments(recording, self._rows_of(recording.relation), self._solver):
                        made.setdefault(head.tuple, []).append((recording.rule, environment))
        return made


class _Tables(dict[str, TupleSet]):
    """Relations for the solver, which needs those that aggregates run over: made when they are asked for."""

    def __init__(self, source: RecordedDerivations) -> None:
        super().__init__()
        self._source = source

    def __missing__(self, name: str) -> TupleSet:
        self[name] = TupleSet(self._source.rows(name))
        return self[name]


def assignments(recording: Recording, rows: Iterable[Tuple], solver: Solver) -> Iterator[tuple[Fact, Environment]]:
    """The values of a rule's variables in each of its firings, with the fact that it makes."""
    names = [each.name for each in recording.variables]
    for row in rows:
        environment: Environment = dict(zip(names, row, strict=True))
        yield fact_of(recording.rule.head, environment, solver), environment


def recorded_derivations(session: Session, rule: str) -> Iterator[Derivation]:
    """Every firing of a rule of a recorded relation.

    >>> from whence import Session, load
    >>> session = Session(load("r: p(x) :- e(x, y), e(y, x). .decl e(x:number, y:number) .input e .output p"),
    ...                   facts={"e": [(1, 2), (2, 1)]}, record=["p"])
    >>> sorted(firing.body[0].tuple for firing in recorded_derivations(session, "r"))
    [(1, 2), (2, 1)]
    """
    recording = session.recordings.get(rule)
    if recording is None:
        raise ValueError(f"rule {rule} is not recorded; recorded are {', '.join(session.recordings) or 'none'}")
    solver = Deriver(session).solver
    for head, environment in assignments(recording, session.relation(recording.relation), solver):
        yield from firings(recording.rule, head, environment, solver)
