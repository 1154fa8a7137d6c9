"""Delta plans for one changed row at a time.

The engine takes batches of rows through compiled loops, which pays from some hundred rows on; a message to a node brings one or
two. Here a plan becomes a Python function of nested loops over dictionaries, made once for all nodes: from a row that has changed
to the heads of the derivations that it takes part in, each with the highest rank of the rows of the recursion that it uses.

Each derivation is met once: a row that a body reads several times is the changed one only at positions up to the one that the
plan starts from. Rows that negated literals ask for are put in after what their coming takes away has been found, and taken out
before what their going brings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from whence.lang.deep import compound
from whence.lang.types import FLOAT, NUMBER, SYMBOL, UNSIGNED, Tuple, Value, Variant
from whence.network.computed import UNDEFINED, Computed
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
    Scan,
    Slot,
    Step,
    TakeApart,
)

# Rows that are there, with their ranks, by table; and by index, rows by the values in some columns.
Present = list[dict[Tuple, int]]
Indexes = list[dict[Value, dict[Tuple, None]]]
Found = list[tuple[Tuple, int]]
# From a changed row and its rank to heads and ranks, which are added to the last argument.
Trigger = Callable[[Present, Indexes, Tuple, int, Found], None]

_DEEPEST = 18  # loops that Python nests in a function
_ORDERED = (NUMBER, UNSIGNED, FLOAT, SYMBOL)


class TooManyJoins(Exception):
    """A rule with more atoms than loops can be nested."""


@dataclass
class Numbering:
    """The numbers of tables and of the indexes on them."""

    tables: dict[tuple[str, int | None], int] = field(default_factory=dict)
    indexes: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict)

    def table(self, relation: str, level: int | None = None) -> int:
        return self.tables.setdefault((relation, level), len(self.tables))

    def index(self, table: int, columns: tuple[int, ...]) -> int:
        return self.indexes.setdefault((table, columns), len(self.indexes))


def make_trigger(plan: DeltaPlan, computed: Computed, numbering: Numbering, reads: Callable[[str], int]) -> Trigger:
    """`reads` gives the table that the rule sees a relation in."""
    return Writer(plan, computed, numbering, reads).compile()


class Writer:
    """Writes the text of a trigger. What is kept of the rows that a derivation uses is for subclasses to say."""

    def __init__(self, plan: DeltaPlan, computed: Computed, numbering: Numbering, reads: Callable[[str], int]) -> None:
        self.plan = plan
        self.computed = computed
        self.numbering = numbering
        self.reads = reads
        self.names: dict[str, object] = {}
        self.lines: list[str] = []
        self.setup: dict[str, None] = {}
        self.depth = 1
        self.loops = 0
        self.rank = "rank" if plan.scan is not None and plan.scan.recursive else "0"

    def compile(self) -> Callable[..., None]:
        # The text is made of slot numbers and names of this module's own; values of the program are passed beside it.
        exec(compile(self.write(), f"<{self.plan.rule.name}>", "exec"), self.names)  # noqa: S102
        return self.names["trigger"]  # type: ignore[return-value]

    def write(self) -> str:
        if self.plan.scan is not None:
            self._scan(self.plan.scan)
        for number, step in enumerate(self.plan.steps):
            self._step(step, number)
        self._line(f"found.append(({self._row(self.plan.head)}, {self.kept()}))")
        head = ["def trigger(present, indexes, row, rank, found):", *(f" {line}" for line in self.setup)]
        return "\n".join([*head, *self.lines])

    # -- text

    def _line(self, text: str) -> None:
        self.lines.append(" " * self.depth + text)

    def _if(self, condition: str) -> None:
        self._line(f"if {condition}:")
        self.depth += 1

    def _for(self, target: str, over: str) -> None:
        self.loops += 1
        if self.loops > _DEEPEST:
            raise TooManyJoins(f"rule {self.plan.rule.name} joins more than {_DEEPEST} relations")
        self._line(f"for {target} in {over}:")
        self.depth += 1

    def _name(self, value: object) -> str:
        name = f"v{len(self.names)}"
        self.names[name] = value
        return name

    def _operand(self, operand: Operand) -> str:
        match operand:
            case Slot(number=number):
                return f"s{number}"
            case Constant(value=value):
                return repr(value) if type(value) in (int, str) else self._name(value)

    def _row(self, operands: tuple[Operand, ...]) -> str:
        return "(" + "".join(f"{self._operand(each)}, " for each in operands) + ")"

    def _table(self, relation: str) -> tuple[int, str]:
        number = self.reads(relation)
        self.setup[f"p{number} = present[{number}]"] = None
        return number, f"p{number}"

    def kept(self) -> str:
        """What is kept of the rows that a derivation uses: the highest rank."""
        return self.rank

    def use(self, step: Join | Check, table: int, row: str, number: int) -> None:
        """A row of a table is used."""
        if not step.recursive:
            return
        rank = f"p{table}[{row}]"
        if self.rank == "0":
            self.rank = rank
        else:
            self._line(f"k{number} = {rank}")
            self._line(f"m{number} = {self.rank} if {self.rank} > k{number} else k{number}")
            self.rank = f"m{number}"

    # -- steps

    def _scan(self, scan: Scan) -> None:
        tests = [f"row[{column}] == {self._operand(constant)}" for column, constant in scan.equals]
        tests += [f"row[{one}] == row[{other}]" for one, other in scan.same]
        if tests:
            self._if(" and ".join(tests))
        for column, slot in scan.binds:
            self._line(f"s{slot} = row[{column}]")

    def _step(self, step: Step, number: int) -> None:
        match step:
            case Join():
                self._join(step, number)
            case Check():
                self._check(step, number)
            case Compare():
                self._compare(step)
            case Compute(target=target):
                self._call(target, self.computed.functor(step, self.plan.rule), step.args)
            case Build(target=target, parts=parts, branch=branch, rest=rest):
                made = self._row(parts) if rest is None else f"{self._row(parts)} + {self._operand(rest)}"
                whole = f"{self._name(compound)}({made})"
                self._line(
                    f"s{target} = " + (whole if branch is None else f"{self._name(Variant)}({branch!r}, {whole})")
                )
            case TakeApart():
                self._take_apart(step, number)
            case Generate(target=target, args=args):
                self._for(f"s{target}", f"{self._name(self.computed.range(self.plan.rule))}{self._row(args)}")

    def _is_changed_one(self, step: Join | Check) -> bool:
        """Whether the changed row itself is out of a literal's sight."""
        scan, plan = self.plan.scan, self.plan
        if scan is None or scan.relation != step.relation:
            return False
        negated = isinstance(step, Check) and not step.present
        if negated != plan.negated:
            return False
        return step.position < plan.position if negated else step.position > plan.position

    def _join(self, step: Join, number: int) -> None:
        table, present = self._table(step.relation)
        row = f"r{number}"
        if step.key:
            columns = tuple(column for column, _ in step.key)
            index = self.numbering.index(table, columns)
            self.setup[f"i{index} = indexes[{index}]"] = None
            key = (
                self._operand(step.key[0][1]) if len(step.key) == 1 else self._row(tuple(each for _, each in step.key))
            )
            self._for(row, f"i{index}.get({key}, ())")
        else:
            self._for(row, present)
        tests = [f"{row} != row"] if self._is_changed_one(step) else []
        tests += [f"{row}[{one}] == {row}[{other}]" for one, other in step.same]
        if tests:
            self._if(" and ".join(tests))
        for column, slot in step.binds:
            self._line(f"s{slot} = {row}[{column}]")
        self.use(step, table, row, number)

    def _check(self, step: Check, number: int) -> None:
        table, present = self._table(step.relation)
        self._line(f"q{number} = {self._row(step.args)}")
        test = f"q{number} {'in' if step.present else 'not in'} {present}"
        self._if(test + (f" and q{number} != row" if self._is_changed_one(step) else ""))
        if step.present:
            self.use(step, table, f"q{number}", number)

    def _compare(self, step: Compare) -> None:
        left, right = self._operand(step.left), self._operand(step.right)
        op = "==" if step.op == "=" else step.op
        if op in ("==", "!=") or (op in ("<", "<=", ">", ">=") and step.kind in _ORDERED):
            self._if(f"{left} {op} {right}")
        else:
            self._if(f"{self._name(self.computed.comparison(self.plan.rule))}({op!r}, {left}, {right})")

    def _call(self, target: int, function: Callable[..., object], args: tuple[Operand, ...]) -> None:
        self._line(f"s{target} = {self._name(function)}{self._row(args)}")
        self._if(f"s{target} is not {self._name(UNDEFINED)}")

    def _take_apart(self, step: TakeApart, number: int) -> None:
        parts = f"a{number}"
        source = self._operand(step.source)
        if step.branch is None:
            self._line(f"{parts} = {source}")
        else:
            variant = self._name(Variant)
            self._line(f"{parts} = {source}")
            self._line(
                f"{parts} = {parts}.args if isinstance({parts}, {variant}) and {parts}.branch == {step.branch!r} else None"
            )
        size = f"len({parts}) {'>=' if step.open_ended else '=='} {len(step.parts)}"
        self._if(f"isinstance({parts}, tuple) and {size}")
        for at, slot in enumerate(step.parts):
            self._line(f"s{slot} = {parts}[{at}]")
        if step.rest is not None:
            self._line(f"s{step.rest} = {self._name(compound)}({parts}[{len(step.parts)}:])")


def key_of(columns: tuple[int, ...]) -> Callable[[Tuple], Value]:
    """The value that an index on columns has a row under."""
    if len(columns) == 1:
        (only,) = columns
        return lambda row: row[only]
    return lambda row: tuple(row[column] for column in columns)
