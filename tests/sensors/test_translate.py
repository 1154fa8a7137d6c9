"""Which scheme a rule gets, where derived tuples live, and which choices are refused."""

from __future__ import annotations

import pytest
from tests.sensors.runs import BASE
from tests.sensors.test_vectors import LOGIC_J, UNCOVERED

from whence import Update, load
from whence.sensors import Choices, Field, NotForSensors, Region, Scheme, SensorNetwork, translate
from whence.sensors.translate import Home

GRID = Field.grid(6, 6)
NEGATION = BASE + ".output t t(x, z) :- r1(x, y), r2(y, z), !s(z)."


def schemes(text: str, field: Field = GRID, choices: Choices = Choices()) -> dict[str, Scheme]:  # noqa: B008
    return {plan.rule.name: plan.scheme for plan in translate(load(text), field, choices).plans}


def test_rules_get_what_is_cheapest() -> None:
    assert schemes(NEGATION) == {"t#1": Scheme.PERPENDICULAR}
    assert schemes(BASE + ".output t t(x, z) :- r1(x, y), r2(y, z).") == {"t#1": Scheme.HASHED}
    assert set(schemes(LOGIC_J, Field.grid(3, 3, named=int)).values()) == {Scheme.ONE_HOP}


def test_the_choice_of_a_scheme_is_followed() -> None:
    for scheme in (Scheme.BROADCAST, Scheme.LOCAL, Scheme.CENTRAL):
        assert schemes(NEGATION, choices=Choices(scheme=scheme)) == {"t#1": scheme}
        assert schemes(NEGATION, choices=Choices(schemes={"t#1": scheme})) == {"t#1": scheme}


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (Choices(scheme=Scheme.ONE_HOP), "a tuple of r1 and a tuple of r2 may be at nodes that do not hear each other"),
        (Choices(scheme=Scheme.HASHED), "no variable in common"),
        (
            Choices(regions={"r1": (Region.SELF, Region.COLUMN)}),
            "tuple of r2 at n0 looks for partners in column, where one of r1 at n1",
        ),
        (
            Choices(regions={"s": (Region.ROW, Region.NEIGHBOURS)}),
            "a tuple of s at n0 looks for partners in neighbours",
        ),
        (Choices(homes={"t": ("nothing",)}), "t has no column nothing"),
        (Choices(schemes={"x": Scheme.LOCAL}), "there is no rule x"),
        (Choices(server="n99"), "there is no node n99"),
    ],
)
def test_choices_that_would_miss_a_pair_are_refused(choices: Choices, message: str) -> None:
    with pytest.raises(NotForSensors, match=message):
        translate(load(NEGATION), GRID, choices)


def test_regions_of_ones_own_are_followed() -> None:
    choices = Choices(
        regions={"r1": (Region.ALL, Region.ALL), "r2": (Region.SELF, Region.ALL), "s": (Region.ALL, Region.ALL)}
    )
    network = SensorNetwork(load(NEGATION), GRID, choices=choices)
    network.apply(
        [Update("+", "r1", (1, 2)), Update("+", "r2", (2, 3)), Update("+", "r2", (2, 4)), Update("+", "s", (4,))]
    )
    assert network.relation("t") == {(1, 3)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".decl a(x:number, y:number) eqrel .input a", "equivalence relation"),
        (".decl a(v:number) .input a .window a(rows=2)", "window of rows"),
        (".decl a(v:number) .input a .output b b(autoinc(), v) :- a(v).", "depends on the order"),
        (".decl a(v:number) .input a .output b b(1) :- !a(1).", "reads only what is not there"),
        (
            ".decl e(a:number, b:number, c:number) .input e .output d d(0, 0). "
            "d(b, m) :- e(_, b, _), m = min c + k : { d(a, c), e(a, b, k) }.",
            "aggregate inside of a recursion",
        ),
    ],
)  # fmt: skip
def test_what_no_field_can_do_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(NotForSensors, match=message):
        translate(load(text), GRID)


def test_tuples_with_a_place_live_there_and_keep_near() -> None:
    made = translate(load(UNCOVERED), Field.grid(50, 50))
    assert made.homes["cov"] == made.homes["uncov"] == Home("nearest", (0, 1))
    assert [plan.scheme for plan in made.plans] == [Scheme.PERPENDICULAR, Scheme.HASHED]
    reaches = made.plans[0].reaches
    assert reaches == (5.5, 5.5)  # the radius, and how far from their nodes things may be
    squared = UNCOVERED.replace("dist(x, y, u, v) <= 5.0", "(x - u) * (x - u) + (y - v) * (y - v) <= 25")
    assert translate(load(squared), Field.grid(50, 50)).plans[0].reaches == reaches
    assert (
        translate(load(UNCOVERED), Field.grid(50, 50), Choices(scheme=Scheme.PERPENDICULAR, clipping=False))
        .plans[0]
        .reaches[0]
        > 1e9
    )


def test_a_condition_with_a_name_keeps_near_as_well() -> None:
    named = (
        UNCOVERED.replace("dist(x, y, u, v) <= 5.0", "close(x, y, u, v)")
        + """
        .decl close(a:number, b:number, c:number, d:number) inline
        close(a, b, c, d) :- dist(a, b, c, d) <= 5.0."""
    )
    assert translate(load(named), Field.grid(50, 50)).plans[0].reaches == (5.5, 5.5)


HASHES = (
    BASE
    + """.output u, v
    t(a, b, c) :- r1(a, b), r2(b, c).
    u(a, d) :- t(a, _, c), r3(c, d).
    v(c) :- t(_, _, c), s(c)."""
)


def test_hash_attributes_follow_the_joins() -> None:
    assert translate(load(HASHES), GRID).homes["t"] == Home("hashed", (2,))
    assert translate(load(HASHES), GRID, Choices(homes={"t": ("a", "c")})).homes["t"] == Home("hashed", (0, 2))


def test_updates_that_nobody_senses_are_refused() -> None:
    network = SensorNetwork(load(UNCOVERED), Field.grid(4, 4))
    with pytest.raises(NotForSensors, match="from the nearest node"):
        network.apply([Update("+", "veh", ("enemy", 50, 0, 1))])
    with pytest.raises(NotForSensors, match="rules derive it"):
        network.apply([Update("+", "cov", (1, 1, 1))])
    placed = SensorNetwork(load(LOGIC_J), Field.grid(2, 2, named=int))
    with pytest.raises(NotForSensors, match="do not hear each other"):
        placed.apply([Update("+", "link", (0, 3))])
    with pytest.raises(NotForSensors, match="not a node of the field"):
        placed.apply([Update("+", "link", (0, 9))])


def test_rules_that_read_nothing_hold_from_the_start() -> None:
    network = SensorNetwork(
        load(".decl a(v:number) .input a .output b b(x) :- x = range(1, 4). b(7). b(v) :- a(v)."), GRID
    )
    network.apply([Update("+", "a", (9,))])
    assert network.relation("b") == {(1,), (2,), (3,), (7,), (9,)}


def test_partners_at_a_site_are_joined_where_a_condition_ties_them() -> None:
    """r and q have nothing in common but s: joining them first would look at all pairs."""
    program = load(
        """.decl r(a:number) .input r .decl q(a:number) .input q .decl s(a:number) .input s .output t
        t(a, b, c) :- r(a), q(c), s(b), a + b = 100, b + c = 100."""
    )
    network = SensorNetwork(program, Field.grid(3, 3), choices=Choices(scheme=Scheme.CENTRAL))
    asked = 0
    fit = network.matcher.fit

    def counted(*args: object) -> object:
        nonlocal asked
        asked += 1
        return fit(*args)  # type: ignore[arg-type]

    network.matcher.fit = counted  # type: ignore[method-assign, assignment]
    network.apply([Update("+", name, (at,)) for at in range(30) for name in "rqs"])
    assert network.compare().missed == network.compare().false == 0
    assert asked < 90 * 90
