"""Games of two players in exact numbers: what decides whether some mixture of mappings is never dearer than another."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Payoffs = Sequence[Sequence[int]]


def best_mixture(payoffs: Payoffs) -> tuple[Fraction, list[Fraction]]:
    """What the player who picks a row can be sure of on average, whatever column the other picks, and how to mix the rows.

    >>> best_mixture([[3, -1], [-1, 1]])
    (Fraction(1, 3), [Fraction(1, 3), Fraction(2, 3)])
    """
    shift = 1 - min(map(min, payoffs))
    rows, columns = len(payoffs), len(payoffs[0])
    # The other player's side of it, max Σy where payoffs · y ≤ 1, can start with y = 0; its prices are the mixture wanted.
    table = [
        [Fraction(each + shift) for each in row] + [Fraction(int(at == other)) for other in range(rows)] + [Fraction(1)]
        for at, row in enumerate(payoffs)
    ]
    goal = [Fraction(-1)] * columns + [Fraction(0)] * (rows + 1)
    basis = list(range(columns, columns + rows))
    while True:
        entering = next((at for at, gain in enumerate(goal[:-1]) if gain < 0), None)  # the first one: never goes round
        if entering is None:
            break
        ratios = [(row[-1] / row[entering], basis[at], at) for at, row in enumerate(table) if row[entering] > 0]
        _, _, leaving = min(ratios)
        pivot = table[leaving][entering]
        table[leaving] = [each / pivot for each in table[leaving]]
        for row in (*table[:leaving], *table[leaving + 1 :], goal):
            factor = row[entering]
            if factor:
                row[:] = [each - factor * other for each, other in zip(row, table[leaving], strict=True)]
        basis[leaving] = entering
    total = goal[-1]
    return 1 / total - shift, [price / total for price in goal[columns:-1]]
