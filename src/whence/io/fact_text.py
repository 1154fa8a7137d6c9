"""Facts as people write them: `reach("a", "f")`."""

from __future__ import annotations

import re
from difflib import get_close_matches

from whence.io.values import parse_fields
from whence.lang.program import Program
from whence.lang.types import Tuple

# Strings as in SQL, and wildcards, where a value begins; strings as in Datalog are passed over.
_ODD = re.compile(
    r'"(?:[^"\\]|\\.)*"|(?<=[(,\[\s])\'(?P<single>(?:[^\'\\]|\\.)*)\'(?=\s*[,)\]])|(?<=[(,\[\s])(?P<any>_)(?=\s*[,)\]])'
)
_FACT = re.compile(r"\s*([\w.?]+)\s*(\(.*\))?\s*\.?\s*", re.DOTALL)


def read_fact(text: str, program: Program) -> tuple[str, Tuple]:
    """The relation and the tuple; single quotes do as well. Raises ValueError, saying what is wrong with it.

    >>> from whence.lang import load
    >>> read_fact('link("a", 2)', load(".decl link(x:symbol, y:number) .input link .output link"))
    ('link', ('a', 2))
    """
    match = _FACT.fullmatch(text)
    if match is None:
        raise ValueError(f'{text} is not a fact: write it as in the program, such as link("a", 1)')
    name, values = match[1], match[2] or "()"
    check_relation(name, program)
    relation = program.relations[name]
    try:
        return name, parse_fields(_ODD.sub(_plain, values), relation.fields, program.types)
    except ValueError as error:
        raise ValueError(f"{text} does not fit {relation.signature}: {error}") from None


def check_relation(name: str, program: Program) -> None:
    """Raises ValueError if there is no such relation."""
    if name not in program.relations:
        near = get_close_matches(name, program.relations, 1)
        hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(program.relations)}"
        raise ValueError(f"there is no relation {name}{hint}")


def _plain(part: re.Match[str]) -> str:
    if part["any"] is not None:
        raise ValueError("_ stands for any value, and this question is about one fact")
    if part["single"] is None:
        return part[0]
    escaped = part["single"].replace('"', '\\"')
    return f'"{escaped}"'
