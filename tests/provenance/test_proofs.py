"""Every fact of every view has a proof that the checker accepts, and its height is the least there is."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from tests.properties.programs import Run, runs
from tests.provenance.sessions import SOME, base_of, derived_of, session_after

from whence import Session, Update, load
from whence.provenance.check import Checker, WrongProof
from whence.provenance.derive import CannotExplain, Deriver
from whence.provenance.enough import with_enough
from whence.provenance.expand import Bounds, derivation_graph
from whence.provenance.graph import Fact
from whence.provenance.proofs import Proof, smallest_proof, smallest_proofs
from whence.provenance.tree import parts_of
from whence.provenance.why import why

CLOSURE = (
    ".decl link(x:symbol, y:symbol) .input link .output reach\n"
    "r1: reach(x, y) :- link(x, y).\nr2: reach(x, z) :- reach(x, y), link(y, z).\n"
)


def closure(*links: str) -> Session:
    return Session(load(CLOSURE), facts={"link": [tuple(each) for each in links]})


def naive_heights(graph, rounds: int = 1000) -> dict[Fact, int]:
    """Least heights by repeated relaxation: slow and plain."""
    heights = dict.fromkeys(graph.base, 0)
    for _ in range(rounds):
        before = dict(heights)
        for fact, firings in graph.derivations.items():
            for firing in firings:
                if all(each in before for each in firing.premises):
                    height = 1 + max((before[each] for each in firing.premises), default=0)
                    heights[fact] = min(heights.get(fact, height), height)
        if heights == before:
            return heights
    raise AssertionError("heights do not settle")


@pytest.mark.filterwarnings("ignore::whence.reference.EvaluationWarning")
@SOME
@given(runs())
def test_every_view_tuple_has_a_proof_that_checks_and_is_lowest(run: Run) -> None:
    session = session_after(run)
    checker = Checker(run.program, base_of(session))
    deriver = Deriver(session)
    for name in derived_of(session):
        for row in sorted(session.relation(name))[:20]:
            fact = Fact(name, row)
            proof, is_certain = smallest_proof(deriver, fact)
            checker.check(proof)
            assert is_certain
            graph = with_enough(derivation_graph(deriver, [fact]), run.program)
            assert proof.height == naive_heights(graph)[fact]


@pytest.mark.filterwarnings("ignore::whence.reference.EvaluationWarning")
@SOME
@given(runs())
def test_next_proofs_check_are_distinct_and_grow(run: Run) -> None:
    session = session_after(run)
    checker = Checker(run.program, base_of(session))
    for name in derived_of(session)[:2]:
        for row in list(session.relation(name))[:3]:
            found = smallest_proofs(derivation_graph(session, [Fact(name, row)]), Fact(name, row), 6)
            for proof in found:
                checker.check(proof)
            assert len({shape(proof) for proof in found}) == len(found)
            assert all(one.height <= other.height for one, other in pairwise(found))


def shape(proof: Proof) -> tuple[object, ...]:
    return (proof.fact, proof.firing, *(shape(each) for each in proof.premises))


def test_a_proof_of_reachability_is_a_shortest_path() -> None:
    session = closure("ab", "bc", "cd", "ad", "de", "ba")
    proof, is_certain = smallest_proof(Deriver(session), Fact("reach", ("a", "e")))
    assert (proof.height, is_certain) == (2, True)
    assert [part.fact.tuple for part in proof if part.firing is None] == [("a", "d"), ("d", "e")]


def test_the_next_proofs_are_the_other_paths() -> None:
    session = closure("ab", "bd", "ac", "cd", "ad")
    fact = Fact("reach", ("a", "d"))
    found = smallest_proofs(derivation_graph(session, [fact]), fact, 10)
    links = [{"".join(part.fact.tuple) for part in proof if part.firing is None} for proof in found]
    assert links == [{"ad"}, {"ab", "bd"}, {"ac", "cd"}]


def test_a_deeper_proof_after_updates_is_still_found_lowest() -> None:
    """Ranks go by when a row came; the new link makes a shorter way that ranks do not tell of."""
    session = closure("ab", "bc", "cd", "de")
    session.apply([Update("+", "link", ("a", "d"))])
    proof, is_certain = smallest_proof(Deriver(session), Fact("reach", ("a", "e")))
    assert (proof.height, is_certain) == (2, True)


CONTROL = """
.decl owns(owner:symbol, company:symbol, percent:number) .input owns
.decl votes(owner:symbol, through:symbol, company:symbol, percent:number)
votes(x, x, y, p) :- owns(x, y, p).
votes(x, z, y, p) :- controls(x, z), owns(z, y, p).
.decl controls(owner:symbol, company:symbol) .output controls
controls(x, y) :- votes(x, _, y, _), PART > 50.
""".replace("PART", "sum p : { votes(x, _, y, p) }")


def test_companies_that_own_shares_of_each_other() -> None:
    """All votes for b include those that follow from a's control of b: part of them is the reason."""
    owns: list[tuple[str, str, int]] = [("a", "b", 60), ("a", "c", 45), ("b", "c", 10), ("c", "b", 20)]
    owns += [("c", "d", 30), ("a", "d", 30), ("d", "b", 1)]
    session = Session(load(CONTROL), facts={"owns": owns})
    checker = Checker(session.program, base_of(session))
    sums = {}
    for row in sorted(session.relation("controls")):
        (proof,) = why(session, "controls", row).proofs
        checker.check(proof)
        assert proof.firing is not None
        (group,) = proof.firing.aggregates
        sums[row] = group.value
    assert sums == {("a", "b"): 60, ("a", "c"): 55, ("a", "d"): 60}
    several = why(session, "controls", ("a", "d"), number=5).proofs
    for proof in several:
        checker.check(proof)
    assert [proof.height for proof in several] == [6] * 5


def test_votes_that_come_later_by_more_than_one_company() -> None:
    """p controls x, and with it y, which owns more of x: all votes for either count some of the other's."""
    owns = [("p", "x", 60), ("x", "y", 30), ("p", "y", 30), ("y", "x", 30)]
    session = Session(load(CONTROL), facts={"owns": owns})
    assert set(session.relation("controls")) == {("p", "x"), ("p", "y")}
    proof, _ = smallest_proof(Deriver(session), Fact("controls", ("p", "y")))
    Checker(session.program, base_of(session)).check(proof)
    assert proof.height == 4


def test_a_sum_that_asks_what_is_absent_closes_in_a_circle_and_is_refused_with_the_reason() -> None:
    text = (
        CONTROL.replace("votes(x, _, y, p) }", "votes(x, z, y, p), !barred(z) }")
        + ".decl barred(c:symbol) .input barred\n"
    )
    owns = [("p", "x", 60), ("x", "y", 30), ("p", "y", 30), ("y", "x", 30)]
    session = Session(load(text), facts={"owns": owns})
    assert set(session.relation("controls")) == {("p", "x"), ("p", "y")}
    with pytest.raises(CannotExplain, match="without going in a circle"):
        smallest_proof(Deriver(session), Fact("controls", ("p", "y")))


def test_a_chain_longer_than_python_recurses() -> None:
    program = load(".decl e(x:number, y:number) .input e r(x, y) :- e(x, y). r(x, z) :- r(x, y), e(y, z). .output r\n")
    session = Session(program, facts={"e": list(pairwise(range(1500)))})
    proof, _ = smallest_proof(Deriver(session), Fact("r", (0, 1499)))
    assert proof.height == 1499
    assert sum(1 for _ in proof) == 2 * 1499


def test_bounds_say_what_was_cut_off() -> None:
    session = closure("ab", "bc", "cd", "de")
    fact = Fact("reach", ("a", "e"))
    graph = derivation_graph(session, [fact], Bounds(depth=2))
    assert graph.cut is not None
    assert (graph.cut.reason, graph.cut.facts) == ("depth 2", {Fact("reach", ("a", "c"))})
    graph = derivation_graph(session, [fact], Bounds(facts=3))
    assert graph.cut is not None
    assert graph.cut.reason == "3 facts"
    assert derivation_graph(session, [fact]).cut is None


def test_what_does_not_hold_is_refused() -> None:
    with pytest.raises(CannotExplain, match=r'reach\("b", "a"\) does not hold'):
        smallest_proof(Deriver(closure("ab")), Fact("reach", ("b", "a")))


def test_the_checker_refuses_wrong_proofs() -> None:
    session = closure("ab", "bc")
    proof, _ = smallest_proof(Deriver(session), Fact("reach", ("a", "c")))
    Checker(load(CLOSURE), {"link": [("a", "b"), ("b", "c")]}).check(proof)
    with pytest.raises(WrongProof, match=r'link\("b", "c"\) is not a base fact'):
        Checker(load(CLOSURE), {"link": [("a", "b")]}).check(proof)
    swapped = Proof(proof.fact, proof.firing, tuple(reversed(proof.premises)), proof.height)
    with pytest.raises(WrongProof, match="premises and proofs differ"):
        Checker(load(CLOSURE), {"link": [("a", "b"), ("b", "c")]}).check(swapped)


def test_an_equivalence_is_a_chain_of_pairs_that_rules_derive() -> None:
    text = ".decl e(x:symbol, y:symbol) .input e\n.decl same(x:symbol, y:symbol) eqrel\nsame(x, y) :- e(x, y). .output same"
    session = Session(load(text), facts={"e": [("a", "b"), ("c", "b"), ("c", "d")]})
    proof, _ = smallest_proof(Deriver(session), Fact("same", ("a", "d")))
    Checker(session.program, {"e": [("a", "b"), ("c", "b"), ("c", "d")]}).check(proof)
    assert [part.fact.tuple for part in parts_of(proof)] == [("a", "b"), ("c", "b"), ("c", "d")]


def test_numbers_of_autoinc_are_refused_by_name() -> None:
    text = ".decl e(x:number) .input e\nnumbered: id(x, autoinc()) :- e(x). .output id"
    session = Session(load(text), facts={"e": [(7,)]})
    with pytest.raises(CannotExplain, match=r"rule numbered has autoinc\(\)"):
        smallest_proof(Deriver(session), Fact("id", next(iter(session.relation("id")))))


def test_rounds_are_refused_by_name() -> None:
    text = "n(0). again: n(x + 1) :- n(x), recursive_iteration_cnt() < 3. .output n"
    session = Session(load(text))
    assert set(session.relation("n")) == {(0,), (1,), (2,)}
    with pytest.raises(CannotExplain, match=r"rule again has recursive_iteration_cnt\(\)"):
        smallest_proof(Deriver(session), Fact("n", (2,)))


def test_what_the_session_cannot_hold_is_refused() -> None:
    deriver = Deriver(closure("ab"))
    with pytest.raises(ValueError, match="holds no relation rech; it holds link, reach"):
        smallest_proof(deriver, Fact("rech", ("a", "b")))
    with pytest.raises(ValueError, match="reach has 2 columns, not 1"):
        smallest_proof(deriver, Fact("reach", ("a",)))


def test_firings_of_a_range_make_one_proof() -> None:
    program = load(".decl f(x:number) .input f p(x) :- f(x), t = range(x, 3). .output p")
    session = Session(program, facts={"f": [(0,)]})
    graph = derivation_graph(session, [Fact("p", (0,))])
    assert len(graph.derivations[Fact("p", (0,))]) == 3
    assert len(smallest_proofs(graph, Fact("p", (0,)), 5)) == 1
