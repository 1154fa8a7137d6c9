"""Another plan for the same data: rules have come or gone.

A stratum whose rules are the same is kept, with its rows and what is known of them, and maintained like in any epoch if an input
changes. One that gains or loses rules is maintained from the derivations of those rules, if support counting does it, or from
rows that are there already, if that is cheaper (`adapt`). Where relations depend on each other in another way than before, and
in strata maintained in other ways, the stratum is evaluated beside the others and compared with what was there: those above see
the difference only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Generic, NamedTuple, TypeVar

from whence.engine.adapt import Adaptation, Adapter, Way
from whence.engine.maintain import Maintainer
from whence.engine.protocol import BATCH, GONE, Ids, Keys, Ranks
from whence.engine.stratum import Delta, MaintainedStratum
from whence.engine.support import SupportStratum
from whence.lang.program import Atom, Literal, Program, Rule, Stratum
from whence.lang.tree import NOWHERE, Span
from whence.plan.compile import Plan
from whence.plan.steps import DeltaPlan, StratumPlan
from whence.reference.evaluate import StratumEvaluator

T = TypeVar("T")


class Revised(NamedTuple, Generic[Ids]):
    """The net changes, and how views were adapted whose rules changed."""

    changes: dict[str, Delta[Ids]]
    adaptations: tuple[Adaptation, ...]


def revise(maintainer: Maintainer[Ids, Keys, Ranks], plan: Plan) -> Revised[Ids]:
    """An epoch in which the plan becomes another one. The maintainer's `settle` ends it.

    Relations that are not in the new plan lose all their rows; the backend may forget them after that.
    """
    revision = _Revision(maintainer, plan)
    return Revised(revision.run(), tuple(revision.adaptations))


@dataclass
class _Revision(Generic[Ids, Keys, Ranks]):
    maintainer: Maintainer[Ids, Keys, Ranks]
    plan: Plan
    adaptations: list[Adaptation] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.backend = self.maintainer.backend
        self.before = {
            frozenset(each.relations): (stratum, each, old)
            for stratum, each, old in zip(
                self.maintainer.plan.program.strata,
                self.maintainer.plan.strata,
                self.maintainer.strata,
                strict=True,
            )
        }
        self.changes: dict[str, Delta[Ids]] = {}

    def run(self) -> dict[str, Delta[Ids]]:
        maintainer, program = self.maintainer, self.plan.program
        gone = [name for name in maintainer.plan.program.relations if name not in program.relations]
        maintainer.guard.restart()
        maintainer.guard.program = program
        self.backend.extend(program)
        evaluator = StratumEvaluator(program, maintainer.guard.limits)
        evaluator.solver.counters = maintainer.evaluator.solver.counters
        strata = []
        for stratum, each in zip(program.strata, self.plan.strata, strict=True):
            strata.append(self._stratum(stratum, each, evaluator))
        for name in gone:
            rows = self.backend.table(name).ids()
            self.changes[name] = Delta(self.backend.concatenate([]), rows)
        maintainer.plan, maintainer.strata, maintainer.evaluator = self.plan, strata, evaluator
        maintainer.stats.derivations = self.backend.enumerated
        return self.changes

    def _stratum(
        self, stratum: Stratum, each: StratumPlan, evaluator: StratumEvaluator
    ) -> MaintainedStratum[Ids, Keys, Ranks]:
        inputs = {name: self.changes[name] for name in each.inputs if name in self.changes}
        found = self.before.get(frozenset(each.relations))
        if found is None and not inputs and self._is_new(each):
            made = self.maintainer.make(stratum, each, self.backend, evaluator)
            rules = self._rules(self.plan.program, each)
            derived = self._revised(made, each, Counter(), rules, inputs={}, reason="it is new")
            if derived is not None:
                self.changes |= derived
                return made
        if found is None:
            is_new = self.maintainer.plan.program.relations.keys().isdisjoint(each.relations)
            reason = "it is new" if is_new else "there was no recursion of just these relations"
            return self._rebuild(stratum, each, evaluator, reason)
        if self._shape(self.plan.program, stratum, each) != self._shape(self.maintainer.plan.program, *found[:2]):
            return self._rebuild(stratum, each, evaluator, "more than its rules has changed")
        _, earlier, old = found
        dropped, added = self._rules(self.maintainer.plan.program, earlier), self._rules(self.plan.program, each)
        dropped, added = dropped - added, added - dropped
        if not dropped and not added:
            old.plan = each
            if inputs:
                self.changes |= old.maintain({}, {}, inputs, first=False)
            return old
        reason = (
            "what it reads has changed, too"
            if inputs
            else "only joins whose derivations are counted are said in other ways"
        )
        revised = self._revised(old, each, dropped, added, inputs=inputs, reason=reason, earlier=earlier)
        if revised is None:
            return self._rebuild(stratum, each, evaluator, "it is evaluated anew whenever something changes")
        self.changes |= revised
        return old

    def _revised(
        self,
        stratum: MaintainedStratum[Ids, Keys, Ranks],
        each: StratumPlan,
        dropped: Mapping[_RuleKey, int],
        added: Mapping[_RuleKey, int],
        *,
        inputs: Mapping[str, Delta[Ids]],
        reason: str,
        earlier: StratumPlan | None = None,
    ) -> dict[str, Delta[Ids]] | None:
        """The changes of a stratum whose rules changed; `reason` is why it is maintained from them if there was no choice."""
        chosen, changes = (None, None) if inputs else self._adapted(stratum, each, dropped, added)
        if changes is None:
            gone = () if earlier is None else _one_plan_each(earlier, dropped)
            changes = stratum.revise(each, inputs, gone, _one_plan_each(each, added))
        if changes is not None:
            self._tell(each, chosen or Adaptation(_shown(each), Way.RULES, reason))
        return changes

    def _tell(self, each: StratumPlan, adaptation: Adaptation) -> None:
        """Helper relations are nobody's business, and base relations are what they are."""
        if _shown(each) and not each.is_base:
            self.adaptations.append(adaptation)

    def _is_new(self, each: StratumPlan) -> bool:
        """Whether it is a view that nothing was known of, so that all it holds is what its rules derive."""
        before = self.maintainer.plan.program.relations
        return _is_plain(each) and not each.recursive and before.keys().isdisjoint(each.relations)

    def _adapted(
        self,
        stratum: MaintainedStratum[Ids, Keys, Ranks],
        each: StratumPlan,
        dropped: Mapping[_RuleKey, int],
        added: Mapping[_RuleKey, int],
    ) -> tuple[Adaptation | None, dict[str, Delta[Ids]] | None]:
        """What was chosen for a view whose rules changed, if there was a choice, and its changes if it was not these rules."""
        if not isinstance(stratum, SupportStratum) or not stratum.counts or each.recursive or not _is_plain(each):
            return None, None
        (name,) = each.relations
        before, after = self.maintainer.plan.program, self.plan.program
        if name in before.base_relations or name in after.base_relations:
            return None, None
        adapter = Adapter(self.backend, before, after)
        chosen = adapter.choose(name, _chosen(before, name, dropped), _chosen(after, name, added), self._steady())
        if chosen is None:
            return None, None
        adaptation, difference = chosen
        if adaptation.way is Way.RULES:
            return adaptation, None
        derive = self._derived_anew if adaptation.way is Way.ANEW else SupportStratum.adapt
        return adaptation, derive(stratum, each, name, *adapter.derive(name, difference))

    def _derived_anew(
        self, stratum: SupportStratum[Ids, Keys, Ranks], each: StratumPlan, name: str, none: Keys, keys: Keys
    ) -> dict[str, Delta[Ids]]:
        """The view from nothing but these derivations, compared with what was there."""
        scratch = self.backend.scratch()
        stratum.backend = scratch
        stratum.adapt(each, name, none, keys)
        stratum.backend = self.backend
        added, gone = self.backend.take_over(name, scratch)
        return {name: Delta(added, gone)} if len(added) or len(gone) else {}

    def _steady(self) -> Iterator[str]:
        """Views of one relation that are what they were, rules and rows."""
        after = {frozenset(each.relations): each for each in self.plan.strata}
        for names, (_, each, _) in self.before.items():
            later = after.get(names)
            if later is None or len(names) > 1 or each.recursive or not _is_plain(each):
                continue
            if self.changes.keys().isdisjoint({*names, *each.inputs}) and self._rules(
                self.maintainer.plan.program, each
            ) == self._rules(self.plan.program, later):
                yield from names

    def _shape(self, program: Program, stratum: Stratum, each: StratumPlan) -> object:
        """What has to be equal for rows and their supports to keep their meaning."""
        members = sorted(each.relations)
        subsumptions = [rule for rule in program.subsumptions if rule.dominated.relation in each.relations]
        preference = program.written if any(program.relations[name].choices for name in members) else ()
        return (
            [_bare(program.relations[name]) for name in members],
            preference,
            (
                each.native,
                _bare(each.aggregates),
                stratum.monotone,
                stratum.stages,
                stratum.groups,
                _bare(tuple(subsumptions)),
            ),
        )

    def _rules(self, program: Program, each: StratumPlan) -> Counter[_RuleKey]:
        return Counter(_key(rule) for name in each.relations for rule in program.rules_for(name))

    def _rebuild(
        self, stratum: Stratum, each: StratumPlan, evaluator: StratumEvaluator, reason: str
    ) -> MaintainedStratum[Ids, Keys, Ranks]:
        """Evaluates the stratum on copies of its inputs, and takes over the result."""
        self._tell(each, Adaptation(_shown(each), Way.BESIDE, reason))
        scratch = self.backend.scratch()
        inputs: dict[str, Delta[Ids]] = {}
        for name in each.inputs:
            keys = self.backend.rows(name, without=GONE)
            table = scratch.table(name)
            copied = table.add_supports(keys, scratch.unranked(keys))
            table.activate(copied, 1)
            table.change_flags(copied, off=BATCH)
            inputs[name] = Delta(copied, scratch.concatenate([]))
        outside = {name: self.maintainer.outside(name) for name in each.relations}
        built = self.maintainer.make(stratum, each, scratch, evaluator)
        built.maintain({}, {name: keys for name, keys in outside.items() if len(keys)}, inputs, first=True)
        built.backend = self.backend
        for name in each.relations:
            added, gone = self.backend.take_over(name, scratch)
            if len(added) or len(gone):
                self.changes[name] = Delta(added, gone)
        return built


_RuleKey = tuple[Atom, tuple[Literal, ...]]


def _key(rule: Rule) -> _RuleKey:
    """What a rule says: where it stands and names of helpers may change."""
    return _bare(rule.head), _bare(rule.body)


def _bare(node: T) -> T:
    """Part of a program without its places in the text."""
    if isinstance(node, Span):
        return NOWHERE  # type: ignore[return-value]
    if isinstance(node, tuple):
        return tuple(map(_bare, node))  # type: ignore[return-value]
    if is_dataclass(node) and not isinstance(node, type):
        return replace(node, **{each.name: _bare(getattr(node, each.name)) for each in fields(node)})
    return node


def _shown(each: StratumPlan) -> str:
    """The relations of a stratum that users know: the names of helpers hold a `!`."""
    return ", ".join(name for name in each.relations if "!" not in name)


def _is_plain(each: StratumPlan) -> bool:
    """Whether it is one relation, whose rows follow from rules and from nothing else."""
    return each.native and not each.aggregates and len(each.relations) == 1


def _chosen(program: Program, name: str, wanted: Mapping[_RuleKey, int]) -> list[Rule]:
    left = Counter(wanted)
    chosen = []
    for rule in program.rules_for(name):
        key = _key(rule)
        if left[key]:
            left[key] -= 1
            chosen.append(rule)
    return chosen


def _one_plan_each(each: StratumPlan, wanted: Mapping[_RuleKey, int]) -> Sequence[DeltaPlan]:
    """For each of the rules a plan that finds all its derivations, given all rows of the relation that it begins with."""
    left = Counter(wanted)
    plans: dict[str, DeltaPlan] = {}
    for plan in (*each.statics, *each.deltas):
        name, key = plan.rule.name, _key(plan.rule)
        if not plan.negated and name not in plans and left[key]:
            plans[name] = plan
            left[key] -= 1
    return tuple(plans.values())
