"""Rebuilding trees: one function that maps every node below another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeVar

from whence.lang.tree import Span

T = TypeVar("T")


def rebuild(node: T, change: Callable[[Any], Any]) -> T:
    """The node with `change` applied to everything below it and to itself, bottom up; unchanged parts are shared."""
    if isinstance(node, tuple) and not isinstance(node, Span):
        items = tuple(rebuild(item, change) for item in node)
        return node if all(new is old for new, old in zip(items, node, strict=True)) else items  # type: ignore[return-value]
    if not hasattr(node, "__dataclass_fields__"):
        return node
    changed = {}
    node_type: type = type(node)
    for name in _parts(node_type):
        old = getattr(node, name)
        new = rebuild(old, change)
        if new is not old:
            changed[name] = new
    return change(replace(node, **changed) if changed else node)  # type: ignore[no-any-return,type-var]


@cache
def _parts(node_type: type) -> tuple[str, ...]:
    return tuple(part.name for part in fields(node_type) if part.name != "span")
