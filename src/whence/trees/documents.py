"""Documents: XML and JSON files to K-sets of trees, and what is lost on the way.

- An element, or a member of a JSON object, is a tree with its name as the label. Items of a JSON array are trees with the
  array's name, those of an array inside an array or at the top are called `item`, and the top of a JSON file is called `root`.
- Text and other values are trees without children; an attribute is a child `@name` with its value inside.
- `annot="…"` annotates an element, `"annot": "…"` an object. `<_ label="…" annot="…">` is a tree with any label.

Entities are refused: what a document says must stand in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic
from xml.parsers import expat

from whence.lang.diagnostics import Diagnostic, ProgramError
from whence.lang.source import Source
from whence.lang.tree import Span
from whence.semiring import Semiring
from whence.semiring.algebra import V
from whence.trees.diagnostics import BadAnnotation, BadDocument, TooDeep
from whence.trees.syntax import ANY, PathStep, parse_path
from whence.trees.values import Forest, KSets, Tree

ANNOTATION, ESCAPE, ITEM, ROOT = "annot", "_", "item", "root"
MAX_DEPTH = 250  # trees are walked recursively
_TOO_DEEP = "split the document: queries walk trees level by level"


@dataclass(frozen=True)
class Document(Generic[V]):
    """`losses` say where the order of siblings, which trees do not have, may have meant something, and what became one."""

    forest: Forest[V]
    losses: tuple[str, ...]


@dataclass
class _Open:
    """A node that is being read."""

    label: str
    annotation: Any
    children: list[tuple[Tree[Any], Any]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    runs: int = 0  # of text
    elements: int = 0


class _Builder(Generic[V]):
    """Trees from what a reader meets, and what is lost."""

    def __init__(self, semiring: Semiring[V], source: Source, *, tokens: bool) -> None:
        self.sets = KSets(semiring)
        self.semiring = semiring
        self.source = source
        self.tokens = tokens
        self.open = [_Open("", semiring.one)]
        self.nodes = 0
        self.counts: dict[tuple[str, str], int] = {}

    def path(self) -> str:
        return "/".join(each.label for each in self.open) or "/"

    def lose(self, what: str) -> None:
        key = (self.path(), what)
        self.counts[key] = self.counts.get(key, 0) + 1

    def fail(self, diagnostic: Diagnostic) -> ProgramError:
        return ProgramError(self.source, (diagnostic,))

    def value(self, label: str, written: str | None, span: Span) -> V:
        """The annotation of a node: as written, or a variable of its own, or one."""
        self.nodes += 1
        if written is None:
            own = self.semiring.variable(f"{label}#{self.nodes}") if self.tokens else None
            return self.semiring.one if own is None else own
        try:
            return self.semiring.parse(written)
        except ValueError as error:
            raise self.fail(BadAnnotation(span, problem=error, semiring=self.semiring.name)) from None

    def start(self, label: str, written: str | None, span: Span) -> None:
        if len(self.open) > MAX_DEPTH:
            raise self.fail(TooDeep(span, limit=MAX_DEPTH, advice=_TOO_DEEP))
        self.end_text()
        self.open[-1].elements += 1
        self.open.append(_Open(label, self.value(label, written, span)))

    def leaf(self, label: str) -> None:
        value = self.value(label, None, Span(0, 0))
        self.open[-1].children.append((self.sets.leaf(label), value))

    def add_text(self, text: str) -> None:
        self.open[-1].text.append(text)

    def end_text(self) -> None:
        text = "".join(self.open[-1].text).strip()
        self.open[-1].text.clear()
        if text:
            self.open[-1].runs += 1
            self.leaf(text)

    def end(self) -> None:
        self.end_text()
        node = self.open[-1]
        if node.runs and node.elements:
            self.lose("text and elements are mixed: their order is lost")
        children = self.members(node)
        self.open.pop()
        self.open[-1].children.append((Tree(node.label, children), node.annotation))

    def members(self, node: _Open) -> Forest[V]:
        found = self.sets.of(node.children)
        if len({child for child, _ in node.children}) < len(node.children):
            self.lose("equal siblings have become one, with their annotations added up")
        return found

    def document(self) -> Document[V]:
        self.open[0].label = ""
        forest = self.members(self.open[0])
        losses = [
            f"{path}: {what}{f' ({count} times)' if count > 1 else ''}" for (path, what), count in self.counts.items()
        ]
        return Document(forest, tuple(losses))


def read_document(path: Path, semiring: Semiring[V], *, tokens: bool = False) -> Document[V]:
    """The document in a file: JSON if its name ends in `.json`, XML otherwise. Raises `ProgramError` at what is wrong with it.

    With `tokens`, a node without an annotation stands for itself, in semirings that have variables.
    """
    text = path.read_text(encoding="utf-8-sig")
    return parse_document(text, semiring, name=str(path), form=path.suffix[1:].lower(), tokens=tokens)


def parse_document(
    text: str, semiring: Semiring[V], *, name: str = "<document>", form: str = "xml", tokens: bool = False
) -> Document[V]:
    """
    >>> from whence.semiring import Natural
    >>> parse_document('<a><b annot="2">x</b> y</a>', Natural())
    Document(forest={a[b[x^1]^2, y^1]^1}, losses=('/a: text and elements are mixed: their order is lost',))
    """
    builder = _Builder(semiring, Source.of(text, name), tokens=tokens)
    if form == "json":
        _read_json(text, builder)
    else:
        _read_xml(text, builder)
    return builder.document()


def _read_xml(text: str, builder: _Builder[Any]) -> None:
    parser = expat.ParserCreate(namespace_separator="}")
    starts = builder.source.segments[0].file.line_starts

    def here() -> Span:
        at = min(starts[parser.CurrentLineNumber - 1] + parser.CurrentColumnNumber, max(len(text) - 1, 0))
        close = text.find(">", at)
        return Span(at, close + 1 if close >= 0 else at + 1)

    def refuse(*_: object) -> None:
        advice = "write out what it stands for: declarations of entities are not followed"
        raise builder.fail(BadDocument(here(), problem="entities are refused", advice=advice))

    def start(tag: str, attributes: dict[str, str]) -> None:
        label = "{" + tag if "}" in tag else tag
        written = attributes.pop(ANNOTATION, None)
        if tag == ESCAPE and "label" in attributes:
            label = attributes.pop("label")
        builder.start(label, written, here())
        for name, value in attributes.items():
            builder.start(f"@{name}", None, here())
            builder.leaf(value)
            builder.end()
        builder.open[-1].elements = 0

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: builder.end()
    parser.CharacterDataHandler = builder.add_text
    parser.EntityDeclHandler = parser.SkippedEntityHandler = refuse
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        problem = expat.ErrorString(error.code)
        raise builder.fail(BadDocument(here(), problem=f"not XML: {problem}", advice="mend the document")) from None


def _read_json(text: str, builder: _Builder[Any]) -> None:
    class Members(list[tuple[str, Any]]):
        """An object, whose names need not be distinct."""

    def put(label: str, value: Any) -> None:
        if isinstance(value, list) and not isinstance(value, Members):
            if len(value) > 1:
                builder.lose(f"the order of the items of {label} is lost")
            for each in value:
                put_one(label, each)
        else:
            put_one(label, value)

    def put_one(label: str, value: Any) -> None:
        members = value if isinstance(value, Members) else []
        written = next((each for name, each in members if name == ANNOTATION), None)
        if written is not None and not isinstance(written, str):
            advice = f'write "{ANNOTATION}": "…"'
            raise builder.fail(BadDocument(place(written), problem=f"{ANNOTATION} is not a text", advice=advice))
        builder.start(label, written, place(written))
        if isinstance(value, Members):
            for name, each in value:
                if name != ANNOTATION:
                    put(name, each)
        elif isinstance(value, list):
            put(ITEM, value)
        elif value is not None:
            builder.leaf(str(value).lower() if isinstance(value, bool) else str(value))
        builder.end()

    def place(written: object) -> Span:
        """Where an annotation stands: its first occurrence, since readers of JSON do not tell."""
        found = re.search(rf'"{ANNOTATION}"\s*:\s*{re.escape(json.dumps(written, ensure_ascii=False))}', text)
        return Span(*found.span()) if found and written is not None else Span(0, 1)

    try:
        top = json.loads(text, object_pairs_hook=Members, parse_int=str, parse_float=str, parse_constant=str)
        put_one(ROOT, top)
    except json.JSONDecodeError as error:
        problem = f"not JSON: {error.msg}"
        span = Span(error.pos, error.pos + 1)
        raise builder.fail(BadDocument(span, problem=problem, advice="mend the document")) from None
    except RecursionError:
        raise builder.fail(TooDeep(Span(0, 1), limit=MAX_DEPTH, advice=_TOO_DEEP)) from None


def read_policy(path: Path, semiring: Semiring[V]) -> list[tuple[tuple[PathStep, ...], V]]:
    """Lines `PATH VALUE`: what annotates the nodes that a path leads to. `#` begins a comment."""
    text = path.read_text(encoding="utf-8-sig")
    source = Source.of(text, str(path))
    found: list[tuple[tuple[PathStep, ...], V]] = []
    problems: list[Diagnostic] = []
    for line in re.finditer(
        r"^[^\S\n]*(?=/)(.*?)[^\S\n]+(\S+)[^\S\n]*(?:#.*)?$|^[^\S\n]*([^#\s].*)$", text, re.MULTILINE
    ):
        if line[1] is None:
            advice = "a line is a path and an annotation, as in //name secret"
            problems.append(
                BadDocument(Span(*line.span(3)), problem="this is not a path with an annotation", advice=advice)
            )
            continue
        try:
            found.append((parse_path(source, Span(*line.span(1))), semiring.parse(line[2])))
        except ProgramError as error:
            problems += error.diagnostics
        except ValueError as error:
            problems.append(BadAnnotation(Span(*line.span(2)), problem=error, semiring=semiring.name))
    if problems:
        raise ProgramError(source, tuple(problems))
    return found


def annotate(forest: Forest[V], path: tuple[PathStep, ...], value: V, semiring: Semiring[V]) -> Forest[V]:
    """The forest with the annotations of the nodes that the path leads to multiplied by a value."""
    return annotate_by(forest, path, lambda before: semiring.times(before, value), semiring)


def annotate_by(
    forest: Forest[V], path: tuple[PathStep, ...], change: Callable[[V], V], semiring: Semiring[V]
) -> Forest[V]:
    sets = KSets(semiring)

    def walk(members: Forest[V], waiting: frozenset[int]) -> Forest[V]:
        """`waiting` are the steps that a node here may take."""
        found = []
        for tree, value in members.items():
            taken = {at for at in waiting if path[at].test in (ANY, tree.label)}
            after = {at + 1 for at in taken if at + 1 < len(path)} | {at for at in waiting if path[at].deep}
            changed = change(value) if len(path) - 1 in taken else value
            found.append((Tree(tree.label, walk(tree.children, frozenset(after))), changed))
        return sets.of(found)

    return walk(forest, frozenset((0,)))
