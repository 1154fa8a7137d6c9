"""Rebuilding trees: one function that maps every node below another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from whence.lang.tree import parts_of

T = TypeVar("T")


def rebuild(node: T, change: Callable[[Any], Any]) -> T:
    """The node with `change` applied to everything below it and to itself, bottom up; unchanged parts are shared."""
    if isinstance(node, tuple):
        items = tuple(rebuild(item, change) for item in node)
        return node if all(new is old for new, old in zip(items, node, strict=True)) else items  # type: ignore[return-value]
    parts = parts_of(type(node))
    if parts is None:
        return node
    changed = {}
    for name in parts:
        old = getattr(node, name)
        new = rebuild(old, change)
        if new is not old:
            changed[name] = new
    return change(replace(node, **changed) if changed else node)  # type: ignore[no-any-return,type-var]
