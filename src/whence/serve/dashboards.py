"""Dashboards: widgets, declared in a TOML file beside the program and bound to views by name.

A widget shows a view and computes nothing: what is to be counted, compared or warned of is a further view of the program. What
does not fit the program is reported with its place.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from whence.lang.diagnostics import Diagnostic, Diagnostics
from whence.lang.program import Relation
from whence.lang.source import Source
from whence.lang.tree import Span
from whence.serve.diagnostics import BadSetting, NotToml, UnknownColumn, UnknownView, UnknownWidget

# What a setting may be: a column of the widget's view, several of them, a column that may be marked with - for the other
# direction, or another view with columns of its own.
COLUMN, COLUMNS, SORT, TEXT, NUMBER, TEXTS, TABLE, FILE, MESSAGE = (
    "a column", "a list of columns", "a column, with - before it for the other direction", "a text", "a number",
    "a list of texts", "a table of texts", "a file beside this one", "a text with {columns} in it",
)  # fmt: skip
_ALL = {"kind": TEXT, "view": TEXT, "title": TEXT, "width": NUMBER, "height": NUMBER}
_VALUES: Mapping[str, Any] = {"view": TEXT, "key": COLUMN, "value": COLUMN}
_EDGES: Mapping[str, Any] = {"view": TEXT, "from": COLUMN, "to": COLUMN}
_ACTION: Mapping[str, Any] = {"label": TEXT, "relation": TEXT, "values": TEXTS}
KINDS: Mapping[str, Mapping[str, Any]] = {
    "number": {"value": COLUMN, "unit": TEXT},
    "table": {"columns": COLUMNS, "sort": SORT, "where": TEXTS, "limit": NUMBER, "action": _ACTION},
    "timeline": {"value": COLUMN, "by": COLUMN},
    "graph": {"from": COLUMN, "to": COLUMN, "label": _VALUES, "colour": _VALUES, "colours": TABLE, "path": _EDGES,
              "place": {"view": TEXT, "key": COLUMN, "x": COLUMN, "y": COLUMN}},
    "plan": {"key": COLUMN, "x": COLUMN, "y": COLUMN, "label": COLUMN, "colour": _VALUES, "colours": TABLE, "image": FILE,
             "extent": {"x": NUMBER, "y": NUMBER, "width": NUMBER, "height": NUMBER},
             "rooms": {"view": TEXT, "key": COLUMN, "x": COLUMN, "y": COLUMN, "width": COLUMN, "height": COLUMN},
             "room_colour": _VALUES, "edges": _EDGES, "path": _EDGES, "action": _ACTION},
    "alarm": {"message": MESSAGE, "level": TEXT, "action": _ACTION},
}  # fmt: skip
_NEEDED: Mapping[str, tuple[str, ...]] = {"graph": ("from", "to"), "plan": ("key", "x", "y")}
_BRACES = re.compile(r"\{([^{}]*)\}")
_IMAGES = (".svg", ".png", ".jpg", ".jpeg", ".webp")


@dataclass(frozen=True)
class Dashboard:
    """`widgets` are as written, checked against the program. `images` are files that they name."""

    title: str = ""
    widgets: tuple[Mapping[str, Any], ...] = ()
    images: Mapping[str, Path] = field(default_factory=dict)


def beside(program: Path) -> Path | None:
    """The dashboard of a program: `NAME.dashboard.toml` for `NAME.dl`, if it is there."""
    path = program.with_suffix(".dashboard.toml")
    return path if path.is_file() else None


def read_dashboard(path: Path, relations: Mapping[str, Relation], base: frozenset[str]) -> Dashboard:
    """Raises ProgramError with everything that is wrong, and OSError."""
    return parse_dashboard(path.read_text(encoding="utf-8"), str(path), path.parent, relations, base)


def parse_dashboard(
    text: str, name: str, folder: Path, relations: Mapping[str, Relation], base: frozenset[str]
) -> Dashboard:
    problems: list[Diagnostic] = []
    source = Source.of(text, name)
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problems.append(NotToml(_place_of(str(error), text), problem=str(error).partition(" (at ")[0]))
        found = {}
    Diagnostics(source, problems).raise_if_errors()
    check = _Check(text, folder, relations, base)
    dashboard = check.dashboard(found)
    Diagnostics(source, check.problems).raise_if_errors()
    return dashboard


def _place_of(message: str, text: str) -> Span:
    match = re.search(r"at line (\d+), column (\d+)", message)
    if match is None:
        return Span(max(0, len(text) - 1), len(text))
    starts = [0, *(at + 1 for at, char in enumerate(text) if char == "\n")]
    at = min(starts[int(match[1]) - 1] + int(match[2]) - 1, max(0, len(text) - 1))
    return Span(at, at + 1)


class _Check:
    def __init__(self, text: str, folder: Path, relations: Mapping[str, Relation], base: frozenset[str]) -> None:
        self.text = text
        self.folder = folder
        self.relations = relations
        self.base = base
        self.problems: list[Diagnostic] = []
        self.images: dict[str, Path] = {}

    def dashboard(self, found: Mapping[str, Any]) -> Dashboard:
        widgets = found.get("widget", [])
        for name in found.keys() - {"title", "widget"}:
            self._refuse(_Where(self.text, None), (name,), f"there is no setting {name} here", "title, [[widget]]")
        if not isinstance(widgets, list) or not all(isinstance(each, dict) for each in widgets):
            self._refuse(_Where(self.text, None), ("widget",), "widgets are written as [[widget]]", "use two brackets")
            return Dashboard()
        for at, widget in enumerate(widgets):
            self._widget(widget, _Where(self.text, at))
        return Dashboard(str(found.get("title", "")), tuple(widgets), self.images)

    def _widget(self, widget: Mapping[str, Any], where: _Where) -> None:
        kind = widget.get("kind")
        if not isinstance(kind, str) or kind not in KINDS:
            known = ", ".join(KINDS)
            if kind is None:
                self._refuse(where, (), "this widget has no kind", f"kind is one of {known}")
            else:
                self.problems.append(UnknownWidget(where.value("kind"), name=kind, known=known))
            return
        self._settings(widget, {**_ALL, **KINDS[kind]}, where, (), None)
        for name in ("view", *_NEEDED.get(kind, ())):
            if name not in widget:
                self._refuse(where, (), f"this {kind} has no {name}", f"{name} is {_described(KINDS[kind].get(name))}")

    def _settings(
        self,
        given: Mapping[str, Any],
        allowed: Mapping[str, Any],
        where: _Where,
        path: tuple[str, ...],
        view: str | None,
    ) -> None:
        own = given.get("view", view)
        relation = self.relations.get(own) if isinstance(own, str) else None
        if isinstance(given.get("view"), str) and relation is None:
            self._unknown_view(given["view"], where.value(*path, "view"))
        for name, value in given.items():
            wanted = allowed.get(name)
            if wanted is None:
                self._refuse(
                    where, (*path, name), f"there is no setting {name} here", f"there are {', '.join(allowed)}"
                )
            elif isinstance(wanted, Mapping):
                if not isinstance(value, dict):
                    keys = ", ".join(f"{each} = …" for each in wanted)
                    self._refuse(where, (*path, name), f"{name} is a table", f"write {name} = {{ {keys} }}")
                    continue
                for missing in wanted.keys() - value.keys():
                    self._refuse(
                        where, (*path, name), f"{name} has no {missing}", f"{missing} is {_described(wanted[missing])}"
                    )
                self._settings(value, wanted, where, (*path, name), own if wanted is not _ACTION else None)
                if wanted is _ACTION:
                    self._action(value, where, (*path, name))
            else:
                self._value(value, wanted, where, (*path, name), relation)

    def _value(self, value: Any, wanted: str, where: _Where, path: tuple[str, ...], relation: Relation | None) -> None:
        fits = {NUMBER: isinstance(value, int | float), TABLE: isinstance(value, dict), COLUMNS: isinstance(value, list),
                TEXTS: isinstance(value, list)}.get(wanted, isinstance(value, str))  # fmt: skip
        if not fits:
            self._refuse(where, path, f"{path[-1]} is not {_described(wanted)}", f"{path[-1]} is {_described(wanted)}")
            return
        if wanted == FILE:
            self._image(value, where, path)
        for column in _columns_in(value, wanted) if relation is not None else ():
            assert relation is not None
            known = [each.name for each in relation.fields]
            if column not in known:
                place = where.value(*path)
                self.problems.append(
                    UnknownColumn(place, view=relation.name, name=column, known=", ".join(known) or "no columns")
                )

    def _action(self, action: Mapping[str, Any], where: _Where, path: tuple[str, ...]) -> None:
        name = action.get("relation")
        if not isinstance(name, str):
            return
        if name not in self.relations:
            self._unknown_view(name, where.value(*path, "relation"))
            return
        if name not in self.base:
            advice = f"base relations are {', '.join(sorted(self.base))}"
            self._refuse(where, (*path, "relation"), f"{name} is derived by rules: it takes no updates", advice)
        arity = self.relations[name].arity
        if len(action.get("values", ())) != arity:
            self._refuse(where, (*path, "values"), f"{name} has {arity} columns", "give a value for each of them")

    def _image(self, value: str, where: _Where, path: tuple[str, ...]) -> None:
        found = self.folder / value
        if Path(value).name != value or found.suffix.lower() not in _IMAGES or not found.is_file():
            advice = f"it is one of {', '.join(_IMAGES)}, in the folder of the dashboard"
            self._refuse(where, path, f"there is no image {value}", advice)
            return
        self.images[value] = found

    def _unknown_view(self, name: str, span: Span) -> None:
        near = get_close_matches(name, self.relations, 1)
        advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(self.relations)}"
        self.problems.append(UnknownView(span, name=name, advice=advice))

    def _refuse(self, where: _Where, path: tuple[str, ...], problem: str, advice: str) -> None:
        self.problems.append(BadSetting(where.key(*path), problem=problem, advice=advice))


def _columns_in(value: Any, wanted: str) -> Iterator[str]:
    match wanted:
        case _ if wanted == COLUMN:
            yield value
        case _ if wanted == COLUMNS:
            yield from map(str, value)
        case _ if wanted == SORT:
            yield value.removeprefix("-")
        case _ if wanted == MESSAGE:
            yield from _BRACES.findall(value)


def _described(wanted: Any) -> str:
    return wanted if isinstance(wanted, str) else "a table"


class _Where:
    """Places in the text of one widget, the so-manieth; of the whole file if None."""

    def __init__(self, text: str, number: int | None) -> None:
        self.text = text
        headers = [match.start() for match in re.finditer(r"^[ \t]*\[\[\s*widget\s*\]\]", text, re.MULTILINE)]
        if number is None or number >= len(headers):
            self.start, self.end = 0, len(text)
        else:
            self.start = headers[number]
            self.end = headers[number + 1] if number + 1 < len(headers) else len(text)

    def key(self, *path: str) -> Span:
        found = self._find(path)
        return self._line(self.start) if found is None else Span(found.start("key"), found.end("key"))

    def value(self, *path: str) -> Span:
        found = self._find(path)
        return self._line(self.start) if found is None else Span(found.start("value"), found.end("value"))

    def _find(self, path: tuple[str, ...]) -> re.Match[str] | None:
        start, end = self.start, self.end
        found: re.Match[str] | None = None
        for at, name in enumerate(path):
            setting = re.compile(
                rf"(?:^|[{{,\[.\s])(?P<key>\"?{re.escape(name)}\"?)\s*(?:=\s*(?P<value>\{{[^}}]*\}}|\[[^\]]*\]|\"[^\"\n]*\"|[^\s,}}]+)|\](?P<rest>))",
                re.MULTILINE,
            )
            found = setting.search(self.text, start, end)
            if found is None:
                return None
            if at < len(path) - 1:
                start = found.end("key")
                end = found.end("value") if found["value"] else self.end
        return found if found is not None and found["value"] is not None else None

    def _line(self, start: int) -> Span:
        start += len(self.text[start:]) - len(self.text[start:].lstrip())
        end = self.text.find("\n", start)
        return Span(start, len(self.text) if end < 0 else end)
