"""What changed between two versions of a program: rules, relations, what is shown. Layout and comments do not count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass

from whence.lang.program import Program, Relation, Rule, Subsumption, output_names
from whence.lang.tree import Span

_BESIDE_THE_POINT = frozenset({"source", "functions", "warnings", "module", "dropped", "plain"})


def is_same(one: Program, other: Program) -> bool:
    """Whether both say the same, wherever they say it.

    >>> from whence.lang import load
    >>> is_same(load("p(1). .output p"), load("// a one\\np( 1 ).\\n.output p"))
    True
    """
    return _content(one) == _content(other)


@dataclass(frozen=True)
class Differences:
    """From one version of a program to the next. Rules are given as they are written, relations by name.

    `affected` are the relations of the new version whose tuples may be others than before, `kept` the derived ones that stay as
    they are.
    """

    added: tuple[str, ...]
    dropped: tuple[str, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]
    redeclared: tuple[str, ...]
    shown: tuple[str, ...]
    hidden: tuple[str, ...]
    affected: tuple[str, ...]
    kept: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """One sentence each, in the order in which they matter."""
        for what, names in (
            ("columns or limits changed", self.redeclared),
            ("new relation", self.new),
            ("relation gone", self.gone),
            ("new output", self.shown),
            ("output gone", self.hidden),
        ):
            yield from (f"{what}: {name}" for name in names)
        yield from (f"rule added: {text}" for text in self.added)
        yield from (f"rule dropped: {text}" for text in self.dropped)


def why_rows_would_differ(before: Program, after: Program) -> Iterator[str]:
    """Why rows of the one cannot be rows of the other, as far as they have relations and types in common."""
    for name, relation in after.relations.items():
        if name in before.relations:
            yield from _row_differences(before.relations[name], relation)
    for name, parts in after.types.records.items():
        if _content(before.types.records.get(name, parts)) != _content(parts):
            yield f"the record type {name} would have other fields"
    for name, branches in after.types.adts.items():
        for branch, fields_ in before.types.adts.get(name, {}).items():
            if branch in branches and _content(branches[branch]) != _content(fields_):
                yield f"the branch {branch} of {name} would have other fields"


def _row_differences(before: Relation, after: Relation) -> Iterator[str]:
    if before.arity != after.arity:
        yield f"{before.name} would have {after.arity} columns instead of {before.arity}"
        return
    for one, other in zip(before.fields, after.fields, strict=True):
        if one.kind != other.kind:
            yield f"column {one.name} of {before.name} would hold {other.kind} instead of {one.kind}: declare {before.name}"
    if (before.window, before.lifetime) != (after.window, after.lifetime):
        yield f"{before.name} has tuples already: its .window and .lifetime stay as they are"


def differences(before: Program, after: Program) -> Differences:
    added, dropped = _only_in(after, before), _only_in(before, after)
    redeclared = tuple(
        name
        for name, relation in after.relations.items()
        if name in before.relations and _content(relation) != _content(before.relations[name])
    )
    new = tuple(name for name in after.relations if name not in before.relations)
    touched = {*redeclared, *new, *(name for name, _ in (*added, *dropped))}
    affected = _with_dependents(after, touched & after.relations.keys())
    derived = {rule.head.relation for rule in after.rules}
    old_outputs, outputs = output_names(before), output_names(after)
    return Differences(
        added=tuple(text for _, text in added),
        dropped=tuple(text for _, text in dropped),
        new=new,
        gone=tuple(name for name in before.relations if name not in after.relations),
        redeclared=redeclared,
        shown=tuple(name for name in outputs if name not in old_outputs),
        hidden=tuple(name for name in old_outputs if name not in outputs),
        affected=tuple(name for name in after.relations if name in affected),
        kept=tuple(name for name in after.relations if name in derived and name not in affected),
    )


def _only_in(program: Program, other: Program) -> list[tuple[str, str]]:
    """The rules that the other lacks: the relation that each is about, and its text."""
    left = Counter(map(_key, _rules(other)))
    found = []
    for rule in _rules(program):
        key = _key(rule)
        if left[key]:
            left[key] -= 1
        else:
            found.append((_about(rule), _text(program, rule)))
    return list(dict.fromkeys(found))


def _rules(program: Program) -> tuple[Rule | Subsumption, ...]:
    return (*program.rules, *program.subsumptions)


def _about(rule: Rule | Subsumption) -> str:
    return rule.head.relation if isinstance(rule, Rule) else rule.dominated.relation


def _key(rule: Rule | Subsumption) -> object:
    """Names that were made up count the rules of a relation: they change when another rule comes before."""
    name = "" if "#" in rule.name else rule.name
    heads = (rule.head,) if isinstance(rule, Rule) else (rule.dominated, rule.dominating)
    return _content((name, heads, rule.body))


def _text(program: Program, rule: Rule | Subsumption) -> str:
    written = program.source.text[rule.span.start : rule.span.end]
    return " ".join(written.split())


def _with_dependents(program: Program, touched: set[str]) -> set[str]:
    """The relations, and all that are derived from them."""
    found = set(touched)
    grew = True
    while grew:
        users = {_about(rule) for rule in _rules(program) if found & _read(rule)}
        grew = not users <= found
        found |= users
    return found


def _read(rule: Rule | Subsumption) -> set[str]:
    return set(_relations_in(rule.body))


def _relations_in(node: object) -> Iterator[str]:
    if isinstance(node, tuple):
        for each in node:
            yield from _relations_in(each)
    elif is_dataclass(node):
        if (relation := getattr(node, "relation", None)) is not None:
            yield relation
        for each in fields(node):
            yield from _relations_in(getattr(node, each.name))


def _content(node: object) -> object:
    """The node without the places in the text."""
    if isinstance(node, Span):
        return None
    if isinstance(node, tuple):
        return tuple(map(_content, node))
    if isinstance(node, dict):
        return frozenset((key, _content(value)) for key, value in node.items())
    if is_dataclass(node):
        skipped = _BESIDE_THE_POINT if isinstance(node, Program) else ()
        parts = {each.name: getattr(node, each.name) for each in fields(node) if each.name not in skipped}
        return type(node).__name__, _content(parts)
    return (type(node).__name__, node)
