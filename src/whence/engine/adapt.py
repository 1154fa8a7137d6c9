"""A view whose rules have changed, from what is there: its own rows, and those of other views.

Rows keep how many derivations they have, so a view is a sum of its rules, and what a revision changes is a difference of such
sums (`reasoning.rewriting`). It can be said in several ways: by all derivations of the rules that went and came, or by rows of
views that hold them already, each counting as often as it is derived. What is estimated to be cheapest is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic

from whence.engine.protocol import Backend, Ids, Keys, Ranks
from whence.lang.program import Atom, Comparison, Literal, Program, Rule
from whence.lang.tree import NOWHERE
from whence.plan.delta_plans import delta_plans
from whence.plan.steps import DeltaPlan
from whence.reasoning.costs import Estimates, Observed, cost_of, join_order
from whence.reasoning.forms import Sum, sum_of
from whence.reasoning.queries import Conjunctive, NotConjunctive, Simple, Unfolding
from whence.reasoning.rewriting import View, normal_form, reformulate
from whence.reasoning.show import rules_of

COUNTED = "!counted"  # behind the name of a view whose rows count as often as they are derived
WORTHWHILE = 100_000  # rows that have to be at stake for views to be looked at: searching takes time, too
_BROUGHT_TOGETHER = 1.7  # seconds a row, as against those of other ways, in views of a few 100,000 rows
_MOST_VIEWS = 12
_SECONDS = 0.5
_MOST_STEPS = 200


class Way(StrEnum):
    """How a view is brought in line with its new rules."""

    RULES = "by rules"  # all derivations of the rules that went and came
    REFORMULATED = "reformulated"  # the difference, said in another way
    ANEW = "anew"  # all derivations of the new rules, in an empty table
    BESIDE = "beside the others"  # evaluated from all its inputs, and compared with what was there


_REASONS = {
    Way.RULES: "no other way is estimated to cost less",
    Way.REFORMULATED: "what went and came overlaps, or rows that are there tell it",
    Way.ANEW: "there is less to derive than to take away and add",
}


@dataclass(frozen=True)
class Adaptation:
    """What was done and why, and what each way was estimated to cost, in rows read and made, if there was a choice.

    `rules` are those whose derivations were counted: with a minus, they were taken away.
    """

    relation: str
    way: Way
    reason: str
    rules: tuple[str, ...] = ()
    costs: Mapping[Way, float] = field(default_factory=dict)

    @property
    def cost(self) -> float:
        return self.costs[self.way]

    def __str__(self) -> str:
        costs = ", ".join(f"{way} {cost:,.0f}" for way, cost in self.costs.items())
        return f"{self.relation}: {self.way}, since {self.reason}" + (
            f" (rows to read and make: {costs})" if costs else ""
        )


@dataclass(frozen=True)
class Adapter(Generic[Ids, Keys, Ranks]):
    """What is there to adapt views from: rules before and after, and tables of relations that do not change meanwhile."""

    backend: Backend[Ids, Keys, Ranks]
    before: Program
    after: Program
    observed: dict[str, Observed] = field(default_factory=dict)

    def choose(
        self, relation: str, dropped: Sequence[Rule], came: Sequence[Rule], steady: Iterable[str]
    ) -> tuple[Adaptation, Sum] | None:
        """The cheaper way, or None if the rules are not of the kind that can be reformulated."""
        gone, new, later = (
            _parts_of(self.before, dropped),
            _parts_of(self.after, came),
            _parts_of(self.after, list(self.after.rules_for(relation))),
        )
        if gone is None or new is None:
            return None
        known = self._estimates((*gone, *new, *(later or ())))
        plain = {part: cost_of(part, known, indexed=True) for part in (*gone, *new, *(later or ()))}
        sums: dict[Way, Sum] = {Way.RULES: sum_of([*new, *map(_negative, gone)])}
        costs = {Way.RULES: sum(plain[part] for part in (*gone, *new))}
        if later is not None:
            sums[Way.ANEW] = sum_of(later)
            costs[Way.ANEW] = sum(plain[part] for part in later) + len(self.backend.table(relation))
        difference = normal_form([*new, *map(_negative, gone)])
        views: list[View] = []
        if min(costs.values()) >= WORTHWHILE:
            views = list(self._views(relation, difference, steady))
            known = self._estimates((*gone, *new, *(part for view in views for part in view.parts)), views)
        found = reformulate(difference, views, known, indexed=True, seconds=_SECONDS, most_steps=_MOST_STEPS)
        options = {_weighed(found.sum, found.cost): found.sum, _weighed(difference, found.original_cost): difference}
        costs[Way.REFORMULATED] = min(options)
        sums[Way.REFORMULATED] = options[min(options)]
        way = min(costs, key=lambda each: costs[each])
        shown = tuple(text.replace(COUNTED, "") for text in rules_of(sums[way], relation))
        return Adaptation(relation, way, _REASONS[way], shown, costs), sums[way]

    def _estimates(self, parts: Iterable[Conjunctive], views: Iterable[View] = ()) -> Estimates:
        names = {name for part in parts for name, _ in part.atoms} | {view.name for view in views}
        for name in names - self.observed.keys():
            self.observed[name] = self.backend.observe(name.removesuffix(COUNTED))
        return Estimates(self.observed)

    def _views(self, relation: str, difference: Sum, steady: Iterable[str]) -> Iterator[View]:
        """The views that part of the difference may be said by."""
        wanted = [sorted(name for name, _ in part.atoms) for part in difference]
        fed = frozenset(self.before.base_relations)
        number = 0
        for name in dict.fromkeys([relation, *steady]):
            if name in fed or name not in self.before.relations or number == _MOST_VIEWS:
                continue
            parts = _parts_of(self.before, list(self.before.rules_for(name)))
            if parts and any(_within(part, names) for part in parts for names in wanted):
                number += 1
                yield View(name + COUNTED, parts)

    def derive(self, relation: str, difference: Sum) -> tuple[Keys, Keys]:
        """The derivations that are taken away and those that come, a line for each: no row is in both."""
        sides: tuple[list[Keys], list[Keys]] = ([], [])
        known = self._estimates(difference)
        for part, times in difference.items():
            plan = _plan_of(part, relation, known)
            counted = [at for at, (name, _) in enumerate(_ordered(part, known)) if name.endswith(COUNTED)]
            ids = None if plan.scan is None else self.backend.table(plan.scan.relation).ids()
            side = sides[times > 0]
            if counted:
                for heads, rows, _ in self.backend.trace(plan, ids, lambda _: 0):
                    used = [(_atom_at(plan, at).relation, rows[at]) for at in counted]
                    side.append(self.backend.repeated(heads, used, abs(times)))
            else:
                for keys, _ in self.backend.run(plan, ids, lambda _: 0):  # which may be overwritten by the next
                    side.append(self.backend.repeated(keys, (), abs(times)))
        return self.backend.net(relation, *sides)


def _weighed(difference: Sum, cost: float) -> float:
    """Rows that count several times, and derivations that go and come at once, take longer to bring together."""
    is_plain = all(number > 0 for number in difference.values()) or all(number < 0 for number in difference.values())
    counted = any(name.endswith(COUNTED) for part in difference for name, _ in part.atoms)
    return cost if is_plain and not counted else _BROUGHT_TOGETHER * cost


def _negative(part: Conjunctive) -> Conjunctive:
    return replace(part, sign=-part.sign)


def _parts_of(program: Program, rules: Sequence[Rule]) -> tuple[Conjunctive, ...] | None:
    """The rules as they are planned: what their bodies name counts as given, each row once."""
    unfolding = Unfolding(program, frozenset(program.relations))
    try:
        return tuple(part for rule in rules for part in unfolding.parts_of_rule(rule))
    except NotConjunctive:
        return None


def _within(part: Conjunctive, names: list[str]) -> bool:
    left = list(names)
    for name, _ in part.atoms:
        if name not in left:
            return False
        left.remove(name)
    return bool(part.atoms)


def _ordered(part: Conjunctive, known: Estimates) -> list[tuple[str, tuple[Simple, ...]]]:
    return [part.atoms[at] for at in join_order(part, known)]


def _plan_of(part: Conjunctive, relation: str, known: Estimates) -> DeltaPlan:
    """A plan that finds all derivations, joining in the order that is estimated to be cheapest."""
    body: list[Literal] = [Atom(name.removesuffix(COUNTED), args, NOWHERE) for name, args in _ordered(part, known)]
    body += [Comparison(op, left, right, NOWHERE) for op, left, right in part.comparisons]
    rule = Rule(f"{relation}!adapted", Atom(relation, part.head, NOWHERE), tuple(body), NOWHERE)
    return next(iter(delta_plans(rule, frozenset(), join_order=lambda _candidates, _sizes: 0)))


def _atom_at(plan: DeltaPlan, at: int) -> Atom:
    literal = plan.rule.body[at]
    assert isinstance(literal, Atom)
    return literal
