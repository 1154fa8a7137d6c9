"""Delta plans to instructions of the machine, where all they do is on words; the others are run column by column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from whence.backends.local import machine
from whence.backends.local.arrays import Ids, Lines
from whence.backends.local.index import Index
from whence.backends.local.table import Table
from whence.engine.protocol import Forbid
from whence.lang.types import NUMBER, UNSIGNED, Kind
from whence.plan.steps import Check, Compare, Compute, Constant, DeltaPlan, Join, Operand, Slot

Encode = Callable[[Constant], int]
_COMPARISONS = {"=": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}
_OPERATIONS = {
    "+": machine.ADD,
    "-": machine.SUBTRACT,
    "*": machine.MULTIPLY,
    "band": machine.BIT_AND,
    "bor": machine.BIT_OR,
    "bxor": machine.BIT_XOR,
    "bnot": machine.BIT_NOT,
    "min": machine.MINIMUM,
    "max": machine.MAXIMUM,
    "constant": machine.COPY,
}
BUFFER = 1 << 13


class NotOnWords(Exception):
    """The plan has a step that needs values, not words."""


@dataclass
class Assembled:
    """Instructions, and the tables and indexes that they name by number. `masks` are the places of forbidden flags."""

    code: NDArray[np.int64]
    scan: NDArray[np.int64]
    tables: list[Table]
    used: list[Index]
    masks: list[tuple[int, Join | Check]]
    heads: Lines
    head_ranks: Ids
    registers: NDArray[np.int64]
    key: Lines
    stack: NDArray[np.int64]
    state: NDArray[np.int64] = field(default_factory=lambda: np.zeros(3, dtype=np.int64))

    moves: int = -1
    where: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def addresses(self) -> NDArray[np.int64]:
        """Where the arrays are now: tables grow. The last word tells where the indexes begin."""
        moves = sum(table.moves for table in self.tables) + sum(index.moves for index in self.used)
        if moves != self.moves:
            self.moves, self.where = moves, self._locate()
        return self.where

    def _locate(self) -> NDArray[np.int64]:
        words: list[int] = []
        for table in self.tables:
            words += table.addresses
        start = len(words)
        for index in self.used:
            words += index.addresses
        return np.array([*words, start], dtype=np.int64)

    def start(self, forbid: Forbid) -> None:
        for place, step in self.masks:
            self.code[place] = forbid(step)
        self.state[:] = 0

    def next_heads(self, addresses: NDArray[np.int64], ids: Ids) -> tuple[Lines, Ids]:
        """More heads, as views that the next call overwrites; none when there are no more."""
        stack = self.stack
        count = machine.enumerate_heads(
            self.code, addresses, self.scan, ids, self.registers, self.key,
            stack[0], stack[1], stack[2], stack[3], self.state, self.heads, self.head_ranks,
        )  # fmt: skip
        return self.heads[:count], self.head_ranks[:count]


def assemble(plan: DeltaPlan, tables: dict[str, Table], encode: Encode) -> Assembled:
    """Raises `NotOnWords`."""
    return _Assembler(tables, encode).assemble(plan)


class _Assembler:
    def __init__(self, tables: dict[str, Table], encode: Encode) -> None:
        self.by_name = tables
        self.encode = encode
        self.tables: list[Table] = []
        self.indexes: list[tuple[Table, tuple[int, ...]]] = []
        self.masks: list[tuple[int, Join | Check]] = []
        self.code: list[int] = []

    def assemble(self, plan: DeltaPlan) -> Assembled:
        scan = plan.scan
        if scan is None:
            raise NotOnWords
        header = [self._table(scan.relation), int(scan.recursive), len(scan.binds), len(scan.equals), len(scan.same)]
        header += [word for pair in scan.binds for word in pair]
        header += [word for column, constant in scan.equals for word in (column, self.encode(constant))]
        header += [word for pair in scan.same for word in pair]
        for step in plan.steps:
            self._step(step)
        self._emit([machine.EMIT, *self._operands(plan.head)])
        joins = sum(isinstance(step, Join) for step in plan.steps)
        widths = [len(step.key) for step in plan.steps if isinstance(step, Join)]
        widths += [len(step.args) for step in plan.steps if isinstance(step, Check)]
        return Assembled(
            np.array(self.code, dtype=np.int64),
            np.array(header, dtype=np.int64),
            self.tables,
            [table.index(columns) for table, columns in self.indexes],
            self.masks,
            np.empty((BUFFER, len(plan.head)), dtype=np.int64),
            np.empty(BUFFER, dtype=np.int32),
            np.zeros(max(plan.slots, 1), dtype=np.int64),
            np.zeros((1, max([*widths, 1])), dtype=np.int64),
            np.zeros((4, joins + 2), dtype=np.int64),
        )

    def _step(self, step: object) -> None:
        match step:
            case Join(relation=relation, recursive=recursive, key=key, binds=binds, same=same):
                self.masks.append((len(self.code) + 4, step))
                index = self._index(relation, tuple(column for column, _ in key))
                words = [machine.JOIN, self._table(relation), index, 0, int(recursive), len(key), len(binds), len(same)]
                words += self._operands([operand for _, operand in key])
                words += [word for pair in (*binds, *same) for word in pair]
                self._emit(words)
            case Check(relation=relation, recursive=recursive, args=args, present=present):
                self.masks.append((len(self.code) + 3, step))
                words = [machine.CHECK, self._table(relation), 0, int(present), int(recursive), len(args)]
                self._emit(words + self._operands(args))
            case Compare(op=op, left=left, right=right, kind=kind):
                if op not in _COMPARISONS or (op not in ("=", "!=") and kind not in (NUMBER, UNSIGNED)):
                    raise NotOnWords
                form = machine.AS_UNSIGNED if kind == UNSIGNED else machine.AS_NUMBER
                self._emit([machine.COMPARE, _COMPARISONS[op], form, *self._operands((left, right))])
            case Compute(target=target, functor=functor, args=args, kind=kind):
                self._compute(target, functor, args, kind)
            case _:
                raise NotOnWords

    def _compute(self, target: int, functor: str, args: Sequence[Operand], kind: Kind) -> None:
        kinds = {"constant": (kind,), "min": (NUMBER,), "max": (NUMBER,)}.get(functor, (NUMBER, UNSIGNED))
        if functor not in _OPERATIONS or len(args) > 2 or kind not in kinds:
            raise NotOnWords
        operation = machine.NEGATE if functor == "-" and len(args) == 1 else _OPERATIONS[functor]
        self._emit([machine.COMPUTE, target, operation, *self._operands((*args, *args)[:2])])

    def _emit(self, words: list[int]) -> None:
        """An instruction: its length goes behind its operation."""
        self.code += [words[0], len(words) + 1, *words[1:]]

    def _operands(self, operands: Sequence[Operand]) -> list[int]:
        words: list[int] = []
        for operand in operands:
            words += [0, operand.number] if isinstance(operand, Slot) else [1, self.encode(operand)]
        return words

    def _table(self, relation: str) -> int:
        table = self.by_name[relation]
        if table not in self.tables:
            self.tables.append(table)
        return self.tables.index(table)

    def _index(self, relation: str, columns: tuple[int, ...]) -> int:
        table = self.by_name[relation]
        if (table, columns) not in self.indexes:
            self.indexes.append((table, columns))
        return self.indexes.index((table, columns))
