"""Trees as text, XML and JSON. Siblings have no order of their own: they are written in that of their labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from whence.semiring import Semiring
from whence.trees.documents import ANNOTATION, ESCAPE
from whence.trees.values import Forest, Tree

# Shows the annotation of a node, given those of the nodes around it; empty if there is nothing to say.
Show = Callable[[Any, tuple[Any, ...]], str]
_NAME = re.compile(r"[^\W\d][\w.-]*")


def annotations_of(semiring: Semiring[Any]) -> Show:
    def show(value: Any, _: tuple[Any, ...]) -> str:
        return "" if value == semiring.one else semiring.format(value)

    return show


def _sorted(forest: Forest[Any]) -> list[tuple[Tree[Any], Any]]:
    return sorted(forest.items(), key=lambda pair: (pair[0].label, repr(pair[0]), str(pair[1])))


def _only_value(tree: Tree[Any], show: Show, around: tuple[Any, ...]) -> str | None:
    """The label of a tree's only child, if that is a value without an annotation."""
    if len(tree.children) == 1:
        ((leaf, value),) = tree.children.items()
        if not leaf.children and not show(value, around):
            return str(leaf.label)
    return None


def text_lines(forest: Forest[Any], show: Show) -> Iterator[str]:
    """A line for each node, with `= value` for what holds one value and nothing else."""
    for tree, value in _sorted(forest):
        yield from _text_lines(tree, value, (), show)


def _text_lines(tree: Tree[Any], value: Any, around: tuple[Any, ...], show: Show) -> Iterator[str]:
    inside = (*around, value)
    only = _only_value(tree, show, inside)
    note = show(value, around)
    yield f"{tree.label}{f' = {only}' if only is not None else ''}{f'  ^ {note}' if note else ''}"
    children = [] if only is not None else _sorted(tree.children)
    for left, (child, annotation) in zip(range(len(children))[::-1], children, strict=True):
        first, *others = _text_lines(child, annotation, inside, show)
        yield ("├─ " if left else "└─ ") + first
        yield from (("│  " if left else "   ") + line for line in others)


def one_line(tree: Tree[Any], semiring: Semiring[Any]) -> str:
    """
    >>> from whence.semiring import Natural
    >>> from whence.trees.documents import parse_document
    >>> (tree,) = parse_document('<a><b annot="2">x</b><c/></a>', Natural()).forest
    >>> one_line(tree, Natural())
    'a[b^2[x], c]'
    """
    return _one_line(tree, semiring.one, annotations_of(semiring))


def _one_line(tree: Tree[Any], value: Any, show: Show) -> str:
    note = show(value, ())
    inside = ", ".join(_one_line(child, annotation, show) for child, annotation in _sorted(tree.children))
    return f"{tree.label}{f'^{note}' if note else ''}{f'[{inside}]' if inside else ''}"


def xml_lines(forest: Forest[Any], show: Show) -> Iterator[str]:
    """Elements with `annot` for their annotations, which `documents` reads back."""
    for tree, value in _sorted(forest):
        yield from _xml_lines(tree, value, (), show, "")


def _xml_lines(tree: Tree[Any], value: Any, around: tuple[Any, ...], show: Show, indent: str) -> Iterator[str]:
    note, inside = show(value, around), (*around, value)
    attributes = "" if _NAME.fullmatch(tree.label) and tree.label != ESCAPE else f" label={quoteattr(tree.label)}"
    name = ESCAPE if attributes else tree.label
    attributes += f" {ANNOTATION}={quoteattr(note)}" if note else ""
    children = []
    for child, annotation in _sorted(tree.children):
        attribute = (
            _only_value(child, show, inside) if child.label.startswith("@") and not show(annotation, inside) else None
        )
        if attribute is not None and _NAME.fullmatch(child.label[1:]) and f" {child.label[1:]}=" not in attributes:
            attributes += f" {child.label[1:]}={quoteattr(attribute)}"
        else:
            children.append((child, annotation))
    if not children:
        yield f"{indent}<{name}{attributes}/>"
        return
    only = _only_value(tree, show, inside)
    if only is not None and only.strip() == only:
        yield f"{indent}<{name}{attributes}>{escape(only)}</{name}>"
        return
    yield f"{indent}<{name}{attributes}>"
    for child, annotation in children:
        yield from _xml_lines(child, annotation, inside, show, indent + "  ")
    yield f"{indent}</{name}>"


def to_json(forest: Forest[Any], show: Show) -> list[dict[str, Any]]:
    return [_to_json(tree, value, (), show) for tree, value in _sorted(forest)]


def _to_json(tree: Tree[Any], value: Any, around: tuple[Any, ...], show: Show) -> dict[str, Any]:
    found: dict[str, Any] = {"label": tree.label}
    if note := show(value, around):
        found["annotation"] = note
    if tree.children:
        inside = (*around, value)
        found["children"] = [_to_json(child, each, inside, show) for child, each in _sorted(tree.children)]
    return found
