"""Random programs as the properties of maintenance draw them, with places."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hypothesis import assume
from hypothesis import strategies as st
from tests.properties.programs import ARITY, Run, runs

from whence import Program, ProgramError, load
from whence.io.changes import Update
from whence.network.compiled import compile_for_nodes
from whence.plan import UnsuitableStrategy
from whence.plan.localize import is_placed

_ATOM = re.compile(r"\b([a-z_][a-z_0-9]*)\((?=[a-z0-9_])")


@dataclass(frozen=True)
class PlacedRun:
    text: str
    program: Program = field(repr=False)
    epochs: tuple[tuple[Update, ...], ...]


@st.composite
def placed_runs(draw: st.DrawFn) -> PlacedRun:
    """A run whose relations live at nodes by some column, or everywhere, so that every rule finds a way."""
    run = draw(runs())
    own = [name for name in run.program.relations if name not in ARITY]
    text = _marked(run.text, own)
    for name, arity in ARITY.items():
        place = draw(st.sampled_from((*range(arity), None))) if arity > 1 else draw(st.sampled_from((0, 0, None)))
        text = _declared(text, name, place)
    # What has no way from place to place as it was drawn has one when more is everywhere.
    names = draw(st.permutations(sorted(ARITY)))
    for name in ("", *names):
        text = _declared(text, name, None) if name else text
        try:
            program = load(text)
            assume(is_placed(program))
            compile_for_nodes(program, strategy="support")
        except (ProgramError, UnsuitableStrategy):
            continue
        return PlacedRun(text, program, run.epochs)
    assume(False)
    raise AssertionError


def _marked(text: str, relations: list[str]) -> str:
    """Relations that are not declared live by their first argument."""
    return _ATOM.sub(lambda found: found[0] + "@" * (found[1] in relations), text)


def _declared(text: str, name: str, place: int | None) -> str:
    columns = ", ".join(f"{'@' * (at == place)}c{at}:number" for at in range(ARITY[name]))
    everywhere = " everywhere" if place is None else ""
    return re.sub(rf"\.decl {name}\([^)]*\)( everywhere)?\n", f".decl {name}({columns}){everywhere}\n", text)


__all__ = ["PlacedRun", "Run", "placed_runs"]
