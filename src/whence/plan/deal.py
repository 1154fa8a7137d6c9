"""How a program's tuples are dealt to parts that ship each other what they need.

Where `partition` finds parts that need nothing of each other, that is better. Otherwise placement is partitioning: each relation
has a column whose value says where a tuple lives, and part `k` of `n` is all places whose value hashes to `k`; or it is *whole*,
and every part has all of it. Places are those that the program marks (`@`, `everywhere`), others are chosen, so that little is
shipped and recursion is split. `localize` then makes bodies local.

What a part derives for others has a relation of its own, `R!out`, whose tuples support those of `R` in the part where they live:

    reach(x, y) :- link!to(z, x), reach(z, y).   becomes   reach!out(x, y) :- link!to(z, x), reach(z, y).
                                                           reach(x, y) :- reach!out(x, y), part!(x) = own.

Relations of strata that are evaluated anew take no support from others: they are whole, every part derives them for itself, and
what they read is whole or copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from whence.lang.diagnostics import Diagnostic, ProgramError
from whence.lang.program import Atom, Const, Literal, Program, Relation, Rule, Term, Var
from whence.lang.strata import stratify
from whence.lang.tree import walk
from whence.plan.compile import compile_plan
from whence.plan.localize import Placed, localize_in_parts, shipping_weight
from whence.plan.needed import keep_needed
from whence.plan.partition import (
    PART,
    NotPartitionable,
    Partitioning,
    in_own_part,
    in_part,
    part_of,
    partition,
    refuse_chosen,
    refuse_tables,
)
from whence.plan.steps import StratumPlan

OUT = "!out"

# What it weighs that every part has all of a relation: of a recursion, of another derived one, of a base relation.
_WHOLE_RECURSION, _WHOLE_VIEW, _WHOLE_BASE = 2000, 300, 20
_TRIALS = 4000  # weighings of a rule, after which no better places are looked for


@dataclass(frozen=True)
class Dealing(Partitioning):
    """A program as far as it is needed, the columns of the relations that are split, and how its parts make views together.

    `placed` has local bodies, `made` tells by relation of what is shipped (`R!out`) whose tuples it supports.
    """

    placed: Placed = field(kw_only=True)
    made: Program = field(kw_only=True)
    ships: Mapping[str, str] = field(kw_only=True)

    @classmethod
    def by(cls, program: Program, wanted: Iterable[str], columns: Mapping[str, int]) -> Dealing:
        """The one that `deal` has found before."""
        return _dealt(keep_needed(program, frozenset(wanted)), columns)

    def target(self, relation: str, row: tuple[object, ...], parts: int) -> int | None:
        """The part that a tuple of `R!out` is for; None if it is for all."""
        column = self.place(relation)
        return None if column is None else part_of(row[column], parts)  # type: ignore[arg-type]

    def place(self, relation: str) -> int | None:
        """The column that says which part a tuple of `R!out` is for; None if it is for all."""
        return self._places[relation]

    @cached_property
    def _places(self) -> Mapping[str, int | None]:
        return {out: self.made.relations[name].location for out, name in self.ships.items()}

    def program_of(self, part: int, parts: int) -> Program:
        rules = []
        for rule in self.made.rules:
            column = self.columns.get(rule.head.relation)
            if not rule.is_fact or column is None or part_of(rule.head.args[column].value, parts) == part:  # type: ignore[union-attr]
                rules.append(in_part(rule, part))
        functions: dict[str, Callable[..., object]] = {PART: partial(part_of, parts=parts)}
        return replace(self.made, rules=tuple(rules), functions={**self.made.functions, **functions})


def deal(program: Program, wanted: Iterable[str]) -> Dealing:
    """Places for the relations that the wanted ones need. Raises `NotPartitionable` if none of them can be split."""
    wanted = frozenset(wanted)
    refuse_tables(program)
    needed = keep_needed(program, wanted)
    refuse_chosen(needed)
    whole = dict(_unshippable(needed))
    derived = [name for name in needed.relations if name not in needed.base_relations]
    if not wanted.intersection(derived):
        raise NotPartitionable("nothing that is wanted is derived")
    while True:
        columns = _Choice(needed, whole.keys()).best()
        if not columns.keys() & derived:
            why = next(iter(whole.values()), "") or "no relation that is derived has a column to be split by"
            raise NotPartitionable(why)
        try:
            return _dealt(needed, columns)
        except _NotNative as found:
            whole |= found.reasons
        except ProgramError as error:  # what a rewrite must not do to a recursion through aggregates
            inside = {name for stratum in needed.strata if stratum.monotone for name in stratum.relations}
            if not inside - whole.keys():
                raise NotPartitionable(error.diagnostics[0].text) from None
            whole |= dict.fromkeys(inside, "recursion through aggregates cannot be taken apart")


def divide(program: Program, wanted: Iterable[str]) -> Partitioning:
    """Parts that need nothing of each other, if they are where the program places them, or else a `Dealing`.

    Raises `NotPartitionable` if there is neither.
    """
    wanted = frozenset(wanted)
    return deal(program, wanted) if why_together(program, wanted) else partition(program, wanted)


def why_together(program: Program, wanted: Iterable[str]) -> str:
    """Why parts need something of each other; empty if they do not."""
    try:
        found = partition(program, wanted)
    except NotPartitionable as reason:
        return str(reason)
    marked = {name: each.location for name, each in found.program.relations.items() if each.location is not None}
    strays = [name for name, column in marked.items() if found.columns.get(name) != column]
    return f"{', '.join(strays)} would live elsewhere than the program says" if strays else ""


# -- rules ------------------------------------------------------------------------------------------------------------


class _NotNative(Exception):
    """Relations that would have to take support and cannot, with why."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__(*reasons.values())
        self.reasons = reasons


def _dealt(needed: Program, columns: Mapping[str, int]) -> Dealing:
    """Raises `_NotNative` if relations that are split would be evaluated anew."""
    unshipped = {name for name in dict(_unshippable(needed)) if name not in columns}
    while True:
        placed = localize_in_parts(_with_places(needed, columns), unshipped)
        made, ships = _with_shipping(placed)
        refused = dict(_refusals(made, ships))
        if refused.keys() & columns.keys():
            raise _NotNative({name: why for name, why in refused.items() if name in columns})
        if not refused.keys() - unshipped:
            whole = tuple(name for name in needed.relations if name not in columns)
            return Dealing(needed, columns, whole, placed=placed, made=made, ships=ships)
        unshipped |= refused.keys()


def _with_places(program: Program, columns: Mapping[str, int]) -> Program:
    relations = {
        name: replace(relation, location=columns.get(name), everywhere=name not in columns, on_demand=False)
        for name, relation in program.relations.items()
    }
    return replace(program, relations=relations)


def _with_shipping(placed: Placed) -> tuple[Program, Mapping[str, str]]:
    relations = dict(placed.program.relations)
    rules: list[Rule] = []
    ships: dict[str, str] = {}
    for rule in placed.program.rules:
        if not placed.is_shipped(rule):
            rules.append(rule)
            continue
        name = rule.head.relation
        out = f"{name}{OUT}"
        rules.append(replace(rule, head=replace(rule.head, relation=out)))
        if out not in ships:
            ships[out] = name
            relations[out] = Relation(out, relations[name].fields, relations[name].span)
            rules.append(_taking(relations[name], out))
    found: list[Diagnostic] = []
    strata = stratify(relations, rules, placed.program.subsumptions, found)
    if found:
        raise ProgramError(placed.program.source, tuple(found))
    return replace(placed.program, relations=relations, rules=tuple(rules), strata=strata), ships


def _taking(relation: Relation, out: str) -> Rule:
    """The rule by which a part takes what it has derived for itself."""
    args = tuple(Var(f"c{at}", each.kind) for at, each in enumerate(relation.fields))
    body: tuple[Literal, ...] = (Atom(out, args, relation.span),)
    if relation.location is not None:
        body = (*body, in_own_part(args[relation.location], relation.span))
    return Rule(f"{relation.name}!in", Atom(relation.name, args, relation.span), body, relation.span)


def _unshippable(program: Program) -> Iterator[tuple[str, str]]:
    """Relations of strata that are evaluated anew, and why."""
    for stratum in compile_plan(_with_places(program, {})).strata:
        if not stratum.native:
            yield from _as_refused(stratum, program)


def _as_refused(stratum: StratumPlan, program: Program) -> Iterator[tuple[str, str]]:
    names = [name for name in stratum.relations if name in program.relations]
    told = ", ".join(name for name in names if "!" not in name)
    reason = f"{told} would be evaluated anew ({stratum.why_not_native})"
    yield from ((name, reason) for name in names)


def _refusals(made: Program, ships: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Relations that take support from others, or whose rules ship, in strata that are evaluated anew."""
    shipping = {*ships, *ships.values()}
    for stratum in compile_plan(made).strata:
        if not stratum.native and shipping.intersection(stratum.relations):
            names = {name.removesuffix(OUT) for name in stratum.relations}
            reason = f"{', '.join(sorted(names))} would be evaluated anew ({stratum.why_not_native})"
            yield from ((name, reason) for name in names)


# -- places -----------------------------------------------------------------------------------------------------------


class _Choice:
    """Looks for places by changing one after the other for the better, from several beginnings."""

    def __init__(self, program: Program, whole: Set[str]) -> None:
        self.program = program
        self.whole = whole
        self.base = frozenset(program.base_relations)
        self.recursive = {name for each in program.strata if each.recursive for name in each.relations}
        self.rules = [rule for rule in program.rules if not rule.is_fact]
        self.names = [
            tuple(sorted({part.relation for part in walk((rule.head, rule.body)) if isinstance(part, Atom)}))
            for rule in self.rules
        ]
        self.users: dict[str, list[int]] = {name: [] for name in program.relations}
        for at, names in enumerate(self.names):
            for name in names:
                self.users[name].append(at)
        self.known: dict[tuple[object, ...], int] = {}
        self.unsteady = frozenset(_unsteady(program))

    def best(self) -> dict[str, int]:
        possible = {name: self._possible(relation) for name, relation in self.program.relations.items()}
        beginnings = [
            {name: places[0] for name, places in possible.items()},
            {name: places[-2 if len(places) > 1 and places[-1] is None else -1] for name, places in possible.items()},
        ]
        found = [self._improved(each, possible) for each in beginnings]
        best = min(found, key=self._weight)
        return {name: place for name, place in best.items() if place is not None}

    def _possible(self, relation: Relation) -> tuple[int | None, ...]:
        if relation.name in self.whole or relation.everywhere or not relation.fields:
            return (None,)
        if relation.location is not None:
            return (relation.location,)
        window = relation.window
        columns = range(relation.arity) if window is None or window.rows is None else window.by
        return (*(column for column in columns if (relation.name, column) not in self.unsteady), None)

    def _improved(
        self, places: dict[str, int | None], possible: Mapping[str, tuple[int | None, ...]]
    ) -> dict[str, int | None]:
        places = dict(places)
        changed = True
        while changed and len(self.known) < _TRIALS:
            changed = False
            for name, choices in possible.items():
                if len(choices) > 1:
                    weights = {each: self._around(name, {**places, name: each}) for each in choices}
                    best = min(choices, key=weights.__getitem__)
                    if weights[best] < weights[places[name]]:
                        places[name], changed = best, True
        return places

    def _weight(self, places: Mapping[str, int | None]) -> int:
        own = sum(self._of_relation(name, place) for name, place in places.items())
        return own + sum(self._of_rule(at, places) for at in range(len(self.rules)))

    def _around(self, name: str, places: Mapping[str, int | None]) -> int:
        return self._of_relation(name, places[name]) + sum(self._of_rule(at, places) for at in self.users[name])

    def _of_relation(self, name: str, place: int | None) -> int:
        if place is not None:
            return 0
        return _WHOLE_BASE if name in self.base else _WHOLE_RECURSION if name in self.recursive else _WHOLE_VIEW

    def _of_rule(self, at: int, places: Mapping[str, int | None]) -> int:
        key = (at, *(places[name] for name in self.names[at]))
        if key not in self.known:
            names = {*self.names[at]}
            chosen = {name: place for name, place in places.items() if name in names and place is not None}
            relations = {name: each for name, each in self.program.relations.items() if name in names}
            program = _with_places(replace(self.program, relations=relations), chosen)
            self.known[key] = shipping_weight(program, self.rules[at], self.whole)
        return self.known[key]


def _unsteady(program: Program) -> Iterator[tuple[str, int]]:
    """Columns of recursions through aggregates whose values change as the recursion goes on: a tuple has to stay where it is."""
    for stratum in program.strata:
        if not stratum.monotone:
            continue
        rules = [rule for rule in program.rules if rule.head.relation in stratum.relations]
        found: set[tuple[str, int]] = set()
        while (
            more := {
                (rule.head.relation, at)
                for rule in rules
                for at, arg in enumerate(rule.head.args)
                if not isinstance(arg, Const) and not _is_steady(arg, rule, found)
            }
            - found
        ):
            found |= more
        yield from found


def _is_steady(arg: Term, rule: Rule, unsteady: Set[tuple[str, int]]) -> bool:
    return any(
        arg == each and (literal.relation, at) not in unsteady
        for literal in rule.body
        if isinstance(literal, Atom)
        for at, each in enumerate(literal.args)
    )
