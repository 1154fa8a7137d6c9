"""Text to tree.

The grammar is in `grammar.lark`. After a syntax error the parser blanks the statement that holds it and reads on, so that
every broken statement of a file is reported.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from threading import Lock
from typing import Any

from lark import Lark, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from whence.lang import tree
from whence.lang.build import TreeBuilder
from whence.lang.describe import listed
from whence.lang.diagnostics import Diagnostic, TooDeep, UnexpectedText, Unsupported
from whence.lang.lexer import WordLexer
from whence.lang.machine import Machine
from whence.lang.source import Source
from whence.lang.tree import Span

MAX_SYNTAX_ERRORS = 20
MAX_DEPTH = 150

_builder = TreeBuilder()
_parsing = Lock()


@cache
def _parser() -> Lark:
    grammar = resources.files("whence.lang").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer=WordLexer, transformer=_builder, cache=_tables_file(grammar) or False)


@cache
def _machine() -> Machine:
    return Machine(_parser())


def _tables_file(grammar: str) -> str | None:
    """Where to keep the parser's tables, which take longer to make than most programs to load; None if nowhere.

    Lark checks that they were made from this grammar, and makes them again if the file cannot be read.
    """
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "whence"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # there may be no home
        return None
    python = f"{sys.version_info.major}{sys.version_info.minor}"
    return str(folder / f"grammar-{sha256(grammar.encode()).hexdigest()[:16]}-py{python}")


@dataclass(frozen=True, slots=True)
class Parsed:
    """The tree of what could be read, what is wrong with the rest, and the words in it: names it may have introduced."""

    module: tree.Module
    errors: list[Diagnostic]
    lost: frozenset[str] = frozenset()


def parse(source: Source) -> Parsed:
    """The tree of a preprocessed program, without the statements that have syntax errors, and those errors."""
    errors: list[Diagnostic] = []
    lost: set[str] = set()
    with _parsing:
        read, text = _recovering(source.text, errors, lost)
    statements: list[tree.Statement] = []
    for statement in read:
        too_deep = _beyond_depth(statement)
        if too_deep is None:
            statements.append(statement)
        else:
            errors.append(TooDeep(too_deep))
            lost.update(_NAME.findall(text, statement.span.start, statement.span.end))
    return Parsed(tree.Module(tuple(statements)), errors, frozenset(lost))


def _recovering(text: str, errors: list[Diagnostic], lost: set[str]) -> tuple[list[tree.Statement], str]:
    """All statements but the broken ones, and the text without those."""
    statements: list[tree.Statement] = []
    begin = 0
    while True:
        module = _read(text, begin, len(text), errors)
        if module is not None:
            return [*statements, *module.statements], text
        error = _failure(_blank(text, 0, begin))
        at = _error_offset(error, text)
        errors.append(_diagnose(error, at, text))
        start, end = _statement_around(text, at)
        start = max(start, begin)
        if not text[start:end].strip() or len(errors) >= MAX_SYNTAX_ERRORS:
            start, end = begin, len(text)
        lost.update(_NAME.findall(text, start, end))
        # What comes before needs no second look, unless it is the first half of a component.
        before = _read(text, begin, start, errors)
        text = _blank(text, start, end)
        if before is not None:
            statements += before.statements
            begin = end


def _read(text: str, start: int, end: int, errors: list[Diagnostic]) -> tree.Module | None:
    """The statements of a part of the text, or None if it has a syntax error."""
    part = _blank(text[:end], 0, start)
    _builder.begin(part)
    module: tree.Module | None = _machine().run(part)
    if module is not None:
        errors += _builder.found
    return module


def _blank(text: str, start: int, end: int) -> str:
    return text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:] if end > start else text


def _failure(text: str) -> UnexpectedInput:
    try:
        _parser().parse(text)
    except UnexpectedInput as error:
        return error
    raise AssertionError("Lark accepts what its tables do not")


def names_in(source: Source) -> frozenset[str]:
    """Every word of the text."""
    return frozenset(_NAME.findall(source.text))


def _beyond_depth(statement: tree.Statement) -> Span | None:
    """The first part of a statement that is nested more deeply than the passes that follow can recurse."""
    if statement.span.end - statement.span.start <= MAX_DEPTH:
        return None
    pending: list[tuple[Any, int]] = [(statement, 0)]
    while pending:
        node, depth = pending.pop()
        if type(node) is tuple:
            pending += [(item, depth) for item in node]
            continue
        parts = tree.parts_of(type(node))
        if parts is not None:
            if depth > MAX_DEPTH:
                return getattr(node, "span", statement.span)
            pending += [(getattr(node, name), depth + 1) for name in parts]
    return None


# -- syntax errors ----------------------------------------------------------------------------------------------------

# What is left out, found where the parser stops; @ is also the beginning of a location.
_UNSUPPORTED = (
    (r"\.lattice\b", "a lattice (.lattice)", "recursive min and max aggregates cover most of their uses"),
    (r"=\s*debug_delta\b", "debug_delta", "changes of every relation come out of the maintenance of views"),
    (r"@!?\[|(?<=@)!?\[", "an annotation @[…]", "remove it"),
)

_READABLE = {
    "IDENT": "a name",
    "QNAME": "a name",
    "INT": "a number",
    "UNSIGNED": "a number",
    "FLOAT": "a number",
    "IPV4": "a number",
    "STRING": "a string",
    "WILDCARD": "_",
    "AGG_OP": "an aggregate",
    "AGG_CALL": "an aggregate",
    "OPERATOR": "an operator",
    "OPERATOR_WORD": "an operator",
    "$END": "the end of the program",
}
_TERM_STARTS = frozenset("IDENT INT UNSIGNED FLOAT STRING WILDCARD".split())
_TERM_ONLY = _TERM_STARTS | frozenset(
    "QNAME IPV4 AGG_OP AGG_CALL NIL TRUE FALSE AS DOLLAR LSQB AT LPAR NOT_WORD".split()
)
_COMPARISONS = frozenset({"=", "==", ":=", "!=", "<", "<=", ">", ">="})
_NAME = re.compile(r"[A-Za-z_?][A-Za-z0-9_?]*")
_WORD = re.compile(r'"(?:\\.|[^"\\\n])*"|[A-Za-z0-9_?]+|:-|:=|<=|<:|>=|!=|==|\.[a-z_]+|.')


def _error_offset(error: UnexpectedInput, text: str) -> int:
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return len(text.rstrip())
    at: int | None = getattr(error, "pos_in_stream", None)
    return len(text) if at is None else min(at, len(text))


def _meant(text: str, at: int) -> str | None:
    """What to write for something that other languages have, if that is what stands at the place of an error."""
    if re.search(r"\bnot[ \t]+\Z", text[max(0, at - 8) : at]):
        return "'!' for a negation: !r(x)"
    around = text[max(0, at - 1) : at + 1]
    if around in _MISSPELT:
        return _MISSPELT[around]
    return next((meaning for pattern, meaning in _ELSEWHERE if pattern.match(text, at)), None)


_MISSPELT = {"<>": "'!=' for inequality", "=<": "'<=' for at most", "=>": "'>=' for at least"}
_ELSEWHERE = tuple(
    (re.compile(pattern), meaning)
    for pattern, meaning in (
        (r"'", 'a string in double quotes: "x"'),
        (r"<-|←|:[ \t]+-", "':-' between head and body"),
        (r"and\b|&", "',' for and"),
        (r"or\b|\|\|", "';' for or"),
        (r"¬", "'!' for a negation: !r(x)"),
        (r"≤", "'<=' for at most"),
        (r"≥", "'>=' for at least"),
        (r"≠", "'!=' for inequality"),
        (r"--|%", "'//' before a comment"),
    )
)


def _diagnose(error: UnexpectedInput, at: int, text: str) -> Diagnostic:
    for pattern, feature, advice in _UNSUPPORTED:
        if unsupported := re.compile(pattern).match(text, at):
            return Unsupported(Span(*unsupported.span()), feature=feature, advice=advice)
    word = _WORD.match(text, at)
    terminals = error.allowed if isinstance(error, UnexpectedCharacters) else getattr(error, "accepts", None)
    if word is not None and "DOT" in (terminals or ()) and (word[0] in _directives() or _begins_a_rule(text, at)):
        return UnexpectedText(
            Span(at, word.end()), found=f"'{word[0]}'", expected="'.' at the end of the rule before it"
        )
    if word is not None and (close := get_close_matches(word[0], _directives(), 1, 0.75)):
        return UnexpectedText(Span(at, word.end()), found=f"'{word[0]}'", expected=close[0])
    expected = _meant(text, at) or _expected(set(terminals or ()))
    if word is None:
        return UnexpectedText(Span(max(0, at - 1), at), found="end of the program", expected=expected)
    found = f"'{word[0] if len(word[0]) <= 30 else word[0][:27] + '…'}'"
    if len(word[0]) == 1 and not word[0].isprintable():  # nobody sees what it is
        found = f"U+{ord(word[0]):04X} ({unicodedata.name(word[0], 'a control character')})"
    elif not word[0].isascii() and word[0].isalpha():
        expected += "; names are made of the letters a to z and A to Z, digits, _ and ?"
    elif word[0] == "," and _AFTER_BAR.search(text, 0, at):
        expected += (
            ": after | comes the rest of a list; append(l, x) puts an item at its end, last(l) is the one that is there"
        )
    return UnexpectedText(Span(at, word.end()), found=found, expected=expected)


_AFTER_BAR = re.compile(r"\[[^\[\]\n]*\|[^\[\]\n]*\Z")


def _begins_a_rule(text: str, at: int) -> bool:
    """Whether this looks like the head of the next rule: an atom at the beginning of a line."""
    return text[at - 1 : at] == "\n" and re.compile(r"[\w?.]+[ \t]*\(").match(text, at) is not None


def _expected(terminals: set[str]) -> str:
    """The terminals as a person would name them."""
    words: list[str] = []
    if terminals >= _TERM_STARTS:
        words.append("a term")
        terminals = terminals - _TERM_ONLY - {"MINUS"}
    if "OPERATOR" in terminals:
        terminals = terminals - {"MINUS"}
    texts = {_READABLE.get(name) or _terminal_texts().get(name, name.lower()) for name in terminals}
    if texts >= _COMPARISONS:
        words.append("a comparison")
        texts -= _COMPARISONS
    if len(texts & _directives()) > 3:
        return "a rule or a directive"
    marks = sorted(f"'{text}'" for text in texts if " " not in text)
    return listed([*marks, *words, *sorted(text for text in texts if " " in text)] or ["something else"])


@cache
def _directives() -> frozenset[str]:
    return frozenset(text for text in _terminal_texts().values() if re.fullmatch(r"\.[a-z_]+", text))


@cache
def _terminal_texts() -> dict[str, str]:
    return {terminal.name: terminal.pattern.value for terminal in _parser().terminals}


# -- recovery ---------------------------------------------------------------------------------------------------------

# Strings and comments are stepped over. A statement ends at a full stop that no name or digit follows, before a directive
# at the beginning of a line and, being itself a directive (which has no full stop), before a line that is not indented.
_BOUNDARY = re.compile(
    r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/'
    r"|(?P<stop>\.(?![A-Za-z0-9_?]))|(?P<directive>(?:(?<=\n)|\A)[ \t]*\.[a-z])|(?P<line>(?<=\n)(?=[^\s)\]}|]))|(?P<brace>[{}])",
    re.DOTALL,
)


def _statement_around(text: str, at: int) -> tuple[int, int]:
    """Where the statement around an offset begins and ends, whole components included."""
    start, end, depth, is_directive = 0, len(text), 0, False
    for match in _BOUNDARY.finditer(text):
        before = match.start() < at
        if match["brace"]:
            depth += 0 if before else 1 if match["brace"] == "{" else -1
            if depth < 0 and match.start() > at:
                end = match.start()
                break
        elif depth > 0:
            continue
        elif match["stop"]:
            if not before:
                end = match.end()
                break
            start, is_directive = match.end(), False
        elif match["directive"]:
            # A directive that comes as a surprise stands behind a rule without its full stop.
            if match.start() > at or (match.end() > at and not is_directive and text[start : match.start()].strip()):
                end = match.start()
                break
            start, is_directive = match.start(), True
        elif match["line"] is not None and is_directive:
            if match.start() > at:
                end = match.start()
                break
            start, is_directive = match.start(), False
    return start, end
