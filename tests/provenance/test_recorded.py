"""Recorded derivations are those found on demand, after every epoch."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.properties.programs import Run, runs
from tests.provenance.sessions import SOME, base_of, derived_of, session_after

from whence import Session, Update, load
from whence.provenance.derive import Deriver
from whence.provenance.graph import Fact
from whence.provenance.proofs import smallest_proof
from whence.provenance.recorded import recorded_derivations
from whence.reference import EvaluationWarning


@pytest.mark.filterwarnings("ignore::whence.reference.EvaluationWarning")
@SOME
@given(runs())
def test_records_are_the_derivations_found_backwards(run: Run) -> None:
    plain = session_after(run)
    native = [name for stratum in plain.plan.strata if stratum.native for name in stratum.relations]
    chosen = [name for name in derived_of(plain) if name in native]
    session = Session(run.program, record=chosen)
    for epoch in run.epochs:
        session.apply(epoch)
    check_records(plain, session, chosen)
    check_records(plain, Session(run.program, facts=base_of(plain), record=chosen), chosen)


def check_records(plain: Session, session: Session, chosen: list[str]) -> None:
    assert session.views() == plain.views()
    for table in session.tables:
        rows = list(session.relation(table))
        assert len(rows) == len(set(rows))
    deriver = Deriver(plain)
    for name in chosen:
        found = {
            (firing.rule, firing.head, firing.body)
            for row in plain.relation(name)
            for firing in deriver.derivations(Fact(name, row))
        }
        recorded = [
            (firing.rule, firing.head, firing.body)
            for rule in plain.program.rules_for(name)
            if not rule.is_fact
            for firing in recorded_derivations(session, rule.name)
        ]
        assert set(recorded) == found


def test_heads_of_one_statement_share_a_table() -> None:
    text = ".decl e(x:number, y:number) .input e\na(x), b(y) :- e(x, y).\n.output a\n.output b"
    session = Session(load(text), facts={"e": [(1, 2)]}, record=["a", "b"])
    assert len({each.relation for each in session.recordings.values()}) == 1
    heads = {firing.head for rule in session.recordings for firing in recorded_derivations(session, rule)}
    assert heads == {Fact("a", (1,)), Fact("b", (2,))}


@pytest.mark.parametrize("rest", ["", "q(x) :- h(x, _). h(x, y) :- q(y), e(x, _).\n"])
def test_a_head_without_a_value_is_no_firing(rest: str) -> None:
    text = ".decl e(x:number, y:number) .input e\ng(y), h(x, 6 / y) :- e(x, y).\n" + rest + ".output g\n.output h"
    with pytest.warns(EvaluationWarning, match=r"<program>:2: rule h#1: division by zero") as told:
        session = Session(load(text), facts={"e": [(1, 2), (3, 0)]}, record=["g", "h"])
    assert len({str(each.message) for each in told}) == 1
    assert {firing.head for firing in recorded_derivations(session, "g#1")} == {Fact("g", (2,)), Fact("g", (0,))}
    assert [firing.head for firing in recorded_derivations(session, "h#1")] == [Fact("h", (1, 3))]


def test_proofs_of_recorded_relations_are_still_smallest() -> None:
    text = ".decl e(x:number, y:number) .input e\nr(x, y) :- e(x, y). r(x, z) :- r(x, y), e(y, z). .output r"
    session = Session(load(text), facts={"e": [(0, 1), (1, 2), (2, 3), (0, 2)]}, record=["r"])
    proof, is_certain = smallest_proof(Deriver(session), Fact("r", (0, 3)))
    assert (proof.height, is_certain) == (2, True)


def test_what_cannot_be_recorded_is_refused_with_the_reason() -> None:
    text = ".decl e(x:number, y:number) .input e\n.decl q(x:number, y:number) eqrel\nq(x, y) :- e(x, y). .output q"
    with pytest.raises(ValueError, match="q cannot be recorded: q is an eqrel"):
        Session(load(text), record=["q"])
    with pytest.raises(ValueError, match="no relation nobody"):
        Session(load(text), record=["nobody"])


def test_tables_are_told_of_though_nobody_else_needs_the_relation() -> None:
    text = ".decl e(x:number, y:number) .input e\np(x) :- e(x, _). side: q(x) :- e(_, x). .output p"
    session = Session(load(text), facts={"e": [(1, 2)]}, wanted=["p"], record=["q"])
    changes = session.apply([Update("+", "e", (3, 4))])
    assert changes.inserted == {"p": [(3,)], "side.derivations": [(3, 4)]}
    assert session.relation("side.derivations").arrow().column_names == ["any0", "x"]


def test_a_rule_that_goes_takes_its_table_with_it() -> None:
    text = ".decl e(x:number) .input e\none: p(x) :- e(x). .output p"
    session = Session(load(text), facts={"e": [(1,)]}, record=["p"])
    session.add_rule("two: p(x + 1) :- e(x).")
    assert set(session.relation("two.derivations")) == {(1,)}
    session.drop_rule("one")
    assert session.recordings.keys() == {"two"}
    assert set(session.relation("p")) == {(2,)}


def test_names_of_tables_are_free() -> None:
    text = ".decl e(x:number) .input e\n.comp C { .decl derivations(x:number) derivations(x) :- e(x). } .init one = C\n"
    with pytest.raises(ValueError, match=r"one\.derivations is a relation already: give rule one another name"):
        Session(load(text + "one: p(x) :- e(x)."), record=["p"])
