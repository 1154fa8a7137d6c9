"""Facts, rules and proofs as text."""

from __future__ import annotations

from collections.abc import Iterable

from whence.lang.types import Value, Variant
from whence.provenance.graph import Absence, Fact, Wildcard

_ESCAPES = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"})


def show_value(value: Value | Wildcard) -> str:
    """As it is written in a program.

    >>> show_value((1, "a", None))
    '[1, "a", nil]'
    """
    match value:
        case None:
            return "nil"
        case str():
            return f'"{value.translate(_ESCAPES)}"'
        case Variant(branch=branch, args=args):
            return f"${branch}({_listed(args)})" if args else f"${branch}"
        case tuple():
            return f"[{_listed(value)}]"
        case _:
            return repr(value)


def show_fact(fact: Fact | Absence) -> str:
    """
    >>> show_fact(Fact("link", ("a", 2)))
    'link("a", 2)'
    """
    relation, values = fact
    return f"{relation}({_listed(values)})"


def _listed(values: Iterable[Value | Wildcard]) -> str:
    return ", ".join(show_value(value) for value in values)
