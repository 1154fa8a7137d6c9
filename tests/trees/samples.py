"""Trees that several tests use, with annotations by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from whence.semiring import Semiring
from whence.trees.values import Forest, KSets, Tree

# A label, the name of its annotation or None for one, and what is inside.
Sketch = tuple[str, str | None, list[Any]]

# The source of the dissertation's example of descendants.
FIGURE_64: Sketch = (
    "a",
    None,
    [
        ("b", "x1", [("a", None, [("c", "y3", []), ("d", None, [])])]),
        ("c", "y1", [("d", None, [("a", None, [])]), ("c", "y2", []), ("b", "x2", [])]),
    ],
)


def forest_of(semiring: Semiring[Any], sketches: list[Sketch], value_of: Callable[[str], Any]) -> Forest[Any]:
    return KSets(semiring).of(
        (
            Tree(label, forest_of(semiring, inside, value_of)),
            semiring.one if name is None else value_of(name),
        )
        for label, name, inside in sketches
    )


def figure_64(semiring: Semiring[Any], **values: Any) -> Forest[Any]:
    """The values are those of annotations; the others are variables."""
    return forest_of(semiring, [FIGURE_64], lambda name: values.get(name, semiring.variable(name)))
