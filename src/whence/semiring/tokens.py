"""What stands for a base tuple in an annotation: anything hashable, by default its relation's name and the tuple."""

from __future__ import annotations

from collections.abc import Hashable


def show_token(token: Hashable) -> str:
    """
    >>> show_token(("link", ("a", 1)))
    'link("a", 1)'
    >>> show_token("p")
    'p'
    """
    match token:
        case (str(relation), tuple(values)):
            return f"{relation}({', '.join(_show(value) for value in values)})"
        case _:
            return str(token)


def _show(value: object) -> str:
    match value:
        case str():
            return f'"{value}"'
        case tuple():
            return f"[{', '.join(_show(each) for each in value)}]"
        case None:
            return "nil"
        case _:
            return str(value)
