"""Inline relations that their rules alone do not bind, written out where they are used.

`.decl next(x:number, y:number) inline` with `next(x, y) :- y = x + 1.` holds for infinitely many pairs; `p(x), next(x, y)` does
not. Inline relations that can be evaluated like any other are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from whence.lang import tree
from whence.lang.describe import counted
from whence.lang.diagnostics import Diagnostic, Unsupported, WrongArity
from whence.lang.rewrite import rebuild


def unfold_inline(module: tree.Module, found: list[Diagnostic]) -> tree.Module:
    """The module without inline relations that have unbound variables, and without their rules."""
    rules = _inline_rules(module)
    unfolded = _unbound(rules)
    if not unfolded:
        return module
    unfolding = _Unfolding({name: rules[name] for name in unfolded}, found)
    statements: list[tree.Statement] = []
    for statement in module.statements:
        match statement:
            case tree.RelationDecl(names=names):
                if kept := tuple(name for name in names if name not in unfolded):
                    statements.append(replace(statement, names=kept))
            case tree.Rule(heads=heads):
                if others := tuple(head for head in heads if head.relation not in unfolded):
                    statements.append(replace(statement, heads=others, body=unfolding.of(statement.body)))
            case tree.Subsumption(body=body):
                statements.append(replace(statement, body=unfolding.of(body)))
            case _:
                statements.append(statement)
    return tree.Module(tuple(statements))


_Rules = dict[str, list[tuple[tree.Atom, tree.Formula]]]


def _inline_rules(module: tree.Module) -> _Rules:
    """The rules of inline relations, but for those that are read or written as a whole."""
    rules: _Rules = {}
    for statement in module.statements:
        if isinstance(statement, tree.RelationDecl) and "inline" in statement.qualifiers and not statement.choices:
            rules.update({name: [] for name in statement.names})
    for statement in module.statements:
        match statement:
            case tree.Directive(relations=names):
                for name in names:
                    rules.pop(name, None)
            case tree.Subsumption(dominated=dominated):
                rules.pop(dominated.relation, None)
            case tree.Rule(heads=heads, body=body):
                for head in heads:
                    if head.relation in rules:
                        rules[head.relation].append((head, body or tree.Truth(True)))
    return rules


def _unbound(rules: _Rules) -> set[str]:
    """Relations with a rule that does not bind its head, unless it is by atoms of such relations."""
    unbound: set[str] = set()
    while True:
        more = {
            name
            for name, each in rules.items()
            if any(not _needed(head) <= _bound(body, unbound) for head, body in each)
        }
        if more == unbound:
            return unbound
        unbound = more


def _variables(node: object) -> set[str]:
    return {part.name for part in tree.walk(node) if isinstance(part, tree.Variable)}


def _needed(node: object) -> set[str]:
    """The variables outside of aggregates, which bind their own."""
    if isinstance(node, tree.Aggregate):
        return set()
    if isinstance(node, tree.Atom | tree.Call | tree.Branch):
        return set().union(*map(_needed, node.args))
    return _variables(node)


def _bound(body: tree.Formula, unbound: set[str]) -> set[str]:
    """Variables that a body may bind: by an atom, or by an equation whose other side is bound."""
    bound: set[str] = set()
    equations: list[tree.Constraint] = []
    for part in _positive(body):
        for inner in tree.walk(part):  # its variables can be witnesses
            if isinstance(inner, tree.Aggregate) and inner.op in ("min", "max"):
                bound |= _variables(inner.body)
        if isinstance(part, tree.Atom) and part.relation not in unbound:
            bound |= _variables(part)
        elif isinstance(part, tree.Constraint) and part.op == "=":
            equations.append(part)
    for _ in equations:
        for each in equations:
            for one, other in ((each.left, each.right), (each.right, each.left)):
                if _needed(other) <= bound:
                    bound |= _needed(one)
    return bound


def _positive(formula: tree.Formula) -> Iterator[tree.Formula]:
    if isinstance(formula, tree.And | tree.Or):
        for item in formula.items:
            yield from _positive(item)
    elif not isinstance(formula, tree.Not):
        yield formula


@dataclass
class _Unfolding:
    rules: _Rules
    found: list[Diagnostic]
    active: list[str] = field(default_factory=list)
    copies: int = 0

    def of(self, body: tree.Formula | None) -> tree.Formula | None:
        """A body, the bodies of aggregates in it included, with atoms replaced by what they say."""
        return rebuild(body, lambda part: self._atom(part) if isinstance(part, tree.Atom) else part)

    def _atom(self, atom: tree.Atom) -> tree.Formula:
        rules = self.rules.get(atom.relation)
        if rules is None:
            return atom
        if atom.relation in self.active:
            feature = f"the inline relation {atom.relation}, whose rules neither bind their heads nor end,"
            self.found.append(Unsupported(atom.span, feature=feature, advice="bind its variables, or break the cycle"))
            return tree.Truth(False, atom.span)
        self.active.append(atom.relation)
        alternatives = tuple(self._applied(head, body, atom) for head, body in rules)
        self.active.pop()
        return alternatives[0] if len(alternatives) == 1 else tree.Or(alternatives, atom.span)

    def _applied(self, head: tree.Atom, body: tree.Formula, atom: tree.Atom) -> tree.Formula:
        """What one rule says of the arguments of an atom."""
        if len(head.args) != len(atom.args):
            arity = counted(len(head.args), "argument")
            advice = f"its rule begins with {head.relation}({', '.join('_' for _ in head.args)})"
            self.found.append(
                WrongArity(atom.span, what=atom.relation, expected=arity, found=str(len(atom.args)), advice=advice)
            )
            return tree.Truth(False, atom.span)
        self.copies += 1
        values: dict[str, tree.Term] = {}
        equal: list[tuple[tree.Term, tree.Term]] = []
        for at, (param, given) in enumerate(zip(head.args, atom.args, strict=True)):
            value = tree.Variable(f"_{at}'{self.copies}", given.span) if isinstance(given, tree.Wildcard) else given
            if isinstance(param, tree.Variable) and param.name not in values:
                values[param.name] = value
            else:
                equal.append((value, param))

        def put_in(part: object) -> object:
            if not isinstance(part, tree.Variable):
                return part
            return values.get(part.name) or tree.Variable(f"{part.name}'{self.copies}", part.span)

        conditions = [tree.Constraint("=", value, rebuild(param, put_in), atom.span) for value, param in equal]
        return tree.And((*conditions, self.of(rebuild(body, put_in)) or tree.Truth(True)), atom.span)
