"""How values look inside Spark: the SQL types of kinds, and constants as SQL text.

Unsigned numbers are decimal(20) to the outside and, inside, the bits of a bigint, on which arithmetic is that of numbers. Truth
values, dates, timestamps and decimals are a bigint inside, too, as they are in the engine. Nil of whatever kind is null. A record
is a struct; a list is an array; a branch is a struct of its name and one struct for each branch that has fields. Spark knows no
type that contains itself, so that such values travel as text, written as in fact files.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from whence.io.values import format_value
from whence.lang.scalars import to_whole
from whence.lang.types import (
    BOOL,
    DATE,
    FLOAT,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
    AdtKind,
    DecimalKind,
    Field,
    Kind,
    ListKind,
    Nullable,
    RecordKind,
    Types,
    Value,
    Variant,
    base,
    is_whole,
)

# The column of a relation that has none.
UNIT = "holds"
# The field that names the branch of an algebraic data type.
BRANCH = "branch"

_SIMPLE = {UNSIGNED: "bigint", FLOAT: "double", SYMBOL: "string"}
_OUTSIDE = {UNSIGNED: "decimal(20,0)", BOOL: "boolean", DATE: "date", TIMESTAMP: "timestamp_ntz"}


class Shapes:
    """The shapes of one program's kinds."""

    def __init__(self, types: Types) -> None:
        self.types = types
        self.is_text = cache(self._is_text)
        self.sql_type = cache(self._sql_type)

    def __reduce__(self) -> tuple[type[Shapes], tuple[Types]]:
        return Shapes, (self.types,)

    def _is_text(self, kind: Kind) -> bool:
        """Whether values travel as text: a kind in it contains itself, or has fields that Spark cannot tell apart."""
        return self._is_nested(kind, ()) or not self._has_names(kind) or any(map(self.is_text, self._parts(kind)))

    def _is_nested(self, kind: Kind, around: tuple[Kind, ...]) -> bool:
        return kind in around or any(self._is_nested(part, (*around, kind)) for part in self._parts(kind))

    def _parts(self, kind: Kind) -> Iterator[Kind]:
        match kind:
            case RecordKind(name):
                yield from (each.kind for each in self.types.records[name])
            case AdtKind(name):
                yield from (each.kind for fields in self.types.adts[name].values() for each in fields)
            case ListKind(element):
                yield element

    def _has_names(self, kind: Kind) -> bool:
        match kind:
            case RecordKind(name):
                names = [each.name for each in self.types.records[name]]
                return bool(names) and _are_distinct(names)
            case AdtKind(name):
                branches = self.types.adts[name]
                return _are_distinct([BRANCH, *branches]) and all(
                    _are_distinct([each.name for each in fields]) for fields in branches.values()
                )
            case _:
                return True

    def fields_of(self, kind: RecordKind) -> tuple[Field, ...]:
        return self.types.records[kind.name]

    def branches_of(self, kind: AdtKind) -> dict[str, tuple[Field, ...]]:
        """The branches that have fields."""
        return {branch: fields for branch, fields in self.types.adts[kind.name].items() if fields}

    def _sql_type(self, kind: Kind, *, outside: bool = False) -> str:
        kind = base(kind)
        if outside and isinstance(kind, DecimalKind):
            return kind.name
        if outside and kind in _OUTSIDE:
            return _OUTSIDE[kind]
        if kind in _SIMPLE:
            return _SIMPLE[kind]
        if is_whole(kind):
            return "bigint"
        if self.is_text(kind):
            return "string"
        match kind:
            case ListKind(element):
                return f"array<{self.sql_type(element, outside=outside)}>"
            case RecordKind():
                return self._struct(self.fields_of(kind), outside=outside)
            case AdtKind():
                branches = self.branches_of(kind).items()
                parts = [f"{name(each)}: {self._struct(fields, outside=outside)}" for each, fields in branches]
                return f"struct<{', '.join([f'{BRANCH}: string', *parts])}>"
        raise AssertionError(kind)

    def _struct(self, fields: tuple[Field, ...], *, outside: bool) -> str:
        parts = (f"{name(each.name)}: {self.sql_type(each.kind, outside=outside)}" for each in fields)
        return f"struct<{', '.join(parts)}>"

    def literal(self, value: Value, kind: Kind) -> str:
        """A constant as SQL."""
        if value is None and isinstance(kind, Nullable):
            return f"cast(null as {self.sql_type(kind)})"
        kind = base(kind)
        if kind == FLOAT:
            return f"double('{float(value) + 0.0!r}')"  # type: ignore[arg-type]
        if kind == UNSIGNED:
            return f"bigint('{value - (1 << 64) if value >> 63 else value}')"  # type: ignore[operator]
        if is_whole(kind):
            return f"bigint('{to_whole(kind)(value)}')"
        if kind == SYMBOL:
            return string(str(value))
        if self.is_text(kind):
            return string(format_value(value, kind, self.types))
        match value, kind:
            case None, _:
                return f"cast(null as {self.sql_type(kind)})"
            case tuple(), ListKind(element):
                items = ", ".join(self.literal(item, element) for item in value)
                return f"cast(array({items}) as {self.sql_type(kind)})"
            case tuple(), RecordKind():
                return self.record(
                    kind,
                    [self.literal(each, part.kind) for each, part in zip(value, self.fields_of(kind), strict=True)],
                )
            case Variant(branch=branch, args=args), AdtKind(of):
                fields = self.types.adts[of][branch]
                return self.branch(
                    kind, branch, [self.literal(each, part.kind) for each, part in zip(args, fields, strict=True)]
                )
        raise AssertionError((value, kind))

    def record(self, kind: RecordKind, parts: list[str]) -> str:
        """The struct of a record, given its fields as SQL."""
        return _named_struct(zip((each.name for each in self.fields_of(kind)), parts, strict=True))

    def branch(self, kind: AdtKind, branch: str, parts: list[str]) -> str:
        """The struct of a branch, given its fields as SQL."""
        members = [(BRANCH, string(branch))]
        for each, fields in self.branches_of(kind).items():
            if each == branch:
                members.append((each, _named_struct(zip((part.name for part in fields), parts, strict=True))))
            else:
                members.append((each, f"cast(null as {self._struct(fields, outside=False)})"))
        return _named_struct(members)


def _are_distinct(names: list[str]) -> bool:
    """As Spark sees it, which takes no notice of case."""
    return len({each.lower() for each in names}) == len(names)


def _named_struct(members: object) -> str:
    return f"named_struct({', '.join(f'{string(key)}, {value}' for key, value in members)})"  # type: ignore[attr-defined]


def name(identifier: str) -> str:
    """
    >>> name("from")
    '`from`'
    """
    return "`" + identifier.replace("`", "``") + "`"


def string(text: str) -> str:
    r"""A symbol as SQL.

    >>> string("plain"), string("it's")
    ("'plain'", "cast(X'69742773' as string)")
    """
    if text.isprintable() and "'" not in text and "\\" not in text:
        return f"'{text}'"
    return f"cast(X'{text.encode().hex()}' as string)"
