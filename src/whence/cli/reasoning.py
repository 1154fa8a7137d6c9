"""What commands that reason about rules have in common."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from whence.reasoning import Mapped
from whence.semiring import SEMIRINGS

_MOST_MAPPINGS = 10


def _known(name: str) -> str:
    if name not in SEMIRINGS:
        raise typer.BadParameter(f"there is no semiring {name}; there are {', '.join(SEMIRINGS)}")
    return name


SemiringOption = Annotated[
    str, typer.Option(metavar="NAME", help=f"What annotations are made of: {', '.join(SEMIRINGS)}.", callback=_known)
]


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
