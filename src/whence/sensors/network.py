"""A program on a field of sensors: updates as they are sensed, results as they come, and what it all takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf

from whence.io.changes import Update
from whence.lang.fit import check_rows
from whence.lang.program import Atom, Program
from whence.lang.tree import walk
from whence.lang.types import Tuple, Value
from whence.plan.extract_aggregates import AggregateSpec
from whence.reference import evaluate
from whence.reference.solve import Solver
from whence.runtime import Channel, Delivery, Simulation, Wiring
from whence.runtime.energy import Energy, Radio, energy_of
from whence.runtime.figures import Traffic
from whence.sensors.homes import Entry
from whence.sensors.messages import Fact, Result
from whence.sensors.node import SensorNode
from whence.sensors.rules import Matcher, NotForSensors
from whence.sensors.summaries import finished, state_of
from whence.sensors.timing import Timing, find_timing
from whence.sensors.translate import Choices, RulePlan, SensorProgram, translate
from whence.topology.field import Field

_REPETITIONS = 250  # a hop that repeats what is lost may take so many times as long
_DEFAULT = Choices()
HOP = Channel(latency=0.01)


@dataclass(frozen=True, slots=True)
class Moment:
    """A row came or went at its home. `final` is when nothing that is known by now can change that any more."""

    time: float
    node: Value
    relation: str
    row: Tuple
    is_there: bool
    root: float
    final: float


@dataclass(frozen=True, slots=True)
class Compared:
    """Rows of the views against the truth: those that are missed, and those that should not be there."""

    missed: int
    false: int
    right: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """The value of a group by its sketch, and what it is."""

    relation: str
    group: Tuple
    found: Value
    exact: Value

    @property
    def error(self) -> float:
        """As a share of the exact value."""
        if self.found == self.exact:
            return 0.0
        return abs(self.found - self.exact) / abs(self.exact) if self.exact else inf  # type: ignore[operator, arg-type]


class SensorNetwork:
    """A program on the nodes of a field.

    `channel` is a hop. `skew` bounds how far a clock is off. `reliable` repeats what was lost, which takes time: bounds are
    then so much longer. A `radio` that is given has batteries that run empty. `stage_limit` ends recursions that count up (by
    default, at the number of nodes). `silent_expiry` forgets what left its window without taking back what was derived from it.

    >>> from whence import Update, load
    >>> program = load('''.decl seen(x:number, y:number, kind:symbol) .input seen .output pair
    ...     pair(x, y, u, v) :- seen(x, y, "enemy"), seen(u, v, "friend"), dist(x, y, u, v) <= 2.0.''')
    >>> network = SensorNetwork(program, Field.grid(4, 4))
    >>> seen = [(0, 0, "enemy"), (1, 1, "friend"), (3, 3, "friend")]
    >>> network.apply([Update("+", "seen", each) for each in seen])
    >>> network.views()["pair"]
    {(0, 0, 1, 1)}
    """

    def __init__(
        self,
        program: Program,
        field: Field,
        *,
        choices: Choices = _DEFAULT,
        channel: Channel = HOP,
        skew: float = 0.0,
        seed: int = 0,
        reliable: bool = False,
        collide: bool = False,
        stage_limit: int | None = None,
        silent_expiry: bool = False,
        radio: Radio | None = None,
        hop_bound: float | None = None,
        on_delivery: Callable[[Delivery], None] | None = None,
        make_node: Callable[[SensorNetwork, Value], SensorNode] = SensorNode,
        make_entry: Callable[[], Entry] = Entry,
    ) -> None:
        self.program = program
        self.field = field
        self.sensor_program: SensorProgram = translate(program, field, choices)
        hop = channel.latency + channel.jitter
        if hop_bound is None:
            hop_bound = hop * _REPETITIONS if reliable and channel.loss else hop
        self.skew = skew
        self.silent_expiry = silent_expiry
        self.timing: Timing = find_timing(self.sensor_program, hop_bound, 2 * skew)
        self.stage_limit = len(field.places) if stage_limit is None else stage_limit
        self.radio = radio or Radio()
        links = {(a, b): channel for a, heard in field.neighbours.items() for b in heard}
        wiring = Wiring(channel, links, tuple(field.places), collide=collide, relays=False)  # type: ignore[arg-type]
        self.simulation = Simulation(wiring, seed=seed, reliable=reliable, skew=skew)
        if on_delivery is not None:
            self.simulation.watchers.append(on_delivery)
        if radio is not None:
            self.simulation.watchers.append(self._drain)
        self.make_entry = make_entry
        self.matcher = Matcher(self.sensor_program.program)
        self.all_tests = {plan.rule.name: frozenset(range(len(plan.body.tests))) for plan in self.sensor_program.plans}
        self.site_plans: dict[str, list[RulePlan]] = {}
        for plan in self.sensor_program.plans:
            if plan.site is not None:
                for name in dict.fromkeys(atom.relation for atom in plan.body.reads):
                    self.site_plans.setdefault(name, []).append(plan)
        self.aggregated: dict[str, list[AggregateSpec]] = {}
        for spec in self.sensor_program.aggregates.values():
            for name in spec.sources:
                self.aggregated.setdefault(name, []).append(spec)
        self.windows = {name: lasting for name in program.relations if (lasting := _lasting(program, name)) is not None}
        top = self.sensor_program.server
        self.parents = {node: field.next_hop(node, top) for node in field.places if node != top}
        hops = field.distances(top)
        self.inwards = {
            node: [each for each in field.neighbours[node] if hops[each] < hops[node]] for node in field.places
        }
        self.base: dict[str, dict[Tuple, None]] = {name: {} for name in program.base_relations}
        self.late = 0  # facts that came later than the bounds allow
        self.beyond: dict[tuple[str, Tuple], Entry] = {}  # rows above the limit of stages
        self.moments: list[Moment] = []
        self.nodes: dict[Value, SensorNode] = {}
        for node in field.places:
            made = self.nodes[node] = make_node(self, node)
            made.port = self.simulation.add(node, made)
        self._check_windows()
        for made in self.nodes.values():
            made.summaries.begin()
        self._begin()

    def _check_windows(self) -> None:
        for name in self.windows:
            self._check_growing(name, f"{name} has a window or a lifetime, which takes tuples away")

    def _begin(self) -> None:
        """Facts of the program, and rules that read nothing."""
        solver = Solver(self.sensor_program.program, {})
        planned = {plan.rule.name for plan in self.sensor_program.plans}
        for rule in self.sensor_program.program.rules:
            if rule.name not in planned:
                for row in solver.heads(rule):
                    home = self.sensor_program.home(rule.head.relation, row)
                    self.expect(home, None)
                    self.nodes[home].sense(rule.head.relation, row, is_there=True)

    # -- updates

    def apply(self, updates: Iterable[Update]) -> None:
        """Updates are sensed, those with a time then and the others now; runs until nothing is under way any more."""
        self.feed(updates)
        self.run()

    def feed(self, updates: Iterable[Update], *, at: Value = None) -> None:
        """Updates that will be sensed: where they say they are, or `at` a node, which takes longer than the times say."""
        for update in updates:
            self.check(update)
            node = self.source(update) if at is None else at
            when = self.simulation.now if update.time is None else update.time
            self.simulation.at(when, self._sense, node, update)

    def check(self, update: Update) -> None:
        """Raises `NotForSensors` for an update that nobody could sense, and `FitError` for a row that is none."""
        if update.relation not in self.base:
            raise NotForSensors(f"{update.relation} is not sensed: rules derive it")
        check_rows(self.program.relations[update.relation], [update.tuple], self.program.types)
        if update.op == "-":
            self._check_growing(update.relation, f"-{_shown(update)}")
        self.source(update)

    def _check_growing(self, relation: str, what: str) -> None:
        named = self.sensor_program.growing.get(relation)
        if named is not None:
            raise NotForSensors(
                f"{what}: nothing counts up along the recursion of {named}, whose rows could hold each other up",
                "give the recursion a stage that grows; or whence simulate --topology, where ranks tell",
            )

    def source(self, update: Update) -> Value:
        """The node that senses an update."""
        node = self.sensor_program.home(update.relation, update.tuple)
        if node not in self.nodes:
            raise NotForSensors(f"{_shown(update)} lives at {node}, which is not a node of the field")
        home = self.sensor_program.homes[update.relation]
        if home.how == "nearest":
            x, y = (update.tuple[at] for at in home.columns)
            place = self.field.places[node]
            apart = max(abs(place[0] - x), abs(place[1] - y))  # type: ignore[operator]
            if apart > self.field.sensing:
                raise NotForSensors(
                    f"{_shown(update)} is {apart:g} m from the nearest node, {node}, which senses {self.field.sensing:g} m far",
                    "columns called x and y say where something is; give them other names if these do not",
                )
        if update.relation == self.sensor_program.links:
            other = next((each for each in update.tuple if each != node), node)
            if other != node and other not in self.field.neighbours[node]:
                raise NotForSensors(f"{_shown(update)}: the two nodes do not hear each other")
        return node

    def _sense(self, node: Value, update: Update) -> None:
        rows = self.base[update.relation]
        if update.op == "+":
            rows[update.tuple] = None
        else:
            rows.pop(update.tuple, None)
        if self.simulation.is_up(node):
            self.nodes[node].sense(update.relation, update.tuple, is_there=update.op == "+")

    def expired(self, relation: str, row: Tuple) -> None:
        self.base[relation].pop(row, None)

    def link_updates(self) -> list[Update]:
        """The links of the field, as tuples of the relation that has them: in both directions."""
        name = self.sensor_program.links
        if name is None:
            return []
        return [Update("+", name, (a, b)) for a, heard in self.field.neighbours.items() for b in heard]

    # -- running

    def run(self, until: float | None = None) -> None:
        self.simulation.run(until)

    def kill(self, node: Value, after: float) -> None:
        """A node dies, and does not come back."""
        self.simulation.at(self.simulation.now + after, self.simulation.crash, node)

    def note(self, node: Value, fact: Fact) -> None:
        final = self.timing.final(self.sensor_program, fact.relation, fact.row, fact.root)
        moment = Moment(
            self.simulation.now, node, fact.relation, fact.row, fact.died is None, fact.root, final + self.skew
        )
        self.moments.append(moment)

    def _drain(self, delivery: Delivery) -> None:
        """Whoever has nothing left in its battery dies."""
        figures = self.simulation.figures
        for node in (delivery.sender, delivery.target):
            spent = self.radio.spent(figures.by_node.get(node, Traffic()), figures.received.get(node, (0, 0)))
            if spent + self.radio.listen * self.simulation.now > self.radio.battery:
                self.simulation.crash(node)

    def expect(self, node: Value, result: Result | None) -> None:
        if node not in self.nodes:
            told = "a fact" if result is None else f"{result.relation}{result.row}"
            raise NotForSensors(f"{told} lives at {node}, which is not a node of the field")

    # -- views

    def relation(self, name: str) -> set[Tuple]:
        """The tuples of a relation at all homes together."""
        return {
            row
            for node in self.nodes.values()
            for (relation, row), entry in node.homes.items()
            if relation == name and entry.published is not None
        }

    def views(self) -> dict[str, set[Tuple]]:
        return {name: self.relation(name) for name in self.program.relations}

    def tentative(self, name: str) -> dict[Tuple, float]:
        """Rows that may still change, for all that is known, with when they are final; infinity if that cannot be told."""
        latest = {each.row: each for each in self.moments if each.relation == name}
        now = self.simulation.now
        return {row: each.final for row, each in latest.items() if each.is_there and each.final > now}

    def compare(self) -> Compared:
        """The derived relations against the reference, on what there is to sense now; what follows from estimates is left out."""
        truth = evaluate(self.program, self.base)
        missed = false = right = 0
        estimated = self.estimated()
        for name in self.program.relations:
            if name not in self.base and name not in estimated:
                found = self.relation(name)
                missed += len(truth[name] - found)
                false += len(found - truth[name])
                right += len(truth[name] & found)
        return Compared(missed, false, right)

    def estimated(self) -> set[str]:
        """The relations that rest on sketches."""
        found = set(self.sensor_program.sketches)
        before = -1
        while len(found) > before:
            before = len(found)
            for rule in self.sensor_program.program.rules:
                if any(isinstance(part, Atom) and part.relation in found for part in walk(rule.body)):
                    found.add(rule.head.relation)
            found |= {
                spec.output for spec in self.sensor_program.aggregates.values() if not found.isdisjoint(spec.sources)
            }
        return found

    def estimates(self) -> list[Estimate]:
        """Counts and sums by sketches against what the nodes have of their rows."""
        top = self.nodes[self.sensor_program.server].summaries
        found = []
        for output in self.sensor_program.sketches:
            spec = self.sensor_program.aggregates[output]
            groups: dict[Tuple, dict[Tuple, None]] = {}
            for node in self.nodes.values():
                for key, (rows, _) in node.summaries.own.get(output, {}).items():
                    groups.setdefault(key, {}).update(rows)
            for key, shown in top.shown.get(output, {}).items():
                column = spec.value_column
                values = [None if column is None else row[column] for row in groups.get(key, ())]
                exact = finished(spec, state_of(spec.op, values))
                found.append(Estimate(output, key, shown[spec.output_value], exact))
        return found

    def rows_beyond(self) -> list[tuple[str, Tuple]]:
        """Rows above the limit of stages that have derivations: with a higher limit they would be there."""
        return [key for key, entry in self.beyond.items() if entry.is_wanted]

    # -- figures

    def energy(self) -> Energy:
        return energy_of(self.simulation.figures, self.field.places, self.radio, self.simulation.now)

    def messages_by_node(self) -> dict[Value, int]:
        """What every node sent and received, in messages."""
        figures = self.simulation.figures
        return {
            node: (figures.by_node[node].messages if node in figures.by_node else 0)
            + figures.received.get(node, (0, 0))[0]
            for node in self.field.places
        }

    @property
    def messages(self) -> int:
        return self.simulation.figures.total.messages

    def stored(self) -> Mapping[Value, int]:
        """How many tuples every node holds, replicas included."""
        return {name: sum(map(len, node.store.values())) for name, node in self.nodes.items()}


def _lasting(program: Program, name: str) -> float | None:
    relation = program.relations[name]
    limits = [relation.lifetime, relation.window.time if relation.window is not None else None]
    shortest = min((each for each in limits if each is not None), default=inf)
    return None if shortest == inf else shortest


def _shown(update: Update) -> str:
    return f"{update.relation}({', '.join(map(str, update.tuple))})"
