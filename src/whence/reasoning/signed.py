"""Programs in which derivations of some rules are taken away: `-q(x) :- r(x).` among the rules of `q`.

They say what a difference of views is if tuples are counted, or annotated, and counts may be negative. A minus in front of a
rule is all that they have beyond other programs; those who evaluate sets do not know what to do with it, and do not read it.
"""

from __future__ import annotations

import re
from pathlib import Path

from whence.lang import load
from whence.lang.load import Functions
from whence.lang.program import Program
from whence.reasoning.queries import NotConjunctive

_MINUS = re.compile(r"^[ \t]*-(?=\s*[A-Za-z_?][\w.?]*\s*[(:])", re.MULTILINE)


def load_signed(
    text: str,
    *,
    name: str = "<program>",
    dialect: str = "datalog",
    functions: Functions | None = None,
    folder: Path | None = None,
) -> tuple[Program, frozenset[str]]:
    """The program, and the names of the rules with a minus. Raises `ProgramError`, or NotConjunctive for a minus elsewhere.

    >>> load_signed(".decl r(x:number) .decl q(x:number) q(x) :- r(x).\\n-q(1) :- r(_).")[1]
    frozenset({'q#2'})
    """
    if dialect == "sql":
        return load(text, name=name, dialect=dialect, functions=functions, folder=folder), frozenset()
    places = [found.end() - 1 for found in _MINUS.finditer(text)]
    blanked = list(text)
    for at in places:
        blanked[at] = " "
    program = load("".join(blanked), name=name, functions=functions, folder=folder)
    starts: dict[int, list[str]] = {}
    for rule in program.rules:
        place = program.source.place(rule.span)
        if place.file.name == name:
            starts.setdefault(place.file.line_starts[place.line - 1] + place.column - 1, []).append(rule.name)
    minus: set[str] = set()
    for at in places:
        start = min((each for each in starts if each > at), default=len(text))
        line = text.count("\n", 0, at) + 1
        if start == len(text) or not re.fullmatch(r"\s*(\w+\s*:?\s*)?", text[at + 1 : start]):
            raise NotConjunctive(f"{name}:{line}: this minus does not stand before a rule")
        if any(rule.name in starts[start] and rule.is_fact for rule in program.rules):
            raise NotConjunctive(f"{name}:{line}: a fact cannot be taken away, only what a rule derives")
        minus.update(starts[start])
    return program, frozenset(minus)


def load_signed_file(path: Path, *, functions: Functions | None = None) -> tuple[Program, frozenset[str]]:
    dialect = "sql" if path.suffix == ".sql" else "datalog"
    text = path.read_text(encoding="utf-8-sig")
    return load_signed(text, name=str(path), dialect=dialect, functions=functions, folder=path.parent)
