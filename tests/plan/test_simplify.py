"""Rules and joins that make no difference are left out of plans, where nobody can tell."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from whence import Session, Update, load
from whence.annotated import evaluate_annotated
from whence.lang.types import Tuple
from whence.plan.simplify import simplify
from whence.prepared import prepare
from whence.provenance.derive import Deriver
from whence.provenance.graph import Fact
from whence.provenance.proofs import smallest_proof
from whence.reference import evaluate
from whence.semiring import SEMIRINGS

BASE = ".decl r(x:number, y:number) .input r .decl s(x:number) .input s .decl v(x:number, y:number) .output v\n"
ATOMS = [f"r({a}, {b})" for a in "xyz" for b in "xyz_"] + ["s(x)", "s(_)"]


def left_out(*rules: str, semiring: str = "boolean") -> tuple[str, ...]:
    return simplify(load(BASE + "\n".join(rules)), semiring)[1]


def test_what_goes_depends_on_the_semiring() -> None:
    rules = ["v(x, y) :- r(x, z), r(z, y), r(x, _).", "v(x, y) :- r(x, z), r(z, y), s(x).", "v(x, y) :- r(x, y)."]
    assert left_out(*rules) == (
        "rule v#2 is left out: v#1 derives as much",
        "rule v#1 is planned without r(x, _)",
    )
    dearer = ["v(x, y) :- r(x, y).", "v(x, y) :- r(x, y), s(x)."]
    assert left_out(*dearer, semiring="tropical") == ("rule v#2 is left out: v#1 derives as much",)
    for name in ("tropical", "natural", "polynomial", "why", "lineage"):
        assert left_out(*rules, semiring=name) == ()


def test_what_binds_a_variable_stays() -> None:
    assert left_out("v(x, y) :- r(x, z), r(x, y).") == ("rule v#1 is planned without r(x, z)",)
    assert left_out("v(x, y) :- r(x, z), r(x, y), z < 3.") == ()
    assert left_out("v(x, y) :- r(x, z), r(x, y), !s(z).") == ()


def test_recursive_rules_go_too() -> None:
    rules = ["v(x, y) :- r(x, y).", "v(x, z) :- v(x, y), r(y, z).", "v(x, z) :- v(x, y), r(y, z), v(x, _)."]
    assert left_out(*rules) == ("rule v#3 is left out: v#2 derives as much",)


def test_recorded_derivations_tell_rules_apart() -> None:
    program = load(BASE + "v(x, y) :- r(x, y). v(x, y) :- r(x, y), s(x).")
    assert prepare(program, simplify=True).simplified
    assert not prepare(program, simplify=True, record=["v"]).simplified


bodies = st.lists(st.sampled_from(ATOMS), max_size=3).map(lambda each: ", ".join(["r(x, y)", *each]))
rows = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=9)


@given(bodies=st.lists(bodies, min_size=1, max_size=3), r=rows, change=st.tuples(st.integers(0, 3), st.integers(0, 3)))
@settings(max_examples=25, deadline=None)
def test_nothing_changes_for_those_who_ask(bodies: list[str], r: set[Tuple], change: Tuple) -> None:
    program = load(BASE + "\n".join(f"v(x, y) :- {body}." for body in bodies))
    facts = {"r": r, "s": {(0,), (2,)}}
    plain, simple = Session(program, facts=facts), Session(prepare(program, simplify=True), facts=facts)
    for session in (plain, simple):
        session.apply([Update("-" if change in r else "+", "r", change)])
    expected = evaluate(program, {"r": r ^ {change}, "s": facts["s"]})["v"]
    assert set(simple.relation("v")) == expected
    for row in expected:
        fact = Fact("v", row)
        one, other = Deriver(plain), Deriver(simple)
        assert set(map(repr, one.derivations(fact))) == set(map(repr, other.derivations(fact)))
        assert smallest_proof(one, fact).proof.height == smallest_proof(other, fact).proof.height
    for name in ("tropical", "why"):
        semiring = SEMIRINGS[name]
        one, other = (evaluate_annotated(each, facts, semiring)["v"] for each in (program, simplify(program, name)[0]))
        assert one == other
