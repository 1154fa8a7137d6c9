"""Which programs a field can run, and which of their relations can only grow.

Derivations at the home of a tuple say whether it is there. That is right as long as no tuple can be among the reasons
for itself: rows that only hold each other up would stay. A recursion passes if something counts up along it, a stage or
the length of a list. Others are run too, as long as nothing is ever taken away from them.
"""

from __future__ import annotations

from whence.lang.program import (
    Aggregation,
    Apply,
    Atom,
    Comparison,
    Cons,
    Negation,
    Program,
    Rule,
    Stratum,
    Term,
    counter_in,
)
from whence.lang.stages import find_stages
from whence.lang.tree import walk
from whence.sensors.rules import NotForSensors


def check_program(program: Program) -> None:
    """Raises `NotForSensors` for what no node could do."""
    for name, relation in program.relations.items():
        for refused, is_there in (
            ("is an equivalence relation", relation.equivalence),
            ("has a choice-domain", bool(relation.choices)),
            ("is limited in size", relation.limit is not None),
            ("has a window of rows", relation.window is not None and relation.window.rows is not None),
        ):
            if is_there:
                raise NotForSensors(f"{name} {refused}, which takes all of its tuples at one place", _ELSEWHERE)
    if program.subsumptions:
        raise NotForSensors("subsumption takes all tuples of a relation at one place", _ELSEWHERE)
    for rule in program.rules:
        if (counter := counter_in(rule)) is not None:
            raise NotForSensors(f"rule {rule.name} calls {counter}(), whose value depends on the order of evaluation")
    for stratum in program.strata:
        if stratum.monotone and stratum.recursive:
            named = ", ".join(stratum.relations)
            raise NotForSensors(f"{named}: an aggregate inside of a recursion needs all rows at one place", _ELSEWHERE)


_ELSEWHERE = "whence run keeps its views in one place; whence simulate --topology on the nodes of a network"


def find_growing(program: Program) -> dict[str, str]:
    """Relations whose tuples could hold each other up, each with the base relations below it named: nothing may be
    taken from those.

    Raises `NotForSensors` if a negation or an aggregate below may take away by itself.
    """
    growing: dict[str, str] = {}
    below: dict[str, set[str]] = {name: {name} for name in program.relations}
    shrinking: dict[str, str] = {}  # relations that may lose rows though nothing is deleted
    for stratum in program.strata:
        rules = [rule for name in stratum.relations for rule in program.rules_for(name)]
        reads = {part.relation for rule in rules for part in walk(rule.body) if isinstance(part, Atom)}
        own = set(stratum.relations)
        under = set().union(*(below[name] for name in reads | own))
        strict = next(
            (rule for rule in rules for part in walk(rule.body) if isinstance(part, Negation | Aggregation)), None
        )
        why = next((shrinking[name] for name in reads if name in shrinking), strict.name if strict else None)
        for name in own:
            below[name] = under
            if why is not None:
                shrinking[name] = why
        if stratum.recursive and not _counts_up(program, stratum, rules):
            named = " and ".join(stratum.relations)
            if why is not None:
                raise NotForSensors(
                    f"{named}: nothing counts up along the recursion, so that rows could hold each other up when rule {why} "
                    "takes something away",
                    f"give it a stage that grows; or {_ELSEWHERE}",
                )
            growing |= {name: named for base in under for name in [base]}
    return growing


def _counts_up(program: Program, stratum: Stratum, rules: list[Rule]) -> bool:
    inside = [rule for rule in rules if not rule.is_fact]
    if find_stages(stratum.relations, list(inside), program.relations, is_acyclic=True) is not None:
        return True
    return len(stratum.relations) == 1 and any(
        all(_grows(rule, column) for rule in inside) for column in range(program.relations[stratum.relations[0]].arity)
    )


def _grows(rule: Rule, column: int) -> bool:
    """Whether a list in the head is longer than that of every tuple of the same relation which the rule reads."""
    own = [each for each in rule.body if isinstance(each, Atom) and each.relation == rule.head.relation]
    made = _resolved(rule.head.args[column], rule)
    return all(_contains(made, _resolved(atom.args[column], rule)) for atom in own)


def _resolved(term: Term, rule: Rule) -> Term:
    for literal in rule.body:
        match literal:
            case Comparison(op="=", left=left, right=right) if left == term and isinstance(right, Apply | Cons):
                return right
            case Comparison(op="=", left=left, right=right) if right == term and isinstance(left, Apply | Cons):
                return left
    return term


def _contains(made: Term, before: Term) -> bool:
    match made:
        case Apply(functor="append", args=(inner, _)) | Cons(rest=inner):
            return inner == before or _contains(inner, before)
        case _:
            return False
