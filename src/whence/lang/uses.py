"""What is said of relations that rules may have introduced: windows, lifetimes, directives and pragmas."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import repeat
from typing import Literal as OneOf

from whence.lang import tree
from whence.lang.declare import Declarations
from whence.lang.diagnostics import (
    BadDirective,
    BadWindow,
    Diagnostic,
    Redefined,
    UnknownAttribute,
)
from whence.lang.program import Relation, Transfer, Window
from whence.lang.tree import Span


def declare_uses(module: tree.Module, declarations: Declarations, found: list[Diagnostic]) -> None:
    """Windows, lifetimes, directives and pragmas, which name relations that rules may have introduced."""
    for statement in module.statements:
        if isinstance(statement, tree.Directive):
            _directive(statement, declarations, found)
        elif isinstance(statement, tree.Window | tree.Lifetime):
            _window(statement, declarations, found)
    _demand(module, declarations)


def _directive(statement: tree.Directive, declarations: Declarations, found: list[Diagnostic]) -> None:
    params = dict(statement.params)
    places = {key: span for (key, _), span in zip(statement.params, statement.param_spans, strict=False)}
    spans = statement.relation_spans or repeat(statement.span)
    for name, span in zip(statement.relations, spans, strict=False):
        relation = declarations.relations.get(name)
        if relation is None:
            declarations.report_unknown(span, name, found, f"declare it with .decl {name}(…)")
        elif statement.kind == "limitsize":
            limit = params.get("n", "")
            if not re.fullmatch("[0-9]{1,18}", limit):
                found.append(
                    BadDirective(
                        places.get("n", statement.span),
                        problem=".limitsize needs a number n",
                        advice=f"write .limitsize {name}(n=100)",
                    )
                )
            else:
                declarations.relations[name] = replace(relation, limit=int(limit))
        elif statement.kind in ("event", "slow"):
            _role(statement, relation, span, declarations, found)
        else:
            declarations.transfers.append(Transfer(statement.kind, name, params, span, places))


def _role(
    statement: tree.Directive, relation: Relation, span: Span, declarations: Declarations, found: list[Diagnostic]
) -> None:
    kind: OneOf["event", "slow"] = "event" if statement.kind == "event" else "slow"
    if statement.params:
        problem = f".{kind} takes no parameters"
        found.append(BadDirective(statement.span, problem=problem, advice=f"write .{kind} {relation.name}"))
    elif relation.role not in (None, kind):
        problem = f"{relation.name} is said to be both .event and .slow"
        found.append(
            BadDirective(span, problem=problem, advice="an event passes by, a slow relation stays: choose one")
        )
    declarations.relations[relation.name] = replace(relation, role=kind)


def _demand(module: tree.Module, declarations: Declarations) -> None:
    """Which relations are derived on demand: those that a pragma or a qualifier names."""
    asked, excluded = set(), set()
    for statement in module.statements:
        match statement:
            case tree.Pragma(key="magic-transform", value=str(value)):
                asked.update(value.split(","))
            case tree.Pragma(key="magic-transform-exclude", value=str(value)):
                excluded.update(value.split(","))
            case tree.RelationDecl(names=names, qualifiers=qualifiers):
                asked.update(names if "magic" in qualifiers else ())
                excluded.update(names if "no_magic" in qualifiers else ())
    for name, relation in declarations.relations.items():
        if asked & {name, "*"} and not excluded & {name, "*"}:
            declarations.relations[name] = replace(relation, on_demand=True)


def _window(statement: tree.Window | tree.Lifetime, declarations: Declarations, found: list[Diagnostic]) -> None:
    relation = declarations.relations.get(statement.relation)
    if relation is None:
        name = statement.relation
        declarations.report_unknown(statement.relation_span, name, found, f"declare it with .decl {name}(…)")
        return
    if isinstance(statement, tree.Lifetime):
        _lifetime(statement, relation, declarations, found)
        return
    columns = {each.name: index for index, each in enumerate(relation.fields)}
    problem = ""
    if (statement.time is None) == (statement.rows is None):
        problem = "a window is either time=… or rows=…"
    elif (statement.time is not None and statement.time <= 0) or (statement.rows is not None and statement.rows < 1):
        problem = "a window's size is positive"
    elif statement.by and statement.rows is None:
        problem = "only a window of rows is kept per value (by=…)"
    if problem:
        found.append(
            BadWindow(statement.span, problem=problem, advice="write time=30, or rows=4, or rows=4, by=column")
        )
        return
    for name in statement.by:
        if name not in columns:
            found.append(
                UnknownAttribute(
                    statement.span, relation=relation.name, name=name, attributes=", ".join(columns) or "none"
                )
            )
            return
    if relation.window is not None:
        found.append(Redefined(statement.span, what="the window of", name=relation.name))
        return
    window = Window(statement.time, statement.rows, tuple(columns[name] for name in statement.by))
    declarations.relations[relation.name] = replace(relation, window=window, window_span=statement.span)


def _lifetime(
    statement: tree.Lifetime, relation: Relation, declarations: Declarations, found: list[Diagnostic]
) -> None:
    if statement.duration <= 0:
        found.append(BadWindow(statement.span, problem="a lifetime is positive", advice="write .lifetime R 30"))
    elif relation.lifetime is not None:
        found.append(Redefined(statement.span, what="the lifetime of", name=relation.name))
    else:
        declarations.relations[relation.name] = replace(
            relation, lifetime=statement.duration, lifetime_span=statement.span
        )
