"""The text of values, as it stands in the cells of fact files: Souffle's, with quotes where a symbol needs them.

Values are read and written without recursion, because a linked list of records nests as deep as it is long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import NoReturn

from whence.lang.deep import Steps, compound, without_recursion
from whence.lang.scalars import read_text, text_of
from whence.lang.types import (
    FLOAT,
    NUMBER,
    RESERVED,
    SYMBOL,
    UNSIGNED,
    AdtKind,
    Field,
    Kind,
    ListKind,
    Nullable,
    Primitive,
    RecordKind,
    Types,
    Value,
    Variant,
    base,
    is_whole,
)

LOWEST: dict[Kind, int] = {NUMBER: -(2**63), UNSIGNED: 0}
HIGHEST: dict[Kind, int] = {NUMBER: 2**63 - 1, UNSIGNED: 2**64 - 1}


def described(kind: Kind) -> str:
    name = "unsigned number" if base(kind) == UNSIGNED else str(base(kind))
    named = f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"
    return f"{named} or nil" if isinstance(kind, Nullable) else named


def quoted(text: str) -> str:
    return repr(text) if len(text) <= 60 else repr(text[:59] + "…")


# -- writing ----------------------------------------------------------------------------------------------------------

# The reader skips space before a symbol and stops at a comma or the closing bracket: what it would misread is quoted.
_IN_RECORD = re.compile(r'\A[\s"]|[],\n\r\t]')
_IN_BRANCH = re.compile(r'\A[\s"]|[),\n\r\t]')
_LIKE_NIL = re.compile(r'nil\Z|"')
_IN_LIST = re.compile(r'\A\Z|\A[\s"]|[],\n\r\t]')

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_UNESCAPES = {"n": "\n", "r": "\r", "t": "\t"}

# Text to write as it is, or a value with its kind and what has to be quoted there.
_Piece = str | tuple[Value, Kind, re.Pattern[str]]


def format_value(value: Value, kind: Kind, types: Types) -> str:
    """
    >>> from whence.lang.types import ListKind
    >>> format_value((1.0, 0.5), ListKind(FLOAT), Types())
    '[1, 0.5]'
    """
    if isinstance(kind, Nullable):
        if value is None:
            return "nil"
        text = format_value(value, kind.of, types)
        # A symbol that reads as nil, or as one in quotes, is quoted.
        return _quote(text) if kind.of == SYMBOL and _LIKE_NIL.match(text) else text
    if isinstance(value, float | int):
        return format_float(value) if kind == FLOAT else text_of(value, kind)
    if isinstance(kind, Primitive):
        return text_of(value, kind)
    parts: list[str] = []
    pending: list[_Piece] = [(value, kind, _IN_RECORD)]  # last first
    while pending:
        piece = pending.pop()
        if isinstance(piece, str):
            parts.append(piece)
        else:
            pending.extend(_pieces(*piece, types))
    return "".join(parts)


def format_float(value: float) -> str:
    """The shortest text that reads back as the same float, without the `.0` of whole ones."""
    return repr(float(value)).removesuffix(".0")


def _pieces(value: Value, kind: Kind, misread: re.Pattern[str], types: Types) -> Iterable[_Piece]:
    """The value taken apart one level, last piece first."""
    match value:
        case None:
            return ("nil",)
        case str():
            is_misread = misread.search(value) or (isinstance(kind, Nullable) and _LIKE_NIL.match(value))
            return (_quote(value) if is_misread else value,)
        case Variant(branch, args):
            if not args:
                return (f"${branch}",)
            return _enclosed(f"${branch}(", args, _kinds(_branches(kind, types)[branch]), ")", _IN_BRANCH)
        case tuple() if isinstance(kind, ListKind):
            return _enclosed("[", value, repeat(kind.element), "]", _IN_LIST)
        case tuple():
            return _enclosed("[", value, _kinds(types.records[str(kind)]), "]", _IN_RECORD)
        case _:
            return (format_value(value, base(kind), types),)


def _enclosed(
    opener: str, values: Iterable[Value], kinds: Iterable[Kind], closer: str, misread: re.Pattern[str]
) -> list[_Piece]:
    pieces: list[_Piece] = [opener]
    for value, kind in zip(values, kinds, strict=False):
        if len(pieces) > 1:
            pieces.append(", ")
        pieces.append((value, kind, misread))
    return [closer, *reversed(pieces)]


def _kinds(fields: Iterable[Field]) -> Iterable[Kind]:
    return (each.kind for each in fields)


def _quote(symbol: str) -> str:
    return '"' + "".join(_ESCAPES.get(char, char) for char in symbol) + '"'


# -- reading ----------------------------------------------------------------------------------------------------------

_INTEGER = re.compile(r"\s*([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|([0-9]+))\s*")
_FLOAT = re.compile(r"\s*[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity)\s*", re.IGNORECASE)
_SPACE = re.compile(r"\s*")
_BRANCH = re.compile(r"\$\s*([\w?.]+)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


def parse_value(text: str, kind: Kind, types: Types) -> Value:
    """Raises ValueError, saying what is wrong with the text.

    >>> parse_value("0x10", NUMBER, Types())
    16
    """
    if isinstance(kind, Nullable):
        return _parse_nullable(text, kind, types)
    if kind == SYMBOL:
        return text
    if kind == FLOAT:
        return _parse_float(text)
    if kind in HIGHEST:
        return _parse_int(text, kind)
    if isinstance(kind, Primitive):
        return _parse_scalar(text, kind)
    value, end = parse_prefix(text, 0, kind, types)
    rest = text[end:].strip()
    if rest:
        raise ValueError(f"{quoted(text)} is not {described(kind)}: it ends before {quoted(rest)}")
    return value


def _parse_nullable(text: str, kind: Nullable, types: Types) -> Value:
    """Text that is `nil` is nil, and so is no text at all, but for symbols, of which there is an empty one."""
    if kind.of == SYMBOL:
        quoted_text = _QUOTED.fullmatch(text)
        return _unquoted(quoted_text) if quoted_text else None if text == "nil" else text
    if text.strip() in ("", "nil"):
        return None
    value = parse_value(text, kind.of, types)
    if value == RESERVED.get(kind.of):
        raise ValueError(f"{quoted(text)} is out of range: it is the one {kind.of} that a {kind} cannot be")
    return value


def parse_prefix(text: str, start: int, kind: Kind, types: Types) -> tuple[Value, int]:
    """The record, branch or list that begins at `start`, and where it ends."""
    reader = _Reader(text, types, start)
    try:
        return reader.read(kind), reader.at
    except ValueError as error:
        raise ValueError(f"{quoted(text[start:])} is not {described(kind)}: {error}") from None


def parse_fields(text: str, fields: tuple[Field, ...], types: Types) -> tuple[Value, ...]:
    """The values between the parentheses of a fact; symbols may be quoted. Raises ValueError, saying what is wrong.

    >>> parse_fields('("a b", 1)', (Field("x", "symbol", SYMBOL), Field("y", "number", NUMBER)), Types())
    ('a b', 1)
    """
    reader = _Reader(text, types, 0)
    values = reader.read_fields(fields)
    rest = text[reader.at :].strip()
    if rest:
        raise ValueError(f"it ends before {quoted(rest)}")
    return values


def _parse_int(text: str, kind: Kind) -> int:
    match = _INTEGER.fullmatch(text)
    if match is None or (kind == UNSIGNED and match[1] == "-"):
        raise ValueError(f"{quoted(text)} is not {described(kind)}")
    sign, hexadecimal, binary, decimal = match.groups()
    digits, base = (hexadecimal, 16) if hexadecimal else (binary, 2) if binary else (decimal, 10)
    digits = digits.lstrip("0") or "0"
    # Python refuses to convert thousands of digits; none of those numbers is in range.
    size = int(digits, base) if len(digits) <= 64 else 2**64
    number = -size if sign == "-" else size
    if not LOWEST[kind] <= number <= HIGHEST[kind]:
        raise ValueError(
            f"{quoted(text)} is out of range: {described(kind)} lies between {LOWEST[kind]} and {HIGHEST[kind]}"
        )
    return number


def _parse_scalar(text: str, kind: Kind) -> Value:
    try:
        return read_text(text.strip(), kind)
    except ValueError:
        raise ValueError(f"{quoted(text)} is not {described(kind)}") from None


def _parse_float(text: str) -> float:
    if not _FLOAT.fullmatch(text):
        raise ValueError(f"{quoted(text)} is not a float")
    return float(text) + 0.0  # -0.0 is 0.0


def _branches(kind: Kind, types: Types) -> Mapping[str, tuple[Field, ...]]:
    return types.adts[str(kind)]


def _unquoted(match: re.Match[str]) -> str:
    return re.sub(r"\\(.)", lambda escape: _UNESCAPES.get(escape[1], escape[1]), match[1], flags=re.DOTALL)


@dataclass
class _Reader:
    text: str
    types: Types
    start: int

    def __post_init__(self) -> None:
        self.at = self.start

    def read(self, kind: Kind) -> Value:
        return without_recursion(self._value(kind, ""))

    def read_fields(self, fields: tuple[Field, ...]) -> tuple[Value, ...]:
        self._expect("(")
        return without_recursion(self._fields(fields, ")"))

    def _value(self, kind: Kind, closer: str) -> Steps[Value]:
        self._skip_space()
        match kind:
            case RecordKind(name):
                if self._accept("nil"):
                    return None
                self._expect("[", or_else=" or nil")
                return (yield from self._fields(self.types.records[name], "]"))
            case AdtKind():
                branch, fields = self._branch(kind)
                if not fields and not self._accept("("):
                    return Variant(branch)
                if fields:
                    self._expect("(")
                return Variant(branch, (yield from self._fields(fields, ")")))
            case ListKind(element):
                return (yield from self._items(element))
            case Nullable(of) if of == SYMBOL:
                is_quoted = self.text.startswith('"', self.at)
                symbol = self._symbol(closer)
                return None if symbol == "nil" and not is_quoted else symbol
            case _:
                return self._symbol(closer) if kind == SYMBOL else self._number(kind, closer)

    def _fields(self, fields: tuple[Field, ...], closer: str) -> Steps[tuple[Value, ...]]:
        values: list[Value] = []
        for each in fields:
            if values:
                self._expect(",", or_else=f" and {each.name}: {each.type}")
            values.append((yield self._value(each.kind, closer)))
        self._expect(closer)
        return compound(values)

    def _items(self, element: Kind) -> Steps[tuple[Value, ...]]:
        self._expect("[")
        if self._accept("]"):
            return ()
        values = [(yield self._value(element, "]"))]
        while self._accept(","):
            values.append((yield self._value(element, "]")))
        self._expect("]", or_else=" or ','")
        return compound(values)

    def _branch(self, kind: Kind) -> tuple[str, tuple[Field, ...]]:
        branches = _branches(kind, self.types)
        match = _BRANCH.match(self.text, self.at)
        if match is None:
            self._fail("'$' and the name of a branch")
        if match[1] not in branches:
            known = ", ".join(f"${name}" for name in branches)
            raise ValueError(f"it has no branch ${match[1]}, only {known}")
        self.at = match.end()
        return match[1], branches[match[1]]

    def _symbol(self, closer: str) -> str:
        if not self.text.startswith('"', self.at):
            return self._bare(closer)
        match = _QUOTED.match(self.text, self.at)
        if match is None:
            raise ValueError(f"the quote at character {self.at - self.start + 1} is never closed")
        self.at = match.end()
        return _unquoted(match)

    def _number(self, kind: Kind, closer: str) -> Value:
        # Dates and the like may be, numbers not.
        is_quoted = is_whole(base(kind)) and base(kind) != NUMBER and self.text.startswith('"', self.at)
        return parse_value(self._symbol(closer) if is_quoted else self._bare(closer), kind, self.types)

    def _bare(self, closer: str) -> str:
        ends = [end for stop in (",", closer) if (end := self.text.find(stop, self.at)) >= 0]
        if not ends:
            raise ValueError(f"its '{closer}' is missing")
        start, self.at = self.at, min(ends)
        return self.text[start : self.at]

    def _skip_space(self) -> None:
        self.at = self._after_space()

    def _after_space(self) -> int:
        match = _SPACE.match(self.text, self.at)
        return match.end() if match else self.at

    def _accept(self, word: str) -> bool:
        start = self._after_space()
        if not self.text.startswith(word, start):
            return False
        self.at = start + len(word)
        return True

    def _expect(self, word: str, *, or_else: str = "") -> None:
        if not self._accept(word):
            self._skip_space()
            self._fail(f"'{word}'{or_else}")

    def _fail(self, expected: str) -> NoReturn:
        found = quoted(self.text[self.at]) if self.at < len(self.text) else "the end"
        raise ValueError(f"expected {expected} at character {self.at - self.start + 1}, found {found}")
