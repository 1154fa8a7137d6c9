"""Whether the views of a program can be maintained in parts that need nothing of each other.

Every relation is *split* by one of its columns, or *whole*. Part `k` of `n` has the rows of a split relation whose value in
that column hashes to `k`, and all rows of a whole one. That holds of base relations because updates are routed so, and of
derived ones because every rule keeps to it:

- a rule for a split relation reads split relations only in rows that have the value of its head, in negations and aggregates
  too: whatever it asks for is in the part of its head;
- if none of its atoms says that the head's value is the part's, the rule asks for that itself;
- a rule for a whole relation reads whole relations only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from zlib import crc32

from whence.lang.program import (
    Aggregation,
    Anything,
    Apply,
    Atom,
    Comparison,
    Const,
    Literal,
    Negation,
    Program,
    Relation,
    Rule,
    Subsumption,
    Term,
    Var,
    counter_in,
)
from whence.lang.tables import bag_tables
from whence.lang.tree import Span, walk
from whence.lang.types import NUMBER, Tuple, Value
from whence.plan.needed import keep_needed

PART = "part!"  # the function with which a rule asks for the part of a value
_OWN = Const(-1, NUMBER)  # stands for the number of the part that has the rule
_ENOUGH = 32  # ways to split that are compared

# The columns that a relation may be split by, and None if it may be whole.
_Places = Mapping[str, tuple[int | None, ...]]


class NotPartitionable(Exception):
    """The message says why."""


@dataclass(frozen=True)
class Partitioning:
    """A program as far as it is needed, its split relations with their columns, and those that every part needs whole."""

    program: Program
    columns: Mapping[str, int]
    whole: tuple[str, ...]

    @classmethod
    def by(cls, program: Program, wanted: Iterable[str], columns: Mapping[str, int]) -> Partitioning:
        """The one that `partition` has found before."""
        needed = keep_needed(program, frozenset(wanted))
        return cls(needed, columns, tuple(name for name in needed.relations if name not in columns))

    def part(self, relation: str, row: Tuple, parts: int) -> int | None:
        """Which part a row belongs to; None if every part needs it."""
        column = self.columns.get(relation)
        return None if column is None else part_of(row[column], parts)

    def program_of(self, part: int, parts: int) -> Program:
        """The program whose views are those of a part, if its base relations are."""
        rules = tuple(own for rule in self.program.rules for own in _own(rule, self.columns, part, parts))
        functions: dict[str, Callable[..., object]] = {PART: partial(part_of, parts=parts)}
        return replace(self.program, rules=rules, functions={**self.program.functions, **functions})


def part_of(value: Value, parts: int) -> int:
    """The part of a value. States on disk rely on it: it never changes."""
    # Equal floats have one text.
    text = repr(value + 0.0 if isinstance(value, float) else value)
    return crc32(text.encode(errors="surrogatepass")) % parts


def partition(program: Program, wanted: Iterable[str]) -> Partitioning:
    """How to split the relations that the wanted ones need, with as few of them whole as possible.

    Those of them that are recursive are split, or one if none is. Raises `NotPartitionable` if they cannot be.
    """
    wanted = frozenset(wanted)
    refuse_tables(program)
    needed = keep_needed(program, wanted)
    refuse_chosen(needed)
    base = frozenset(needed.base_relations)
    derived = [name for name in needed.relations if name in wanted - base]
    if not derived:
        raise NotPartitionable("nothing that is wanted is derived")
    recursive = {name for stratum in needed.strata if stratum.recursive for name in stratum.relations}
    split = [name for name in derived if name in recursive]
    ways: list[Mapping[str, int | None]] = []
    reasons: list[str] = []
    for demanded in [split] if split else [[name] for name in derived]:
        try:
            ways += _ways(needed, base, demanded)
        except NotPartitionable as reason:
            reasons.append(str(reason))
    if not ways:
        raise NotPartitionable(reasons[0])
    best = min(ways, key=lambda way: sum(place is None for place in way.values()))
    return Partitioning.by(program, wanted, {name: place for name, place in best.items() if place is not None})


# -- what may be split ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Read:
    """A rule reads an atom. `outer` are the variables that are bound around the aggregate it stands in, if it does."""

    rule: str
    head: Atom
    atom: Atom
    outer: frozenset[str] | None

    def allows(self, head: int | None, atom: int | None) -> bool:
        if head is None or atom is None:
            return atom is None
        term = self.head.args[head]
        if isinstance(term, Anything) or self.atom.args[atom] != term:
            return False
        names = {part.name for part in walk(term) if isinstance(part, Var)}
        return self.outer is None or names <= self.outer


# What rules read and whom they read it for, by either relation.
_Reads = Mapping[str, list[_Read]]


def _reads(rule: Rule | Subsumption) -> Iterator[_Read]:
    head = rule.head if isinstance(rule, Rule) else rule.dominated
    return (_Read(rule.name, head, atom, outer) for atom, outer in _atoms(rule.body, None))


def _atoms(body: tuple[Literal, ...], outer: frozenset[str] | None) -> Iterator[tuple[Atom, frozenset[str] | None]]:
    for literal in body:
        match literal:
            case Atom():
                yield literal, outer
            case Negation(atom=atom):
                yield atom, outer
            case Aggregation(bodies=bodies):
                names = frozenset(literal.outer)
                for inner in bodies:
                    yield from _atoms(inner, names if outer is None else names & outer)
            case _:
                pass


def refuse_tables(program: Program) -> None:
    """A row of a table without a key is numbered by what the table holds, which no part knows of another."""
    for name in bag_tables(program):
        raise NotPartitionable(
            f"the rows of {name} may be equal: its copies are counted in one piece, unless it has a key"
        )


def refuse_chosen(program: Program) -> None:
    for name, relation in program.relations.items():
        what = "a choice-domain" if relation.choices else "a .limitsize" if relation.limit is not None else ""
        if what:
            raise NotPartitionable(f"{name} has {what}: parts would choose each for itself")
    for rule in program.rules:
        if counter := counter_in(rule):
            raise NotPartitionable(f"rule {rule.name} has {counter}(): parts would count each for itself")


def _ways(program: Program, base: frozenset[str], split: list[str]) -> list[Mapping[str, int | None]]:
    """Some ways to split the relations, those in `split` in any case. Raises `NotPartitionable` if there is none."""
    rules: list[Rule | Subsumption] = [*program.rules, *program.subsumptions]
    reads: dict[str, list[_Read]] = {name: [] for name in program.relations}
    for read in (read for rule in rules for read in _reads(rule)):
        for name in {read.head.relation, read.atom.relation}:
            reads[name].append(read)
    places: dict[str, tuple[int | None, ...]] = {}
    for name, relation in program.relations.items():
        columns = [column for column in range(relation.arity) if not _why_unsplit(program, relation, column)]
        places[name] = tuple(columns) if name in split else (*columns, None)
    for name in split:
        _refuse_unsplit(program, name, places, reads)
    order = sorted(program.relations, key=lambda name: name in base)
    completed = (_completed(each, order, reads) for each in _chosen(places, split, reads))
    found = list(islice((each for each in completed if each is not None), _ENOUGH))
    if not found:
        raise NotPartitionable(f"no columns of {', '.join(split)} go together")
    return found


def _why_unsplit(program: Program, relation: Relation, column: int) -> str:
    """Why a relation itself rules out a column, whatever reads it; empty if it does not."""
    if relation.equivalence:
        return f"{relation.name} is an eqrel"
    window = relation.window
    if window is not None and window.rows is not None and column not in window.by:
        return f"the window of {relation.name} counts all rows"
    for rule in program.rules_for(relation.name):
        term = rule.head.args[column]
        if not isinstance(term, Const) and not any(isinstance(part, Atom) and term in part.args for part in rule.body):
            # Every part would do all of its work to keep a share of it.
            return f"rule {rule.name} computes it"
    return ""


class _Stuck(Exception):
    def __init__(self, read: _Read) -> None:
        self.read = read


def _narrowed(places: _Places, name: str, column: int | None, reads: _Reads) -> _Places:
    """With a place for a relation, and without those that rules then rule out. Raises _Stuck where none is left."""
    narrowed = {**places, name: (column,)}
    changed = {name}
    while changed:
        for read in reads[changed.pop()]:
            head, atom = read.head.relation, read.atom.relation
            of_head, of_atom = narrowed[head], narrowed[atom]
            if head == atom:
                kept = {head: tuple(each for each in of_head if read.allows(each, each))}
            else:
                kept = {
                    head: tuple(one for one in of_head if any(read.allows(one, other) for other in of_atom)),
                    atom: tuple(other for other in of_atom if any(read.allows(one, other) for one in of_head)),
                }
            for each, left in kept.items():
                if not left:
                    raise _Stuck(read)
                if left != narrowed[each]:
                    narrowed[each] = left
                    changed.add(each)
    return narrowed


def _refuse_unsplit(program: Program, name: str, places: _Places, reads: _Reads) -> None:
    """Raises `NotPartitionable` if no column of the relation will do, with the rule that says so for each."""
    relation = program.relations[name]
    reasons: dict[str, list[str]] = {}
    for column, each in enumerate(relation.fields):
        reason = _why_unsplit(program, relation, column) or _why_stuck(name, column, places, reads)
        if not reason:
            return
        reasons.setdefault(reason, []).append(each.name)
    told = "; ".join(f"by {' or '.join(fields)}, since {reason}" for reason, fields in reasons.items())
    raise NotPartitionable(f"{name} cannot be split {told}" if told else f"{name} has no columns to be split by")


def _why_stuck(name: str, column: int, places: _Places, reads: _Reads) -> str:
    try:
        _narrowed(places, name, column, reads)
    except _Stuck as stuck:
        read = stuck.read
        return f"rule {read.rule} derives {read.head.relation} from any {read.atom.relation}"
    return ""


def _chosen(places: _Places, split: list[str], reads: _Reads) -> Iterator[_Places]:
    """Ways to choose a column for each of the relations."""
    if not split:
        yield places
        return
    first, *rest = split
    for place in places[first]:
        try:
            narrowed = _narrowed(places, first, place, reads)
        except _Stuck:
            continue
        yield from _chosen(narrowed, rest, reads)


def _completed(places: _Places, order: list[str], reads: _Reads) -> Mapping[str, int | None] | None:
    """A place for each relation, a column where there is one."""
    for name in order:
        if len(places[name]) > 1:
            places = next(_chosen(places, [name], reads), {name: ()})
            if not places[name]:
                return None
    return {name: place for name, (place,) in places.items()}


# -- the rules of a part ----------------------------------------------------------------------------------------------


def _own(rule: Rule, columns: Mapping[str, int], part: int, parts: int) -> Iterator[Rule]:
    """The rule as far as it derives rows of the part."""
    column = columns.get(rule.head.relation)
    if column is None:
        yield rule
        return
    term = rule.head.args[column]
    if rule.is_fact:
        assert isinstance(term, Const)
        if part_of(term.value, parts) == part:
            yield rule
    elif any(isinstance(literal, Atom) and literal.relation in columns for literal in rule.body):
        yield rule
    else:
        yield in_part(replace(rule, body=(*rule.body, in_own_part(term, rule.span))), part)


def in_own_part(term: Term, span: Span) -> Comparison:
    """Says that a value belongs to the part that has the rule."""
    return Comparison("=", Apply(PART, (term,), NUMBER, takes_nil=True), _OWN, span)


def in_part(rule: Rule, part: int) -> Rule:
    """The rule as a part has it."""

    def own(literal: Literal) -> Literal:
        match literal:
            case Comparison(left=Apply(functor=functor)) if functor == PART:
                return replace(literal, right=Const(part, NUMBER))
            case _:
                return literal

    return replace(rule, body=tuple(own(each) for each in rule.body))
