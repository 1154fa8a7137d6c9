"""Conditional lines: which branches of `#if` … `#endif` are read."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Container
from dataclasses import dataclass
from enum import Enum, auto

from whence.lang.diagnostics import BadPreprocessorLine, Diagnostic, TooDeep
from whence.lang.macros import NAME, Macros, Refused
from whence.lang.tree import Span

_DEFINED = re.compile(rf"(?<![A-Za-z0-9_?])defined\s*(?:\(\s*({NAME})\s*\)|({NAME}))")
_TOKEN = re.compile(rf"\s*(?:([0-9]{{1,18}})(?![A-Za-z0-9_?])|({NAME})|(&&|\|\||[=!<>]=|[!<>()]))\s*")
_PRECEDENCE = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, "<=": 4, ">": 4, ">=": 4}
_APPLY: dict[str, Callable[[int, int], object]] = {
    "||": lambda left, right: left or right,
    "&&": lambda left, right: left and right,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_DEEPEST = 50


class _State(Enum):
    WAITING = auto()
    LIVE = auto()
    DONE = auto()


@dataclass(slots=True)
class _Frame:
    keyword: str
    span: Span
    state: _State
    has_else: bool = False


class Conditions:
    """The conditionals open at one point of a file."""

    def __init__(self) -> None:
        self._frames: list[_Frame] = []

    @property
    def live(self) -> bool:
        return not self._frames or self._frames[-1].state is _State.LIVE

    @property
    def undecided(self) -> bool:
        """Whether the branch that begins here is read if its condition holds."""
        return self._frames[-1].state is _State.WAITING

    def begin(self, keyword: str, span: Span) -> None:
        self._frames.append(_Frame(keyword, span, _State.WAITING if self.live else _State.DONE))

    def decide(self, holds: bool) -> None:
        if holds:
            self._frames[-1].state = _State.LIVE

    def next_branch(self, keyword: str) -> None:
        frame = self._innermost(keyword)
        if frame.has_else:
            raise Refused(
                BadPreprocessorLine,
                problem=f"#{keyword} comes after #else",
                advice="#else is the last branch before #endif",
            )
        frame.has_else = keyword == "else"
        if frame.state is _State.LIVE:
            frame.state = _State.DONE

    def end(self) -> None:
        self._innermost("endif")
        self._frames.pop()

    def unclosed(self) -> list[Diagnostic]:
        return [
            BadPreprocessorLine(frame.span, problem=f"this #{frame.keyword} is never closed", advice="add #endif")
            for frame in self._frames
        ]

    def _innermost(self, keyword: str) -> _Frame:
        if not self._frames:
            raise Refused(
                BadPreprocessorLine,
                problem=f"#{keyword} without #if",
                advice="remove it or add the #if that it belongs to",
            )
        return self._frames[-1]


def condition_holds(text: str, macros: Macros) -> bool:
    """The value of what follows `#if`. As in C, a name that is not a macro counts as 0."""
    asked = _DEFINED.sub(lambda found: _is_defined(found[1] or found[2], macros.defined), text)
    tokens = _tokens(macros.replace_all(asked).strip())[::-1]
    value = _value(tokens, 0)
    if tokens:
        raise _malformed()
    return value != 0


def _is_defined(name: str, defined: Container[str]) -> str:
    return " 1 " if name in defined else " 0 "


def _tokens(text: str) -> list[str]:
    tokens = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found[2] == "defined":
            raise _malformed()
        tokens.append(found[1] or found[3] or "0")
        at = found.end()
    if tokens.count("(") + tokens.count("!") > _DEEPEST:
        raise Refused(TooDeep)
    return tokens


def _value(tokens: list[str], floor: int) -> int:
    """Takes, from the end, an expression of operators that bind more tightly than `floor`."""
    left = _operand(tokens)
    while tokens and _PRECEDENCE.get(tokens[-1], 0) > floor:
        symbol = tokens.pop()
        left = int(bool(_APPLY[symbol](left, _value(tokens, _PRECEDENCE[symbol]))))
    return left


def _operand(tokens: list[str]) -> int:
    token = tokens.pop() if tokens else ""
    if token == "!":
        return int(not _operand(tokens))
    if token == "(":
        value = _value(tokens, 0)
        if not tokens or tokens.pop() != ")":
            raise _malformed()
        return value
    if not token.isdigit():
        raise _malformed()
    return int(token)


def _malformed() -> Refused:
    return Refused(
        BadPreprocessorLine,
        problem="this condition cannot be read",
        advice="it may use integers, defined(NAME), !, &&, ||, ==, !=, <, <=, >, >= and parentheses",
    )
