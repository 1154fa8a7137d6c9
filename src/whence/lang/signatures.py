"""What the built-in functors accept and what they give."""

from __future__ import annotations

from dataclasses import dataclass

from whence.lang.functors import INTEGRAL, MATH, PARTS_OF_DATES
from whence.lang.types import (
    BOOL,
    DATE,
    DECIMAL,
    FLOAT,
    NUMBER,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
    Primitive,
)

NUMERIC = frozenset({NUMBER, UNSIGNED, FLOAT})
ARITHMETIC = NUMERIC | {DECIMAL}
LOGICAL = INTEGRAL | {BOOL}
TEMPORAL = frozenset({DATE, TIMESTAMP})
ORDERED = ARITHMETIC | TEMPORAL | {SYMBOL, BOOL}
_WRITABLE = NUMERIC | {SYMBOL}


@dataclass(frozen=True, slots=True)
class Signature:
    """The kinds of a functor.

    Each parameter and the result is a kind, a set of kinds (all places that hold a set agree on one of them), "any", "list"
    or "item" (a list and its elements). `variadic` repeats the last parameter.
    """

    params: tuple[Place, ...]
    result: Place
    variadic: bool = False

    def fits(self, count: int) -> bool:
        return count == len(self.params) or (self.variadic and count > len(self.params))

    def arity(self) -> str:
        count = len(self.params)
        plural = "argument" if count == 1 else "arguments"
        return f"{count} or more arguments" if self.variadic else f"{count or 'no'} {plural}"


Place = Primitive | frozenset[Primitive] | str

_ADDABLE = ARITHMETIC | {SYMBOL}
_COUNTED = INTEGRAL | {DECIMAL}
SIGNATURES: dict[str, tuple[Signature, ...]] = {
    "+": (Signature((_ADDABLE, _ADDABLE), _ADDABLE),),
    "-": (
        Signature((ARITHMETIC, ARITHMETIC), ARITHMETIC),
        Signature((ARITHMETIC - {UNSIGNED},), ARITHMETIC - {UNSIGNED}),
    ),
    **{op: (Signature((NUMERIC, NUMERIC), NUMERIC),) for op in ("*", "/", "^")},
    "%": (Signature((_COUNTED, _COUNTED), _COUNTED),),
    **{op: (Signature((INTEGRAL, INTEGRAL), INTEGRAL),) for op in ("band", "bor", "bxor", "bshl", "bshr", "bshru")},
    **{op: (Signature((LOGICAL, LOGICAL), LOGICAL),) for op in ("land", "lor", "lxor")},
    "bnot": (Signature((INTEGRAL,), INTEGRAL),),
    "lnot": (Signature((LOGICAL,), LOGICAL),),
    **{op: (Signature((ORDERED, ORDERED), ORDERED, variadic=True),) for op in ("min", "max")},
    **{name: (Signature((FLOAT,), FLOAT),) for name in MATH},
    "dist": (Signature((NUMERIC,) * 4, FLOAT),),
    "compare": (Signature((frozenset({DECIMAL}), frozenset({DECIMAL, NUMBER})), NUMBER),),
    "cat": (Signature((SYMBOL, SYMBOL), SYMBOL, variadic=True),),
    "strlen": (Signature((SYMBOL,), NUMBER),),
    "substr": (Signature((SYMBOL, NUMBER, NUMBER), SYMBOL),),
    "ord": (Signature(("any",), NUMBER),),
    "to_number": (Signature((_WRITABLE | {BOOL, DECIMAL},), NUMBER),),
    "to_unsigned": (Signature((_WRITABLE,), UNSIGNED),),
    "to_float": (Signature((_WRITABLE | {DECIMAL},), FLOAT),),
    "to_string": (Signature((ORDERED,), SYMBOL),),
    "to_bool": (Signature((LOGICAL | {SYMBOL},), BOOL),),
    "to_date": (Signature((TEMPORAL | {SYMBOL},), DATE),),
    "to_timestamp": (Signature((TEMPORAL | {SYMBOL},), TIMESTAMP),),
    "make_date": (Signature((NUMBER, NUMBER, NUMBER), DATE),),
    **{name: (Signature((TEMPORAL,), NUMBER),) for name in PARTS_OF_DATES},
    "date_part": (Signature((SYMBOL, TEMPORAL), NUMBER),),
    "date_trunc": (Signature((SYMBOL, TEMPORAL), TEMPORAL),),
    "date_add": (Signature((TEMPORAL, NUMBER), TEMPORAL), Signature((TEMPORAL, NUMBER, SYMBOL), TEMPORAL)),
    "days_between": (Signature((TEMPORAL, TEMPORAL), NUMBER),),
    "micros_between": (Signature((TIMESTAMP, TIMESTAMP), NUMBER),),
    "to_text": (Signature((FLOAT,), SYMBOL),),
    "itof": (Signature((NUMBER,), FLOAT),),
    "ftoi": (Signature((FLOAT,), NUMBER),),
    "itou": (Signature((NUMBER,), UNSIGNED),),
    "utoi": (Signature((UNSIGNED,), NUMBER),),
    "ftou": (Signature((FLOAT,), UNSIGNED),),
    "utof": (Signature((UNSIGNED,), FLOAT),),
    "autoinc": (Signature((), NUMBER),),
    "recursive_iteration_cnt": (Signature((), UNSIGNED),),
    "range": (Signature((NUMERIC, NUMERIC), NUMERIC), Signature((NUMERIC, NUMERIC, NUMERIC), NUMERIC)),
    "length": (Signature(("list",), NUMBER),),
    "append": (Signature(("list", "item"), "list"),),
    "concat": (Signature(("list", "list"), "list"),),
    "last": (Signature(("list",), "item"),),
    "occurs": (Signature(("list", "item"), NUMBER),),
    "coalesce": (Signature((ORDERED, ORDERED), ORDERED, variadic=True),),
    "nullif": (Signature((ORDERED, ORDERED), ORDERED),),
}
