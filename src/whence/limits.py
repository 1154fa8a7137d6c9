"""When to stop what does not end, and the error that says which rule keeps deriving, with a tuple it derived last."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


def runaway(program: Program, rule: Rule, row: Tuple, when: str) -> RunawayError:
    """The error for a rule that keeps deriving."""
    return RunawayError(
        f"stopped {when}{keeps_deriving(program, rule, row)}\n"
        "  hint: bound what the rule counts up (x < 100), or raise --max-rounds, --max-tuples or --timeout"
    )


def late(
    program: Program, timeout: float, current: Rule | Subsumption | None, last: tuple[Rule, Tuple] | None
) -> RunawayError:
    """The error when time is up: `current` is the rule being applied, `last` the one that derived something new last."""
    when = f"after {timeout:g} s"
    if current is None or (last is not None and current is last[0]):
        return RunawayError(f"stopped {when}") if last is None else runaway(program, *last, when)
    derived = "" if last is None else f"; the last new tuple was {show_row(*last)}"
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


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f}"


def keeps_deriving(program: Program, rule: Rule, row: Tuple) -> str:
    return f": {name_rule(program, rule)} keeps deriving, most recently {show_row(rule, row)}"


def name_rule(program: Program, rule: Rule | Subsumption) -> str:
    place = program.source.place(rule.span)
    return f"rule {rule.name} ({place.file.name}:{place.line})"


def show_row(rule: Rule, row: Tuple) -> str:
    return f"{rule.head.relation}({', '.join(repr(value) if isinstance(value, str) else str(value) for value in row)})"
