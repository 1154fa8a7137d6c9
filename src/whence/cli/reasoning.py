"""What commands that reason about rules have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from whence.cli.mistakes import unknown
from whence.lang.load import Functions
from whence.lang.program import output_names
from whence.reasoning import Mapped, Query, query_of
from whence.reasoning.signed import load_signed_file
from whence.semiring import SEMIRINGS

_MOST_MAPPINGS = 10


def _known(name: str) -> str:
    if name not in SEMIRINGS:
        raise unknown("semiring", name, SEMIRINGS)
    return name


SemiringOption = Annotated[
    str, typer.Option(metavar="NAME", help=f"What annotations are made of: {', '.join(SEMIRINGS)}.", callback=_known)
]


def named_query(text: str, functions: Functions | None) -> Query:
    """The query that PROGRAM:RELATION names, or a program with one output. Rules may have a minus.

    A mapping of a confederation, as FILE.peers:MAPPING, shows the variables that its heads use.
    """
    path, relation = Path(text), ""
    if not path.is_file():
        name, _, relation = text.rpartition(":")
        path = Path(name)
    if not path.is_file() or (not relation and str(path) != text):
        raise typer.BadParameter(f"{text} is neither a program nor PROGRAM:RELATION")
    if path.suffix == ".peers":
        from whence.exchange.check import load_confederation_file  # noqa: PLC0415 - only confederations need it
        from whence.exchange.queries import mappings_as_rules  # noqa: PLC0415

        return query_of(mappings_as_rules(load_confederation_file(path), functions), relation)
    program, minus = load_signed_file(path, functions=functions)
    if not relation:
        outputs = output_names(program)
        if len(outputs) != 1:
            raise typer.BadParameter(f"{text} has {len(outputs)} outputs; name one, as in {text}:{(*outputs, 'R')[0]}")
        relation = outputs[0]
    return query_of(program, relation, minus=minus)


def mapping_lines(mappings: tuple[Mapped, ...]) -> list[str]:
    lines = []
    for each in mappings[:_MOST_MAPPINGS]:
        terms = ", ".join(f"{name} -> {term}" for name, term in each.terms) or "no variables"
        lines.append(f"  {each.source} into {each.target}: {terms}" + (f"  where {each.case}" if each.case else ""))
    if len(mappings) > _MOST_MAPPINGS:
        lines.append(f"  and {len(mappings) - _MOST_MAPPINGS:,} more")
    return lines


def mapping_to_json(each: Mapped) -> dict[str, Any]:
    return {"from": each.source, "to": each.target, "terms": dict(each.terms)} | (
        {"case": each.case} if each.case else {}
    )
