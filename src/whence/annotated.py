"""One evaluation of a program in a semiring: every tuple with its annotation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from whence.backends.local.annotations import ArrayLedger, ValueLedger, arithmetic_of
from whence.backends.local.backend import LocalBackend
from whence.engine.annotate import Improve, Settle
from whence.engine.guard import Guard
from whence.engine.maintain import Maintainer
from whence.lang.program import Program, lasting
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.plan import compile_plan
from whence.reference.annotated import Annotate, base_facts, check_annotatable, without_base
from whence.semiring import Semiring

V = TypeVar("V")


def evaluate_annotated(
    program: Program,
    facts: Mapping[str, Iterable[Tuple]],
    semiring: Semiring[V],
    annotate: Annotate[V] = lambda _relation, _row: None,
    *,
    rules: Mapping[str, V] | None = None,
    limits: Limits = Limits(),  # noqa: B008 - immutable
    on_round: Callable[[str, int, int], None] | None = None,
) -> dict[str, dict[Tuple, V]]:
    """The tuples of every relation with their annotations, none of which is zero.

    `annotate` gives the annotation of a base tuple; where it gives None, the tuple stands for itself if the semiring has
    variables, and counts as one if not. `rules` annotates rules by name. Raises NotInThisSemiring for what has no value.

    >>> from whence import load
    >>> from whence.semiring import Tropical
    >>> program = load(".decl link(x:symbol, y:symbol) reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z).")
    >>> costs = {("a", "b"): 1, ("b", "a"): 1, ("b", "c"): 5, ("a", "c"): 9}
    >>> found = evaluate_annotated(program, {"link": costs}, Tropical(), lambda _, row: costs[row])
    >>> found["reach"]["a", "c"]
    6
    """
    check_annotatable(program, semiring)
    factors = rules or {}
    given: dict[str, dict[Tuple, V]] = {}
    for name, row in base_facts(program, facts):
        value = semiring.base((name, row), annotate(name, row))
        if value != semiring.zero:
            given.setdefault(name, {})[row] = value
    plan = compile_plan(without_base(lasting(program), semiring, factors))
    backend = LocalBackend(plan.program)
    guard = Guard(program, limits, on_round)
    maintainer = Maintainer(plan, backend, guard)
    maintainer.settle(maintainer.apply({}, {name: list(rows) for name, rows in given.items()}))

    values = [value for rows in given.values() for value in rows.values()]
    arithmetic = arithmetic_of(semiring, [*values, *factors.values()])
    ledger: ArrayLedger[V] | ValueLedger[V]
    if arithmetic is None:
        ledger = ValueLedger(backend, semiring, factors)
    else:
        ledger = ArrayLedger(backend, semiring, factors, arithmetic)
    for name, rows in given.items():
        ledger.put(name, backend.table(name).find(backend.encode(name, list(rows))), list(rows.values()))
    for stratum in plan.strata:
        if isinstance(ledger, ArrayLedger):
            Improve(stratum, backend, guard).annotate(ledger)
        else:
            Settle(stratum, backend, guard).annotate(ledger)
    result = {}
    for name in program.relations:
        ids = ledger.annotated(name)
        result[name] = dict(zip(backend.decode(name, ids), ledger.get(name, ids), strict=True))
    return result
