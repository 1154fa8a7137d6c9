"""Expanding components: `.init g = Graph<N>` becomes Graph's statements with every name it declares prefixed by `g.`.

A name is looked up in the instance itself, then in the instances around it, then globally. What an argument names is looked up
where the argument is written: `Closure<edge>` closes the program's `edge` even if Closure has a relation of that name. A derived
component holds the statements of its bases before its own; `.override r` drops the bases' rules for r.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TypeVar

from whence.lang import tree
from whence.lang.describe import counted
from whence.lang.diagnostics import BadComponent, Diagnostic, Redefined, UnknownComponent
from whence.lang.rewrite import rebuild

MAX_DEPTH = 50
OUTSIDE = "^"  # before a name that came in as an argument: it is looked up outside of the instance, which takes one such mark off
# How many statements all instances together may have, those that instances around them copy counted again.
MAX_COPIES = 200_000
N = TypeVar("N", bound=tree.Statement | tree.TypeRef)


def expand_components(module: tree.Module, lost: set[str], found: list[Diagnostic]) -> tree.Module:
    """The module without `.comp`, `.init` and `.override`; `lost` takes the names of instances that have no contents."""
    if not any(isinstance(statement, tree.Component | tree.Init | tree.Override) for statement in module.statements):
        return module
    return tree.Module(tuple(_Expander(lost, found).expand(module.statements, "", {}, 0)))


@dataclass(frozen=True, slots=True)
class _Template:
    """A component and the components that could be named where it was declared."""

    component: tree.Component
    scope: Mapping[str, _Template]


@dataclass(slots=True)
class _Expander:
    lost: set[str]
    found: list[Diagnostic]
    endless: bool = False
    copies: int = 0

    def expand(
        self, statements: Iterable[tree.Statement], prefix: str, outer: Mapping[str, _Template], depth: int
    ) -> list[tree.Statement]:
        """Statements with the instances among them replaced by their contents, names not yet prefixed."""
        statements = list(statements)
        scope = dict(outer)
        for statement in statements:
            if isinstance(statement, tree.Component):
                if statement.name in scope and scope[statement.name].component in statements:
                    self.found.append(_redefined(statement, scope[statement.name].component, "component"))
                scope[statement.name] = _Template(statement, scope)
        result: list[tree.Statement] = []
        instances: dict[str, tree.Init] = {}
        for statement in statements:
            if isinstance(statement, tree.Init):
                if statement.name in instances:
                    self.found.append(_redefined(statement, instances[statement.name], "instance"))
                    continue
                instances[statement.name] = statement
                result += self._instance(statement, prefix, scope, depth)
            elif isinstance(statement, tree.Override):
                if depth == 0:
                    self.found.append(
                        BadComponent(
                            statement.span,
                            problem=".override outside a component",
                            advice="it replaces the rules that a component inherits",
                        )
                    )
            elif not isinstance(statement, tree.Component):
                result.append(statement)
        return result

    def _instance(
        self, init: tree.Init, prefix: str, scope: Mapping[str, _Template], depth: int
    ) -> list[tree.Statement]:
        if depth >= MAX_DEPTH or self.endless:
            if not self.endless:
                problem = "components instantiate each other without end"
                self.found.append(BadComponent(init.span, problem=problem, advice="break the cycle"))
            # Said once: with two instances in a component there would be 2^50 of them.
            self.endless = True
            self.lost.add(init.name)
            return []
        problems = len(self.found)
        contents, inner = self._contents(_mark_arguments(init.component), scope, frozenset())
        statements = self.expand(contents, f"{prefix}{init.name}.", inner, depth + 1)
        self._count(len(statements), init)
        if len(self.found) > problems:
            self.lost.add(init.name)
        if self.copies > MAX_COPIES:
            return []
        names = _Names.of(statements)
        return [_prefix_names(statement, names, f"{init.name}.") for statement in statements]

    def _count(self, copied: int, init: tree.Init | tree.TypeRef) -> None:
        """Components that hold or inherit others twice can ask for more statements than there is memory."""
        self.copies += copied + 1
        if self.copies > MAX_COPIES and not self.endless:
            problem = f"the program's components make more than {MAX_COPIES:,} statements"
            advice = "generate the program's text with a script instead"
            self.found.append(BadComponent(init.span, problem=problem, advice=advice))
            self.endless = True

    def _contents(
        self, ref: tree.TypeRef, scope: Mapping[str, _Template], active: frozenset[str]
    ) -> tuple[list[tree.Statement], Mapping[str, _Template]]:
        """A component's statements, inherited ones first, with its parameters replaced."""
        name = ref.name.lstrip(OUTSIDE)
        template = scope.get(name)
        if template is None:
            close = get_close_matches(name, scope, 1)
            advice = f"did you mean {close[0]}?" if close else "declare it with .comp"
            self.found.append(UnknownComponent(ref.span, name=name, advice=advice))
            return [], scope
        component = template.component
        self._count(len(component.statements), ref)
        if self.endless:
            return [], scope
        if name in active or len(active) > MAX_DEPTH:
            problem = (
                f"component {name} inherits from itself"
                if name in active
                else f"components inherit from each other more than {MAX_DEPTH} levels deep"
            )
            self.found.append(BadComponent(component.span, problem=problem, advice="break the chain"))
            return [], scope
        if len(ref.args) != len(component.params):
            self.found.append(
                BadComponent(
                    ref.span,
                    problem=f"component {name} takes {counted(len(component.params), 'parameter')}, not {len(ref.args)}",
                    advice=f"it is declared as {component.name}<{', '.join(component.params)}>"
                    if component.params
                    else "write no < >",
                )
            )
            return [], scope
        values = dict(zip(component.params, ref.args, strict=True))
        for statement in component.statements:
            if isinstance(statement, tree.TypeDecl) and statement.name in values:  # the instance declares it
                values[statement.name] = _without_marks(values[statement.name])
        own = [_substitute(statement, values) for statement in component.statements]
        # Arguments that name components are looked up where they were written.
        inner: dict[str, _Template] = dict(template.scope) | {
            arg: scope[arg] for arg in (each.name.lstrip(OUTSIDE) for each in ref.args) if arg in scope
        }
        inherited: list[tree.Statement] = []
        for base in component.bases:
            statements, base_scope = self._contents(_substitute(base, values), inner, active | {name})
            inherited += statements
            inner = {**base_scope, **inner}
        return self._override(inherited, own) + own, inner

    def _override(self, inherited: list[tree.Statement], own: list[tree.Statement]) -> list[tree.Statement]:
        """The inherited statements without the rules of relations that the derived component overrides."""
        replaced = {statement.relation: statement for statement in own if isinstance(statement, tree.Override)}
        if not replaced:
            return inherited
        declarations = {
            name: statement
            for statement in inherited
            if isinstance(statement, tree.RelationDecl)
            for name in statement.names
        }
        for name, statement in replaced.items():
            if name not in declarations:
                problem, advice = f"{name} is not inherited", "override a relation that a base component declares"
            elif "overridable" not in declarations[name].qualifiers:
                problem, advice = (
                    f"{name} is not overridable",
                    f"declare it .decl {name}(…) overridable in the base component",
                )
            else:
                continue
            self.found.append(BadComponent(statement.span, problem=problem, advice=advice))
        kept: list[tree.Statement] = []
        for each in inherited:
            if isinstance(each, tree.Rule):
                heads = tuple(head for head in each.heads if head.relation not in replaced)
                if heads:
                    kept.append(each if len(heads) == len(each.heads) else replace(each, heads=heads))
            else:
                kept.append(each)
        return kept


def _redefined(statement: tree.Component | tree.Init, first: tree.Component | tree.Init, what: str) -> Redefined:
    return Redefined(statement.span, what=what, name=statement.name, related=[(first.span, "it is defined here")])


def _mark_arguments(ref: tree.TypeRef) -> tree.TypeRef:
    def mark(part: object) -> object:
        return replace(part, name=OUTSIDE + part.name) if isinstance(part, tree.TypeRef) else part

    return replace(ref, args=tuple(rebuild(arg, mark) for arg in ref.args))


def _without_marks(ref: tree.TypeRef) -> tree.TypeRef:
    return replace(ref, name=ref.name.lstrip(OUTSIDE))


def _substitute(node: N, values: Mapping[str, tree.TypeRef]) -> N:
    """The node with component parameters replaced by their values, in types and in names of relations (`T.edge`)."""
    if not values:
        return node
    names = {param: value.name for param, value in values.items()}

    def replace_first(name: str) -> str:
        first, dot, rest = name.partition(".")
        return names.get(first, first) + dot + rest

    def change(part: object) -> object:
        if isinstance(part, tree.TypeRef) and part.name in values and not part.args:
            return replace(values[part.name], span=part.span)
        if isinstance(part, tree.TypeDecl) and part.name in names:
            return replace(part, name=names[part.name])
        if isinstance(part, tree.Atom) and part.relation in names:
            # A relation that does not fit is a mistake of the argument, whatever the component does with it.
            return replace(part, relation=names[part.relation], span=values[part.relation].span)
        return _rename_uses(part, replace_first, replace_first)

    return rebuild(node, change)


@dataclass(frozen=True, slots=True)
class _Names:
    """What an instance declares."""

    relations: frozenset[str]
    types: frozenset[str]
    branches: frozenset[str]

    @classmethod
    def of(cls, statements: Iterable[tree.Statement]) -> _Names:
        declarations = [each for each in statements if isinstance(each, tree.RelationDecl | tree.TypeDecl)]
        return cls(
            frozenset(name for each in declarations if isinstance(each, tree.RelationDecl) for name in each.names),
            frozenset(each.name for each in declarations if isinstance(each, tree.TypeDecl)),
            frozenset(
                part.name for each in declarations for part in tree.walk(each) if isinstance(part, tree.BranchDecl)
            ),
        )


def _prefix_names(statement: tree.Statement, names: _Names, prefix: str) -> tree.Statement:
    """The statement with each name that the instance declares prefixed, and arguments one step closer to where they are from."""

    def relation_name(name: str) -> str:
        return prefix + name if name in names.relations else name.removeprefix(OUTSIDE)

    def type_name(name: str) -> str:
        return prefix + name if name in names.types else name.removeprefix(OUTSIDE)

    def change(part: object) -> object:
        match part:
            case tree.RelationDecl(names=declared):
                return replace(part, names=tuple(relation_name(name) for name in declared))
            case tree.TypeDecl(name=name):
                return replace(part, name=type_name(name))
            case tree.BranchDecl(name=name) | tree.Branch(name=name) if name in names.branches:
                return replace(part, name=prefix + name)
            case _:
                return _rename_uses(part, relation_name, type_name)

    return rebuild(statement, change)


def _rename_uses(part: object, relation_name: Callable[[str], str], type_name: Callable[[str], str]) -> object:
    match part:
        case tree.TypeRef(name=name):
            new = type_name(name)
            return part if new == name else replace(part, name=new)
        case tree.Atom(relation=name) | tree.Window(relation=name) | tree.Lifetime(relation=name):
            new = relation_name(name)
            return part if new == name else replace(part, relation=new)
        case tree.Directive(relations=names):
            return replace(part, relations=tuple(relation_name(name) for name in names))
        case _:
            return part
