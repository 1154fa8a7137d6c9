"""A node of a field: what it stores, what it joins, what it is the home of.

Everything it does is an answer to a fact, a result or a timer. Updates are matched as if all of them had been processed
one after the other in the order of their stamps: one sees the tuples that were born before it and had not died by then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from whence.lang.types import Tuple, Value
from whence.lang.undefined import Undefined
from whence.runtime import Port
from whence.runtime.process import Address, Message
from whence.sensors.facts import FactTable
from whence.sensors.homes import Entry, Homes
from whence.sensors.messages import (
    Fact,
    Flooded,
    Partial,
    Result,
    Routed,
    Stamp,
    Stored,
    Summary,
    Sweep,
    Told,
)
from whence.sensors.regions import Region
from whence.sensors.rules import Body, Environment
from whence.sensors.summaries import Summaries
from whence.sensors.translate import RulePlan
from whence.topology.paths import Way

if TYPE_CHECKING:
    from whence.sensors.network import SensorNetwork

INPUT = "input"


class SensorNode:
    def __init__(self, network: SensorNetwork, node: Value) -> None:
        self.network = network
        self.program = network.sensor_program
        self.node = node
        self.number = network.field.numbers[node]
        self.neighbours = network.field.neighbours[node]
        self.store = {name: FactTable() for name in self.program.program.relations}
        self.homes: Homes = {}
        self.summaries = Summaries(self)
        self.port: Port
        self._count = 0
        self._results: deque[Result] = deque()

    def stamp(self) -> Stamp:
        self._count += 1
        return Stamp(self.port.clock(), self.number, self._count)

    # -- the world

    def sense(self, relation: str, row: Tuple, *, is_there: bool) -> None:
        """Something is there, or no longer is; saying it twice changes nothing."""
        stamp = self.stamp()
        entry = self._entry(relation, row)
        if is_there:
            self._watch_expiry(relation, row, stamp)
        if entry.take(Result(relation, row, (INPUT, ()), is_there, stamp, stamp.time)):
            self.decide(relation, row)
        self.settle()

    def _watch_expiry(self, relation: str, row: Tuple, stamp: Stamp) -> None:
        lasting = self.network.windows.get(relation)
        if lasting is not None and not self.network.silent_expiry:
            self.port.set_timer(lasting, ("expire", relation, row, stamp))

    # -- what others say

    def on_message(self, sender: Address, message: Message, port: Port) -> None:  # noqa: ARG002
        match message:
            case Told(fact=fact):
                self.learn(fact)
            case Stored(fact=fact, way=way, sides=sides):
                if self.learn(fact):
                    self._watch_time(fact)
                self._store_on(fact, way, sides)
            case Flooded(fact=fact):
                if self.learn(fact):
                    self._watch_time(fact)
                    self.port.broadcast(self.neighbours, message)
            case Sweep():
                self._walk_on(message)
            case Result():
                self.take(message)
            case Routed(target=target, message=inner):
                self.route(target, inner)
            case Summary():
                self.summaries.take(sender, message)
        self.settle()

    def on_timer(self, name: Hashable, port: Port) -> None:  # noqa: ARG002
        match name:
            case ("decide", relation, row, due):
                self._entry(relation, row).pending.discard(due)  # type: ignore[arg-type]
                self.decide(relation, row)  # type: ignore[arg-type]
            case ("join", relation, born, stamp):
                self._look_for_partners(relation, born, stamp)  # type: ignore[arg-type]
            case ("expire", relation, row, stamp):
                entry = self._entry(relation, row)  # type: ignore[arg-type]
                if entry.derivations[INPUT, ()] == (stamp, True):
                    self.network.expired(relation, row)  # type: ignore[arg-type]
                    self.sense(relation, row, is_there=False)  # type: ignore[arg-type]
            case ("summaries", output):
                self.summaries.tell(output)  # type: ignore[arg-type]
        self.settle()

    def route(self, target: Value, message: Message) -> None:
        if target == self.node:
            self.on_message(self.node, message, self.port)
        else:
            self.port.send(self.network.field.next_hop(self.node, target), Routed(target, message))

    def _watch_time(self, fact: Fact) -> None:
        if self.port.clock() - fact.stamp.time > self.network.timing.patience + 1e-9:
            self.network.late += 1

    # -- homes

    def take(self, result: Result) -> None:
        entry = self._entry(result.relation, result.row)
        if entry.take(result):
            self.schedule(entry, result)

    def schedule(self, entry: Entry, result: Result) -> None:
        """Has a tuple looked at: in this instant, after everything else; or when its stage has its turn."""
        due = self.port.clock()
        if result.relation in self.program.stages:
            column, turn, turns = self.program.stages[result.relation]
            stage = result.row[column]
            assert isinstance(stage, int)
            if stage > self.network.stage_limit:
                self.network.beyond[result.relation, result.row] = entry
                return
            due = max(due, self.network.timing.decided(result.relation, stage, turn, turns, result.root))
        if due not in entry.pending:
            entry.pending.add(due)
            self.port.set_timer(max(due - self.port.clock(), 0.0), ("decide", result.relation, result.row, due))

    def decide(self, relation: str, row: Tuple) -> None:
        """Publishes that a tuple came or went, if it is still so."""
        entry = self._entry(relation, row)
        if entry.is_wanted and entry.published is None:
            self.publish(entry, Fact(relation, row, self.stamp(), entry.root))
        elif not entry.is_wanted and entry.published is not None:
            gone = entry.published.copy()
            gone.died, gone.root = self.stamp(), entry.root
            self.publish(entry, gone)

    def publish(self, entry: Entry, fact: Fact) -> None:
        entry.published = fact if fact.died is None else None
        entry.since = self.network.simulation.now
        self.network.note(self.node, fact)
        self.learn(fact)
        for delivery in self.program.deliveries[fact.relation]:
            if delivery.how == "neighbours":
                self.port.broadcast(self.neighbours, Told(fact))
            else:
                target = self.program.node_for(delivery.how, tuple(fact.row[at] for at in delivery.columns))
                if target != self.node:
                    self.route(target, Told(fact))
        kinds = self.program.storage[fact.relation]
        spot = self.program.spot(fact.relation, fact.row)
        for kind, reach in kinds.items():
            spread = self.program.regions.storage(self.node, kind, reach, spot)
            if spread.flood:
                self.port.broadcast(self.neighbours, Flooded(fact))
            elif spread.neighbours:
                self.port.broadcast(self.neighbours, Told(fact))
            else:
                self._store_on(fact, spread.lead, spread.sides)
        if kinds:
            self.port.set_timer(self.network.timing.patience, ("join", fact.relation, fact.born, fact.stamp))
        self.summaries.change(fact)

    def _store_on(self, fact: Fact, way: tuple[Value, ...], sides: tuple[tuple[Value, ...], ...]) -> None:
        if way:
            self.port.send(way[0], Stored(fact, way[1:], sides))
            return
        for side in sides:
            if side:
                self.port.send(side[0], Stored(fact, side[1:]))

    def _entry(self, relation: str, row: Tuple) -> Entry:
        found = self.homes.get((relation, row))
        if found is None:
            found = self.homes[relation, row] = self.network.make_entry()
        return found

    # -- what is stored

    def learn(self, fact: Fact) -> bool:
        """Takes a fact in; whether it was news. Rules that are evaluated here see it at once."""
        known = self.store[fact.relation].get(fact.born)
        if known is None:
            known = fact.copy()
            self.store[fact.relation].add(known)
            if known.died is None:
                self._evaluate(known)
            return True
        if fact.died is None or known.died is not None:
            return False
        known.died, known.root = fact.died, fact.root
        self._evaluate(known)
        return True

    def forget(self, relation: str) -> FactTable:
        """What is stored of a relation, without what no update under way can ask for any more."""
        stored = self.store[relation]
        now = self.port.clock()
        window = self.network.windows.get(relation) if self.network.silent_expiry else None
        timing = self.network.timing
        old = [
            fact.born
            for fact in stored
            if (fact.died is not None and now - fact.died.time > timing.forgetting)
            or (window is not None and now - fact.born.time > timing.expiry(window))
        ]
        for born in old:
            stored.drop(born)
        return stored

    # -- rules at a site

    def _evaluate(self, fact: Fact) -> None:
        came = fact.died is None
        for plan in self.network.site_plans.get(fact.relation, ()):
            for at, atom in enumerate(plan.body.reads):
                if atom.relation == fact.relation:
                    is_addition = came == (at < len(plan.body.atoms))
                    self._evaluate_at_site(plan, at, fact, is_addition=is_addition)

    def _evaluate_at_site(self, plan: RulePlan, at: int, fact: Fact, *, is_addition: bool) -> None:
        body, site = plan.body, plan.site
        assert site is not None
        if (site.how == "self" and fact.born.node != self.number) or (
            site.how == "named" and not site.names and site.node != self.node
        ):
            return
        start: Environment = {site.names[0]: self.node} if site.how == "named" and site.names else {}
        fitting = self.network.matcher.fit(body.reads[at], fact.row, start)
        if fitting is None or (
            site.how in ("nearest", "hashed")
            and self.program.node_for(site.how, tuple(fitting[name] for name in site.names)) != self.node
        ):
            return
        if site.how == "server" and self.node != self.program.server:
            return
        members: list[Stamp | None] = [None] * len(body.atoms)
        if at < len(body.atoms):
            members[at] = fact.born
        stamp = self.stamp()
        for environment, left in self.network.matcher.test(body, fitting, self.network.all_tests[body.rule.name]):
            for whole in self._complete(plan, environment, left, members, fact, is_addition=is_addition):
                self._tell(plan, whole, is_addition, stamp, fact.root)

    def _complete(
        self,
        plan: RulePlan,
        environment: Environment,
        left: frozenset[int],
        members: list[Stamp | None],
        fact: Fact,
        *,
        is_addition: bool,
    ) -> Iterator[tuple[Environment, list[Stamp | None]]]:
        body = plan.body
        missing = self._next_partner(body, environment, members)
        if missing is None:
            if not is_addition or not self._is_blocked(plan, environment):
                yield environment, members
            return
        atom = body.atoms[missing]
        for other in self.store[atom.relation].matching(atom, environment):
            # What goes takes with it what it was joined with, itself among them.
            if other.died is not None and not (other is fact and not is_addition):
                continue
            fitting = self.network.matcher.fit(atom, other.row, environment)
            if fitting is not None:
                chosen = [*members[:missing], other.born, *members[missing + 1 :]]
                for extended, still in self.network.matcher.test(body, fitting, left):
                    yield from self._complete(plan, extended, still, chosen, fact, is_addition=is_addition)

    def _next_partner(self, body: Body, environment: Environment, members: list[Stamp | None]) -> int | None:
        """The atom to join next: one that a condition ties to what is known, with the fewest facts that may fit."""
        missing = [at for at, member in enumerate(members) if member is None]
        if len(missing) < 2:
            return missing[0] if missing else None
        known = frozenset(environment)

        def cost(at: int) -> tuple[bool, int]:
            atom = body.atoms[at]
            return not body.is_tied_to(at, known), self.store[atom.relation].count(atom, environment)

        return min(missing, key=cost)

    def _is_blocked(self, plan: RulePlan, environment: Environment) -> bool:
        return any(
            other.died is None and self.network.matcher.is_blocked_by(atom, other.row, environment)
            for atom in plan.body.negated
            for other in self.store[atom.relation].matching(atom, environment)
        )

    # -- rules in regions

    def _look_for_partners(self, relation: str, born: Stamp, stamp: Stamp) -> None:
        known = self.store[relation].get(born)
        if known is None:
            return
        fact = Fact(relation, known.row, born, known.root, None if stamp == born else stamp)
        sweeps: dict[tuple[Region, float], list[Partial]] = {}
        for number, plan in enumerate(self.program.plans):
            if plan.site is not None:
                continue
            for at, atom in enumerate(plan.body.reads):
                if atom.relation == relation:
                    key = (plan.regions[at][1], plan.reaches[at])
                    sweeps.setdefault(key, []).extend(self._begin(number, plan, at, fact))
        for (kind, reach), partials in sweeps.items():
            if partials:
                spot = self.program.spot(relation, fact.row)
                for lead, way in self._ways(*self.program.regions.join(self.node, kind, reach, spot), partials):
                    self._walk_on(Sweep(fact, lead, way, 0, 1, tuple(partials)))

    def _ways(self, lead: Way, way: Way, partials: list[Partial]) -> list[tuple[Way, Way]]:
        """What only needs one more partner meets it on either side alone: it need not go to an end of the way first."""
        if not lead or self.node not in way or not all(self._is_done_by_one(each) for each in partials):
            return [(lead, way)]
        at = way.index(self.node)
        return [((), way[at:]), ((way[at - 1],), tuple(reversed(way[:at])))] if at else [((), way)]

    def _is_done_by_one(self, partial: Partial) -> bool:
        body = self.program.plans[partial.plan].body
        return partial.members.count(None) == 1 and not (partial.is_addition and body.negated)

    def _begin(self, number: int, plan: RulePlan, at: int, fact: Fact) -> Iterator[Partial]:
        body = plan.body
        is_addition = (fact.died is None) == (at < len(body.atoms))
        fitting = self.network.matcher.fit(body.reads[at], fact.row, {})
        if fitting is None:
            return
        members = tuple(fact.born if place == at else None for place in range(len(body.atoms)))
        for environment, left in self.network.matcher.test(body, fitting, self.network.all_tests[body.rule.name]):
            yield Partial(number, is_addition, environment, members, left, at)

    def _walk_on(self, sweep: Sweep) -> None:
        if sweep.lead:
            fact, lead, *rest = sweep.fact, sweep.lead, sweep.way, sweep.at, sweep.walk, sweep.partials
            self.port.send(lead[0], Sweep(fact, lead[1:], *rest))  # type: ignore[arg-type]
            return
        while True:
            sweep = self._visit(sweep)
            if sweep.at + 1 < len(sweep.way):
                if sweep.partials or sweep.found:
                    onward = (sweep.way, sweep.at + 1, sweep.walk, sweep.partials, sweep.found, sweep.is_checking)
                    self.port.send(sweep.way[sweep.at + 1], Sweep(sweep.fact, (), *onward))
                return
            following = self._turn(sweep)
            if following is None:
                return
            sweep = following

    def _visit(self, sweep: Sweep) -> Sweep:
        """Joins, or holds results against what is negated, with what is stored here."""
        if sweep.is_checking:
            found = tuple(each for each in sweep.found if not self._is_blocked_for(sweep.fact, each))
            return Sweep(sweep.fact, (), sweep.way, sweep.at, sweep.walk, (), found, True)
        if sweep.way.index(self.node) != sweep.at:
            return sweep  # it has been here on this walk
        open_: list[Partial] = []
        found_: list[Partial] = list(sweep.found)
        for partial in sweep.partials:
            for each in self._extended(sweep, partial):
                if None in each.members or each.tests:
                    open_.append(each)
                elif each.is_addition and self.program.plans[each.plan].body.negated:
                    self.hold(sweep.fact, each, found_)
                else:
                    self._output(sweep.fact, each)
        return Sweep(sweep.fact, (), sweep.way, sweep.at, sweep.walk, tuple(open_), tuple(found_))

    def hold(self, _fact: Fact, partial: Partial, found: list[Partial]) -> None:
        """Results of a rule with negations go on: what blocks them may be anywhere on the way, behind as well as ahead."""
        found.append(partial)

    def _turn(self, sweep: Sweep) -> Sweep | None:
        """The end of the way: back along it, to join what is missing or to hold results against what is negated."""
        if sweep.is_checking:
            for each in sweep.found:
                self._output(sweep.fact, each)
            return None
        back = tuple(reversed(sweep.way))
        going_on = tuple(each for each in sweep.partials if self._is_open(each, sweep.walk + 1))
        if going_on:
            return Sweep(sweep.fact, (), back, 0, sweep.walk + 1, going_on, sweep.found)
        if sweep.found:
            return Sweep(sweep.fact, (), back, 0, sweep.walk + 1, (), sweep.found, True)
        return None

    def _is_open(self, partial: Partial, walk: int) -> bool:
        """Whether a partial result has a walk ahead of it on which it is joined."""
        plan = self.program.plans[partial.plan]
        order = plan.body.orders[partial.occurrence]
        if not plan.several_passes or len(order) < walk:
            return False
        return all(partial.members[at] is not None for at in order[: walk - 1])

    def _extended(self, sweep: Sweep, partial: Partial) -> list[Partial]:
        """A partial result, and all that it makes together with what is stored here."""
        plan = self.program.plans[partial.plan]
        order = plan.body.orders[partial.occurrence]
        chosen = order[sweep.walk - 1 : sweep.walk] if plan.several_passes else order
        frontier = [partial]
        for at in chosen:
            atom = plan.body.atoms[at]
            stored = self.forget(atom.relation)
            for each in list(frontier):
                if each.members[at] is not None:
                    continue
                for fact in stored.matching(atom, each.environment):
                    if not self.may_match(fact, sweep.fact, partial.is_addition):
                        continue
                    fitting = self.network.matcher.fit(atom, fact.row, each.environment)
                    if fitting is None:
                        continue
                    members = (*each.members[:at], fact.born, *each.members[at + 1 :])
                    for environment, left in self.network.matcher.test(plan.body, fitting, each.tests):
                        frontier.append(each._replace(environment=environment, members=members, tests=left))
        return frontier

    def may_match(self, fact: Fact, update: Fact, is_addition: bool) -> bool:
        """Whether an update sees a fact: born before it, and, by then, not dead.

        What an update adds has to be there after it; what it takes away was there before it.
        """
        stamp = update.stamp
        if fact.born > stamp:
            return False
        if fact.died is not None and (fact.died <= stamp if is_addition else fact.died < stamp):
            return False
        window = self.network.windows.get(fact.relation) if self.network.silent_expiry else None
        return window is None or fact.born.time > stamp.time - window

    def _is_blocked_for(self, update: Fact, partial: Partial) -> bool:
        return any(
            self.may_match(fact, update, True)
            and self.network.matcher.is_blocked_by(atom, fact.row, partial.environment)
            for atom in self.program.plans[partial.plan].body.negated
            for fact in self.forget(atom.relation).matching(atom, partial.environment)
        )

    def _output(self, update: Fact, partial: Partial) -> None:
        plan = self.program.plans[partial.plan]
        self._tell(plan, (partial.environment, list(partial.members)), partial.is_addition, update.stamp, update.root)

    # -- results

    def _tell(
        self,
        plan: RulePlan,
        whole: tuple[Environment, list[Stamp | None]],
        is_addition: bool,
        stamp: Stamp,
        root: float,
    ) -> None:
        environment, members = whole
        try:
            row = self.network.matcher.head(plan.rule, environment)
        except Undefined:
            return  # as in the reference, nothing is derived where a functor has no value
        known = tuple(member for member in members if member is not None)
        self.tell_home(Result(plan.rule.head.relation, row, (plan.rule.name, known), is_addition, stamp, root))

    def tell_home(self, result: Result) -> None:
        home = self.program.home(result.relation, result.row)
        if home == self.node:
            self._results.append(result)
        else:
            self.network.expect(home, result)
            self.route(home, result)

    def settle(self) -> None:
        """Results for this node itself: nobody is called while busy."""
        while self._results:
            self.take(self._results.popleft())
