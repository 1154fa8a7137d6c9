"""When to stop what does not end, and the error that says which rule keeps deriving, with a tuple it derived last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from whence.lang.program import Program, Rule, Subsumption
from whence.lang.sizes import TooLarge
from whence.lang.types import Tuple
from whence.memory import Memory

OnRound = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """When to give up on a recursion that does not end. `within_memory`: before memory runs out."""

    max_rounds: int | None = None
    max_tuples: int | None = None
    timeout: float | None = None
    within_memory: bool = True


class RunawayError(Exception):
    """A limit was reached. The message names the rule that keeps deriving, and a tuple it derived last."""


def runaway(program: Program, rule: Rule, row: Tuple, when: str, round_trip: str = "") -> RunawayError:
    """The error for a rule that keeps deriving."""
    return RunawayError(
        f"stopped {when}{keeps_deriving(program, rule, row)}{round_trip}\n"
        "  hint: bound what the rule counts up (x < 100), or raise --max-rounds, --max-tuples or --timeout"
    )


def endless(program: Program, rows: Sequence[tuple[str, Tuple]]) -> RunawayError:
    """The error for a recursion through UNION ALL in which a row comes from an equal one, by way of the others."""
    name = rows[-1][0]
    place = program.source.place(program.relations[name].span)
    return RunawayError(
        f"{_plain(name)} ({place.file.name}:{place.line}) has no end: with UNION ALL, a row that comes from itself comes again "
        f"and again: {_steps(rows)}\n"
        "  hint: write UNION, which ends on every cycle, or bound the recursion: count its steps in a column, and say "
        "WHERE steps < 100"
    )


def goes_round(rows: Sequence[tuple[str, Tuple]]) -> str:
    """What to say of a recursion that takes the same step over and over, with other values each time."""
    return f"; it goes round: {_steps(rows)}"


def _steps(rows: Sequence[tuple[str, Tuple]]) -> str:
    shown = [f"{_plain(name)}({', '.join(map(repr, row))})" for name, row in rows]
    if len(shown) > _MOST_STEPS:
        left = len(shown) - _MOST_STEPS
        shown[_MOST_STEPS - 1 : -1] = [f"… {left:,} more …"]
    return " -> ".join(shown)


def _plain(name: str) -> str:
    """The view whose rows a relation holds."""
    return name.removesuffix(".rows")


def late(
    program: Program, timeout: float, current: Rule | Subsumption | None, last: tuple[Rule, Tuple] | None
) -> RunawayError:
    """The error when time is up: `current` is the rule being applied, `last` the one that derived something new last."""
    when = f"after {timeout:g} s"
    if current is None or (last is not None and current is last[0]):
        return RunawayError(f"stopped {when}") if last is None else runaway(program, *last, when)
    derived = "" if last is None else f"; the last new tuple was {show_row(program, *last)}"
    return RunawayError(f"stopped {when} in {name_rule(program, current)}{derived}\n  hint: raise --timeout")


def out_of_memory(
    memory: Memory, derives: str, sizes: Mapping[str, int], before: Mapping[str, int], seconds: float
) -> RunawayError:
    """The error for memory that is nearly used up. `sizes` are tuples by relation, now and some seconds before."""
    largest = sorted(sizes, key=lambda name: -sizes[name])[:_SHOWN]
    growth = {name: (size - before.get(name, 0)) / max(seconds, 0.001) for name, size in sizes.items()}
    growing = [name for name in sorted(growth, key=lambda name: -growth[name])[:_SHOWN] if growth[name] >= 1]
    lines = [
        f"stopped at {sum(sizes.values()):,} tuples, before memory runs out: {_gigabytes(memory.held)} GB are in use, and "
        f"{_gigabytes(memory.allowed)} of the {_gigabytes(memory.held + memory.available)} GB there are may be{derives}",
        f"  largest: {', '.join(f'{name} with {sizes[name]:,} tuples' for name in largest)}",
    ]
    if growing:
        lines.append(f"  growing: {', '.join(f'{name} by {growth[name]:,.0f} tuples a second' for name in growing)}")
    lines.append(
        "  hint: if it would never end, bound what the rule counts up (x < 100); if the result is that large, give it more "
        "memory, or evaluate on Spark (--backend spark)"
    )
    return RunawayError("\n".join(lines))


def makes_too_large(program: Program, rule: Rule | Subsumption, error: TooLarge) -> RunawayError:
    return RunawayError(
        f"stopped: {name_rule(program, rule)} makes {error}\n  hint: bound what the rule makes larger and larger"
    )


_SHOWN = 3
_MOST_STEPS = 12


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f}"


def keeps_deriving(program: Program, rule: Rule, row: Tuple) -> str:
    return f": {name_rule(program, rule)} keeps deriving, most recently {show_row(program, rule, row)}"


def name_rule(program: Program, rule: Rule | Subsumption) -> str:
    place = program.source.place(rule.span)
    return f"rule {rule.name} ({place.file.name}:{place.line})"


def show_row(program: Program, rule: Rule, row: Tuple) -> str:
    relation = program.relations.get(rule.head.relation)
    row = row[:-1] if relation is not None and relation.tagged else row
    return f"{rule.head.relation}({', '.join(repr(value) if isinstance(value, str) else str(value) for value in row)})"
