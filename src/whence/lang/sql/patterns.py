"""Patterns of LIKE."""

from __future__ import annotations

import re


def regex_of(pattern: str, escape: str, *, ignore_case: bool = False) -> str:
    """A LIKE pattern as a regular expression: % is any text, _ any character, also a line break."""
    parts: list[str] = []
    literal = False
    for char in pattern:
        if char == escape and not literal:
            literal = True
            continue
        wild = {"%": ".*", "_": "."}.get(char) if not literal else None
        parts.append(wild or re.escape(char))
        literal = False
    text = "".join(parts)
    flags = "s" * ("%" in pattern or "_" in pattern) + "i" * ignore_case
    return f"(?{flags}){text}" if flags else text
