"""A query to rules over shredded trees.

A document is a relation `edge(parent, node, label)`: a row for each node, which has the node's annotation; the roots of document
d have the parent "d". Node ids are symbols. A K-set that depends on variables is a relation of these variables and a node, in
which the annotation of a row is that of the node times those of the variables' bindings: `for` is a join, and `,` is two rules.

A tree that a query makes is a node whose id is written from its variables, `e1(d.3,d.7)`; its children are in `edge_1`. The
annotations of children do not include those of the variables around the element, so its body starts anew, from a relation that
says for which bindings there is such an element at all. Relations of this kind are *guards*: their rows count as one, however
they were derived. So are the labels of nodes, and what can be reached from the answer. Guards may hold too much: what is
derived from such rows is part of no answer. They are evaluated first, as sets, and are base relations to what is annotated.

No value is compared but labels. Nodes with equal trees therefore stay apart until the answer is decoded; since everything is
linear in annotations, adding up then is as good as adding up at once.

Which constructors a node can come from is known (its *origins*), so that steps read the edges of these alone, and only
descendant steps are recursive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

from whence.lang.load import load
from whence.lang.program import Program
from whence.trees import core
from whence.trees.core import Core, Query, free_in
from whence.trees.syntax import ANY

EDGE, SCALAR, ONCE = "edge", "scalar", "once"
MEMBER, INSIDE = "member", "inside"
_SOURCE = 0  # the origin of nodes of documents; those that elements make are numbered from 1
Origins = frozenset[int]
_NOTHING: Origins = frozenset()
_EMPTY = core.Union(())


@dataclass(frozen=True)
class Compiled:
    """`rules` are the relation of each head and its text. `scalars` are the values of `annot`, by number.

    The answer's members are in `member(node, label)`, what is below them in `inside(parent, node, label)`.
    """

    query: Query
    relations: dict[str, str]
    rules: tuple[tuple[str, str], ...]
    guards: frozenset[str]
    scalars: tuple[Any, ...]

    @cached_property
    def text(self) -> str:
        """The whole program: evaluated as it is, it gives the nodes of the answer without annotations."""
        given = [name for name in (EDGE, SCALAR, ONCE) if name in self.relations]
        # Labels may hold anything, line ends included.
        lines = [f"{self.relations[name]}\n.input {name}(rfc4180=true)" for name in given]
        for name, declaration in self.relations.items():
            if name not in given:
                note = "  // a guard: its rows count as one" if name in self.guards else ""
                lines += ["", declaration + note, *(text for head, text in self.rules if head == name)]
        return "\n".join([*lines, f".output {MEMBER}, {INSIDE}", ""])

    @cached_property
    def program(self) -> Program:
        return load(self.text, name="<shredded>")

    @cached_property
    def annotated(self) -> Program:
        """The program to be annotated: guards are base relations."""
        kept = tuple((head, text) for head, text in self.rules if head not in self.guards)
        return load(replace(self, rules=kept).text, name="<shredded>")


@dataclass(frozen=True)
class _Context:
    """Where an expression stands: literals that bind the variables in scope."""

    literals: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()

    def and_(self, *literals: str) -> _Context:
        return replace(self, literals=(*self.literals, *literals))


@dataclass(frozen=True)
class _Conjunction:
    literals: tuple[str, ...]
    origins: Origins

    def and_(self, literal: str) -> _Conjunction:
        return replace(self, literals=(*self.literals, literal))


def compile_query(query: Query, *, depth: int | None = None) -> Compiled:
    """With `depth`, that of the documents, descendant steps are written out level by level and nothing is recursive."""
    return _Compiler(depth).run(query)


def quote(text: str) -> str:
    for char, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r")):
        text = text.replace(char, escape)
    return f'"{text}"'


@dataclass
class _Compiler:
    depth: int | None
    relations: dict[str, str] = field(default_factory=dict)
    rules: list[tuple[str, str]] = field(default_factory=list)
    guards: set[str] = field(default_factory=set)
    scalars: list[Any] = field(default_factory=list)
    values: dict[str, Core] = field(default_factory=dict)  # of let
    origins: dict[str, Origins] = field(default_factory=dict)  # of the variables of for
    inside: dict[int, Origins] = field(default_factory=dict)  # of the children of each element
    sources: dict[tuple[Any, ...], _Conjunction] = field(default_factory=dict)  # of for, those that have a relation
    made: int = 0
    names: int = 0

    def run(self, query: Query) -> Compiled:
        self.declare(EDGE, ("parent", "node", "label"))
        label = self.declare(self.label_relation(_SOURCE), ("node", "label"), guard=True)
        self.rule(label, ("node", "label"), [f"{EDGE}(_, node, label)"])
        result = self.declare("answer", ("node",))
        origins = self.into(result, query.core, _Context(), ())
        self.declare(MEMBER, ("node", "label"))
        self.declare(INSIDE, ("parent", "node", "label"))
        for origin in sorted(origins):
            self.rule(MEMBER, ("node", "label"), [f"{result}(node)", f"{self.label_relation(origin)}(node, label)"])
        used = self.reached(result, self.below(origins))
        for origin in self._with_children(self.below(origins)):
            edges = self.edge_relation(origin)
            self.rule(INSIDE, ("parent", "node", "label"), [f"{used}(parent)", f"{edges}(parent, node, label)"])
        return Compiled(query, self.relations, tuple(self.rules), frozenset(self.guards), tuple(self.scalars))

    def reached(self, result: str, origins: Origins) -> str:
        """The relation of the nodes that the answer leads to."""
        used = self.declare("reached", ("node",), guard=True)
        self.rule(used, ("node",), [f"{result}(node)"])
        if self.depth is None:
            self._children(used, (), f"{used}(node)", origins, ANY)
            return used
        level = result
        for _ in range(self.depth + self.made):
            deeper = self.declare("reached", ("node",), guard=True)
            self._children(deeper, (), f"{level}(node)", origins, ANY)
            self.rule(used, ("node",), [f"{deeper}(node)"])
            level = deeper
        return used

    # -- relations and rules

    def declare(self, name: str, columns: Iterable[str], *, guard: bool = False) -> str:
        unique, number = name, 1
        while unique in self.relations:
            number += 1
            unique = f"{name}_{number}"
        self.relations[unique] = f".decl {unique}({', '.join(f'{each}: symbol' for each in columns)})"
        if guard:
            self.guards.add(unique)
        return unique

    def rule(self, head: str, args: Iterable[str], body: Sequence[str]) -> None:
        self.rules.append((head, f"{head}({', '.join(args)}) :- {', '.join(body) or self.number(ONCE, 0)}."))

    def fresh(self) -> str:
        self.names += 1
        return f"node_{self.names}"

    def scalar(self, value: Any) -> str:
        if value not in self.scalars:
            self.scalars.append(value)
        return self.number(SCALAR, self.scalars.index(value))

    def number(self, relation: str, number: int) -> str:
        """A row of the values of `annot`, or the one that a rule has where nothing else is asked for: a rule without a body
        would be a fact, and stand for itself in some semirings."""
        self.relations[relation] = f".decl {relation}(number: number)"
        return f"{relation}({number})"

    def edge_relation(self, origin: int) -> str:
        return EDGE if origin == _SOURCE else f"{EDGE}_{origin}"

    def label_relation(self, origin: int) -> str:
        return "label" if origin == _SOURCE else f"label_{origin}"

    def children(self, origins: Origins) -> Origins:
        return frozenset(inner for each in origins for inner in ({each} if each == _SOURCE else self.inside[each]))

    def _with_children(self, origins: Origins) -> list[int]:
        return [each for each in sorted(origins) if each == _SOURCE or self.inside[each]]

    def below(self, origins: Origins) -> Origins:
        while (more := origins | self.children(origins)) != origins:
            origins = more
        return origins

    def live(self, expression: Core, context: _Context) -> tuple[str, ...]:
        used = set(free_in(expression, self.values))
        return tuple(each for each in context.variables if each in used)

    # -- sets: rules that put what an expression gives into a relation of `keep` and a node

    def into(self, target: str, expression: Core, context: _Context, keep: tuple[str, ...]) -> Origins:
        simple = self.conjunction(expression, "node")
        if simple is not None:
            self.rule(target, (*keep, "node"), [*context.literals, *simple.literals])
            return simple.origins
        match expression:
            case core.Union(parts):
                if not parts:
                    return _NOTHING
                context = self.settled(context, {*keep, *self.live(expression, context)})
                return _NOTHING.union(*(self.into(target, each, context, keep) for each in parts))
            case core.Bound(name):
                return self.into(target, self.values[name], context, keep)
            case core.Let(variable, value, body):
                self.values[variable] = value
                return self.into(target, body, context, keep)
            case core.Annot(value, body):
                return self.into(target, body, context.and_(self.scalar(value)), keep)
            case core.For(variable, source, body):
                return self.into(target, body, self.bind(variable, source, body, context, keep), keep)
            case core.If(left, right, then, otherwise):
                ways = [way for way in self.branches(left, right, then, otherwise) if way[0] != _EMPTY]
                if len(ways) > 1:
                    context = self.settled(context, {*keep, *self.live(expression, context)})
                found = _NOTHING
                for branch, literals in ways:
                    found |= self.into(target, branch, context.and_(*literals), keep)
                return found
            case core.Single(tree):
                found = _NOTHING
                for each_tree, literals in self.trees(tree):
                    found |= self.put(target, each_tree, context.and_(*literals), keep)
                return found
            case core.Step():
                return self.step(target, expression, context, keep)
        raise AssertionError(expression)

    def conjunction(self, expression: Core, node: str) -> _Conjunction | None:
        """Literals that say what an expression gives, with a variable for the node, if it needs no more than one rule."""
        match expression:
            case core.Union((only,)):
                return self.conjunction(only, node)
            case core.Bound(name) if name in self.values:
                return self.conjunction(self.values[name], node)
            case core.Let(variable, value, body):
                self.values[variable] = value
                return self.conjunction(body, node)
            case core.Given(name):
                return _Conjunction((f"{EDGE}({quote(name)}, {node}, _)",), frozenset((_SOURCE,)))
            case core.Single(core.Bound(name)) if name in self.origins:
                return _Conjunction((f"{node} = {name}",), self.origins[name])
            case core.Annot(value, body):
                inner = self.conjunction(body, node)
                return inner and inner.and_(self.scalar(value))
            case core.For(variable, source, body):
                bound = self.source(variable, source)
                if bound is None:
                    return None
                self.origins[variable] = bound.origins
                inner = self.conjunction(body, node)
                return inner and replace(inner, literals=(*bound.literals, *inner.literals))
            case core.If(left, right, then, core.Union(())):
                ways = [literals for branch, literals in self.branches(left, right, then, _EMPTY) if branch is then]
                inner = self.conjunction(then, node) if len(ways) == 1 else None
                return inner and replace(inner, literals=(*ways[0], *inner.literals))
            case core.Step(core.Single(core.Bound(name))) if name in self.origins:
                return self._one_step(_Conjunction((), self.origins[name]), name, expression, node)
            case core.Step(source, axis) if axis != "descendant":
                before = self.fresh()
                inner = self.conjunction(source, before)
                return inner and self._one_step(inner, before, expression, node)
        return None

    def _one_step(self, found: _Conjunction, before: str, step: core.Step, node: str) -> _Conjunction | None:
        if step.axis == "descendant" or len(found.origins) != 1:
            return None
        (origin,) = found.origins
        label = "_" if step.test == ANY else quote(step.test)
        if step.axis == "child":
            if origin not in self._with_children(found.origins):
                return None
            edges = f"{self.edge_relation(origin)}({before}, {node}, {label})"
            return _Conjunction((*found.literals, edges), self.children(found.origins))
        passes = () if step.test == ANY else (f"{self.label_relation(origin)}({node}, {label})",)
        return _Conjunction((*found.literals, f"{node} = {before}", *passes), found.origins)

    def bind(self, variable: str, source: Core, body: Core, context: _Context, keep: tuple[str, ...]) -> _Context:
        """The context of the body of `for`: joined with the source, or with a relation of it."""
        simple = self.source(variable, source)
        if simple is not None:
            self.origins[variable] = simple.origins
            return _Context((*context.literals, *simple.literals), (*context.variables, variable))
        needed = {*keep, *self.live(body, context)}
        around = tuple(each for each in context.variables if each in needed)
        each = self.declare(f"each_{variable}", (*around, variable))
        self.origins[variable] = self.into(each, source, context, around)
        bound = (*around, variable)
        return _Context((f"{each}({', '.join(bound)})",), bound)

    def source(self, variable: str, source: Core) -> _Conjunction | None:
        """What binds a variable of `for`, if one rule is enough.

        A source that depends on nothing gets a relation, and so does a path from one variable that asks for labels. In a rule
        with all their edges, the planner would begin in several places, since a label is a bound column, and multiply them out.
        """
        around = tuple(set(free_in(source, self.values)))
        # What let has named is compiled wherever it is used, each time with elements of its own.
        key = (variable, *(self.origins[each] for each in around))
        if key in self.sources:
            return self.sources[key]
        if not around:
            each = self.declare(f"each_{variable}", (variable,))
            self.sources[key] = _Conjunction((f"{each}({variable})",), self.into(each, source, _Context(), ()))
            return self.sources[key]
        simple = self.conjunction(source, variable)
        asks_for_labels = simple and any(f"({around[0]}, " in each and '"' in each for each in simple.literals)
        if simple is None or len(around) > 1 or not asks_for_labels:
            return simple
        each = self.declare(f"each_{variable}", (*around, variable))
        self.rule(each, (*around, variable), simple.literals)
        self.sources[key] = _Conjunction((f"{each}({around[0]}, {variable})",), simple.origins)
        return self.sources[key]

    def settled(self, context: _Context, needed: set[str]) -> _Context:
        """The same bindings as one literal, for what uses them in several rules."""
        if len(context.literals) < 2:
            return context
        variables = tuple(each for each in context.variables if each in needed)
        name = self.declare("given", variables or ("node",))
        if not variables:
            self.rule(name, ('""',), context.literals)
            return _Context((f'{name}("")',), ())
        self.rule(name, variables, context.literals)
        return _Context((f"{name}({', '.join(variables)})",), variables)

    def branches(self, left: Core, right: Core, then: Core, otherwise: Core) -> Iterator[tuple[Core, tuple[str, ...]]]:
        """The branches of an `if` that can be taken, with the literals under which they are."""
        for (one, how_one), (other, how_other) in product(self.labels(left), self.labels(right)):
            how = (*how_one, *how_other)
            if one[0] == other[0] == '"':
                yield (then if one == other else otherwise), how
            else:
                # Equal labels are one variable, or a constant: a join, and not a comparison of all with all.
                old, new = (other, one) if one[0] == '"' else (one, other)
                yield then, tuple(literal.replace(f", {old})", f", {new})") for literal in how)
                yield otherwise, (*how, f"{one} != {other}")

    def step(self, target: str, step: core.Step, context: _Context, keep: tuple[str, ...]) -> Origins:
        axis, test, node = step.axis, step.test, (*keep, "node")
        inner = self.declare("below" if axis == "descendant" else "set", node)
        origins = self.into(inner, step.source, context, keep)
        atom = f"{inner}({', '.join(node)})"
        if axis == "child":
            return self._children(target, keep, atom, origins, test)
        if axis == "self":
            return self._matching(target, keep, atom, origins, test)
        below = self.below(origins)
        if self.depth is None:
            self._children(inner, keep, atom, below, ANY)
            return self._matching(target, keep, atom, below, test)
        for _ in range(self.depth + self.made):
            self._matching(target, keep, atom, below, test)
            deeper = self.declare("below", node)
            self._children(deeper, keep, atom, below, ANY)
            atom = f"{deeper}({', '.join(node)})"
        return self._matching(target, keep, atom, below, test)

    def _children(self, target: str, keep: tuple[str, ...], atom: str, origins: Origins, test: str) -> Origins:
        label = "_" if test == ANY else quote(test)
        for origin in self._with_children(origins):
            self.rule(target, (*keep, "child"), [atom, f"{self.edge_relation(origin)}(node, child, {label})"])
        return self.children(origins)

    def _matching(self, target: str, keep: tuple[str, ...], atom: str, origins: Origins, test: str) -> Origins:
        if test == ANY:
            self.rule(target, (*keep, "node"), [atom])
            return origins
        for origin in sorted(origins):
            self.rule(target, (*keep, "node"), [atom, f"{self.label_relation(origin)}(node, {quote(test)})"])
        return origins

    # -- trees

    def trees(self, expression: Core) -> Iterator[tuple[Core, tuple[str, ...]]]:
        """The trees that an expression may be, variables of `for` and elements, with the literals under which it is that."""
        match expression:
            case core.Bound(name) if name in self.values:
                yield from self.trees(self.values[name])
            case core.Let(variable, value, body):
                self.values[variable] = value
                yield from self.trees(body)
            case core.If(left, right, then, otherwise):
                for branch, literals in self.branches(left, right, then, otherwise):
                    yield from ((tree, (*literals, *more)) for tree, more in self.trees(branch))
            case _:
                yield expression, ()

    def put(self, target: str, tree: Core, context: _Context, keep: tuple[str, ...]) -> Origins:
        if isinstance(tree, core.Bound):
            self.rule(target, (*keep, tree.name), context.literals)
            return self.origins[tree.name]
        assert isinstance(tree, core.Element)
        self.made += 1
        number, live = self.made, self.live(tree, context)
        context = self.settled(context, {*keep, *live})
        scope = _Context()
        if live:
            guard = self.declare(f"scope_{number}", live, guard=True)
            self.rule(guard, live, context.literals)
            scope = _Context((f"{guard}({', '.join(live)})",), live)
        self.rule(target, (*keep, "node"), [*context.literals, _named(number, live)])

        label_relation = self.declare(self.label_relation(number), ("node", "label"), guard=True)
        for label, literals in self.labels(tree.label):
            self.rule(label_relation, ("node", label), [*scope.literals, *literals, _named(number, live)])
        self.inside[number] = _NOTHING
        if tree.body == _EMPTY:
            return frozenset((number,))
        edges = self.declare(self.edge_relation(number), ("parent", "node", "label"))
        children = self.declare(f"children_{number}", (*live, "child"))
        self.inside[number] = self.into(children, tree.body, scope, live)
        for origin in sorted(self.inside[number]):
            body = [f"{children}({', '.join((*live, 'child'))})", f"{self.label_relation(origin)}(child, label)"]
            self.rule(edges, ("node", "child", "label"), [*body, _named(number, live)])
        return frozenset((number,))

    # -- labels

    def labels(self, expression: Core) -> list[tuple[str, tuple[str, ...]]]:
        """What a label may be: terms, each with the literals under which it is that."""
        match expression:
            case core.Literal(text):
                return [(quote(text), ())]
            case core.Bound(name):
                return self.labels(self.values[name])
            case core.Let(variable, value, body):
                self.values[variable] = value
                return self.labels(body)
            case core.If(left, right, then, otherwise):
                return [
                    (term, (*literals, *more))
                    for branch, literals in self.branches(left, right, then, otherwise)
                    for term, more in self.labels(branch)
                ]
            case core.NameOf(tree):
                return [
                    (label, (*literals, *more))
                    for each, literals in self.trees(tree)
                    for label, more in self._label_of(each)
                ]
        raise AssertionError(expression)

    def _label_of(self, tree: Core) -> list[tuple[str, tuple[str, ...]]]:
        if isinstance(tree, core.Element):
            return self.labels(tree.label)
        assert isinstance(tree, core.Bound)
        label = f"label_of_{tree.name}"
        origins = sorted(self.origins[tree.name])
        return [(label, (f"{self.label_relation(each)}({tree.name}, {label})",)) for each in origins]


def _named(number: int, live: Sequence[str]) -> str:
    """The literal that gives an element its id."""
    if not live:
        return f'node = "e{number}()"'
    parts = [part for each in live for part in ('","', each)]
    return f'node = cat("e{number}(", {", ".join(parts[1:])}, ")")'
