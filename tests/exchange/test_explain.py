"""Why rows are there, why others are not, and who uses them, in terms of peers, mappings and policies."""

from __future__ import annotations

import pytest
from tests.exchange.vectors import FIRST, MAPPINGS, NUMBERS, SCHEMAS, SECOND, confederation, numbers, put, reject

from whence.exchange.explain import ExchangeDerivations, paths, restrict, uses, whynot
from whence.exchange.instance import STRATEGIES, Edit, Instance
from whence.provenance import derivation_graph, how, why
from whence.provenance.export import EXPORTS
from whence.provenance.graph import DerivationGraph, Fact
from whence.provenance.solve import solve_graph
from whence.semiring import SEMIRINGS

B, U, G = "BioSQL.B", "uBio.U", "GUS.G"
TOKENS = {Fact(G, (1, 2, 3)): "g1", Fact(G, (4, 5, 6)): "g2", Fact(U, (6, 5)): "u"}


def test_a_proof_speaks_of_peers_and_mappings() -> None:
    assert str(why(ExchangeDerivations(numbers()), B, (FIRST, 3))) == (
        "BioSQL.B($m1_b(2), 3)  by m3\n"
        "├─ BioSQL.B($m1_b(2), 2)  by m1\n"
        "│  └─ GUS.G(1, 2, 3)\n"
        "└─ uBio.U(2, 3)  by m2\n"
        "   └─ GUS.G(1, 2, 3)\n"
        "\n"
        "m1  test.peers:6  G(g, n, c) -> exists b. B(b, n).\n"
        "m2  test.peers:7  G(g, n, c) -> U(n, c).\n"
        "m3  test.peers:8  B(b, n1), U(n1, n2) -> B(b, n2)."
    )


def test_the_graph_of_the_example() -> None:
    """1.7 and 3.4"""
    derivations = ExchangeDerivations(numbers())
    graph = derivation_graph(derivations, [Fact(B, (SECOND, 5)), Fact(B, (FIRST, 3))])
    firings = {(each.rule, each.head, each.body) for made in graph.derivations.values() for each in made}
    g1, g2, u = Fact(G, (1, 2, 3)), Fact(G, (4, 5, 6)), Fact(U, (6, 5))
    assert graph.base == {g1, g2, u}
    assert firings == {
        ("m1", Fact(B, (FIRST, 2)), (g1,)),
        ("m2", Fact(U, (2, 3)), (g1,)),
        ("m3", Fact(B, (FIRST, 3)), (Fact(B, (FIRST, 2)), Fact(U, (2, 3)))),
        ("m1", Fact(B, (SECOND, 5)), (g2,)),
        ("m2", Fact(U, (5, 6)), (g2,)),
        ("m3", Fact(B, (SECOND, 6)), (Fact(B, (SECOND, 5)), Fact(U, (5, 6)))),
        ("m3", Fact(B, (SECOND, 5)), (Fact(B, (SECOND, 6)), u)),
    }


def test_provenance_in_any_semiring() -> None:
    """3.4: B(⊥1, 3) is g1 twice; B(⊥2, 5) has another derivation, round a cycle."""
    fact = Fact(B, (FIRST, 3))
    graph = derivation_graph(ExchangeDerivations(numbers()), [fact])
    polynomials = SEMIRINGS["polynomial"]
    assert how(graph, fact, "polynomial", lambda base: polynomials.variable(TOKENS[base])) == "g1^2"
    cyclic = derivation_graph(ExchangeDerivations(numbers()), [Fact(B, (SECOND, 5))])
    assert (
        how(cyclic, Fact(B, (SECOND, 5)), "posbool", lambda fact: SEMIRINGS["posbool"].variable(TOKENS[fact]))
        == "{{g2}}"
    )


def test_the_older_example_in_words_of_its_tokens() -> None:
    """3.7: B(3, 2) = m1·p3 + m4·p1·p2 + m4·p1·m2·p3"""
    from tests.exchange.test_vectors import OLDER, OLDER_EDITS  # noqa: PLC0415

    fact = Fact(B, (3, 2))
    tokens = {Fact(B, (3, 5)): "p1", Fact(U, (2, 5)): "p2", Fact(G, (3, 5, 2)): "p3"}
    graph = derivation_graph(ExchangeDerivations(Instance(confederation(OLDER), OLDER_EDITS)), [fact])
    polynomial = how(
        graph, fact, "why", lambda base: SEMIRINGS["why"].variable(tokens[base]) if base in tokens else None
    )
    assert "p1, p2" in polynomial
    assert "{p3}" in polynomial


def test_the_graph_restricted_to_mappings_and_peers() -> None:
    instance = numbers()
    fact = Fact(B, (SECOND, 5))
    graph = derivation_graph(ExchangeDerivations(instance), [fact])

    def value(kept: DerivationGraph) -> object:
        return solve_graph(kept, SEMIRINGS["boolean"], lambda _: True)[fact]

    assert value(restrict(graph, mappings=("m1",)))
    assert not value(restrict(graph, mappings=("m3", "m2")))
    assert not value(restrict(graph, peers=("uBio",)))
    assert paths(graph, fact, Fact(G, (4, 5, 6))) == [["m1"], ["m2", "m3", "m3"]]


@pytest.mark.parametrize("shape", EXPORTS)
def test_every_export_works(shape: str) -> None:
    derivations = ExchangeDerivations(numbers("BioSQL distrusts B(b, n) from uBio if n = 6."))
    graph = derivation_graph(derivations, [Fact(B, (FIRST, 3))])
    assert "m3" in EXPORTS[shape](graph, derivations.program)


def test_who_downstream_uses_a_row() -> None:
    assert uses(numbers(), Fact(G, (1, 2, 3))) == {
        Fact(B, (FIRST, 2)): ("m1",),
        Fact(U, (2, 3)): ("m2",),
        Fact(B, (FIRST, 3)): ("m1", "m3"),
    }
    assert uses(numbers(), Fact(B, (7, 8))) == {}


def reasons(instance: Instance, relation: str, row: tuple[object, ...]) -> list[str]:
    return [line for reason in whynot(instance, relation, row) for line in reason.lines()]  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_why_a_row_is_not_there(strategy: str) -> None:
    policy = "careful: BioSQL distrusts B(b, n) by m3 if n != 2."
    instance = numbers(policy, strategy=strategy)
    assert reasons(instance, B, (SECOND, 5)) == []
    assert reasons(instance, B, (SECOND, 6)) == [
        f"m3 brings BioSQL.B($m1_b(5), 6), but by careful: {policy}",
    ]
    instance = numbers(strategy=strategy)
    instance.apply(reject(U, (2, 3)))
    assert reasons(instance, U, (2, 3)) == ["uBio rejected uBio.U(2, 3)"]
    assert reasons(instance, B, (FIRST, 3)) == [
        "m3 would bring BioSQL.B($m1_b(2), 3) from uBio.U(2, 3)",
        "  uBio rejected uBio.U(2, 3)",
    ]
    assert reasons(instance, U, (9, 9)) == ["m2 would bring uBio.U(9, 9), but there is no GUS.G(_, 9, 9)"]
    assert reasons(instance, G, (9, 9, 9)) == ["GUS does not have GUS.G(9, 9, 9), and no mapping could bring it"]
    with pytest.raises(ValueError, match="is not a number"):
        whynot(instance, G, ("x", 1, 1))


def test_several_policies_are_told_apart() -> None:
    policies = (
        "one: BioSQL distrusts B(b, n) by m3 if n = 3.\n",
        "two: BioSQL distrusts B(b, n) from GUS if n = 6.\n",
        "three: BioSQL distrusts m9.\n",
    )
    text = (*policies[:2], "m9: G(g, n, c) -> B(g, c).\n", policies[2])
    instance = Instance(confederation(SCHEMAS, MAPPINGS, *text), NUMBERS)
    told = [
        reasons(instance, B, row)[0].partition("but by ")[2].partition(":")[0]
        for row in ((FIRST, 3), (SECOND, 6), (1, 3))
    ]
    assert told == ["one", "two", "three"]


def test_a_lost_conflict_and_a_withdrawn_row_are_named() -> None:
    text = """
    peer A { R(x: number, y: number) key (x). }
    peer B { S(x: number, y: number). }
    m: A.R(x, y) <-> B.S(x, y).
    A accepts deletions of B.
    """
    instance = Instance(confederation(text), put("A.R", (1, 1)))
    instance.apply([Edit("+", "rejected", "B.S", (1, 1)), Edit("+", "lost", "A.R", (1, 2))])
    assert reasons(instance, "A.R", (1, 1)) == ["a peer that got A.R(1, 1) from A rejected it, and A accepts that"]
    assert reasons(instance, "A.R", (1, 2)) == ["A.R(1, 2) lost a conflict at A, which is not resolved yet"]
