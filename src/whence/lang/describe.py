"""Kinds, terms and places in words, for messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from whence.lang import tree
from whence.lang.functors import cast
from whence.lang.signatures import ARITHMETIC, NUMERIC, SIGNATURES, Signature
from whence.lang.tree import Span
from whence.lang.types import (
    BOOL,
    DATE,
    DECIMAL,
    FLOAT,
    NUMBER,
    PRIMITIVES,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
    AdtKind,
    DecimalKind,
    Kind,
    Primitive,
    RecordKind,
    Types,
    is_among,
)
from whence.lang.unify import Inferred, ListShape, NilShape, Slot, TermShape, TupleShape

# Where a term stands: in words, or as the position of an argument and its relation.
Where = str | tuple[int, str]

_CONVERSIONS: dict[Kind, str] = {
    NUMBER: "to_number",
    UNSIGNED: "to_unsigned",
    FLOAT: "to_float",
    SYMBOL: "to_string",
    BOOL: "to_bool",
    DATE: "to_date",
    TIMESTAMP: "to_timestamp",
}


def plain(name: str) -> str:
    """A variable's name as the user wrote it."""
    return name.partition("#")[0]


def listed(words: Iterable[str], conjunction: str = "or") -> str:
    """
    >>> listed(["number", "float", "symbol"])
    'number, float or symbol'
    """
    *most, last = words
    return f"{', '.join(most)} {conjunction} {last}" if most else last


def counted(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def aggregate_form(name: str) -> str:
    """How an aggregate is written, for one that is written like a function of the variables around it."""
    form, verb = ("count", "count") if name == "count" else (f"{name} x", "aggregate")
    advice = f"write n = {form} : {{ r(x) }} in the body, with the atoms to {verb} in the braces"
    return f"{advice}; {name}(x, y) takes two values or more" if name in SIGNATURES else advice


def place(where: Where) -> str:
    return where if isinstance(where, str) else f"argument {where[0] + 1} of {where[1]}"


def name_span(atom: tree.Atom) -> Span:
    """Where an atom's relation is named."""
    return Span(atom.span.start, min(atom.span.start + len(atom.relation), atom.span.end))


def describe(term: tree.Term) -> str:
    match term:
        case tree.Variable(name=name):
            return plain(name) or "_"
        case tree.String(value=value):
            return f'"{value}"' if len(value) <= 20 else "this string"
        case tree.Number(value=value):
            return str(value)
        case tree.Bool(value=value):
            return "true" if value else "false"
        case tree.Call(name=name):
            return f"{name}(…)" if name.isidentifier() else f"the result of {name}"
        case tree.Branch(name=name):
            return f"${name}(…)"
        case _:
            return "this term"


def say(inferred: Inferred) -> str:
    """What a kind is: `a number`, `a list`."""
    if not isinstance(inferred, Slot):
        return _with_article(str(inferred))
    slot = inferred.root()
    match slot.kind:
        case ListShape():
            return "a list"
        case TupleShape(items=items):
            return f"a record or list of {len(items)}"
        case TermShape(branches=branches):
            return "a term " + " or ".join(f"${name}" for name in branches)
        case NilShape():
            return "nil"
        case None if slot.options in (NUMERIC, ARITHMETIC):
            return "a number"
        case None if slot.options == frozenset({FLOAT, DECIMAL}):
            return "a float"
        case None if slot.options:
            return listed(accepted(slot.options))
        case None:
            return "of an unknown type"
        case kind:
            return _with_article(str(kind))


def _with_article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiouAEIO" else f"a {noun}"


class Sides(NamedTuple):
    """Two kinds that do not go together."""

    found: str
    wanted: str
    found_kind: Kind | None
    wanted_kind: Kind | None

    @classmethod
    def of(cls, found: Inferred, wanted: Inferred) -> Sides:
        return cls(say(found), say(wanted), _known(found), _known(wanted))


def _known(inferred: Inferred) -> Kind | None:
    if not isinstance(inferred, Slot):
        return inferred
    slot = inferred.root()
    if slot.kind is None:
        return next((kind for kind in PRIMITIVES.values() if kind in (slot.options or ())), None)
    return slot.kind if isinstance(slot.kind, Kind) else None


def accepted(allowed: frozenset[Primitive]) -> list[str]:
    return [name for name, each in (*PRIMITIVES.items(), (DECIMAL.name, DECIMAL)) if each in allowed]


def conversion(what: str, found: Kind | None, wanted: Kind | None, types: Types) -> str:
    """How to make one kind of another, or what the wanted kind looks like."""
    if isinstance(wanted, Primitive):
        if isinstance(wanted, DecimalKind):
            return f"as({what}, {wanted}) converts it" if found is not None and cast(found, wanted) is not None else ""
        functor = _CONVERSIONS.get(wanted)
        takes = SIGNATURES[functor][0].params[0] if functor else None
        return f"{functor}({what}) converts it" if isinstance(takes, frozenset) and is_among(found, takes) else ""
    if isinstance(wanted, RecordKind) and wanted.name in types.records:
        fields = ", ".join(f"{each.name}:{each.type}" for each in types.records[wanted.name])
        return f"{wanted} is [{fields}]"
    if isinstance(wanted, AdtKind) and wanted.name in types.adts:
        return f"{wanted} is {' | '.join(f'${name}' for name in types.adts[wanted.name])}"
    return ""


def written(name: str, signature: Signature) -> str:
    """
    >>> from whence.lang.signatures import SIGNATURES
    >>> written("cat", SIGNATURES["cat"][0])
    'cat(symbol, symbol, …)'
    """
    params = [str(each) if isinstance(each, Primitive | str) else "|".join(accepted(each)) for each in signature.params]
    return f"{name}({', '.join([*params, *(['…'] if signature.variadic else [])])})"
