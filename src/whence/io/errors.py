from __future__ import annotations

from collections.abc import Iterable, Sequence

SHOWN = 20


class FactError(Exception):
    """Facts that cannot be read or written: everything found, and what to do about it.

    >>> print(FactError(["r.facts:1: 'a' is not a number"], hints=["write a whole number"]))
    r.facts:1: 'a' is not a number
      hint: write a whole number
    """

    def __init__(self, problems: Sequence[str], *, hints: Iterable[str] = ()) -> None:
        super().__init__(problems)
        self.problems = tuple(problems)
        self.hints = tuple(dict.fromkeys(hints))

    def __str__(self) -> str:
        lines = list(self.problems[:SHOWN])
        if len(self.problems) > SHOWN:
            lines.append(f"and {len(self.problems) - SHOWN} more")
        return "\n".join([*lines, *(f"  hint: {hint}" for hint in self.hints)])


class FactWarning(UserWarning):
    """Facts were written, but not in a way that reads back."""
