"""The worked examples of update exchange: what peers have after edits, curation and distrust, with every strategy."""

from __future__ import annotations

import pytest
from tests.exchange.vectors import (
    DROS,
    FIRST,
    MAPPINGS,
    MUSC,
    NAMES,
    NUMBERS,
    OSCI,
    PERI,
    SCHEMAS,
    SECOND,
    confederation,
    null,
    numbers,
    put,
    reject,
    take,
)

from whence.engine.propagate import PropagateDelete
from whence.exchange.explain import ExchangeDerivations
from whence.exchange.instance import STRATEGIES, Edit, Instance
from whence.exchange.mappings import mapping_rules
from whence.lang.diagnostics import ProgramError
from whence.lang.printer import print_node
from whence.provenance.expand import derivation_graph
from whence.provenance.graph import Fact
from whence.provenance.series import coefficient
from whence.provenance.solve import equations_of
from whence.semiring import NATURAL_POLYNOMIALS
from whence.semiring.polynomials import monomial

pytestmark = pytest.mark.filterwarnings("error")
GUS = put("GUS.G", (828917, OSCI, DROS), (2616529, MUSC, MUSC)) + put("BioSQL.B", (4472, PERI))


@pytest.fixture(params=STRATEGIES)
def strategy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def names(*policies: str, strategy: str = "support") -> Instance:
    return Instance(confederation(NAMES, *policies), GUS, strategy=strategy)


def test_mappings_become_rules_with_functions_for_invented_values() -> None:
    """1.1: one function for each existential variable, shared by all heads."""
    text = "peer D { C(bid: number, canon: symbol). }\nm4: G(g, n, c) -> exists b. B(b, n), C(b, c)."
    compiled = Instance(confederation(NAMES, text)).compiled
    rules = {
        rule.name: print_node(rule)
        for rule in compiled.program.module.statements
        if type(rule).__name__ == "Rule" and rule.name is not None
    }
    assert rules["m1.1"] == "m1.1: BioSQL.B.trusted($m1_b(n), n) :- m1.derivations(g, n, c)."
    assert rules["m3"] == "m3: m3.derivations(b, n1, n2) :- BioSQL.B(b, n1), uBio.U(n1, n2)."
    assert rules["m4.1"] == "m4.1: BioSQL.B.trusted($m4_b(n, c), n) :- m4.derivations(g, n, c)."
    assert rules["m4.2"] == "m4.2: D.C.trusted($m4_b(n, c), c) :- m4.derivations(g, n, c)."


def test_an_exchange_brings_rows_with_labelled_nulls(strategy: str) -> None:
    """1.2"""
    instance = names(strategy=strategy)
    assert instance.relation("GUS.G") == {(828917, OSCI, DROS), (2616529, MUSC, MUSC)}
    assert instance.relation("uBio.U") == {(OSCI, DROS), (MUSC, MUSC)}
    assert instance.relation("BioSQL.B") == {(4472, PERI), (null(OSCI), OSCI), (null(OSCI), DROS), (null(MUSC), MUSC)}


def test_an_insertion_brings_exactly_its_consequences(strategy: str) -> None:
    """1.4"""
    delta = names(strategy=strategy).apply(put("uBio.U", (OSCI, "Oscinella frit Linnaeus")))
    assert delta.inserted["BioSQL.B"] == {(null(OSCI), "Oscinella frit Linnaeus")}
    assert not delta.deleted


def test_a_rejected_row_stays_away(strategy: str) -> None:
    """1.5"""
    instance = names(strategy=strategy)
    row = (null(MUSC), MUSC)
    instance.apply(reject("BioSQL.B", row))
    assert row not in instance.relation("BioSQL.B")
    assert row in instance.inputs("BioSQL.B")
    instance.apply(put("GUS.G", (1, MUSC, DROS)))
    assert row not in instance.relation("BioSQL.B")
    assert instance.part("BioSQL.B", "rejected") == {row}


def test_policies_by_peer_and_by_mapping(strategy: str) -> None:
    """1.6"""
    everything = {(4472, PERI), (null(OSCI), OSCI), (null(OSCI), DROS), (null(MUSC), MUSC)}
    by_peer = names(f'BioSQL distrusts B(b, n) from GUS if n = "{MUSC}".', strategy=strategy)
    assert by_peer.relation("BioSQL.B") == everything - {(null(MUSC), MUSC)}
    by_mapping = names("BioSQL distrusts B(b, n) through m2.", strategy=strategy)
    assert by_mapping.relation("BioSQL.B") == everything - {(null(OSCI), DROS)}


def test_equations() -> None:
    """1.8: b4 = m1·g2 + m3·b4·u2, which is m1·g2·(1 + m3·m2·g2 + (m3·m2·g2)² + …)"""
    g1, g2 = Fact("GUS.G", (828917, OSCI, DROS)), Fact("GUS.G", (2616529, MUSC, MUSC))
    u1, u2 = Fact("uBio.U", (OSCI, DROS)), Fact("uBio.U", (MUSC, MUSC))
    b1, b2 = Fact("BioSQL.B", (4472, PERI)), Fact("BioSQL.B", (null(OSCI), OSCI))
    b3, b4 = Fact("BioSQL.B", (null(OSCI), DROS)), Fact("BioSQL.B", (null(MUSC), MUSC))
    graph = derivation_graph(ExchangeDerivations(names()), [u1, u2, b1, b2, b3, b4])
    assert graph.base == {g1, g2, b1}
    assert {fact: {(each.rule, *each.body) for each in made} for fact, made in graph.derivations.items() if made} == {
        u1: {("m2", g1)},
        u2: {("m2", g2)},
        b2: {("m1", g1)},
        b3: {("m3", b2, u1)},
        b4: {("m1", g2), ("m3", b4, u2)},
    }
    variable = NATURAL_POLYNOMIALS.variable
    tokens = {fact: variable(name) for fact, name in ((g1, "g1"), (g2, "g2"), (b1, "b1"))}
    rules = {name: variable(name) for name in ("m1", "m2", "m3")}
    equations = equations_of(graph, NATURAL_POLYNOMIALS, tokens.get, rules=rules)
    for rounds in range(4):
        assert coefficient(equations, b4, monomial("m1", "g2", *("m3", "m2", "g2") * rounds)) == 1, rounds
    assert coefficient(equations, b4, monomial("m1", "g2", "g2")) == 0


def test_new_rows_on_both_sides_meet(strategy: str) -> None:
    """1.11: what is new is R⁺ with S, R with S⁺, and R⁺ with S⁺."""
    text = """peer A { R(x: number, z: number). S(z: number, y: number). }
    peer B { Q(x: number, y: number). }
    m: R(x, z), S(z, y) -> Q(x, y)."""
    instance = Instance(confederation(text), put("A.R", (1, 1)) + put("A.S", (1, 1)), strategy=strategy)
    delta = instance.apply(put("A.R", (2, 1), (3, 5)) + put("A.S", (1, 4), (5, 6)))
    assert delta.inserted["B.Q"] == {(2, 1), (1, 4), (2, 4), (3, 6)}
    assert not delta.deleted


def test_a_mapping_as_rules() -> None:
    mapping = confederation(NAMES).mappings["m1"]
    assert [print_node(rule) for rule in mapping_rules(mapping)] == ["m1: BioSQL.B($m1_b(n), n) :- GUS.G(g, n, c)."]


def test_derivations_have_a_column_for_each_variable(strategy: str) -> None:
    """1.9"""
    assert names(strategy=strategy).derivations("m3") == {(null(OSCI), OSCI, DROS), (null(MUSC), MUSC, MUSC)}


def test_another_mapping_touches_only_its_consequences() -> None:
    """1.10: a table that translates identifiers instead of invented ones."""
    instance = names()
    lookup = "peer Names { T(gid: number, bid: number). }\n"
    replaced = NAMES.replace("m1: G(g, n, c) -> exists b. B(b, n).", "m1: G(i, n, c), T(i, b) -> B(b, n).")
    instance.change(confederation(lookup, NAMES))
    instance.apply(put("Names.T", (828917, 5001)))
    delta = instance.change(confederation(lookup, replaced))
    assert instance.relation("BioSQL.B") == {(4472, PERI), (5001, OSCI), (5001, DROS)}
    assert set(delta.inserted) | set(delta.deleted) == {"BioSQL.B"}


def test_deletion_keeps_what_has_another_derivation(strategy: str) -> None:
    """1.12: u⊗v goes with u, (u⊗v)⊕r stays."""
    text = """peer A { U(x: number). V(x: number). R(x: number). }
    peer B { T(x: number). S(x: number). }
    m1: U(x), V(x) -> T(x), S(x).
    m2: R(x) -> S(x)."""
    edits = put("A.U", (1,)) + put("A.V", (1,)) + put("A.R", (1,))
    instance = Instance(confederation(text), edits, strategy=strategy)
    delta = instance.apply(take("A.U", (1,)))
    assert delta.deleted == {"A.U": {(1,)}, "B.T": {(1,)}}
    assert instance.relation("B.S") == {(1,)}


def test_exchange_with_numbers(strategy: str) -> None:
    """3.1"""
    instance = numbers(strategy=strategy)
    assert instance.relation("uBio.U") == {(2, 3), (5, 6), (6, 5)}
    assert instance.relation("BioSQL.B") == {(7, 8), (FIRST, 2), (FIRST, 3), (SECOND, 5), (SECOND, 6)}
    assert instance.derivations("m1") == instance.derivations("m2") == {(1, 2, 3), (4, 5, 6)}
    assert instance.derivations("m3") == {(FIRST, 2, 3), (SECOND, 5, 6), (SECOND, 6, 5)}


def test_a_rejection_takes_what_followed_from_the_row(strategy: str) -> None:
    """3.3"""
    instance = numbers(strategy=strategy)
    instance.apply(reject("uBio.U", (2, 3)))
    assert instance.relation("uBio.U") == {(5, 6), (6, 5)}
    assert instance.relation("BioSQL.B") == {(7, 8), (FIRST, 2), (SECOND, 5), (SECOND, 6)}
    assert (2, 3) in instance.inputs("uBio.U")
    assert instance.derivations("m3") == {(SECOND, 5, 6), (SECOND, 6, 5)}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("BioSQL distrusts B(b, n) by m3 if n != 2.", {(7, 8), (FIRST, 2), (SECOND, 5)}),
        ("BioSQL distrusts B(b, n) from GUS if n >= 3.", {(7, 8), (FIRST, 2)}),
        ("BioSQL distrusts base U(6, 5).", {(7, 8), (FIRST, 2), (FIRST, 3), (SECOND, 5), (SECOND, 6)}),
        ("BioSQL distrusts m1.", {(7, 8)}),
        ("uBio distrusts m2.", {(7, 8), (FIRST, 2), (SECOND, 5)}),
        ("BioSQL distrusts U(2, 3).", {(7, 8), (FIRST, 2), (SECOND, 5), (SECOND, 6)}),
    ],
    ids="abcdef",
)
def test_boolean_trust(policy: str, expected: set[object], strategy: str) -> None:
    """3.5"""
    instance = numbers(policy, strategy=strategy)
    assert instance.relation("BioSQL.B") == expected
    assert instance.relation("uBio.U") == ({(6, 5)} if policy.startswith("uBio") else {(2, 3), (5, 6), (6, 5)})


OLDER = """
peer GUS { G(id: number, can: number, nam: number). }
peer BioSQL { B(id: number, nam: number). }
peer uBio { U(nam: number, can: number). }
m1: G(i, c, n) -> B(i, n).
m2: G(i, c, n) -> U(n, c).
m3: B(i, n) -> exists c. U(n, c).
m4: B(i, c), U(n, c) -> B(i, n).
"""
OLDER_EDITS = put("GUS.G", (1, 2, 3), (3, 5, 2)) + put("BioSQL.B", (3, 5)) + put("uBio.U", (2, 5))


def test_the_older_example(strategy: str) -> None:
    """3.7"""
    instance = Instance(confederation(OLDER), OLDER_EDITS, strategy=strategy)
    assert instance.relation("BioSQL.B") == {(3, 5), (3, 2), (1, 3), (3, 3)}
    invented = {(name, null(name, of="m3_c")) for name in (5, 2, 3)}
    assert instance.relation("uBio.U") == {(2, 5), (3, 2)} | invented
    wary = Instance(confederation(OLDER, "BioSQL distrusts base U(2, 5)."), OLDER_EDITS, strategy=strategy)
    assert (3, 2) in wary.relation("BioSQL.B")


def test_a_row_is_tested_for_derivations_of_its_own(strategy: str) -> None:
    """3.8"""
    text = OLDER.replace("m4: B(i, c), U(n, c) -> B(i, n).\n", "")
    instance = Instance(confederation(text), put("GUS.G", (1, 2, 3), (3, 5, 2)), strategy=strategy)
    assert {(2, null(2, of="m3_c")), (3, 2)} <= instance.relation("uBio.U")
    instance.apply(take("GUS.G", (1, 2, 3)))
    assert (2, null(2, of="m3_c")) in instance.relation("uBio.U")
    assert (3, 2) not in instance.relation("uBio.U")


def _line(length: int) -> str:
    relations = " ".join(f"T{at}(x: number)." for at in range(1, length + 1))
    steps = "\n".join(f"t{at}: T{at}(x) -> T{at + 1}(x)." for at in range(1, length))
    return f"peer A {{ R(x: number). S(x: number). {relations} }}\nm1: R(x) -> T1(x).\nm2: S(x) -> T1(x).\n{steps}"


def test_propagation_stops_at_the_first_row_with_another_derivation() -> None:
    """3.9"""
    instance = Instance(confederation(_line(8)), put("A.R", (1,)) + put("A.S", (1,)), strategy="propagate-delete")
    maintained = instance._maintained
    assert isinstance(maintained, PropagateDelete)
    delta = instance.apply(take("A.R", (1,)))
    assert delta.deleted == {"A.R": {(1,)}}
    assert maintained.tested == 1
    delta = instance.apply(take("A.S", (1,)))
    assert set(delta.deleted) == {"A.S", *(f"A.T{at}" for at in range(1, 9))}
    assert maintained.tested == 1


def test_rows_on_a_cycle_do_not_support_each_other(strategy: str) -> None:
    """3.10"""
    edits = put("GUS.G", (4, 5, 9)) + put("uBio.U", (5, 6), (6, 5))
    instance = Instance(confederation(SCHEMAS, MAPPINGS), edits, strategy=strategy)
    assert instance.relation("BioSQL.B") == {(SECOND, 5), (SECOND, 6), (SECOND, 9)}
    instance.apply(take("GUS.G", (4, 5, 9)))
    assert instance.relation("BioSQL.B") == set()
    assert instance.relation("uBio.U") == {(5, 6), (6, 5)}
    assert not any(instance.derivations(name) for name in ("m1", "m2", "m3"))


def test_deletions(strategy: str) -> None:
    """3.11"""
    instance = numbers(strategy=strategy)
    before = instance.relation("BioSQL.B")
    delta = instance.apply(take("uBio.U", (6, 5)))
    assert delta == ({}, {"uBio.U": {(6, 5)}})
    assert instance.relation("BioSQL.B") == before
    assert instance.derivations("m3") == {(FIRST, 2, 3), (SECOND, 5, 6)}
    instance = numbers(strategy=strategy)
    instance.apply(take("GUS.G", (4, 5, 6)))
    assert instance.relation("uBio.U") == {(2, 3), (6, 5)}
    assert instance.relation("BioSQL.B") == {(7, 8), (FIRST, 2), (FIRST, 3)}


def test_the_gate_shows_the_cycle_of_invented_values() -> None:
    """3.12"""
    confederation(SCHEMAS, MAPPINGS)
    with pytest.raises(ProgramError) as caught:
        confederation("peer A { R(x: number, y: number). }\nm: R(x, y) -> exists z. R(y, z).")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "W1008"
    assert "A.R.y =m=> A.R.y" in diagnostic.text


def test_a_trial_changes_nothing(strategy: str) -> None:
    for policy in ("", "BioSQL distrusts B(b, n) from GUS if n = 3."):
        instance = numbers(policy, strategy=strategy)
        before = {name: instance.relation(name) for name in instance.confederation.relations}
        delta = instance.trial([Edit("-", "local", "GUS.G", (4, 5, 6))])
        assert delta.deleted["BioSQL.B"] == {(SECOND, 5), (SECOND, 6)}
        assert {name: instance.relation(name) for name in before} == before
        assert instance.apply([Edit("-", "local", "GUS.G", (4, 5, 6))]) == delta


def test_edits_that_do_not_fit_change_nothing() -> None:
    instance = numbers()
    with pytest.raises(ValueError, match="'x' is not a number"):
        instance.apply([*put("GUS.G", (9, 9, 9)), *put("GUS.G", ("x", 1, 1))])
    assert instance.relation("GUS.G") == {row for _, _, name, row in NUMBERS if name == "GUS.G"}


def test_a_null_that_nothing_invents_waits_until_something_does() -> None:
    instance = Instance(confederation(SCHEMAS, MAPPINGS), NUMBERS)
    instance.apply(reject("BioSQL.B", (FIRST, 2)))
    without = MAPPINGS.replace("m1: G(g, n, c) -> exists b. B(b, n).", "")
    instance.change(confederation(SCHEMAS, without))
    assert instance.relation("BioSQL.B") == {(7, 8)}
    instance.change(confederation(SCHEMAS, MAPPINGS))
    assert instance.relation("BioSQL.B") == {(7, 8), (SECOND, 5), (SECOND, 6)}
