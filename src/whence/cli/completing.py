"""What the tab key completes besides commands and options: names that a program has, and names of semirings.

Whatever is wrong with the program, there is nothing to complete then: a shell that waits for the end of a word is no place for
messages.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import typer

from whence.lang import Program, ProgramError, load_file
from whence.lang.bags import named_relations
from whence.lang.tables import taking_updates


def relations(context: typer.Context, incomplete: str) -> list[str]:
    program = _program(context)
    return [] if program is None else _fitting(named_relations(program), incomplete)


def base_relations(context: typer.Context, incomplete: str) -> list[str]:
    program = _program(context)
    return [] if program is None else _fitting(taking_updates(program), incomplete)


def facts(context: typer.Context, incomplete: str) -> list[str]:
    """Facts as far as their relation, and one that any fact fits."""
    program = _program(context)
    if program is None:
        return []
    names = _fitting(named_relations(program), incomplete)
    return [f"{name}({', '.join('_' * program.relations[name].arity)})" for name in names]


def semirings(incomplete: str) -> list[str]:
    from whence.semiring import SEMIRINGS  # noqa: PLC0415 - only for this

    return _fitting(SEMIRINGS, incomplete)


def _program(context: typer.Context) -> Program | None:
    given = context.params.get("program")
    # An option whose value is still missing keeps the parser from telling: then it is among the words that were typed.
    typed = os.environ.get("COMP_WORDS", os.environ.get("_TYPER_COMPLETE_ARGS", "")).split()
    words = [str(given)] if given is not None else [each for each in typed if each.endswith((".dl", ".sql"))]
    found = next((Path(each) for each in words if Path(each).is_file()), None)
    if found is None:
        return None
    try:
        return load_file(found)
    except (ProgramError, OSError, UnicodeDecodeError):
        return None


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
