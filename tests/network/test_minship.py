from __future__ import annotations

from biodivine_aeon import Bdd

from whence.network.absorption import Absorption
from whence.network.annotations import Key, Variable
from whence.network.minship import MinShip, Policy

T: Key = (0, ("t",))
A, B, C, D = (Variable("n", serial) for serial in range(4))


def shipping(policy: Policy) -> tuple[MinShip[Bdd], dict[Variable, Bdd]]:
    algebra = Absorption("arrival")
    for variable in (A, B, C, D):
        algebra.announce(variable, T, ())
    return MinShip(algebra, policy), {each: algebra.base(T, each) for each in (A, B, C, D)}


def test_15_lazily() -> None:
    ship, base = shipping(Policy())
    assert ship.insert(T, base[A]) == [(T, base[A])]
    assert ship.insert(T, base[A].l_and(base[B])) == []
    assert ship.held == {}  # absorbed
    assert ship.insert(T, base[C]) == []
    assert ship.insert(T, base[C].l_and(base[D])) == []
    assert ship.held == {T: base[C]}
    assert ship.die([A]) == [(T, base[C])]
    assert ship.die([C]) == []
    assert not ship.told
    assert not ship.held
    assert ship.insert(T, base[D]) == [(T, base[D])]


def test_by_size() -> None:
    ship, base = shipping(Policy(capacity=1))
    other: Key = (0, ("u",))
    for key in (T, other):
        assert ship.insert(key, base[A]) == [(key, base[A])]
    assert ship.insert(T, base[B]) == []
    assert ship.insert(other, base[C]) == [(T, base[B]), (other, base[C])]
    assert ship.held == {}


def test_what_was_told_in_part_is_not_told_again() -> None:
    ship, base = shipping(Policy())
    ship.insert(T, base[A].l_or(base[B]))
    ship.insert(T, base[C])
    assert ship.die([A]) == []  # the home still has another derivation
    assert ship.die([B]) == [(T, base[C])]
