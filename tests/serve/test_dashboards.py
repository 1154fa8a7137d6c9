"""Dashboards are checked against the program, and what is wrong is reported with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from whence import load
from whence.lang.diagnostics import ProgramError, render
from whence.serve.dashboards import parse_dashboard
from whence.serve.shapes import Graph, Placed, shapes_of

PROGRAM = load(
    ".decl link(x:symbol, y:symbol) .input link .decl spot(name:symbol, x:float, y:float) .input spot"
    " .decl reach(x:symbol, y:symbol) reach(x, y) :- link(x, y). .output reach"
)


def _parse(text: str, folder: Path = Path()) -> object:
    return parse_dashboard(text, "d.toml", folder, PROGRAM.relations, frozenset(PROGRAM.base_relations))


def _problems(text: str) -> list[str]:
    with pytest.raises(ProgramError) as caught:
        _parse(text)
    return [render(each, caught.value.source).splitlines()[0] for each in caught.value.diagnostics]


def test_every_kind_of_widget_is_taken(tmp_path: Path) -> None:
    (tmp_path / "floor.svg").write_text("<svg/>")
    text = """
    title = "All"
    [[widget]]
    kind = "number"
    view = "reach"
    [[widget]]
    kind = "table"
    view = "reach"
    columns = ["y"]
    sort = "-x"
    action = { label = "Link", relation = "link", values = ["{y}", "{x}"] }
    [[widget]]
    kind = "timeline"
    view = "reach"
    by = "x"
    [[widget]]
    kind = "graph"
    view = "link"
    from = "x"
    to = "y"
    place = { view = "spot", key = "name", x = "x", y = "y" }
    [[widget]]
    kind = "plan"
    view = "spot"
    key = "name"
    x = "x"
    y = "y"
    image = "floor.svg"
    extent = { x = 0, y = 0, width = 4, height = 3 }
    [widget.edges]
    view = "link"
    from = "x"
    to = "y"
    [[widget]]
    kind = "alarm"
    view = "reach"
    message = "{x} reaches {y}"
    """
    found = parse_dashboard(text, "d.toml", tmp_path, PROGRAM.relations, frozenset(PROGRAM.base_relations))
    assert [each["kind"] for each in found.widgets] == ["number", "table", "timeline", "graph", "plan", "alarm"]
    assert found.images == {"floor.svg": tmp_path / "floor.svg"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[[widget]]\nkind = "number"\nview = "rech"', "d.toml:3:8: error[W1303]: there is no view rech"),
        (
            '[[widget]]\nkind = "table"\nview = "reach"\ncolumns = ["z"]',
            "d.toml:4:11: error[W1304]: reach has no column z",
        ),
        ('[[widget]]\nkind = "gauge"\nview = "reach"', "d.toml:2:8: error[W1302]: there is no kind of widget gauge"),
        ('[[widget]]\nview = "reach"', "d.toml:1:1: error[W1305]: this widget has no kind"),
        ('[[widget]]\nkind = "number"', "d.toml:1:1: error[W1305]: this number has no view"),
        (
            '[[widget]]\nkind = "number"\nview = "reach"\ncolour = 3',
            "d.toml:4:1: error[W1305]: there is no setting colour here",
        ),
        (
            '[[widget]]\nkind = "alarm"\nview = "reach"\nmessage = "{who} left"',
            "d.toml:4:11: error[W1304]: reach has no column who",
        ),
        (
            '[[widget]]\nkind = "graph"\nview = "link"\nfrom = "x"\nto = "y"\n'
            'colour = { view = "spot", key = "nme", value = "x" }',
            "d.toml:6:33: error[W1304]: spot has no column nme",
        ),
        (
            '[[widget]]\nkind = "table"\nview = "reach"\n'
            'action = { label = "x", relation = "reach", values = ["a", "b"] }',
            "d.toml:4:25: error[W1305]: reach is derived by rules: it takes no updates",
        ),
        (
            '[[widget]]\nkind = "plan"\nview = "spot"\nkey = "name"\nx = "x"\ny = "y"\nimage = "../secret.svg"',
            "d.toml:7:1: error[W1305]: there is no image ../secret.svg",
        ),
        ('[[widget]]\nkind = "number', "d.toml:2:15: error[W1301]: this is not TOML: Illegal character '\\n'"),
        ("[[widget]]\nkind = 3", "d.toml:2:8: error[W1302]: there is no kind of widget 3"),
    ],
)
def test_mistakes_are_reported_with_their_place(text: str, problem: str) -> None:
    assert _problems(text + "\n") == [problem]


def test_all_mistakes_are_reported_at_once() -> None:
    widget = '[[widget]]\nkind = "number"\nview = "a"\n'
    assert [each.split(":")[1] for each in _problems(widget * 3)] == ["3", "6", "9"]


def test_graphs_and_places_are_guessed_from_columns() -> None:
    shapes = shapes_of(PROGRAM)
    assert shapes.graphs == {"link": Graph(0, 1), "reach": Graph(0, 1)}
    assert shapes.places == {"spot": Placed(0, 1, 2)}


def test_graphs_and_places_are_what_the_program_says() -> None:
    program = load(
        ".decl edge(n:number, a:symbol, b:symbol) .input edge .output edge .decl at(lat:float, lon:float, who:symbol)"
        ' .input at .pragma "graph" "edge(b, a)" .pragma "place" "at(who, lon, lat)"'
    )
    shapes = shapes_of(program)
    assert shapes.graphs["edge"] == Graph(2, 1, is_declared=True)
    assert shapes.places["at"] == Placed(2, 1, 0, "globe", is_declared=True)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("edge", '.pragma "graph" is followed by "link(from, to)"'),
        ("ege(a, b)", "there is no relation ege"),
        ("edge(a, c)", "edge has no column c"),
    ],
)
def test_shapes_that_do_not_fit_are_reported(value: str, problem: str) -> None:
    program = load(f'.decl edge(a:symbol, b:symbol) .input edge .output edge .pragma "graph" "{value}"')
    with pytest.raises(ProgramError, match="W1306") as caught:
        shapes_of(program)
    assert problem in str(caught.value)
