"""Whoever answers `Derivations` can be asked every question, and the answers are the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from tests.properties.programs import Run, runs
from tests.provenance.sessions import SOME, base_of, derived_of, session_after

from whence import Program, Session, load
from whence.lang.types import Tuple
from whence.plan.partition import NotPartitionable, Partitioning, partition
from whence.plan.record import with_derivations
from whence.provenance import (
    CannotExplain,
    Derivation,
    DerivationGraph,
    Derivations,
    Fact,
    PartedDerivations,
    RecordedDerivations,
    contributions,
    graph_of,
    how,
    probability,
    why,
)
from whence.provenance.check import Checker
from whence.provenance.derive import Deriver
from whence.provenance.export import EXPORTS, graph_of_proof
from whence.provenance.to_json import contributions_to_json, graph_to_json, probability_to_json, why_to_json

TEXT = """
.decl link(x:symbol, y:symbol, km:number)
.decl closed(x:symbol)
.input link
.input closed
r1: reach(x, y) :- link(x, y, _), !closed(y).
r2: reach(x, z) :- reach(x, y), link(y, z, _), !closed(z).
r3: far(x, d) :- reach(x, _), d = max k * 2 : { reach(x, y), link(y, _, k) }.
.output reach
.output far
"""
FACTS: Mapping[str, list[Tuple]] = {
    "link": [("a", "b", 1), ("b", "c", 2), ("a", "c", 3), ("c", "a", 4), ("c", "d", 5), ("d", "e", 6)],
    "closed": [("e",)],
}
QUESTIONS = [Fact("reach", ("a", "d")), Fact("reach", ("b", "b")), Fact("far", ("a", 12)), Fact("link", ("a", "b", 1))]


class Listed(Derivations):
    """Derivations that somebody else kept: a graph, and nothing behind it."""

    def __init__(self, graphs: Iterable[DerivationGraph], program: Program) -> None:
        self._program = program
        self.made: dict[Fact, tuple[Derivation, ...]] = {}
        self.base: set[Fact] = set()
        for graph in graphs:
            self.made.update(graph.derivations)
            self.base |= graph.base

    @property
    def program(self) -> Program:
        return self._program

    def holds(self, fact: Fact) -> bool:
        return fact in self.base or bool(self.made.get(fact))

    def is_base(self, fact: Fact) -> bool:
        return fact in self.base

    def derivations(self, fact: Fact) -> Iterable[Derivation]:
        return self.made.get(fact, ())

    def base_facts(self, relation: str) -> Iterable[Fact]:
        return [fact for fact in self.base if fact.relation == relation]


def shares(
    how: Partitioning, parts: int, facts: Mapping[str, Iterable[Tuple]]
) -> Callable[[int], dict[str, list[Tuple]]]:
    return lambda part: {
        name: [row for row in rows if how.part(name, row, parts) in (None, part)]
        for name, rows in facts.items()
        if name in how.program.relations
    }


def in_parts(how: Partitioning, parts: int, facts: Mapping[str, Iterable[Tuple]]) -> PartedDerivations:
    return PartedDerivations(how, parts, shares(how, parts, facts))


def subjects() -> dict[str, Session | Derivations]:
    program = load(TEXT)
    live = Session(program, facts=FACTS)
    recorded = Session(program, facts=FACTS, record=["reach", "far"])
    tables = {name: list(recorded.relation(name)) for name in (*FACTS, *recorded.tables)}
    return {
        "session": live,
        "deriver": Deriver(live),
        "recorded by a session": RecordedDerivations.of_session(recorded),
        "recorded tables": RecordedDerivations.of_tables(with_derivations(program, ["reach", "far"]), tables),
        "in parts": in_parts(partition(program, ["reach", "far"]), 3, FACTS),
        "kept by others": Listed([graph_of(live, *fact) for fact in QUESTIONS], program),
    }


@pytest.fixture(scope="module", params=[*subjects()])
def subject(request: pytest.FixtureRequest) -> Session | Derivations:
    return subjects()[request.param]


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(load(TEXT), facts=FACTS)


@pytest.mark.parametrize("fact", QUESTIONS, ids=str)
def test_proofs_and_graphs(subject, session: Session, fact: Fact) -> None:
    checker = Checker(session.program, FACTS)
    for number in (1, 3):
        answer, expected = why(subject, *fact, number=number), why(session, *fact, number=number)
        assert [proof.height for proof in answer.proofs] == [proof.height for proof in expected.proofs]
        assert answer.is_certain
        for proof in answer.proofs:
            checker.check(proof)
        assert len(why_to_json(answer)["proofs"]) == len(expected.proofs)
        assert str(answer).startswith(fact.relation)
    found, wanted = graph_of(subject, *fact), graph_of(session, *fact)
    assert (found.derivations, found.base) == (wanted.derivations, wanted.base)
    assert graph_to_json(found, session.program) == graph_to_json(wanted, session.program)


@pytest.mark.parametrize("shape", EXPORTS)
def test_pictures_and_exports(subject, session: Session, shape: str) -> None:
    fact = QUESTIONS[0]
    made = EXPORTS[shape](graph_of(subject, *fact), session.program)
    assert made == EXPORTS[shape](graph_of(session, *fact), session.program)
    proof = EXPORTS[shape](graph_of_proof(why(subject, *fact).proofs), session.program)
    assert 0 < len(proof) < len(made)
    if shape == "svg":
        ET.fromstring(made)
    if shape == "prov":
        assert json.loads(made)["activity"]


def test_values_in_semirings(subject, session: Session) -> None:
    fact = QUESTIONS[0]
    for semiring in ("lineage", "posbool", "why", "counting"):
        assert how(graph_of(subject, *fact), fact, semiring) == how(graph_of(session, *fact), fact, semiring)


def test_probabilities_and_shares(subject, session: Session) -> None:
    fact = QUESTIONS[0]

    def chance(base: Fact) -> float:
        return 0.5 if base.relation == "link" else 1.0

    assert probability(subject, *fact, chance) == probability(session, *fact, chance)
    assert probability_to_json(fact, probability(subject, *fact, chance))["exact"]
    shares = contributions(subject, *fact, among=["link"])
    assert shares == contributions(session, *fact, among=["link"])
    assert len(contributions_to_json(fact, shares)["contributions"]) == len(shares)
    with pytest.raises(CannotExplain, match="rule r3 asks"):
        probability(subject, *QUESTIONS[2], chance)


def test_what_does_not_hold_is_said_to(subject) -> None:
    with pytest.raises(CannotExplain, match=r'reach\("a", "z"\) does not hold'):
        why(subject, "reach", ("a", "z"))


def test_only_the_parts_asked_about_are_read() -> None:
    program = load(TEXT)
    how = partition(program, ["reach", "far"])
    read: list[int] = []

    def base_of_part(part: int) -> dict[str, list[Tuple]]:
        read.append(part)
        return shares(how, 4, FACTS)(part)

    source = PartedDerivations(how, 4, base_of_part)
    why(source, "reach", ("a", "d"))
    assert read == [how.part("reach", ("a", "d"), 4)]


def test_what_was_not_recorded_is_named() -> None:
    session = Session(load(TEXT), facts=FACTS, record=["far"])
    source = RecordedDerivations.of_session(session)
    with pytest.raises(CannotExplain, match="the derivations of reach were not recorded; recorded are those of far"):
        why(source, "far", ("a", 12))
    with pytest.raises(ValueError, match="there is no relation nobody"):
        why(source, "nobody", ())
    with pytest.raises(ValueError, match="far has 2 columns, not 1"):
        why(source, "far", ("a",))
    program = with_derivations(load(TEXT), ["reach"])
    with pytest.raises(CannotExplain, match="closed is not among the tables; there are link"):
        why(RecordedDerivations.of_tables(program, {"link": FACTS["link"]}), "closed", ("a",))


@pytest.mark.filterwarnings("ignore::whence.reference.EvaluationWarning")
@SOME
@given(runs())
def test_recorded_tables_and_parts_know_what_a_session_knows(run: Run) -> None:
    plain = session_after(run)
    base = base_of(plain)
    native = {name for stratum in plain.plan.strata if stratum.native for name in stratum.relations}
    others: list[Derivations] = [
        RecordedDerivations.of_session(Session(run.program, facts=base, record=[*native & {*derived_of(plain)}]))
    ]
    with suppress(NotPartitionable):
        others.append(in_parts(partition(run.program, derived_of(plain)), 2, base))
    deriver = Deriver(plain)
    for name in derived_of(plain):
        for row in sorted(plain.relation(name))[:4]:
            fact = Fact(name, row)
            for other in others:
                try:
                    found = set(other.derivations(fact))
                except CannotExplain:
                    assert isinstance(other, RecordedDerivations)
                    continue
                assert found == set(deriver.derivations(fact))
                assert other.holds(fact)
                assert other.is_base(fact) == deriver.is_base(fact)


UNDEFINED = ".decl e(x:number) .input e\nq(n) :- n = OP 10 / x : { e(x) }.\n.output q"


@pytest.mark.filterwarnings("ignore::whence.reference.EvaluationWarning")
@pytest.mark.parametrize(("op", "value", "used"), [("max", 5, {2}), ("min", 1, {6}), ("sum", 6, {2, 6})])
def test_rows_without_a_value_take_no_part_in_an_aggregate(op: str, value: int, used: set[int]) -> None:
    session = Session(load(UNDEFINED.replace("OP", op)), facts={"e": [(0,), (2,), (6,)]})
    proof = why(session, "q", (value,)).proof
    assert {fact.tuple[0] for fact in proof.firing.premises} == used
    Checker(session.program, {"e": [(0,), (2,), (6,)]}).check(proof)
    assert probability(session, "q", (value,), {}).low == 1.0
