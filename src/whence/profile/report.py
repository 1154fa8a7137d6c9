"""A profile put in the words of the program it is of: rules and literals as they are written, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from whence.engine.profile import PlanCost, Profile, StepCost, StratumCost
from whence.html import shown_block, shown_text
from whence.lang.program import Atom, Negation, Program
from whence.lang.tree import Span
from whence.plan.describe import describe_step
from whence.plan.steps import Build, Check, Compute, Generate, Join, Step
from whence.provenance.show import source_text
from whence.session import Session


@dataclass(frozen=True)
class LiteralCost:
    """A literal of a rule, where a plan comes to it. `rows` come out, `given` went in; None where that is not told apart.

    `kind` says what is done: a look-up by `index` (on `columns`, of a relation that holds `held` rows now), a `scan` of every
    row, a `check` whether a row is there, or a `test`.
    """

    text: str
    kind: str
    given: int | None
    rows: int | None
    seconds: float | None
    relation: str = ""
    columns: tuple[str, ...] = ()
    held: int = 0
    index_bytes: int = 0


@dataclass(frozen=True)
class DriverCost:
    """What a rule does when one of its literals changes: the way of the changed rows through the others."""

    literal: str
    runs: int
    rows: int
    derivations: int
    new: int
    lost: int
    finding: float
    storing: float
    literals: tuple[LiteralCost, ...]

    @property
    def seconds(self) -> float:
        return self.finding + self.storing


@dataclass(frozen=True)
class RuleCost:
    name: str
    head: str
    text: str
    place: str
    recursive: bool
    recursive_literals: int
    drivers: tuple[DriverCost, ...]

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.drivers)

    @property
    def derivations(self) -> int:
        return sum(each.derivations for each in self.drivers)

    @property
    def new(self) -> int:
        return sum(each.new for each in self.drivers)

    @property
    def lost(self) -> int:
        return sum(each.lost for each in self.drivers)


@dataclass(frozen=True)
class StratumTotal:
    """`why_anew` is why it is evaluated anew whenever an input changes, if it is."""

    relations: tuple[str, ...]
    recursive: bool
    epochs: int
    rounds: int
    seconds: float
    added: int
    gone: int
    why_anew: str = ""


@dataclass(frozen=True)
class RelationSize:
    name: str
    rows: int
    table_bytes: int
    indexes: tuple[tuple[tuple[str, ...], int], ...]


@dataclass(frozen=True)
class Report:
    """`seconds` is the time by what for: the phases of epochs, and what was waited for outside of them."""

    rules: tuple[RuleCost, ...]
    strata: tuple[StratumTotal, ...]
    relations: tuple[RelationSize, ...]
    seconds: dict[str, float]
    epochs: int
    rounds: int
    derivations: int

    def _repr_html_(self) -> str:
        from whence.profile.table import to_text  # noqa: PLC0415 - it tells reports

        return shown_block(shown_text(to_text(self)))

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    @property
    def rule_seconds(self) -> float:
        return sum(rule.seconds for rule in self.rules)


def report(profile: Profile, session: Session, *, of_last_epoch: bool = False) -> Report:
    """What the session has done since it began, the costliest rule first. The profile is the one that it was made with.

    Where it was restarted before the last epoch, it is `of_last_epoch` alone.

    >>> from whence import load
    >>> profile = Profile()
    >>> session = Session(load("q(x) :- p(x), x > 1. p(1). p(2). .output q"), profile=profile)
    >>> [(rule.name, rule.derivations) for rule in report(profile, session).rules if rule.head == "q"]
    [('q#1', 1)]
    """
    told = _Telling(profile, session)
    work = session.last_epoch if of_last_epoch else session.stats()
    return Report(
        tuple(sorted(told.rules(), key=lambda rule: (-rule.seconds, rule.name))),
        tuple(told.strata()),
        tuple(told.relations()),
        {**work["seconds"], **profile.elsewhere},
        1 if of_last_epoch else session.epoch + 1,
        work["rounds"],
        work["derivations"],
    )


class _Telling:
    def __init__(self, profile: Profile, session: Session) -> None:
        self.profile, self.session = profile, session
        self.program: Program = session.plan.program
        self.recursive = {
            name: stratum.relations
            for stratum in session.plan.strata
            for name in stratum.relations
            if stratum.recursive
        }

    def rules(self) -> Iterator[RuleCost]:
        by_name: dict[str, list[PlanCost]] = {}
        for cost in self.profile.plans.values():
            by_name.setdefault(cost.plan.rule.name, []).append(cost)
        for name, costs in by_name.items():
            rule = costs[0].plan.rule
            place = self.program.source.place(rule.span)
            members = self.recursive.get(rule.head.relation, ())
            inside = [each for each in rule.body if isinstance(each, Atom) and each.relation in members]
            yield RuleCost(
                name,
                rule.head.relation,
                self._text(rule.span).removeprefix(name).removeprefix(":").lstrip(),
                f"{place.file.name}:{place.line}",
                bool(inside),
                len(inside),
                tuple(sorted(map(self._driver, costs), key=lambda each: -each.seconds)),
            )

    def _driver(self, cost: PlanCost) -> DriverCost:
        plan = cost.plan
        driver = "from the start" if plan.scan is None else self._text(_span(plan.rule.body[plan.position]))
        return DriverCost(
            driver,
            cost.runs,
            cost.rows,
            cost.derivations,
            cost.new,
            cost.lost,
            cost.finding,
            cost.storing,
            tuple(self._literals(cost)),
        )

    def _literals(self, cost: PlanCost) -> Iterator[LiteralCost]:
        given: int | None = cost.rows
        for at, step in enumerate(cost.plan.steps):
            found = cost.steps.get(at)
            if isinstance(step, Compute | Build):
                continue
            yield self._literal(cost, step, given, found)
            given = found.rows if found is not None else None

    def _literal(self, cost: PlanCost, step: Step, given: int | None, found: StepCost | None) -> LiteralCost:
        rows, seconds = (found.rows, found.seconds) if found is not None else (None, None)
        if not isinstance(step, Join | Check):
            kind = "range" if isinstance(step, Generate) else "test"
            return LiteralCost(describe_step(step), kind, given, rows, seconds)
        text = self._text(_span(cost.plan.rule.body[step.position]))
        table = self.session.backend.tables.get(step.relation)
        held = 0 if table is None else len(table)
        if isinstance(step, Check):
            return LiteralCost(text, "check", given, rows, seconds, step.relation, held=held)
        columns = tuple(column for column, _ in step.key)
        kind = "index" if columns else "scan"
        index = None if table is None else table.indexes.get(columns)
        index_bytes = 0 if index is None else index.nbytes
        names = self._columns(step.relation, columns)
        return LiteralCost(text, kind, given, rows, seconds, step.relation, names, held, index_bytes)

    def _columns(self, relation: str, columns: Iterable[int]) -> tuple[str, ...]:
        known = self.program.relations.get(relation)
        return tuple(str(at) if known is None else known.fields[at].name for at in columns)

    def strata(self) -> Iterator[StratumTotal]:
        for cost in self.profile.strata.values():
            if cost.plan.deltas or cost.plan.statics or cost.plan.aggregates or not cost.plan.native:
                yield _stratum(cost)

    def relations(self) -> Iterator[RelationSize]:
        for name, table in self.session.backend.tables.items():
            indexes = tuple((self._columns(name, columns), index.nbytes) for columns, index in table.indexes.items())
            yield RelationSize(name, len(table), table.nbytes, indexes)

    def _text(self, span: Span) -> str:
        return source_text(self.program, span)


def _stratum(cost: StratumCost) -> StratumTotal:
    plan = cost.plan
    return StratumTotal(
        plan.relations,
        plan.recursive,
        cost.epochs,
        cost.rounds,
        cost.seconds,
        cost.added,
        cost.gone,
        plan.why_not_native,
    )


def _span(literal: object) -> Span:
    assert isinstance(literal, Atom | Negation)
    return literal.span
