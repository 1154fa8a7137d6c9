"""Whether a recursive stratum can be evaluated in parts that need nothing of each other.

Each relation of the stratum is given a column such that every rule hands the value there from all recursive atoms of its body
to its head: what follows from tuples with one value has that value too. Tuples told apart by these columns then evolve alone.
Inputs in which that variable stands at one column, wherever recursive rules read them, are told apart by it; the others are
needed whole by every part.

An aggregate over recursive atoms hands the value on as a join does: atoms inside its braces have to hold the variable too, which
makes it part of the group's key, so that all rows of a group are in one part. And a part must not have groups of another: the
rule reads a recursive atom outside the braces, or the group has no value without rows, all of which come from recursive atoms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from whence.lang.program import Aggregation, Atom, Generator, Program, Rule, Stratum, Var
from whence.lang.tree import walk
from whence.plan.extract_aggregates import keeps_empty_groups


@dataclass(frozen=True)
class Decomposition:
    """`columns` of the stratum's own relations, `split` of the inputs told apart by the same values; `whole` are the rest.

    `proof` has a line for each recursive rule.
    """

    columns: Mapping[str, int]
    split: Mapping[str, int]
    whole: tuple[str, ...]
    proof: tuple[str, ...]


class NotDecomposable(Exception):
    """The message says why."""


def decompose(program: Program, stratum: Stratum) -> Decomposition:
    """Aggregates of the stratum have to be in its rules, as `compile_evaluation` leaves them. Raises `NotDecomposable`."""
    rules = recursive_rules(program, stratum)
    for rule in rules:
        _refuse_others(rule, frozenset(stratum.relations))
    first, *_ = stratum.relations
    reasons: list[str] = []
    for column in range(program.relations[first].arity):
        columns = next(_assignments(rules, stratum, {first: column}, reasons), None)
        if columns is not None:
            return _decomposition(program, stratum, rules, columns)
    raise NotDecomposable(reasons[0] if reasons else f"{first} has no columns")


def describe_decomposition(program: Program, stratum: Stratum) -> list[str]:
    """How a recursive stratum can be evaluated in parts, with the proof; or why not."""
    try:
        found = decompose(program, stratum)
    except NotDecomposable as reason:
        return [f"not in parts: {reason}"]
    by = ", ".join(f"{name}.{field_name(program, name, found.columns)}" for name in stratum.relations)
    also = [f"{name}.{field_name(program, name, found.split)}" for name in found.split]
    lines = [f"in parts by {', '.join([by, *also])}, because", *(f"  {line}" for line in found.proof)]
    return [*lines, f"  every part needs all of {', '.join(found.whole)}"] if found.whole else lines


def recursive_rules(program: Program, stratum: Stratum) -> list[Rule]:
    members = frozenset(stratum.relations)
    return [rule for rule in program.rules if rule.head.relation in members and _recursive_atoms(rule, members)]


def seed_rules(program: Program, stratum: Stratum) -> list[Rule]:
    """The rules of a stratum that do not read it: what recursion begins with."""
    members = frozenset(stratum.relations)
    return [rule for rule in program.rules if rule.head.relation in members and not _recursive_atoms(rule, members)]


def _recursive_atoms(rule: Rule, members: frozenset[str]) -> list[Atom]:
    return [part for part in walk(rule.body) if isinstance(part, Atom) and part.relation in members]


def _refuse_others(rule: Rule, members: frozenset[str]) -> None:
    is_anchored = any(isinstance(each, Atom) and each.relation in members for each in rule.body)
    for literal in rule.body:
        if isinstance(literal, Generator):
            raise NotDecomposable(f"rule {rule.name} has a range inside the recursion")
        if isinstance(literal, Aggregation) and not is_anchored and not _has_own_rows(literal, members):
            raise NotDecomposable(f"rule {rule.name} has groups also where the recursion has no rows")


def _has_own_rows(literal: Aggregation, members: frozenset[str]) -> bool:
    """Whether each row of a group comes from the recursion, and no group is without rows."""
    return not keeps_empty_groups(literal.op) and all(
        any(isinstance(each, Atom) and each.relation in members for each in body) for body in literal.bodies
    )


def _assignments(
    rules: list[Rule], stratum: Stratum, columns: Mapping[str, int], reasons: list[str]
) -> Iterator[Mapping[str, int]]:
    """Ways to give every relation a column, starting from some, by following rules from head to body."""
    members = frozenset(stratum.relations)
    for rule in rules:
        if rule.head.relation not in columns:
            continue
        carried = rule.head.args[columns[rule.head.relation]]
        if not isinstance(carried, Var):
            reasons.append(f"rule {rule.name} puts no variable into column {_column(rule.head, columns)} of its head")
            return
        for atom in _recursive_atoms(rule, members):
            if atom.relation in columns:
                if atom.args[columns[atom.relation]] != carried:
                    reasons.append(_broken(rule, atom, carried))
                    return
                continue
            places = [at for at, arg in enumerate(atom.args) if arg == carried]
            if not places:
                reasons.append(_broken(rule, atom, carried))
            for place in places:
                yield from _assignments(rules, stratum, {**columns, atom.relation: place}, reasons)
            return
    if len(columns) == len(members):
        yield columns


def _broken(rule: Rule, atom: Atom, carried: Var) -> str:
    return f"rule {rule.name} does not hand {carried.name} from {atom.relation} to its head at the same place"


def _column(atom: Atom, columns: Mapping[str, int]) -> int:
    return columns[atom.relation] + 1


def _decomposition(program: Program, stratum: Stratum, rules: list[Rule], columns: Mapping[str, int]) -> Decomposition:
    members = frozenset(stratum.relations)
    reads: dict[str, set[int]] = {}
    for rule in rules:
        carried = rule.head.args[columns[rule.head.relation]]
        for atom in (part for part in walk(rule.body) if isinstance(part, Atom)):
            if atom.relation not in members:
                places = {at for at, arg in enumerate(atom.args) if arg == carried}
                reads[atom.relation] = reads.get(atom.relation, places) & places
    split = {name: min(places) for name, places in reads.items() if places}
    whole = tuple(name for name, places in reads.items() if not places)
    proof = tuple(_step(program, rule, columns, members) for rule in rules)
    return Decomposition(columns, split, whole, proof)


def _step(program: Program, rule: Rule, columns: Mapping[str, int], members: frozenset[str]) -> str:
    carried = rule.head.args[columns[rule.head.relation]]
    assert isinstance(carried, Var)
    sources = [
        f"{each.relation}.{field_name(program, each.relation, columns)}" for each in _recursive_atoms(rule, members)
    ]
    target = f"{rule.head.relation}.{field_name(program, rule.head.relation, columns)}"
    return f"rule {rule.name} carries {carried.name} from {' and '.join(dict.fromkeys(sources))} to {target}"


def field_name(program: Program, relation: str, columns: Mapping[str, int]) -> str:
    return program.relations[relation].fields[columns[relation]].name
