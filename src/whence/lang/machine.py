"""Lark's tables, run by a loop of our own.

Lark looks each rule up by value at every reduction; with the callbacks put into the tables, large programs are parsed in
three quarters of the time. A text with a syntax error is left to Lark, which says what it expected.
"""

from __future__ import annotations

from typing import Any

from lark import Lark, UnexpectedCharacters
from lark.parsers.lalr_analysis import Shift

from whence.lang.lexer import WordLexer

# By state and symbol. Shift: the next state. Reduce: what to make of how many values, and the symbol that they become.
Actions = dict[int, dict[str, Any]]


class Machine:
    def __init__(self, lark: Lark) -> None:
        inner: Any = lark.parser.parser  # an LALR parser: its table, and its callbacks by rule
        table, callbacks = inner.parser.parse_table, inner.parser.callbacks
        self._lexer = WordLexer(lark.lexer_conf)
        self._start, self._end = table.start_states["start"], table.end_states["start"]
        self._states: Actions = {
            state: {
                str(symbol): arg if action is Shift else (callbacks[arg], len(arg.expansion), str(arg.origin.name))
                for symbol, (action, arg) in actions.items()
            }
            for state, actions in table.states.items()
        }

    def run(self, text: str) -> Any:
        """What the callbacks make of the text, or None if it has a syntax error."""
        states, stack = self._states, [self._start]
        values: list[Any] = []
        try:
            for token in self._lexer.tokens(text, states, stack):
                if not self._reduce(token.type, stack, values):
                    return None
                values.append(token)
        except UnexpectedCharacters:
            return None
        return values[-1] if self._reduce("$END", stack, values) else None

    def _reduce(self, kind: str, stack: list[int], values: list[Any]) -> bool:
        """Reduces until the next token, of this kind, can be taken, and takes it; whether that is possible."""
        states = self._states
        while True:
            action = states[stack[-1]].get(kind)
            if action.__class__ is int:
                stack.append(action)
                return True
            if action is None:
                return False
            callback, size, symbol = action
            if size:
                items = values[-size:]
                del stack[-size:]
                del values[-size:]
            else:
                items = []
            values.append(callback(items))
            stack.append(states[stack[-1]][symbol])
            if stack[-1] == self._end:
                return kind == "$END"
