"""Events on a network of nodes: each place fires its rules when an event reaches it, and keeps its own rows of the store.

Messages may be lost, overtake each other and cross changes of routes; what has happened is written down where it happened, so
every tree of every event that arrived comes back. Questions walk the steps from place to place as well, and are counted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from whence.events.digests import Ids
from whence.events.program import EventProgram
from whence.events.questions import Questions, Trees, Unanswerable
from whence.events.schemes import Step, Trail
from whence.events.store import SHORT, EventStore
from whence.events.walk import HOPS, EndlessRun, Firing, grow
from whence.events.wire import RUNS, Trails, Wire, row_bytes
from whence.lang.types import Tuple
from whence.provenance.graph import Fact
from whence.provenance.proofs import Proof
from whence.runtime import Address, Message, Port, Simulation, Size, Wiring
from whence.runtime.varints import varint

_NOBODY = 0  # the number of a question whose answer is kept, not shown


@dataclass(frozen=True)
class Walking:
    """An event on its way. `tree` is not sent: it is for those who compare what was kept with what has happened."""

    fact: Fact
    trail: Trail
    hops: int
    data: bytes
    extra: bytes
    tree: Proof

    def size(self) -> Size:
        return Size(data=len(self.data), provenance=len(self.extra), control=len(varint(self.hops)), tuples=1)


@dataclass(frozen=True)
class Asking:
    """A question on its way back along a chain, with what it has collected.

    Where every tuple is kept, each place asks the next and passes on what it is told (`way` are those who wait), as a recursive
    query does; otherwise the last place answers whoever asked first.
    """

    number: int
    asker: Address
    at: tuple[str, bytes]
    run: int
    collected: int  # bytes
    way: tuple[tuple[str, int], ...] | None = None  # each with the bytes that it adds

    def size(self) -> Size:
        return Size(control=len(varint(self.number)) + 8 + len(self.at[1]), data=self.collected)


@dataclass(frozen=True)
class Fetching:
    """A question for the event of a run, at the place where it came in."""

    number: int
    asker: Address
    run: int

    def size(self) -> Size:
        return Size(control=len(varint(self.number)) + 8)


@dataclass(frozen=True)
class Telling:
    """An answer: how many bytes of rows and tuples it brings."""

    number: int
    what: str
    collected: int

    def size(self) -> Size:
        return Size(data=self.collected, control=len(varint(self.number)))


@dataclass(frozen=True)
class Returning:
    """The answer of a recursive query on its way from place to place, each of which adds its own."""

    number: int
    way: tuple[tuple[str, int], ...]
    collected: int

    def size(self) -> Size:
        return Size(data=self.collected, control=len(varint(self.number)))


@dataclass
class _Question:
    """A question under way: whom to answer, and which parts are still missing."""

    begun: float
    missing: set[str]
    ended: float | None = None


@dataclass
class Answer:
    """The trees, and what the question cost."""

    trees: Trees
    seconds: float
    messages: int
    bytes: int


class EventNetwork:
    """A store that is spread over the nodes of a simulated network. `inject` and `change` say what happens when, `run` lets it.

    With `recording` off nothing is kept: what the same events cost without provenance. With `remembering`, the place of an
    output fetches a chain of steps when it first ends there, once for a class, so that a question needs only the event.
    """

    def __init__(
        self,
        events: EventProgram,
        places: Iterable[str],
        *,
        scheme: str = "advanced",
        wiring: Wiring | None = None,
        seed: int = 0,
        reliable: bool = False,
        recording: bool = True,
        remembering: bool = False,
        hops: int = HOPS,
        ids: Ids | None = None,
    ) -> None:
        self.store = EventStore(events, scheme=scheme, hops=hops, ids=ids)
        self.simulation = Simulation(wiring, seed=seed, reliable=reliable)
        self.recording, self.remembering = recording, remembering
        self.wire = Wire(events)
        self.loops: list[EndlessRun] = []
        self.trees: list[Proof] = []  # of the outputs that arrived, for those who compare
        self._counters: dict[str, int] = {}
        self._places = {place: at for at, place in enumerate(places)}
        self._ports = {place: self.simulation.add(place, _Node(self, place)) for place in self._places}
        self._questions: dict[int, _Question] = {}
        self._channels: dict[tuple[str, str], Trails] = {}
        self.remembered: set[tuple[str, bytes]] = set()

    # -- what happens

    def load(self, facts: Mapping[str, Iterable[Tuple]]) -> None:
        self.store.load(facts)

    def change(self, time: float, op: str, relation: str, row: Tuple) -> None:
        """A slow tuple comes or goes at its place."""
        self.simulation.at(time, self._change, op, relation, row)

    def _change(self, op: str, relation: str, row: Tuple) -> None:
        self.store.change(op, relation, row, self.simulation.now)

    def inject(self, time: float, row: Tuple) -> None:
        """An event comes in at its place. Raises ValueError if there is no such place."""
        place = self.store.texts.place(Fact(self.store.events.event, row))
        if place not in self._places:
            raise ValueError(f"there is no node {place}; there are {', '.join(list(self._places)[:10])}")
        self.simulation.at(time, self._admit, place, row)

    def _admit(self, place: str, row: Tuple) -> None:
        event = Fact(self.store.events.event, row)
        number = self._places[place] << RUNS | self._counters.setdefault(place, 0)
        self._counters[place] += 1
        if self.recording:
            self.store.runs = number
            trail = self.store.admit(event, self.simulation.now)
        else:
            trail = Trail(b"", number)
        self.step(place, event, trail, Proof(event), 0)

    def run(self, until: float | None = None) -> None:
        self.simulation.run(until)

    # -- at a node

    def step(self, place: str, fact: Fact, trail: Trail, tree: Proof, hops: int) -> None:
        """An event is at a place: everything that it sets off there."""
        if self.recording:
            self.store.scheme.arrive(place, fact, trail, self.store.texts.text(fact))
        if fact.relation in self.store.events.outputs:
            self._output(place, fact, trail, tree)
        if fact.relation not in self.store.events.by_event:
            return
        if hops >= self.store.hops:
            self.loops.append(EndlessRun.of(tree, self.store.events))
            return
        for firing in self.store.walker.fire(fact):
            self._send(place, firing, trail, grow(tree, firing), hops + 1)

    def _send(self, place: str, firing: Firing, trail: Trail, tree: Proof, hops: int) -> None:
        if self.recording:
            trail = self.store.scheme.fire(place, firing, map(self.store.ids.tuple_id, firing.slow), trail)
        target = self.store.texts.place(firing.head)
        if target == place:
            self.step(place, firing.head, trail, tree, hops)
        elif target in self._places:
            extra = self._trails(place, target).write(trail) if self.recording else b""
            message = Walking(firing.head, trail, hops, self.wire.fact(firing.head), extra, tree)
            self._ports[place].send(target, message)

    def _trails(self, sender: str, target: str) -> Trails:
        if (sender, target) not in self._channels:
            ordered = self.simulation.reliable or self.simulation.wiring.is_perfect
            self._channels[sender, target] = Trails(self.store.scheme.name, ordered=ordered)
        return self._channels[sender, target]

    def _output(self, place: str, fact: Fact, trail: Trail, tree: Proof) -> None:
        self.trees.append(tree)
        if not self.recording:
            return
        self.store.arrived(fact, trail)
        if self.remembering and trail.place is not None and trail.step is not None:
            at = (trail.place, trail.step)
            if at not in self.remembered:
                self.remembered.add(at)
                self._walk_back(place, at, trail.run, _NOBODY)

    # -- questions

    def ask(self, output: Fact) -> Answer:
        """All trees of an output, asked for at its place; the network has to be quiet."""
        place, short = self.store.texts.place(output), self.store.ids.tuple_id(output)[:SHORT]
        rows = [row for row in self.store.tables["outputs"].where("short", short) if row[0] == place]
        begun, before = self.simulation.now, self.simulation.figures.total.copy()
        asked = []
        for row in rows:
            number = len(self._questions) + 1
            at, source = (row[2], row[3]), self.place_of(row[4])
            self._questions[number] = question = _Question(begun, {"chain", "event"})
            asked.append(question)
            if at in self.remembered:
                question.missing.discard("chain")
                self._to(place, source, Fetching(number, place, row[4]))
            else:
                question.missing.discard("event")  # the walk ends where the event is, and brings it along
                self._walk_back(place, at, row[4], number)
        self.simulation.run()
        cost = self.simulation.figures.total.since(before)
        ended = max((each.ended or begun for each in asked), default=begun)
        return Answer(Questions(self.store).of_output(output), ended - begun, cost.messages, cost.bytes)

    def place_of(self, run: int) -> str:
        """Where the event of a run came in: its number says so."""
        return list(self._places)[run >> RUNS]

    def _walk_back(self, asker: str, at: tuple[str, bytes], run: int, number: int) -> None:
        way = ((asker, 0),) if self.store.scheme.name == "exspan" else None
        self._to(asker, at[0], Asking(number, asker, at, run, 0, way))

    def _to(self, sender: str, target: str, message: Message) -> None:
        if sender == target:
            self.hear(target, message)
        else:
            self._ports[sender].send(target, message)

    def hear(self, place: str, message: Message) -> None:
        """A message of a question reaches a place."""
        match message:
            case Asking():
                self._ask_on(place, message)
            case Returning(number=number, way=way, collected=collected):
                (_, own), *rest = reversed(way)
                back = tuple(reversed(rest))
                if back:
                    self._to(place, back[-1][0], Returning(number, back, collected + own))
                else:
                    self._told(number, "chain")
            case Fetching(number=number, asker=asker, run=run):
                self._to(place, str(asker), Telling(number, "event", self._event_size(run)))
            case Telling(number=number, what=what):
                self._told(number, what)

    def _ask_on(self, place: str, asking: Asking) -> None:
        """A place reads its step of a chain and asks the one before."""
        step = self.store.scheme.step(*asking.at)
        own = 0 if step is None else self._row_size(step)
        before = None if step is None else step.before
        if asking.way is not None:
            own += self._tuple_size(asking.at, asking.run)
            way = (*asking.way, (place, own))
            if before is not None:
                self._to(place, before[0], Asking(asking.number, asking.asker, before, asking.run, 0, way))
            else:
                back = way[:-1]
                self._to(place, back[-1][0], Returning(asking.number, back, own + self._event_size(asking.run)))
        elif before is not None:
            onward = Asking(asking.number, asking.asker, before, asking.run, asking.collected + own)
            self._to(place, before[0], onward)
        else:
            total = asking.collected + own + self._event_size(asking.run)
            self._to(place, str(asking.asker), Telling(asking.number, "chain", total))

    def _told(self, number: int, what: str) -> None:
        question = self._questions.get(number)
        if question is not None:
            question.missing.discard(what)
            if not question.missing:
                question.ended = self.simulation.now

    def _tuple_size(self, at: tuple[str, bytes], run: int) -> int:
        """The bytes of the tuple that a step looked at, where every tuple is kept."""
        row = self.store.tables["executions"].find(*at)
        kept = None if row is None else self.store.tables["tuples"].find(at[0], row[4])
        return self._event_size(run) if kept is None else row_bytes(kept)

    def _row_size(self, step: Step) -> int:
        slow = [self.store.history.fact(each) for each in step.slow]
        return row_bytes((step.rule,)) + sum(len(self.wire.fact(fact)) for fact in slow if fact is not None)

    def _event_size(self, run: int) -> int:
        try:
            return len(self.wire.fact(Questions(self.store).run(run).event))
        except Unanswerable:
            return 0


@dataclass
class _Node:
    network: EventNetwork
    place: str

    def on_message(self, sender: Address, message: Message, port: Port) -> None:  # noqa: ARG002
        if isinstance(message, Walking):
            self.network.step(self.place, message.fact, message.trail, message.tree, message.hops)
        else:
            self.network.hear(self.place, message)

    def on_timer(self, name: Hashable, port: Port) -> None:
        pass
