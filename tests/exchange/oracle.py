"""What peers have, worked out from the confederation alone: mappings fired over sets until nothing is new.

No rules, no engine: a row is kept with every set of marks (peers, mappings, policies whose row it uses) that one of its
derivations has, and policies look at those.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator

from whence.exchange.instance import Edit, instantiate
from whence.exchange.model import Confederation, Distrust, SchemaMapping, peer_of
from whence.lang import tree
from whence.lang.types import Tuple, Value, Variant

Marks = frozenset[tuple[str, str]]
Marked = tuple[Tuple, Marks]
_COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def chase(confederation: Confederation, edits: Iterable[Edit]) -> dict[str, set[Tuple]]:
    parts: dict[tuple[str, str], set[Tuple]] = {}
    for op, part, relation, row in edits:
        table = parts.setdefault((relation, part), set())
        (table.add if op == "+" else table.discard)(row)
    withdrawn = _withdrawn(confederation, parts)
    rows: dict[str, set[Marked]] = {name: set() for name in confederation.relations}
    for name in confederation.relations:
        for row in parts.get((name, "local"), set()) - withdrawn[name]:
            marks = _row_marks(confederation, name, row, is_base=True)
            rows[name].add((row, marks | {("peer", peer_of(name))}))
    while True:
        before = sum(map(len, rows.values()))
        for mapping in confederation.mappings.values():
            for values, marks in list(_matches(mapping, mapping.atoms, rows, {}, frozenset())):
                if not all(_holds(each, values) for each in mapping.conditions):
                    continue
                own = mapping.name.removesuffix("_back") if mapping.reverse else mapping.name
                used = marks | {("mapping", own)}
                for head in mapping.heads:
                    row, name = instantiate(mapping, head, values), head.relation
                    refused = (parts.get((name, part), set()) for part in ("rejected", "lost"))
                    if any(row in each for each in refused) or row in withdrawn[name]:
                        continue
                    if not any(_distrusts(each, name, row, own, used) for each in confederation.distrusts):
                        rows[name].add((row, used | _row_marks(confederation, name, row, is_base=False)))
        if sum(map(len, rows.values())) == before:
            return {name: {row for row, _ in marked} for name, marked in rows.items()}


def _matches(
    mapping: SchemaMapping,
    atoms: tuple[tree.Atom, ...],
    rows: dict[str, set[Marked]],
    values: dict[str, Value],
    marks: Marks,
) -> Iterator[tuple[dict[str, Value], Marks]]:
    if not atoms:
        yield values, marks
        return
    for row, row_marks in list(rows[atoms[0].relation]):
        extended = _bind(atoms[0], row, values)
        if extended is not None:
            yield from _matches(mapping, atoms[1:], rows, extended, marks | row_marks)


def _bind(atom: tree.Atom, row: Tuple, values: dict[str, Value]) -> dict[str, Value] | None:
    extended = dict(values)
    for arg, value in zip(atom.args, row, strict=True):
        if isinstance(arg, tree.Variable):
            if extended.setdefault(arg.name, value) != value:
                return None
        elif isinstance(arg, tree.Number | tree.String) and arg.value != value:
            return None
    return extended


def _holds(condition: tree.Formula, values: dict[str, Value]) -> bool:
    """Nothing holds of an invented value."""
    assert isinstance(condition, tree.Constraint)
    sides = [
        values[side.name] if isinstance(side, tree.Variable) else side.value  # type: ignore[union-attr]
        for side in (condition.left, condition.right)
    ]
    return not any(isinstance(side, Variant) for side in sides) and bool(_COMPARE[condition.op](*sides))


def _speaks_of(policy: Distrust, atom: tree.Atom | None, row: Tuple) -> bool:
    if atom is None:
        return True
    values = _bind(atom, row, {})
    names = [arg.name for arg in atom.args if isinstance(arg, tree.Variable)]
    if values is None or any(isinstance(values[name], Variant) for name in names if names.count(name) > 1):
        return False
    return all(_holds(each, values) for each in policy.condition)


def _row_marks(confederation: Confederation, name: str, row: Tuple, *, is_base: bool) -> Marks:
    return frozenset(
        ("policy", each.name)
        for each in confederation.distrusts
        if each.used is not None
        and each.used.relation == name
        and (is_base or not each.only_base)
        and _speaks_of(each, each.used, row)
    )


def _distrusts(policy: Distrust, name: str, row: Tuple, mapping: str, marks: Marks) -> bool:
    asked = {("peer", policy.source), ("mapping", policy.through), ("policy", policy.name if policy.used else None)}
    return (
        policy.peer == peer_of(name)
        and (policy.atom is None or policy.atom.relation == name)
        and policy.by in (None, mapping)
        and {each for each in asked if each[1] is not None} <= marks
        and _speaks_of(policy, policy.atom, row)
    )


def _withdrawn(confederation: Confederation, parts: dict[tuple[str, str], set[Tuple]]) -> dict[str, set[Tuple]]:
    found: dict[str, set[Tuple]] = {name: set() for name in confederation.relations}
    accepted = {(each.peer, each.source) for each in confederation.acceptances}
    while True:
        before = sum(map(len, found.values()))
        for mapping in confederation.mappings.values():
            if not mapping.reverse or len(mapping.atoms) != 1 or len(mapping.heads) != 1:
                continue
            (source,), (target,) = mapping.atoms, mapping.heads
            if (peer_of(source.relation), peer_of(target.relation)) not in accepted:
                continue
            for row in parts.get((target.relation, "rejected"), set()) | found[target.relation]:
                values = _bind(target, row, {})
                names = {arg.name for arg in source.args if isinstance(arg, tree.Variable)}
                if values is not None and names <= values.keys():
                    found[source.relation].add(instantiate(mapping, source, values))
        if sum(map(len, found.values())) == before:
            return found
