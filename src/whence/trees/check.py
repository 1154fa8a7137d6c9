"""A query as written to a checked one: names, types, annotations, and what sugar stands for.

`where p = q` compares labels. A side that is not a label stands for the labels of the children of its trees: the values in it.
Such a comparison becomes one `for` for each such side and an `if` inside, so that annotations on the way to a value count.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from whence.lang.diagnostics import Diagnostics, ProgramError
from whence.lang.source import Source
from whence.lang.tree import Span
from whence.semiring import Semiring
from whence.trees import core, syntax
from whence.trees.core import Core, Query, Type
from whence.trees.diagnostics import BadAnnotation, TooDeep, UnknownVariable, WrongType

# Variables of the rules that a query is compiled to.
_RESERVED = ("node", "parent", "child", "label")
_EMPTY = core.Union(())
Typed = tuple[Core, Type]


def load_query(
    text: str, semiring: Semiring[Any], *, name: str = "<query>", documents: Collection[str] | None = None
) -> Query:
    """The query in `text`, checked. Raises `ProgramError` with everything that is wrong with it.

    `documents` are the names of those at hand; if not given, every variable that nothing binds stands for one.

    >>> from whence.semiring import Natural
    >>> load_query("element r { $T//c }", Natural()).documents
    ('T',)
    """
    source = Source.of(text, name)
    checker = _Checker(source, semiring, documents)
    try:
        found, type_ = checker.check(syntax.parse(source), {})
    except RecursionError:
        advice = "bind parts of it by let"
        raise ProgramError(source, (TooDeep(Span(0, 1), limit="a few hundred", advice=advice),)) from None
    checker.found.raise_if_errors()
    return Query(_as_set((found, type_)), tuple(checker.given), source)


def load_query_file(path: Path, semiring: Semiring[Any], *, documents: Collection[str] | None = None) -> Query:
    return load_query(path.read_text(encoding="utf-8-sig"), semiring, name=str(path), documents=documents)


def _as_tree(typed: Typed) -> Core:
    found, type_ = typed
    return core.Element(found, _EMPTY) if type_ == Type.LABEL else found


def _as_set(typed: Typed) -> Core:
    return typed[0] if typed[1] == Type.SET else core.Single(_as_tree(typed))


def _as(type_: Type, typed: Typed) -> Core:
    if type_ == Type.SET:
        return _as_set(typed)
    return _as_tree(typed) if type_ == Type.TREE else typed[0]


class _Checker:
    def __init__(self, source: Source, semiring: Semiring[Any], documents: Collection[str] | None) -> None:
        self.found = Diagnostics(source)
        self.semiring = semiring
        self.documents = documents
        self.given: dict[str, None] = {}
        self.taken = set(_RESERVED)

    def check(self, written: syntax.Expression, scope: dict[str, tuple[str, Type]]) -> Typed:
        match written:
            case syntax.Label(text):
                return core.Literal(text), Type.LABEL
            case syntax.Variable():
                return self._variable(written, scope)
            case syntax.Sequence(parts):
                return core.Union(tuple(_as_set(self.check(each, scope)) for each in parts)), Type.SET
            case syntax.For(bindings, conditions, body):
                return self._for(list(bindings), conditions, body, scope), Type.SET
            case syntax.Let(((variable, value), *others), body, span):
                checked, type_ = self.check(value, scope)
                name = self._fresh(variable.name)
                rest = syntax.Let(tuple(others), body, span) if others else body
                inner, whole = self.check(rest, scope | {variable.name: (name, type_)})
                return core.Let(name, checked, inner), whole
            case syntax.If(condition, then, otherwise):
                left, right = self._label(condition.left, scope), self._label(condition.right, scope)
                branches = self.check(then, scope), self.check(otherwise, scope)
                whole = max(branches[0][1], branches[1][1])
                return core.If(left, right, *(_as(whole, each) for each in branches)), whole
            case syntax.Element(label, body):
                inner = _as_set(self.check(body, scope))
                return core.Element(self._label(label, scope), inner), Type.TREE
            case syntax.Name(tree, span):
                checked, type_ = self.check(tree, scope)
                if type_ == Type.SET:
                    advice = "a set has many: bind its trees by for $x in … and ask for name($x)"
                    self._wrong("this", type_, Type.TREE, span, advice)
                return core.NameOf(_as_tree((checked, type_))), Type.LABEL
            case syntax.Annot(value, body):
                inner = _as_set(self.check(body, scope))
                return core.Annot(self._annotation(value), inner), Type.SET
            case syntax.Step(source, axis, test):
                return core.Step(_as_set(self.check(source, scope)), axis, test), Type.SET
        raise AssertionError(written)

    def _variable(self, written: syntax.Variable, scope: dict[str, tuple[str, Type]]) -> Typed:
        if written.name in scope:
            name, type_ = scope[written.name]
            return core.Bound(name), type_
        if self.documents is not None and written.name not in self.documents:
            known = [*scope, *self.documents]
            near = get_close_matches(written.name, known, 1)
            names = ", ".join(f"${each}" for each in known) or "none"
            advice = f"did you mean ${near[0]}?" if near else f"there are {names}; documents are given as NAME=FILE"
            self.found.add(UnknownVariable(written.span, name=written.name, advice=advice))
        self.given[written.name] = None
        return core.Given(written.name), Type.SET

    def _fresh(self, name: str) -> str:
        fresh, number = name, 1
        while fresh in self.taken:
            number += 1
            fresh = f"{name}_{number}"
        self.taken.add(fresh)
        return fresh

    def _for(
        self,
        bindings: list[tuple[syntax.Variable, syntax.Expression]],
        conditions: tuple[syntax.Comparison, ...],
        body: syntax.Expression,
        scope: dict[str, tuple[str, Type]],
    ) -> Core:
        if bindings:
            (variable, source), *others = bindings
            checked = _as_set(self.check(source, scope))
            name = self._fresh(variable.name)
            inner = self._for(others, conditions, body, scope | {variable.name: (name, Type.TREE)})
            return core.For(name, checked, inner)
        if not conditions:
            return _as_set(self.check(body, scope))
        first, *rest = conditions
        sides: list[Core] = []
        loops: list[tuple[str, Core]] = []
        for side in (first.left, first.right):
            checked, type_ = self.check(side, scope)
            if type_ == Type.LABEL:
                sides.append(checked)
                continue
            name = self._fresh("value")
            loops.append((name, core.Step(_as_set((checked, type_)), "child", syntax.ANY)))
            sides.append(core.NameOf(core.Bound(name)))
        found: Core = core.If(sides[0], sides[1], self._for([], tuple(rest), body, scope), _EMPTY)
        for name, source_set in reversed(loops):
            found = core.For(name, source_set, found)
        return found

    def _label(self, written: syntax.Expression, scope: dict[str, tuple[str, Type]]) -> Core:
        checked, type_ = self.check(written, scope)
        if type_ != Type.LABEL:
            advice = "name($x) is the label of a tree; where compares the values in sets"
            self._wrong("this", type_, Type.LABEL, written.span, advice)
        return checked

    def _wrong(self, what: str, found: Type, wanted: Type, span: Span, advice: str) -> None:
        self.found.add(WrongType(span, what=what, found=found.text, wanted=wanted.text, advice=advice))

    def _annotation(self, written: syntax.Label) -> Any:
        try:
            return self.semiring.parse(written.text)
        except ValueError as error:
            self.found.add(BadAnnotation(written.span, problem=error, semiring=self.semiring.name))
            return self.semiring.one
