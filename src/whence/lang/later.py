"""Kinds that depend on others in a way that making two of them one cannot express: what is computed of decimals.

What is known when a term is met is settled at once; the rest waits until other rules have said more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from whence.lang import tree
from whence.lang.signatures import ARITHMETIC, NUMERIC
from whence.lang.types import DECIMAL, FLOAT, MOST_DIGITS, DecimalKind, Kind, Primitive, decimal_kind
from whence.lang.unify import Inferred, Slot

# Functors whose result is of another kind than their arguments if these are decimals, and what they take.
DIFFERENT: Mapping[str, frozenset[Primitive]] = {
    **dict.fromkeys(("*", "/"), ARITHMETIC),
    **dict.fromkeys(("floor", "ceil"), frozenset({FLOAT, DECIMAL})),
}


class Asking(Protocol):
    """Who asks: kinds are made one by it, and what cannot be is reported."""

    def agree(self, term: tree.Term, actual: Inferred, expected: Inferred, where: str, functor: str) -> None: ...

    def report_digits(self, term: tree.Term, scale: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Later:
    """`op` applied to terms: the kind of the result is not that of the terms if these are decimals."""

    asking: Asking
    op: str
    whole: tree.Term
    terms: tuple[tree.Term, ...]
    given: tuple[Inferred, ...]
    result: Slot

    def settle(self, *, is_last: bool) -> bool:
        """Whether the result's kind is settled; if nothing more will be known, it is."""
        kinds = [_known(each) for each in self.given]
        if any(isinstance(kind, DecimalKind) for kind in kinds):
            return self._settle_decimals(kinds, is_last=is_last)
        told = _known(self.result)
        is_told = told is not None and not isinstance(told, DecimalKind) and not (self.op == "/" and told == FLOAT)
        if not is_last and not is_told and all(kind is None for kind in kinds):
            return False
        shared = Slot(NUMERIC & DIFFERENT.get(self.op, NUMERIC))
        for term, given in zip(self.terms, self.given, strict=True):
            self.asking.agree(term, given, shared, self._where, self.op)
        self.asking.agree(self.whole, shared, self.result, self._where, self.op)
        return True

    def _settle_decimals(self, kinds: list[Kind | None], *, is_last: bool) -> bool:
        example = next(kind for kind in kinds if isinstance(kind, DecimalKind))
        unknown = [term for term, kind in zip(self.terms, kinds, strict=True) if kind is None]
        if not is_last and not all(isinstance(term, tree.Number) for term in unknown):
            return False
        scales = []
        for term, given, kind in zip(self.terms, self.given, kinds, strict=True):
            if kind is None and isinstance(term, tree.Number):
                kind = decimal_kind(MOST_DIGITS, min(_scale_of(term), MOST_DIGITS))  # noqa: PLW2901 - what is known now
            if not isinstance(kind, DecimalKind):
                kind = example  # noqa: PLW2901 - what was wanted
            self.asking.agree(term, given, kind, self._where, self.op)
            scales.append(kind.scale)
        self.asking.agree(self.whole, self._result(scales), self.result, self._where, self.op)
        return True

    def _result(self, scales: list[int]) -> Kind:
        if self.op == "/":
            return FLOAT
        if self.op in ("floor", "ceil"):
            return decimal_kind(MOST_DIGITS, 0)
        if sum(scales) > MOST_DIGITS:
            self.asking.report_digits(self.whole, sum(scales))
        return decimal_kind(MOST_DIGITS, min(sum(scales), MOST_DIGITS))

    @property
    def _where(self) -> str:
        return f"the value of {self.op}" if self.op == "sum" else f"an argument of {self.op}"


def _known(inferred: Inferred) -> Kind | None:
    kind = inferred.root().kind if isinstance(inferred, Slot) else inferred
    return kind if isinstance(kind, Kind) else None


def _scale_of(number: tree.Number) -> int:
    exponent = Decimal(repr(number.value)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0
