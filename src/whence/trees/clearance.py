"""Who may see what of a tree: each node has a level of access, and what is inside needs those of all around it.

What a reader sees of an answer is the answer of what he sees of the documents: nothing else has an influence on it.
"""

from __future__ import annotations

from whence.semiring import Access, Boolean
from whence.trees.values import Forest, convert


def view_for(forest: Forest[str], clearance: str, access: Access) -> Forest[bool]:
    """What someone with a clearance sees, without saying why others would see more or less."""
    return convert(forest, lambda level: access.visible(level, clearance), Boolean())


def erase(forest: Forest[str], clearance: str, access: Access) -> Forest[str]:
    """The forest without what needs more than a clearance, the other levels as they are."""
    return convert(forest, lambda level: level if access.visible(level, clearance) else access.zero, access)
