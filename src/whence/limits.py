"""When to stop what does not end, and the error that says which rule keeps deriving, with a tuple it derived last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from whence.lang.program import Program, Rule, Subsumption
from whence.lang.types import Tuple

OnRound = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """When to give up on a recursion that does not end."""

    max_rounds: int | None = None
    max_tuples: int | None = None
    timeout: float | None = None


class RunawayError(Exception):
    """A limit was reached. The message names the rule that keeps deriving, and a tuple it derived last."""


def runaway(program: Program, rule: Rule, row: Tuple, when: str) -> RunawayError:
    """The error for a rule that keeps deriving."""
    return RunawayError(
        f"stopped {when}: {name_rule(program, rule)} keeps deriving, most recently {show_row(rule, row)}\n"
        "  hint: bound what the rule counts up (x < 100), or raise --max-rounds, --max-tuples or --timeout"
    )


def name_rule(program: Program, rule: Rule | Subsumption) -> str:
    place = program.source.place(rule.span)
    return f"rule {rule.name} ({place.file.name}:{place.line})"


def show_row(rule: Rule, row: Tuple) -> str:
    return f"{rule.head.relation}({', '.join(repr(value) if isinstance(value, str) else str(value) for value in row)})"
