"""Delta plans to instructions of the machine, where all they do is on words; the others are run column by column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from whence.backends.local import bundles, machine, sieves
from whence.backends.local.bundles import Source
from whence.backends.local.cells import ITEM, NO_ITEM, RECORD, Cells
from whence.backends.local.choices import Choice, alternatives
from whence.backends.local.instructions import Instructions, Needs
from whence.backends.local.operands import COLUMN, CONSTANT, REGISTER
from whence.backends.local.sieving import Placed, Sieve, find_sieve
from whence.backends.local.words import Dictionary, Words, is_number
from whence.lang.types import NUMBER, UNSIGNED, Kind, ListKind, is_plain, is_whole
from whence.plan.steps import (
    Build,
    Check,
    Compare,
    Compute,
    Constant,
    DeltaPlan,
    Generate,
    Join,
    Operand,
    Slot,
    TakeApart,
    bound_by,
    read_by,
)

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


class NotOnWords(Exception):
    """The plan has a step that needs values, not words."""


class Assembler:
    """The instructions of plans, made when one is first run by anybody who shares them, and kept as long as the plan is."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self.made: WeakKeyDictionary[DeltaPlan, Instructions | None] = WeakKeyDictionary()
        self.bundled: WeakKeyDictionary[DeltaPlan, Instructions] = WeakKeyDictionary()
        dictionary.holders.add(self)

    def instructions(self, plan: DeltaPlan) -> Instructions | None:
        """None if the plan needs values."""
        try:
            return self.made[plan]
        except KeyError:
            try:
                found = _Assembly(self.dictionary).assemble(plan)
            except NotOnWords:
                found = None
            self.made[plan] = found
            return found

    def bundles(self, plan: DeltaPlan, source: Source) -> Instructions:
        """Those that pass on rows of a source in bundles, of a plan that needs no values."""
        if plan not in self.bundled:
            self.bundled[plan] = _Assembly(self.dictionary).assemble(plan, source)
        return self.bundled[plan]

    def cells_changed(self) -> None:
        self.made.clear()
        self.bundled.clear()

    def held_words(self) -> Iterator[tuple[Kind, Words]]:
        for each in (*self.made.values(), *self.bundled.values()):
            if each is not None:
                yield from ((kind, np.array([word], dtype=np.int64)) for kind, word in each.constants)


class _Alternatives(NamedTuple):
    """Joins that may be made instead of one, in the code at `join`, and what is needed after it."""

    step: Join
    others: list[Join]
    needed: list[int]
    join: int


class _Assembly:
    """The instructions of one plan, as far as they are made."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self.cells_of = dictionary.cells_of
        self.constants: set[tuple[Kind, int]] = set()
        self.makes: list[Cells] = []
        self.registers = 0
        self.masks: list[tuple[int, Join | Check]] = []
        self.rows: list[tuple[int, str]] = []
        self.slots: list[tuple[int, str]] = []
        self.indexes: list[tuple[int, str, tuple[int, ...]]] = []
        self.choices: list[Choice] = []
        self.sieves: list[Placed] = []
        self.code: list[int] = []

    def encode(self, constant: Constant) -> int:
        word = self.dictionary.encode(constant.value, constant.kind)
        if not is_number(constant.kind):
            self.constants.add((constant.kind, word))
        return word

    def assemble(self, plan: DeltaPlan, source: Source | None = None) -> Instructions:
        """With a source, for the heads of bundles. Raises `NotOnWords`."""
        scan = plan.scan
        if scan is None:
            raise NotOnWords
        self.registers = plan.slots
        self.rows.append((0, scan.relation))
        self.code += [0, int(scan.recursive)]
        self.code += [len(scan.binds), len(scan.equals), len(scan.same)]
        begins_bundles = source is not None and not source.is_joined
        own = [self.registers, self.registers + 1] if begins_bundles else []
        self.registers += len(own)
        self.code += own or [-1, -1]
        self.code += [word for pair in scan.binds for word in pair]
        self.code += [word for column, constant in scan.equals for word in (column, self.encode(constant))]
        self.code += [word for pair in scan.same for word in pair]
        waiting: list[_Alternatives] = []
        sieved: list[tuple[int, int, Sieve]] = []
        for at, (step, needed) in enumerate(zip(plan.steps, _needed_after(plan), strict=True)):
            kept = [*sorted(needed), *own]
            if isinstance(step, Join) and source is None and (others := alternatives(plan, at)):
                waiting.append(_Alternatives(step, others, kept, len(self.code)))
            if isinstance(step, Join) and source is None and (sieve := find_sieve(plan, at)) is not None:
                sieved.append((len(self.code), len(self.indexes) + 1, sieve))
            self._step(step, kept)
        self._head(plan, own, makes_bundles=source is not None and source.is_joined)
        for each in waiting:
            self._alternatives(each)
        for join, joins, sieve in sieved:
            self._sieve(join, joins, sieve)
        widths = [len(step.key) + 1 for step in plan.steps if isinstance(step, Join)]
        widths += [len(step.args) for step in plan.steps if isinstance(step, Check)]
        widths += [len(level.key) for _, _, sieve in sieved for level in sieve.levels]
        widths += [each.columns for each in self.makes]
        return Instructions(
            np.array(self.code, dtype=np.int64),
            rows=self.rows,
            slots=self.slots,
            indexes=self.indexes,
            masks=self.masks,
            choices=self.choices,
            sieves=self.sieves,
            makes=self.makes,
            constants=frozenset(self.constants),
            needs=Needs(
                joins=sum(isinstance(step, Join) for step in plan.steps),
                registers=self.registers,
                key=max([*widths, 2]),
                head=len(plan.head) + (0 if source is None else bundles.OWN_WORDS),
                sieves=len(self.sieves),
            ),
            source=source,
        )

    def _head(self, plan: DeltaPlan, own: Sequence[int], *, makes_bundles: bool) -> None:
        """`own` are the registers of bundles that the plan began with."""
        last, behind = plan.steps[-1] if plan.steps else None, [Slot(register) for register in own]
        if not isinstance(last, Join):
            self._emit([machine.EMIT, *self._operands([*plan.head, *behind])])
            return
        columns = {register: column for column, register in last.binds}
        words = [machine.EMIT_BUNDLES if makes_bundles else machine.EMIT_JOINED]
        for operand in (*plan.head, *behind):
            if isinstance(operand, Slot) and operand.number in columns:
                words += [COLUMN, columns[operand.number]]
            else:
                words += self._operands([operand])
        self._emit(words)

    def _alternatives(self, waiting: _Alternatives) -> None:
        """Behind everything else, joins in place of one, whose own atom is asked then; those of the others are in any case."""
        step, others, join = waiting.step, waiting.others, waiting.join
        registers = [self.registers, self.registers + 1, self.registers + 2]
        self.registers += len(registers)
        choice = len(self.code)
        self.code += [*registers, len(others) + 1, join, *(0 for _ in others)]
        row = dict(step.key) | {column: Slot(register) for column, register in step.binds}
        asked = Check(step.position, step.relation, step.recursive, tuple(row[at] for at in sorted(row)), present=True)
        carried = sorted({*waiting.needed, *read_by(asked)})
        indexes = []
        for number, other in enumerate(others, start=1):
            at = self.code[choice + machine.CHOSEN_FROM + number] = len(self.code)
            indexes.append((at + 3, other.relation, tuple(column for column, _ in other.key)))
            self._join(other, carried, choice, number)
            self._step(asked, waiting.needed)
            self._emit([machine.JUMP, join + self.code[join + 1]])
        self.choices.append(Choice(choice, join, step.relation, tuple(column for column, _ in step.key), indexes))

    def _sieve(self, join: int, joins: int, sieve: Sieve) -> None:
        """Behind everything else, too. It is not in use yet."""
        place = len(self.code)
        self.code[join + machine.SIEVE] = -place
        registers = sorted(sieve.registers)
        self.code += [len(self.sieves), sieve.column, 0, 0, 0, len(registers), len(sieve.levels), *registers]
        levels = []
        for level in sieve.levels:
            levels.append((len(self.code) + sieves.INDEX, level.relation, level.columns))
            self.code += [0, level.column, len(level.key)]
            for _, operand in level.key:
                self.code += [COLUMN, 0] if operand is None else self._operands([operand])
        self.sieves.append(Placed(place, join, joins, levels))

    def _join(self, step: Join, needed: list[int], choice: int = 0, number: int = 0) -> None:
        bound = {register for _, register in step.binds}
        carried = [register for register in needed if register not in bound]
        self.rows.append((len(self.code) + 2, step.relation))
        words = [machine.JOIN, 0, 0, 0, int(step.recursive)]
        words += [len(step.key), len(step.binds), len(step.same), len(carried), choice, number, 0]
        words += self._operands([operand for _, operand in step.key])
        words += [word for pair in (*step.binds, *step.same) for word in pair]
        self._emit(words + carried)

    def _step(self, step: object, needed: list[int]) -> None:
        """An instruction. Registers that are `needed` after it are carried over to the lines it keeps or makes."""
        match step:
            case Join(relation=relation, key=key):
                self.indexes.append((len(self.code) + 3, relation, tuple(column for column, _ in key)))
                self.masks.append((len(self.code) + 4, step))
                self._join(step, needed)
            case Check(relation=relation, recursive=recursive, args=args, present=present):
                at = len(self.code)
                self.slots.append((at + 2, relation))
                self.masks.append((at + 3, step))
                words = [machine.CHECK, 0, 0, int(present), int(recursive), len(args)]
                self._emit([*words, len(needed), *self._operands(args), *needed])
            case Compare(op=op, left=left, right=right, kind=kind):
                if op not in _COMPARISONS or (op not in ("=", "!=") and kind != UNSIGNED and not is_whole(kind)):
                    raise NotOnWords
                form = machine.AS_UNSIGNED if kind == UNSIGNED else machine.AS_NUMBER
                words = [machine.COMPARE, _COMPARISONS[op], form, len(needed)]
                self._emit([*words, *self._operands((left, right)), *needed])
            case Compute(target=target, functor=functor, args=args, kind=kind):
                self._compute(target, functor, args, kind)
            case Build():
                self._build(step)
            case TakeApart():
                self._take_apart(step, needed)
            case _:
                raise NotOnWords

    def _build(self, step: Build) -> None:
        cells = self.cells_of(step.kind)
        if not isinstance(step.kind, ListKind):
            tag = RECORD if step.branch is None else cells.branches[step.branch]
            self._make(cells, tag, step.target, self._operands(step.parts))
            return
        # A list is made from its end, in the register of the result.
        rest = [CONSTANT, self.encode(Constant((), step.kind))]
        if step.rest is not None:
            rest = self._operands([step.rest])
        if not step.parts:
            self._emit([machine.COMPUTE, step.target, machine.COPY, *rest, *rest])
        for part in reversed(step.parts):
            self._make(cells, ITEM, step.target, [*self._operands([part]), *rest])
            rest = [REGISTER, step.target]

    def _make(self, cells: Cells, tag: int, target: int, operands: list[int]) -> None:
        self.makes.append(cells)
        kinds = cells.parts[tag]
        sized = [0 if is_plain(kind) else self.cells_of(kind).address for kind in kinds]
        words = [machine.BUILD, target, cells.address, tag, cells.base_size(tag), len(kinds)]
        self._emit([*words, *operands, *sized])

    def _take_apart(self, step: TakeApart, needed: list[int]) -> None:
        cells, source = self.cells_of(step.kind), self._operands([step.source])
        if not isinstance(step.kind, ListKind):
            tag = RECORD if step.branch is None else cells.branches[step.branch]
            self._take(cells, tag, source, step.parts, needed)
            return
        # Item by item: what is left of the list goes from one register to the next.
        for part in step.parts:
            rest = self.registers
            self.registers += 1
            self._take(cells, ITEM, source, (part, rest), [*needed, rest])
            source = [REGISTER, rest]
        if step.rest is not None:
            self._emit([machine.COMPUTE, step.rest, machine.COPY, *source, *source])
        elif not step.open_ended:
            self._take(cells, NO_ITEM, source, (), needed)

    def _take(self, cells: Cells, tag: int, source: list[int], parts: Sequence[int], kept: Sequence[int]) -> None:
        words = [machine.TAKE_APART, cells.address, tag, len(parts), len(kept)]
        self._emit([*words, *source, *parts, *kept])

    def _compute(self, target: int, functor: str, args: Sequence[Operand], kind: Kind) -> None:
        kinds = {"constant": (kind,), "min": (NUMBER,), "max": (NUMBER,)}.get(functor, (NUMBER, UNSIGNED))
        if functor not in _OPERATIONS or len(args) > 2 or kind not in kinds:
            raise NotOnWords
        operation = machine.NEGATE if functor == "-" and len(args) == 1 else _OPERATIONS[functor]
        self._emit([machine.COMPUTE, target, operation, *self._operands((*args, *args)[:2])])

    def _emit(self, words: list[int]) -> None:
        """An instruction: its length goes behind its operation."""
        self.code += [words[0], len(words) + 1, *words[1:]]

    def _operands(self, given: Sequence[Operand]) -> list[int]:
        words: list[int] = []
        for operand in given:
            if isinstance(operand, Slot):
                words += [REGISTER, operand.number]
            else:
                words += [CONSTANT, self.encode(operand)]
        return words


def _needed_after(plan: DeltaPlan) -> list[set[int]]:
    """For each step, the slots that the head and the steps behind it read."""
    needed = {operand.number for operand in plan.head if isinstance(operand, Slot)}
    after: list[set[int]] = []
    for step in reversed(plan.steps):
        if isinstance(step, Generate):
            raise NotOnWords
        after.append(set(needed))
        needed = (needed - bound_by(step)) | read_by(step)
    return after[::-1]
