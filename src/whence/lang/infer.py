"""Type inference: the kind of every variable and term, and the columns of relations that are not declared.

Kinds are unified over whole programs, so that a relation's columns follow from any rule that uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from whence.lang import tree
from whence.lang.declare import Declarations
from whence.lang.diagnostics import (
    Diagnostic,
    UntypedVariable,
)
from whence.lang.later import Later
from whence.lang.normalize import FlatRule
from whence.lang.program import Relation
from whence.lang.types import (
    SYMBOL,
    Field,
    base,
)
from whence.lang.unify import Inferred, Slot, Unifier


@dataclass
class Inference:
    declarations: Declarations
    functions: Mapping[str, Callable[..., object]]
    found: list[Diagnostic]
    columns: dict[str, list[Inferred]] = field(default_factory=dict)
    # Relations of rules with errors, whose columns may have no kind for that reason alone.
    untyped: set[str] = field(default_factory=set)
    # Relations whose columns follow from the rules.
    undeclared: set[str] = field(default_factory=set)
    waiting: list[Later] = field(default_factory=list)
    # Whether nil stands where records do not.
    has_nil: bool = False
    columns_without_kind: list[tuple[Relation, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kinds = Unifier(self.declarations.types)

    def later(self, waiting: Later) -> None:
        if not waiting.settle(is_last=False):
            self.waiting.append(waiting)

    def settle_waiting(self) -> None:
        """To be called when all rules have been visited."""
        while self.waiting:
            before = len(self.waiting)
            self.waiting = [each for each in self.waiting if not each.settle(is_last=False)]
            if len(self.waiting) == before:
                self.waiting.pop(0).settle(is_last=True)

    # -- relations

    def introduce_relations(self, rules: list[FlatRule], module: tree.Module) -> None:
        """Columns of declared relations, and slots for the columns of those that only rules mention."""
        known = self.declarations.relations
        for name, relation in known.items():
            self.columns[name] = [base(each.kind) for each in relation.fields]
        for rule in rules:
            self._introduce(rule.head)
        for statement in module.statements:
            if isinstance(statement, tree.Directive) and statement.kind in ("input", "event", "slow"):
                for name in statement.relations:
                    for atom in _body_atoms(rules, name) if name not in known else ():
                        self._introduce(atom)

    def _introduce(self, atom: tree.Atom) -> None:
        if atom.relation in self.columns:
            return
        names = [
            arg.name if isinstance(arg, tree.Variable) and "#" not in arg.name else f"c{at + 1}"
            for at, arg in enumerate(atom.args)
        ]
        unique = [name if names.index(name) == at else f"c{at + 1}" for at, name in enumerate(names)]
        self.columns[atom.relation] = [Slot() for _ in atom.args]
        fields = tuple(Field(name, "?", SYMBOL) for name in unique)
        self.declarations.relations[atom.relation] = Relation(atom.relation, fields, atom.span, location=atom.location)

    def finish_relations(self) -> None:
        """Puts the inferred columns into the undeclared relations; those without a kind are reported later."""
        self.settle_waiting()
        for name, relation in self.declarations.relations.items():
            if not any(each.type == "?" for each in relation.fields):
                continue
            self.undeclared.add(name)
            fields: list[Field] = []
            for each, column in zip(relation.fields, self.columns[name], strict=True):
                kind = self.kinds.resolve(column)
                if kind is None:
                    self.columns_without_kind.append((relation, len(fields) + 1))
                    self.kinds.assume(column, SYMBOL)
                fields.append(Field(each.name, str(kind or SYMBOL), kind or SYMBOL))
            self.declarations.relations[name] = replace(relation, fields=tuple(fields))

    def report_untyped(self) -> None:
        """Reports the columns without a kind, but for those that errors in rules account for."""
        if self.declarations.lost:
            return
        for relation, number in self.columns_without_kind:
            if relation.name not in self.untyped:
                columns = ", ".join(f"{each.name}:type" for each in relation.fields)
                self.found.append(
                    UntypedVariable(
                        relation.span,
                        what=f"column {number} of {relation.name}",
                        advice=f"declare the relation: .decl {relation.name}({columns})",
                    )
                )


def _body_atoms(rules: list[FlatRule], relation: str) -> Iterable[tree.Atom]:
    for rule in rules:
        for part in tree.walk(rule.body):
            if isinstance(part, tree.Atom) and part.relation == relation:
                yield part
