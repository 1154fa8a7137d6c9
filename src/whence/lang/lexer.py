"""Text to tokens, for the parser.

One regular expression finds each token; a word is a keyword only where the parser's state accepts it, so that `min`,
`input` or `magic` stay usable as names of attributes and variables. Lark's own contextual lexer does the same at more than
twice the cost, and large generated programs spend most of their loading time here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lark import Token, UnexpectedCharacters
from lark.common import LexerConf
from lark.lexer import Lexer, LexerState, PatternStr

from whence.lang.aggregates import AGGREGATES

_TOKENS = re.compile(
    r"""
      (?:[ \t\r\n\f\v]+ | //[^\n]* | /\*(?:.|\n)*?\*/)+
    | (?P<keyword>choice-domain)
    | (?P<word>[A-Za-z_?][A-Za-z0-9_?]*)(?P<path>(?:\.[A-Za-z_?][A-Za-z0-9_?]*)+(?=\s*\())?
    | (?P<IPV4>[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+)
    | (?P<FLOAT>[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+))
    | (?P<UNSIGNED>(?:0x[0-9a-fA-F]+|0b[01]+|[0-9]+)u)
    | (?P<INT>0x[0-9a-fA-F]+|0b[01]+|[0-9]+)
    | (?P<STRING>"(?:\\.|[^"\\\n])*")
    | (?P<mark>\.[a-z_]+|:-|:=|<:|<=|>=|!=|==|\*\*|[^\w\s"])
    """,
    re.VERBOSE,
)
_OPERATOR_WORDS = frozenset("lor lxor land bor bxor band bshl bshr bshru".split())
_OPERATORS = frozenset({"**", "+", "*", "/", "%", "^"})
_CALL = re.compile(r"\s*\(")
# Behind `$A` a name goes on only without a blank: `$A.` may also end its rule.
_PATH = re.compile(r"(?:\.[A-Za-z_?][A-Za-z0-9_?]*)+")


class WordLexer(Lexer):
    __future_interface__ = 2

    def __init__(self, conf: LexerConf) -> None:
        fixed = {each.pattern.value: each.name for each in conf.terminals if isinstance(each.pattern, PatternStr)}
        self._marks = {text: name for text, name in fixed.items() if not text.isidentifier()}
        self._marks |= dict.fromkeys(_OPERATORS, "OPERATOR")
        self._words = {text: name for text, name in fixed.items() if text.isidentifier()}
        self._words |= dict.fromkeys(_OPERATOR_WORDS, "OPERATOR_WORD") | dict.fromkeys(("bnot", "lnot"), "NOT_WORD")
        self._words |= {"_": "WILDCARD", "?": "NULLABLE"} | dict.fromkeys(AGGREGATES, "AGG_OP")

    def lex(self, lexer_state: LexerState, parser_state: Any) -> Iterator[Token]:
        return self.tokens(lexer_state.text.text, parser_state.parse_conf.states, parser_state.state_stack)

    def tokens(self, text: str, states: Mapping[int, Mapping[str, Any]], stack: Sequence[int]) -> Iterator[Token]:
        """The tokens of a text, while the parser moves from state to state on the stack."""
        match_at, words, marks = _TOKENS.match, self._words, self._marks
        at, end = 0, len(text)
        while at < end:
            match = match_at(text, at)
            if match is None:
                raise _unexpected(text, at, states[stack[-1]])
            start, at = at, match.end()
            kind = match.lastgroup
            if kind is None:
                continue
            value = match[0]
            if kind == "word":
                kind = words.get(value, "IDENT")
                if kind == "AGG_OP" and _CALL.match(text, at):
                    kind = "AGG_CALL"
                elif text[start - 1] == "$" and start and (path := _PATH.match(text, at)):
                    value, kind, at = text[start : path.end()], "QNAME", path.end()
                if kind not in states[stack[-1]]:
                    kind = "IDENT"
            elif kind == "path":
                kind = "QNAME"
            elif kind in ("mark", "keyword"):
                kind = marks.get(value)
                if kind is None and value[0] == "." and len(value) > 1:  # a full stop, then a name
                    value, kind, at = ".", "DOT", start + 1
                if kind is None:
                    raise _unexpected(text, start, states[stack[-1]])
            token = str.__new__(Token, value)
            token.type, token.value, token.start_pos, token.end_pos = kind, value, start, at
            token.line = token.column = token.end_line = token.end_column = None  # found from the offset when needed
            yield token


def _unexpected(text: str, at: int, state: Mapping[str, Any]) -> UnexpectedCharacters:
    accepted = {name for name in state if name.isupper()}
    return UnexpectedCharacters(text, at, 0, 0, allowed=accepted)  # type: ignore[no-untyped-call]
