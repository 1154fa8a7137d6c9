"""The algebras of annotations: what they are made of, what they promise, how one becomes another."""

from collections.abc import Mapping
from typing import Any

from whence.semiring.algebra import Difference, NotInThisSemiring, Properties, Semiring
from whence.semiring.compose import Custom, Product
from whence.semiring.numbers import INFINITY, Access, Boolean, Counting, Fuzzy, Integer, Natural, Tropical, Viterbi
from whence.semiring.polynomials import (
    BOOLEAN_POLYNOMIALS,
    INTEGER_POLYNOMIALS,
    NATURAL_POLYNOMIALS,
    TRIO,
    Polynomial,
    Polynomials,
    PowerSeries,
)
from whence.semiring.witnesses import Lattice, Lineage, PosBool, Why, events

__all__ = [
    "BOOLEAN_POLYNOMIALS",
    "INFINITY",
    "INTEGER_POLYNOMIALS",
    "NATURAL_POLYNOMIALS",
    "SEMIRINGS",
    "TRIO",
    "Access",
    "Boolean",
    "Counting",
    "Custom",
    "Difference",
    "Fuzzy",
    "Integer",
    "Lattice",
    "Lineage",
    "Natural",
    "NotInThisSemiring",
    "Polynomial",
    "Polynomials",
    "PosBool",
    "PowerSeries",
    "Product",
    "Properties",
    "Semiring",
    "Tropical",
    "Viterbi",
    "Why",
    "events",
]

# By name, as on the command line.
SEMIRINGS: Mapping[str, Semiring[Any]] = {
    each.name: each
    for each in (
        Boolean(),
        Natural(),
        Counting(),
        Tropical(),
        Viterbi(),
        Fuzzy(),
        Access(),
        Lineage(),
        Why(),
        PosBool(),
        TRIO,
        BOOLEAN_POLYNOMIALS,
        NATURAL_POLYNOMIALS,
        PowerSeries.up_to(6),
        Integer(),
        INTEGER_POLYNOMIALS,
    )
}
