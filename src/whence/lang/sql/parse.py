"""SQL text to sqlglot expressions: one per statement, each with the place it was read from.

The dialect knows no functions, so that every call keeps the name and arguments that were written, and it reads two
forms that sqlglot does not: `CREATE RECURSIVE VIEW`, and a `WITH` that ends after its last definition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from whence.lang.diagnostics import Diagnostic, SqlSyntax, TooDeep, UnterminatedText
from whence.lang.tree import NOWHERE, Span

_STATEMENT = "whence_statement"
INTERVAL = "whence_interval"
_QUOTED = re.compile(r"""'(?:[^']|'')*+'|"(?:[^"]|"")*+"|--[^\n]*|/\*.*?\*/|['"]|/\*""", re.DOTALL)
_CLOSERS = {"'": ("string", "'"), '"': ("quoted name", '"'), "/*": ("comment", "*/")}


@dataclass(frozen=True)
class Statement:
    """`named` is the last definition of a `WITH` that no query follows."""

    expression: exp.Expr
    span: Span
    named: str | None = None


class _SyntaxAt(ParseError):
    def __init__(self, message: str, token: Token | None, *, at_end: bool) -> None:
        super().__init__(message, errors=[{}])  # sqlglot writes into the first one
        self.token = token
        self.at_end = at_end


class _Parser(Parser):
    FUNCTIONS = {}  # noqa: RUF012
    NO_PAREN_FUNCTIONS = {}  # noqa: RUF012
    PRIMARY_PARSERS = {  # noqa: RUF012
        **Parser.PRIMARY_PARSERS,
        TokenType.NULL: lambda _, token: exp.Null().update_positions(token),
        TokenType.TRUE: lambda _, token: exp.Boolean(this=True).update_positions(token),
        TokenType.FALSE: lambda _, token: exp.Boolean(this=False).update_positions(token),
    }

    def _parse_interval(self, *args: Any, **options: Any) -> exp.Add | exp.Interval | None:
        """Keeps the text of an interval as it is written: sqlglot reads the first number and unit of it."""
        begin = self._index
        interval = super()._parse_interval(*args, **options)
        if isinstance(interval, exp.Interval):
            read = self._tokens[begin : self._index]
            interval.meta[INTERVAL] = next((each.text for each in read if each.token_type == TokenType.STRING), None)
        return interval

    def raise_error(self, message: str, token: Token | None = None) -> None:
        raise _SyntaxAt(message, token or self._curr or self._prev or None, at_end=not (token or self._curr))

    def _warn_unsupported(self) -> None:
        # sqlglot logs a warning; the statement is refused by name later.
        pass


class _Whence(Dialect):
    Parser = _Parser
    NULL_ORDERING = "nulls_are_large"  # ascending, they come last


def parse(text: str, functions: Iterable[str] = ()) -> tuple[list[Statement], list[Diagnostic]]:
    """The statements that can be read, and what is wrong with the others.

    A name in `functions` is a plain call even where SQL has a syntax of its own for it, such as `position`.
    """
    unclosed = _unclosed(text)
    if unclosed is not None:
        return [], [unclosed]
    try:
        tokens = _Whence().tokenize(text)
    except TokenError:
        whole = Span(0, len(text))
        return [], [SqlSyntax(whole, problem="this text is not SQL", advice="check its quotes and comments")]
    special = _parsers_without(functions)
    statements: list[Statement] = []
    found: list[Diagnostic] = []
    for chunk in _chunks(tokens):
        span = Span(chunk[0].start, chunk[-1].end + 1)
        try:
            statements.append(_statement(chunk, span, text, special))
        except _SyntaxAt as error:
            found.append(_syntax_error(error, span))
        except RecursionError:
            found.append(TooDeep(span))
    return statements, found


def span_of(node: exp.Expr | None) -> Span:
    """The text from the first to the last name or literal of the node, or of what is around it if it has none."""
    while node is not None:
        starts, ends = [], []
        for part in node.walk():
            if "start" in part.meta:
                starts.append(part.meta["start"])
                ends.append(part.meta["end"] + 1)
        if starts:
            return Span(min(starts), max(ends))
        if _STATEMENT in node.meta:
            return node.meta[_STATEMENT]  # type: ignore[no-any-return]
        node = node.parent
    return NOWHERE


def _chunks(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    chunk: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON:
            chunk.append(token)
        elif chunk:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


# What has to stand behind some words. sqlglot reads on without it, and a join without its condition is another one.
_CONTINUED = {
    TokenType.ON: "a condition behind ON",
    TokenType.USING: "columns behind USING: USING (a, b)",
    TokenType.ALIAS: "a name behind AS",
    TokenType.COMMA: "something behind the comma",
    TokenType.GROUP_BY: "columns behind GROUP BY",
}
_CLAUSES = frozenset(
    {
        *(TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT),
        *(TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.JOIN, TokenType.INNER, TokenType.CROSS),
        *(TokenType.NATURAL, TokenType.ON, TokenType.USING, TokenType.R_PAREN, TokenType.COMMA),
    }
)


def _refuse_dangling(chunk: Sequence[Token]) -> None:
    """Raises where a word that has to be followed by something is followed by the next clause, or by nothing."""
    for at, (token, following) in enumerate(zip(chunk, [*chunk[1:], None], strict=True)):
        if token.token_type == TokenType.L_PAREN and at and chunk[at - 1].token_type == TokenType.USING:
            token = chunk[at - 1]  # noqa: PLW2901 - what follows the parenthesis follows the word
        if token.token_type in _CONTINUED and (following is None or following.token_type in _CLAUSES):
            raise _SyntaxAt(f"Expecting {_CONTINUED[token.token_type]}", following, at_end=following is None)


def _parsers_without(functions: Iterable[str]) -> dict[str, object]:
    # These are read like any call: the arguments, of STRING_AGG with ORDER BY.
    plain = {"STRING_AGG", "FLOOR", "CEIL", *(name.upper() for name in functions)}
    return {name: parser for name, parser in Parser.FUNCTION_PARSERS.items() if name not in plain}


def _statement(chunk: list[Token], span: Span, text: str, special: dict[str, object]) -> Statement:
    _refuse_dangling(chunk)
    chunk = _without_recursive(chunk)
    named = _last_definition(chunk)
    if named is not None:
        # Made of the name itself, so that an error in the appended query points at the definition.
        at = (named.line, named.col, named.start, named.end)
        select, star, from_ = (TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM")
        chunk = [*chunk, *(Token(kind, word, *at) for kind, word in (select, star, from_)), named]
    expression = _parsed(chunk, text, special)
    if isinstance(expression, exp.Command):
        # What cannot be read to its end comes back as it is: the query alone tells where it went wrong.
        if query := _query_of_view(chunk):
            _parsed(query, text, special)
        if chunk[0].token_type == TokenType.CREATE and chunk[1:] and chunk[1].token_type == TokenType.TABLE:
            raise _SyntaxAt("Expecting CREATE TABLE name(column TYPE, …)", chunk[-1], at_end=False)
    if expression is None:
        raise _SyntaxAt("", chunk[0], at_end=False)
    expression.meta[_STATEMENT] = span
    return Statement(expression, span, named.text if named is not None else None)


def _parsed(chunk: list[Token], text: str, special: dict[str, object]) -> exp.Expr | None:
    parser = _Parser(dialect=_Whence())
    parser.FUNCTION_PARSERS = special  # type: ignore[assignment, misc]
    expressions = parser.parse(chunk, text)
    expression = expressions[0] if expressions else None
    return _with_order_inside(expression) if expression is not None else None


def _with_order_inside(expression: exp.Expr) -> exp.Expr:
    """`STRING_AGG(s, ',') WITHIN GROUP (ORDER BY k)` as `STRING_AGG(s, ',' ORDER BY k)`."""
    for node in list(expression.find_all(exp.WithinGroup)):
        call, order = node.this, node.expression
        if isinstance(call, exp.Anonymous) and call.expressions and isinstance(order, exp.Order):
            *others, last = call.expressions
            call.set("expressions", [*others, exp.Order(this=last, expressions=order.expressions)])
            node.replace(call)
    return expression


def _query_of_view(chunk: list[Token]) -> list[Token]:
    """What stands behind the AS of a CREATE VIEW."""
    kinds = [token.token_type for token in chunk]
    if kinds[0] != TokenType.CREATE or TokenType.VIEW not in kinds[:6] or TokenType.ALIAS not in kinds:
        return []
    return chunk[kinds.index(TokenType.ALIAS) + 1 :]


def _without_recursive(chunk: list[Token]) -> list[Token]:
    """`CREATE RECURSIVE VIEW` without its second word: any view may refer to itself."""
    kinds = [token.token_type for token in chunk[:6]]
    if kinds[:1] == [TokenType.CREATE] and TokenType.VIEW in kinds:
        before = kinds.index(TokenType.VIEW) - 1
        if kinds[before] == TokenType.RECURSIVE or chunk[before].text.upper() == "RECURSIVE":
            return chunk[:before] + chunk[before + 1 :]
    return chunk


def _last_definition(chunk: Sequence[Token]) -> Token | None:
    """The name defined last, if the statement is a `WITH` that ends with that definition."""
    if chunk[0].token_type != TokenType.WITH or chunk[-1].token_type != TokenType.R_PAREN:
        return None
    depth = 0
    name = None
    opened_after: Token | None = None
    for previous, token in pairwise(chunk):
        if token.token_type == TokenType.L_PAREN:
            if depth == 0:
                opened_after = previous
            depth += 1
        elif token.token_type == TokenType.R_PAREN:
            depth -= 1
        elif depth == 0 and (previous.token_type in (TokenType.COMMA, TokenType.RECURSIVE) or previous is chunk[0]):
            name = token if token.token_type != TokenType.RECURSIVE else name
    is_definition = opened_after is not None and opened_after.text.upper() in ("AS", "MATERIALIZED")
    return name if is_definition and depth == 0 else None


def _syntax_error(error: _SyntaxAt, span: Span) -> SqlSyntax:
    word = error.token.text if error.token is not None else ""
    message = str(error)
    advice = "check the clause before it"
    if message.startswith("Expecting "):
        advice = f"expected {message.removeprefix('Expecting ')}"
    elif message.startswith("Expected ") and " but got " in message:
        advice = f"expected {message.removeprefix('Expected ').partition(' but got ')[0]}"
    if error.at_end:
        return SqlSyntax(Span(span.end - 1, span.end), problem="the statement ends too early", advice=advice)
    where = Span(error.token.start, error.token.end + 1) if error.token is not None else span
    return SqlSyntax(where, problem=f"unexpected {word}", advice=advice)


def _unclosed(text: str) -> Diagnostic | None:
    """The string, quoted name or comment that runs to the end of the text, if one does."""
    for part in _QUOTED.finditer(text):
        if part[0] in _CLOSERS:
            what, closer = _CLOSERS[part[0]]
            return UnterminatedText(Span(part.start(), len(text)), what=what, closer=closer)
    return None
