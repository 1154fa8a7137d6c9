"""The annotations of rows, by row number: numbers in arrays where the semiring allows, Python values otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.backend import LocalBackend
from whence.engine.protocol import Trace
from whence.plan.steps import DeltaPlan
from whence.semiring import INFINITY, Access, Boolean, Counting, Fuzzy, Semiring, Tropical, Viterbi
from whence.semiring.equations import Term, solve
from whence.semiring.tokens import show_token

V = TypeVar("V")
Node = tuple[str, int]
# Whole numbers up to here are exact as floats.
_EXACT = 2**53


def _size(backend: LocalBackend, relation: str) -> int:
    """What the row numbers of a relation stay below."""
    ids = backend.table(relation).ids()
    return int(ids.max()) + 1 if len(ids) else 0


class _Ledger(Generic[V]):
    def __init__(self, backend: LocalBackend, semiring: Semiring[V], rules: Mapping[str, V]) -> None:
        self.backend = backend
        self.semiring = semiring
        self.rules = rules

    def factor(self, plan: DeltaPlan) -> V:
        return self.rules.get(plan.rule.name, self.semiring.one)

    def heads(self, plan: DeltaPlan, trace: Trace[Ids, Lines]) -> Ids:
        return self.backend.table(plan.rule.head.relation).find(trace.heads)

    def used(self, plan: DeltaPlan, trace: Trace[Ids, Lines]) -> list[tuple[str, Ids]]:
        body = plan.rule.body
        return [(body[position].relation, rows) for position, rows in trace.rows.items()]  # type: ignore[union-attr]

    def distinct(self, batches: Sequence[Ids]) -> Ids:
        return np.unique(np.concatenate(batches)) if batches else np.empty(0, dtype=np.int32)


class ValueLedger(_Ledger[V]):
    """Any semiring: derivations are added up one by one."""

    def __init__(self, backend: LocalBackend, semiring: Semiring[V], rules: Mapping[str, V]) -> None:
        super().__init__(backend, semiring, rules)
        sizes = {name: _size(backend, name) for name in backend.tables}
        self.values: dict[str, list[V]] = {name: [semiring.zero] * size for name, size in sizes.items()}
        # How many derivations of each row are still to come.
        self.expected = {name: np.zeros(size, dtype=np.int64) for name, size in sizes.items()}
        self.equations: dict[Node, list[Term[V, Node]]] = {}

    def put(self, relation: str, ids: Ids, given: Sequence[V]) -> None:
        for row, value in zip(ids.tolist(), given, strict=True):
            self.values[relation][row] = value

    def get(self, relation: str, ids: Ids) -> list[V]:
        column = self.values[relation]
        return [column[row] for row in ids.tolist()]

    def add(self, plan: DeltaPlan, trace: Trace[Ids, Lines]) -> Ids:
        heads, times, plus = self.heads(plan, trace), self.semiring.times, self.semiring.plus
        totals = [self.factor(plan)] * len(heads)
        for relation, rows in self.used(plan, trace):
            totals = [times(total, value) for total, value in zip(totals, self.get(relation, rows), strict=True)]
        column = self.values[plan.rule.head.relation]
        for row, value in zip(heads.tolist(), totals, strict=True):
            column[row] = plus(column[row], value)
        return heads

    def annotated(self, relation: str) -> Ids:
        zero = self.semiring.zero
        return np.array([row for row, value in enumerate(self.values[relation]) if value != zero], dtype=np.int32)

    # -- settling

    def expect(self, plan: DeltaPlan, trace: Trace[Ids, Lines]) -> None:
        np.add.at(self.expected[plan.rule.head.relation], self.heads(plan, trace), 1)

    def settle(self, plan: DeltaPlan, trace: Trace[Ids, Lines]) -> Ids:
        heads = self.add(plan, trace)
        np.subtract.at(self.expected[plan.rule.head.relation], heads, 1)
        return heads

    def complete(self, relation: str, ids: Ids) -> Ids:
        done: Ids = ids[self.expected[relation][ids] == 0]
        return done

    def decide(self, left: Mapping[str, Ids]) -> bool:
        if not isinstance(self.semiring, Counting):
            return False
        for name, ids in left.items():
            self.put(name, ids, [INFINITY] * len(ids))  # type: ignore[list-item]
            self.expected[name][ids] = 0
        return True

    def keep_equation(self, plan: DeltaPlan, trace: Trace[Ids, Lines]) -> None:
        used = self.used(plan, trace)
        relations = [relation for relation, _ in used]
        columns = [rows.tolist() for _, rows in used]
        for head, *body in zip(self.heads(plan, trace).tolist(), *columns, strict=True):
            nodes = list(zip(relations, body, strict=True))
            known = [self.values[name][row] for name, row in nodes if not self.expected[name][row]]
            unknown = tuple((name, row) for name, row in nodes if self.expected[name][row])
            term = (self.semiring.product([self.factor(plan), *known]), unknown)
            self.equations.setdefault((plan.rule.head.relation, head), []).append(term)

    def solve_equations(self) -> None:
        for (name, row), terms in self.equations.items():
            terms.append((self.values[name][row], ()))
        for (name, row), value in solve(self.equations, self.semiring, self._show).items():
            self.values[name][row] = value
            self.expected[name][row] = 0
        self.equations = {}

    def _show(self, node: Node) -> str:
        name, row = node
        (values,) = self.backend.decode(name, np.array([row], dtype=np.int32))
        return show_token((name, values))


class Arithmetic(NamedTuple):
    """A semiring on arrays: its operations, and its values as numbers and back."""

    dtype: type
    plus: np.ufunc
    times: np.ufunc
    encode: Callable[[Any], float]
    decode: Callable[[Any], Any]


def arithmetic_of(semiring: Semiring[Any], given: Iterable[Any]) -> Arithmetic | None:
    """How to compute with these annotations and what follows from them in arrays, if that is exact."""
    match semiring:
        case Boolean():
            return Arithmetic(np.bool_, np.logical_or, np.logical_and, bool, bool)
        case Access(levels=levels, rank=rank):
            return Arithmetic(np.int64, np.minimum, np.maximum, rank.__getitem__, levels.__getitem__)
        case Fuzzy():
            return Arithmetic(np.float64, np.maximum, np.minimum, float, float)
        case Viterbi():
            return Arithmetic(np.float64, np.maximum, np.multiply, float, float)
        case Tropical():
            values = list(given)
            if all(isinstance(value, int) or value == INFINITY for value in values):
                finite = sum(value for value in values if value != INFINITY)
                return Arithmetic(np.float64, np.minimum, np.add, float, _whole) if finite < _EXACT else None
            return Arithmetic(np.float64, np.minimum, np.add, float, float)
        case _:
            return None


def _whole(value: float) -> float:
    return value if value == INFINITY else int(value)


class ArrayLedger(_Ledger[V]):
    """Selective semirings on numbers: improved in arrays."""

    def __init__(
        self, backend: LocalBackend, semiring: Semiring[V], rules: Mapping[str, V], arithmetic: Arithmetic
    ) -> None:
        super().__init__(backend, semiring, rules)
        self.arithmetic = arithmetic
        zero = arithmetic.encode(semiring.zero)
        self.values: dict[str, NDArray[Any]] = {
            name: np.full(_size(backend, name), zero, dtype=arithmetic.dtype) for name in backend.tables
        }

    def put(self, relation: str, ids: Ids, given: Sequence[V]) -> None:
        self.values[relation][ids] = [self.arithmetic.encode(value) for value in given]

    def get(self, relation: str, ids: Ids) -> list[V]:
        return [self.arithmetic.decode(value) for value in self.values[relation][ids].tolist()]

    def add(self, plan: DeltaPlan, trace: Trace[Ids, Lines]) -> Ids:
        heads = self.heads(plan, trace)
        totals: NDArray[Any] = np.full(len(heads), self.arithmetic.encode(self.factor(plan)), self.arithmetic.dtype)
        for relation, rows in self.used(plan, trace):
            totals = self.arithmetic.times(totals, self.values[relation][rows])
        column = self.values[plan.rule.head.relation]
        before = column[heads]
        self.arithmetic.plus.at(column, heads, totals)
        changed: Ids = heads[column[heads] != before]
        return changed

    def annotated(self, relation: str) -> Ids:
        zero = self.arithmetic.encode(self.semiring.zero)
        return np.flatnonzero(self.values[relation] != zero).astype(np.int32)
