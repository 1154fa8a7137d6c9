"""How far apart the tuples of a rule can be, from what the rule compares."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, sqrt
from types import MappingProxyType

from whence.lang.program import Apply, Atom, Comparison, Const, Program, Term, Var
from whence.lang.signatures import NUMERIC
from whence.lang.tree import RelationDecl
from whence.sensors.pragmas import Within
from whence.sensors.rules import Body

Columns = tuple[int, int]


def find_coordinates(program: Program) -> dict[str, Columns]:
    """The columns that say where something is: those declared as x and y, and what rules take over from them."""
    found: dict[str, Columns] = {}
    declared = {name for each in program.module.statements if isinstance(each, RelationDecl) for name in each.names}
    for name in declared & program.relations.keys():
        relation = program.relations[name]
        names = [each.name for each in relation.fields if each.kind in NUMERIC]
        if "x" in names and "y" in names and relation.location is None:
            names = [each.name for each in relation.fields]
            found[name] = (names.index("x"), names.index("y"))
    changed = True
    while changed:
        changed = False
        for name in program.relations.keys() - found.keys():
            pairs = [_taken_over(rule.head, rule.body, found) for rule in program.rules_for(name)]
            if pairs and pairs[0] is not None and len(set(pairs)) == 1:
                found[name] = pairs[0]
                changed = True
    return found


def _taken_over(head: Atom, body: object, found: Mapping[str, Columns]) -> Columns | None:
    for atom in (each for each in body if isinstance(each, Atom) and each.relation in found):  # type: ignore[attr-defined]
        wanted = [atom.args[at] for at in found[atom.relation]]
        if all(isinstance(each, Var) and each in head.args for each in wanted):
            return head.args.index(wanted[0]), head.args.index(wanted[1])
    return None


def find_reaches(
    body: Body, coordinates: Mapping[str, Columns], bounds: Mapping[str, Within] = MappingProxyType({})
) -> tuple[float, ...]:
    """For each occurrence, how far from it all others are at most; infinity where the rule does not say."""
    count = len(body.reads)
    apart = [[0.0 if a == b else inf for b in range(count)] for a in range(count)]
    spots = [_spot(atom, coordinates) for atom in body.reads]
    for a in range(count):
        for b in range(count):
            if spots[a] is not None and spots[a] == spots[b]:
                apart[a][b] = 0.0
    for one, other, bound in (found for test in body.tests if (found := _bound(test, bounds)) is not None):
        for a in range(count):
            for b in range(count):
                if spots[a] == one and spots[b] == other:
                    apart[a][b] = min(apart[a][b], bound)
                    apart[b][a] = min(apart[b][a], bound)
    for middle in range(count):
        for a in range(count):
            for b in range(count):
                apart[a][b] = min(apart[a][b], apart[a][middle] + apart[middle][b])
    return tuple(max(row) for row in apart)


def _spot(atom: Atom, coordinates: Mapping[str, Columns]) -> tuple[str, str] | None:
    columns = coordinates.get(atom.relation)
    if columns is None:
        return None
    x, y = (atom.args[at] for at in columns)
    return (x.name, y.name) if isinstance(x, Var) and isinstance(y, Var) else None


Spot = tuple[str, str]


def _bound(test: object, bounds: Mapping[str, Within]) -> tuple[Spot, Spot, float] | None:
    """The condition that two spots are at most so far apart: dist(x, y, u, v) <= 5, its square written out, or that a
    function with a declared bound says yes."""
    match test:
        case Comparison(op=op, left=Apply(functor=name, args=args), right=Const(value=int() | float() as value)) if (
            name in bounds
        ):
            says_yes = (op == "=" and value != 0) or (op in ("!=", ">") and value == 0) or (op == ">=" and value > 0)
            return _declared(args, bounds[name]) if says_yes else None
        case Comparison(op="<=" | "<", left=left, right=Const(value=int() | float() as limit)):
            return _apart(left, float(limit))
        case Comparison(op=">=" | ">", left=Const(value=int() | float() as limit), right=right):
            return _apart(right, float(limit))
        case _:
            return None


def _declared(args: tuple[Term, ...], within: Within) -> tuple[Spot, Spot, float] | None:
    names = [each.name for at in within.arguments if isinstance(each := args[at], Var)]
    return ((names[0], names[1]), (names[2], names[3]), within.metres) if len(names) == len(within.arguments) else None


def _apart(term: Term, limit: float) -> tuple[Spot, Spot, float] | None:
    match term:
        case Apply(functor="dist", args=(Var(name=x), Var(name=y), Var(name=u), Var(name=v))):
            return (x, y), (u, v), limit
        case Apply(functor="+", args=(one, other)):
            across, along = _square(one), _square(other)
            if across is not None and along is not None and limit >= 0:
                return (across[0], along[0]), (across[1], along[1]), sqrt(limit)
    return None


def _square(term: Term) -> tuple[str, str] | None:
    match term:
        case Apply(functor="*", args=(Apply(functor="-", args=(Var(name=a), Var(name=b))) as one, other)) if (
            one == other
        ):
            return a, b
        case Apply(functor="^", args=(Apply(functor="-", args=(Var(name=a), Var(name=b))), Const(value=2 | 2.0))):
            return a, b
    return None
