"""The tab key completes names: of relations, facts, semirings, strategies."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from whence.cli import completing
from whence.lang import ProgramError, load

SITES = Path(__file__).parents[2] / "examples" / "sites" / "program.dl"


class _Typed(typer.Context):
    def __init__(self, program: object) -> None:
        self.params = {"program": program}


def test_names_of_the_program_are_completed() -> None:
    typed = _Typed(str(SITES))
    assert completing.relations(typed, "") == ["link", "closed", "reach", "served"]
    assert completing.base_relations(typed, "") == ["link", "closed"]
    assert completing.facts(typed, "se") == ["served(_, _)"]
    assert completing.semirings("pos") == ["posbool"]


@pytest.mark.parametrize("program", [None, "nowhere.dl", __file__])
def test_without_a_program_nothing_is_completed(program: str | None) -> None:
    assert completing.relations(_Typed(program), "") == []
    assert completing.facts(_Typed(program), "") == []


def test_excerpts_of_long_lines_stay_on_their_line() -> None:
    long = "p(x) :- " + ", ".join(f"q(x, {at})" for at in range(40))
    for text in (f"{long}, lnik(x).", f"p(x) :- lnik(x), {long[8:]}.", f"{long}, lnik(x), {long[8:]}."):
        with pytest.raises(ProgramError) as caught:
            load(f".decl q(x:number, y:number) .input q\n{text} .output p")
        shown, under = str(caught.value).splitlines()[1:3]
        assert len(shown) <= 80
        assert "lnik" in shown
        assert shown[under.index("^") : under.rindex("^") + 1] == "lnik"
