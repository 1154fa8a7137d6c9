"""Mappings as queries: superfluous ones, equivalence, and what evolution costs."""

from __future__ import annotations

import pytest
from tests.exchange.vectors import NAMES, confederation, put

from whence.exchange.instance import Instance
from whence.exchange.queries import mappings_as_rules, superfluous_mappings
from whence.reasoning import Verdict, equivalent, query_of

pytestmark = pytest.mark.filterwarnings("error")
PEERS = """peer A { R(x: number, y: number). S(x: number). }
peer B { T(x: number, y: number). U(x: number, y: number). }
m1: R(x, y) -> T(x, y).
"""


def superfluous(*mappings: str, semiring: str = "boolean") -> list[str]:
    found = confederation(PEERS + "\n".join(mappings))
    return [each.name for each in superfluous_mappings(found, semiring)]


def test_a_mapping_that_another_makes_superfluous() -> None:
    assert superfluous("m2: R(x, y), S(x) -> T(x, y).") == ["m2"]
    assert superfluous("m2: R(x, y), S(x) -> T(x, y).", semiring="tropical") == ["m2"]
    for name in ("lineage", "why", "polynomial", "natural"):
        assert superfluous("m2: R(x, y), S(x) -> T(x, y).", semiring=name) == []
    assert superfluous("m2: R(x, y), S(x) -> T(y, x).") == []


def test_invented_values_may_have_other_names() -> None:
    assert superfluous("m2: R(x, y) -> exists z. T(x, z).") == ["m2"]
    assert superfluous("m2: R(x, y) -> exists z. T(x, z), U(z, y).") == []
    two = ["m2: R(x, y) -> exists z. T(x, z), U(z, y).", "m3: R(x, y), S(x) -> exists w. U(w, y), T(x, w)."]
    assert superfluous(*two) == ["m3"]
    apart = ["m2: R(x, y) -> exists z. U(z, y).", "m3: R(x, y) -> exists v, w. T(x, v), U(w, y)."]
    assert superfluous(*apart) == ["m3"]


def test_conditions_have_to_be_asked_for_by_both() -> None:
    assert superfluous("m2: R(x, y), x < 3 -> T(x, y).") == ["m2"]
    assert superfluous("m2: R(x, y), x < 3 -> U(x, y).", "m3: R(x, y) -> U(x, y).") == ["m2"]
    assert superfluous("m2: R(x, y), x < 3 -> U(x, y).", "m3: R(x, y), S(y), x < 3 -> U(x, y).") == ["m3"]


def test_what_policies_name_is_left_alone() -> None:
    same = "m2: R(x, y) -> T(x, y)."
    assert superfluous(same) == ["m2"]
    assert superfluous(same, "B distrusts T(x, y) through m2.") == []
    assert superfluous(same, "B distrusts T(x, y) through m1.") == []


def test_mappings_are_compared_by_what_they_fire_on() -> None:
    rules = mappings_as_rules(confederation(PEERS + "m2: R(x, y), R(x, z) -> U(x, y)."))
    one, other = query_of(rules, "m1"), query_of(rules, "m2")
    assert equivalent(one, other, "boolean").verdict is Verdict.YES
    assert equivalent(one, other, "natural").verdict is Verdict.NO


def test_evolution_costs_what_changes() -> None:
    rows = [(number, f"n{number}", f"c{number % 7}") for number in range(60)]
    instance = Instance(confederation(NAMES), put("GUS.G", *rows))
    narrower = NAMES.replace("m2: G(g, n, c) -> U(n, c).", "m2: G(g, n, c), g < 50 -> U(n, c).")
    instance.change(confederation("// elsewhere in the text\n" + narrower))
    (adaptation,) = instance.adaptations
    assert adaptation.relation == "m2.derivations"
    assert adaptation.rules == ("-m2.derivations(x, y, z) :- GUS.G(x, y, z), 50 <= x.",)
    fresh = Instance(confederation(narrower), put("GUS.G", *rows))
    for name in fresh.confederation.relations:
        assert instance.relation(name) == fresh.relation(name)


def test_a_text_that_says_the_same_changes_nothing() -> None:
    instance = Instance(confederation(NAMES), put("GUS.G", (1, "a", "b"), (2, "b", "c")))
    delta = instance.change(confederation("\n\n" + NAMES))
    assert not delta
    assert instance.session.last_epoch["derivations"] == 0
