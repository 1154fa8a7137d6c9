"""The types of values.

A `Kind` is what a value is made of, and decides which functors apply to it. Declared subtypes and unions narrow a kind
without changing its values; they matter to the checks only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from decimal import Decimal
from typing import Self

_KNOWN: dict[str, Primitive] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """There is one of each name, however it is come by, so that to compare them takes no time: every epoch does that often."""

    name: str

    def __new__(cls, name: str, *_places: object, **_names: object) -> Self:
        found = _KNOWN.setdefault(name, object.__new__(cls))
        assert isinstance(found, cls)
        return found

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), tuple(getattr(self, each.name) for each in fields(self))


NUMBER = Primitive("number")
UNSIGNED = Primitive("unsigned")
FLOAT = Primitive("float")
SYMBOL = Primitive("symbol")
BOOL = Primitive("bool")
DATE = Primitive("date")
TIMESTAMP = Primitive("timestamp")
PRIMITIVES: Mapping[str, Primitive] = {
    each.name: each for each in (NUMBER, UNSIGNED, FLOAT, SYMBOL, BOOL, DATE, TIMESTAMP)
}
# Types of a program's own may have the other names.
RESERVED_NAMES = frozenset({"number", "unsigned", "float", "symbol"})


@dataclass(frozen=True, slots=True, eq=False)
class DecimalKind(Primitive):
    """`decimal(precision,scale)`: at most so many digits, so many of them behind the point."""

    precision: int
    scale: int


MOST_DIGITS = 18  # more do not fit 64 bits
# In sets of kinds: any of them.
DECIMAL = Primitive("decimal")


def decimal_kind(precision: int, scale: int) -> DecimalKind:
    return DecimalKind(f"decimal({precision},{scale})", precision, scale)


def is_among(kind: object, allowed: Collection[Primitive]) -> bool:
    """Whether a set of kinds holds the kind.

    >>> is_among(decimal_kind(10, 2), {NUMBER, DECIMAL}), is_among(FLOAT, {NUMBER, DECIMAL})
    (True, False)
    """
    return kind in allowed or (isinstance(kind, DecimalKind) and DECIMAL in allowed)


@dataclass(frozen=True, slots=True)
class RecordKind:
    """A record type by name; its fields are in `Types.records`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class AdtKind:
    """An algebraic data type by name; its branches are in `Types.adts`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ListKind:
    element: Kind

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class Nullable:
    """`T?`: the values of a primitive type, or `nil`, which records have anyway."""

    of: Primitive

    def __str__(self) -> str:
        return f"{self.of}?"


Kind = Primitive | RecordKind | AdtKind | ListKind | Nullable

# A number of 64 bits leaves no word for nil: this one stands for it, and has no place where numbers may be nil.
LEAST, MIDDLE = -(1 << 63), 1 << 63
RESERVED: Mapping[Primitive, int] = {NUMBER: LEAST, UNSIGNED: MIDDLE}


def base(kind: Kind) -> Kind:
    """The kind of the values that are not nil.

    >>> str(base(Nullable(NUMBER))), str(base(NUMBER))
    ('number', 'number')
    """
    return kind.of if isinstance(kind, Nullable) else kind


def is_plain(kind: Kind) -> bool:
    """Whether values have no parts."""
    return isinstance(kind, Primitive | Nullable)


def is_whole(kind: Kind) -> bool:
    """Whether values are kept as whole numbers of 64 bits, and go by their size."""
    return isinstance(kind, Primitive) and kind not in (UNSIGNED, FLOAT, SYMBOL)


def may_be_nil(kind: Kind) -> bool:
    return isinstance(kind, Nullable | RecordKind)


@dataclass(frozen=True, slots=True)
class Variant:
    """A value of an algebraic data type, or a function term."""

    branch: str
    args: tuple[Value, ...] = ()


# A record is a tuple of its fields, a list a tuple of its items, `nil` is None; a timestamp is a datetime, which is a date too.
Value = int | float | str | date | Decimal | None | tuple["Value", ...] | Variant
Tuple = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute or field: its name, the type it was declared with, and that type's kind."""

    name: str
    type: str
    kind: Kind


@dataclass(frozen=True)
class Types:
    """The declared and inferred types of a program."""

    kinds: Mapping[str, Kind] = field(default_factory=lambda: dict(PRIMITIVES))
    records: Mapping[str, tuple[Field, ...]] = field(default_factory=dict)
    adts: Mapping[str, Mapping[str, tuple[Field, ...]]] = field(default_factory=dict)
    # Each type name with the set of type names whose values it includes (itself among them).
    members: Mapping[str, frozenset[str]] = field(default_factory=dict)
