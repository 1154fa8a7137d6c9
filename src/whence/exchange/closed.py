"""SQL about the rows that are there: aggregates, EXCEPT, NOT EXISTS.

Joins and unions have certain answers, which stay whatever is published next and whatever invented values stand for. How many rows
there are, and that one is missing, is only ever so by now: such a query is asked of a peer's tables as they are. An invented
value stands for itself, so that it can be joined, grouped by and counted. What would need to know it (an order, a sum,
arithmetic, or that it is none of some others) is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import nextafter

from whence.exchange.instance import Instance
from whence.exchange.model import Relation
from whence.exchange.rows import has_null
from whence.exchange.tables import cell_text
from whence.lang import tree
from whence.lang.diagnostics import Diagnostics
from whence.lang.load import check
from whence.lang.program import Aggregation, Apply, Atom, Comparison, Generator, Literal, Negation, Program, Rule, Var
from whence.lang.source import Source
from whence.lang.types import Tuple, Value, Variant
from whence.session import evaluate

_FREE_NUMBER, _FREE_FLOAT = -(1 << 62), -1.5e308
Place = tuple[str, int]


def closed_answers(
    instance: Instance, tables: Mapping[str, Relation], module: tree.Module, source: Source, asked: str, *, nulls: bool
) -> set[Tuple]:
    """`tables` are the peer's by their own names, as the query has them. Raises ValueError for what needs an unknown value."""
    program = check(module, source, {}, Diagnostics(source))
    used = {atom.relation for rule in program.rules for atom in tree.walk(rule.body) if isinstance(atom, Atom)}
    rows = {name: instance.relation(each.full_name) for name, each in tables.items() if name in used}
    columns = {
        (name, at): f"{name}.{column.name}"
        for name, each in rows.items()
        for at, column in enumerate(tables[name].columns)
        if any(isinstance(row[at], Variant) for row in each)
    }
    _Unknown(program, columns).check(certain=not nulls)
    stand_ins = _StandIns({value for each in rows.values() for row in each for value in row})
    facts = {
        name: [
            tuple(stand_ins.of(value, column.type) for value, column in zip(row, tables[name].columns, strict=True))
            for row in each
        ]
        for name, each in rows.items()
    }
    found = {tuple(map(stand_ins.back, row)) for row in evaluate(program, facts, wanted=[asked])[asked]}
    return found if nulls else {row for row in found if not has_null(row)}


class _StandIns:
    """For each null a plain value of its column's type that no row holds."""

    def __init__(self, taken: set[Value]) -> None:
        self._taken = taken
        self._known: dict[tuple[Variant, str], Value] = {}
        self._nulls: dict[Value, Variant] = {}

    def of(self, value: Value, type_: str) -> Value:
        if not isinstance(value, Variant):
            return value
        key = value, type_
        if key not in self._known:
            made = next(each for each in _candidates(value, type_) if each not in self._taken)
            self._taken.add(made)
            self._known[key], self._nulls[made] = made, value
        return self._known[key]

    def back(self, value: Value) -> Value:
        return self._nulls.get(value, value)


def _candidates(null: Variant, type_: str) -> Iterator[Value]:
    number, real, text = _FREE_NUMBER, _FREE_FLOAT, cell_text(null)
    while True:
        yield text if type_ == "symbol" else real if type_ == "float" else number
        number, real, text = number + 1, nextafter(real, 0), f"${text}"


class _Unknown:
    """Which columns of a program's relations may hold nulls, and which column of a table each of these comes from."""

    def __init__(self, program: Program, columns: Mapping[Place, str]) -> None:
        self._program = program
        self._columns = dict(columns)
        before = -1
        while before < len(self._columns):
            before = len(self._columns)
            for rule in program.rules:
                unknown = self._variables(rule.body)
                for at, arg in enumerate(rule.head.args):
                    if isinstance(arg, Var) and arg.name in unknown:
                        self._columns.setdefault((rule.head.relation, at), unknown[arg.name])

    def _variables(self, body: Sequence[Literal]) -> dict[str, str]:
        """The variables that may be nulls: all columns that they stand in may hold some."""
        met: dict[str, list[str | None]] = {}
        for literal in body:
            if isinstance(literal, Atom):
                for at, arg in enumerate(literal.args):
                    if isinstance(arg, Var):
                        met.setdefault(arg.name, []).append(self._columns.get((literal.relation, at)))
        unknown = {name: origins[0] for name, origins in met.items() if origins[0] is not None and None not in origins}
        for literal in body:
            if isinstance(literal, Comparison) and literal.op == "=":
                for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
                    if isinstance(one, Var) and isinstance(other, Var) and other.name not in met:
                        unknown |= {other.name: unknown[one.name]} if one.name in unknown else {}
        return unknown

    def check(self, *, certain: bool) -> None:
        for rule in self._program.rules:
            self._check_body(rule, rule.body, self._variables(rule.body), certain=certain)
            _refuse_applied(rule.head, self._variables(rule.body))

    def _check_body(self, rule: Rule, body: Sequence[Literal], unknown: Mapping[str, str], *, certain: bool) -> None:
        for literal in body:
            match literal:
                case Comparison(op=op) if op != "=":
                    _refuse(literal, unknown, f"compared by {op}")
                case Generator():
                    _refuse(literal, unknown, "counted up from")
                case Negation() if certain:
                    _refuse(literal, unknown, "looked for in vain (as known values are, with --nulls)")
                case Aggregation(bodies=bodies):
                    for each in bodies:
                        inner = {**unknown, **self._variables(each)}
                        if literal.op != "count":
                            _refuse(literal.value, inner, f"aggregated by {literal.op}")
                        self._check_body(rule, each, inner, certain=certain)
                case _:
                    _refuse_applied(literal, unknown)


def _refuse_applied(node: object, unknown: Mapping[str, str]) -> None:
    for each in tree.walk(node):
        if isinstance(each, Apply):
            _refuse(each, unknown, "computed with")


def _refuse(node: object, unknown: Mapping[str, str], what: str) -> None:
    for each in tree.walk(node):
        if isinstance(each, Var) and each.name in unknown:
            advice = "they can be joined, grouped by and counted"
            raise ValueError(f"{unknown[each.name]} holds invented values, which cannot be {what}; {advice}")
