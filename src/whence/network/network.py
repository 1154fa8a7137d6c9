"""A program on a network: nodes with their share of the data, epochs of updates, and what each costs.

`Network` runs epochs to their end, or an event at a time. Between epochs it knows the views of all nodes together.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from zlib import crc32

from whence.engine.windows import Windows
from whence.io.changes import Changes, Update
from whence.lang.fit import check_rows
from whence.lang.program import Program
from whence.lang.types import Tuple, Value
from whence.network.codec import Codec
from whence.network.compiled import EVERYWHERE, Compiled
from whence.network.places import PlaceError, check_placed, named_nodes, node_columns
from whence.network.processes import ROOT, Joining, NodeProcess, Root
from whence.network.strategy import STRATEGIES, Strategy
from whence.network.watched import Watched
from whence.plan import UnsuitableStrategy
from whence.runtime import Delivery, Simulation, Wiring
from whence.runtime.figures import Traffic


@dataclass(frozen=True)
class EpochFigures:
    """What an epoch took. `seconds` are simulated, from its beginning until the last message; `wrong_seconds` are those in which
    the views that the program puts out were not yet what they became."""

    epoch: int
    traffic: Traffic
    seconds: float
    wrong_seconds: float
    phases: int
    state_bytes: int
    support_bytes: int
    updates: int
    changes: int

    def as_json(self) -> dict[str, object]:
        return {
            "epoch": self.epoch,
            "updates": self.updates,
            "changes": self.changes,
            **self.traffic.as_json(),
            "phases": self.phases,
            "state_bytes": self.state_bytes,
            "support_bytes": self.support_bytes,
            "seconds": self.seconds,
            "wrong_seconds": self.wrong_seconds,
        }


class Network:
    """A placed program on nodes.

    `nodes` are known from the start; others are made when a tuple lives there, unless links say who there is. `processors` hosts
    nodes: a number of them, by hash, or by node; what runs on one talks for free, and takes `handling` seconds for each message
    from another.

    >>> from whence import Update, load
    >>> network = Network(load('''.decl link(@a:symbol, b:symbol) .input link .output reach
    ...     reach(@x, y) :- link(@x, y).
    ...     reach(@x, y) :- link(@x, z), reach(@z, y).'''))
    >>> figures = network.apply([Update("+", "link", pair) for pair in (("a", "b"), ("b", "c"), ("c", "a"), ("c", "b"))])
    >>> figures.traffic.tuples, len(network.views()["reach"])
    (16, 9)
    """

    def __init__(
        self,
        program: Program,
        *,
        strategy: str | Strategy = "support",
        ship: str | None = None,
        nodes: Iterable[Value] = (),
        processors: int | Mapping[Value, Hashable] | None = None,
        wiring: Wiring | None = None,
        seed: int = 0,
        reliable: bool | None = None,
        handling: float = 0.0,
        on_delivery: Callable[[Delivery], None] | None = None,
    ) -> None:
        self.program = program
        self.strategy = _strategy(strategy)
        self.ship = _ship(self.strategy, ship)
        check_placed(program)
        self.compiled: Compiled = self.strategy.compile(program)
        relations = self.compiled.plan.program.relations
        kinds = [
            tuple(each.kind for each in relations[name].fields) if name in relations else ()
            for name in self.compiled.names
        ]
        for alias, shown in self.compiled.aliases.items():
            kinds[alias] = kinds[shown]
        self.codec = Codec(program.types, kinds)
        self.simulation = Simulation(wiring, seed=seed, reliable=reliable, handling=handling)
        if on_delivery is not None:
            self.simulation.watchers.append(on_delivery)
        self.processors = processors
        self.is_closed = wiring is not None and wiring.links is not None
        self.processes: dict[Value, NodeProcess] = {}
        self.active: dict[Value, None] = {}
        self.fresh: dict[Value, None] = {}  # nodes that have not taken part in an epoch yet
        self.windows = Windows(program.relations)
        self.base: dict[str, dict[Tuple, None]] = {name: {} for name in program.base_relations}
        self.node_columns = node_columns(self.compiled.placed)
        # What is everywhere may name nodes that nobody ships anything to.
        self.naming = {
            table: self.node_columns[name]
            for name, table in self.compiled.tables.items()
            if self.compiled.home[table] == EVERYWHERE
        }
        outputs = program.outputs or tuple(program.relations)
        self.watched_tables = {self.compiled.tables[name]: name for name in outputs}
        self.watched = Watched()
        self.epoch = -1
        self.lost: dict[Value, None] = {}  # nodes that others have to tell everything: they forgot it, or are new
        self._is_settling = False
        self._runs = -1  # epochs, and what was done to recover
        self._root = Root(self)
        known = wiring.nodes if wiring is not None and wiring.links is not None else []
        for place in dict.fromkeys((*known, *nodes)):
            self.add_node(place)  # type: ignore[arg-type]
        for place in named_nodes(self.compiled.placed, self.node_columns):
            self.make_sure_of(place, None)

    # -- nodes

    def add_node(self, place: Value) -> None:
        process = NodeProcess(self, place)
        self.processes[place] = process
        self.fresh[place] = None
        self.simulation.add(place, process, self._processor(place))
        if self.epoch >= 0 and EVERYWHERE in self.compiled.home:
            self.lost[place] = None  # it has to be told what is everywhere

    def _processor(self, place: Value) -> Hashable:
        match self.processors:
            case None:
                return place
            case int():
                return crc32(repr(place).encode(errors="surrogatepass")) % self.processors
            case _:
                return self.processors.get(place, place)

    def make_sure_of(self, place: Value, teller: Value | None) -> None:
        """Makes the node that a tuple lives at. Raises `PlaceError` if who there is has been said and it is not among them."""
        if place in self.processes:
            return
        if self.is_closed:
            told = "" if teller is None else f", which {teller} has something to tell"
            raise PlaceError(f"there is no node {place}{told}", hint=f"the network has {_some(self.processes)}")
        self.add_node(place)

    def watch(self, place: Value, table: int, row: Tuple, is_there: bool) -> None:
        """Takes note of a row of a view that comes or goes; of what is everywhere, at one node."""
        if is_there:
            for column in self.naming.get(table, ()):
                self.make_sure_of(row[column], None)
        name = self.watched_tables.get(table)
        if name is None or (self.compiled.home[table] == EVERYWHERE and place != next(iter(self.processes))):
            return
        # What is settled when all is at rest was so as soon as the last message had come: timers may have rung in vain since.
        time = max(self.simulation.last_activity, self._started) if self._is_settling else self.simulation.now
        self.watched.moments.append((time, name, row, is_there))

    def expect(self, updates: Iterable[Update]) -> None:
        """Makes the nodes that updates speak of. Raises `PlaceError` for one that cannot be."""
        for update in updates:
            for column in self.node_columns.get(update.relation, ()):
                if update.tuple[column] not in self.processes:
                    self._refuse_unknown(update, column)
                    self.add_node(update.tuple[column])

    def _refuse_unknown(self, update: Update, column: int) -> None:
        if self.is_closed:
            relation = self.program.relations[update.relation]
            row = ", ".join(map(str, update.tuple))
            where = "lives at" if column == relation.location else f"leads to (as its {relation.fields[column].name})"
            raise PlaceError(
                f"{update.op}{update.relation}({row}) {where} {update.tuple[column]}, which is not a node of the network",
                hint=f"the network has {_some(self.processes)}",
            )

    @property
    def begins_alone(self) -> bool:
        """Whether anything is there before the first update."""
        return bool(self.compiled.facts or self.compiled.statics or self.compiled.here is not None)

    # -- epochs

    def apply(self, updates: Iterable[Update | tuple[str, str, Tuple]], now: float | None = None) -> EpochFigures:
        """An epoch, to its end."""
        self.begin(updates, now)
        with undisturbed():
            while self.step():
                pass
        return self.finish()

    def begin(
        self,
        updates: Iterable[Update | tuple[str, str, Tuple]],
        now: float | None = None,
        *,
        number: int | None = None,
    ) -> None:
        """Lets nodes know what has become of their base tuples. Then comes `step`, while there are events, and `finish`."""
        listed = [update if isinstance(update, Update) else Update(*update) for update in updates]
        self._check(listed)
        self.expect(listed)
        collected = self.windows.collect(listed, now)
        self.epoch = self.epoch + 1 if number is None else number
        self.watched = Watched()
        self._started = self.simulation.now
        self._before = self.simulation.figures.total.copy()
        self._updates = 0
        self._phases = 0
        initiators = dict.fromkeys(self.fresh)
        self.fresh = {}
        for name, rows in collected.items():
            known = self.base[name]
            for row, is_there in rows.items():
                if (row in known) is not is_there:
                    self._updates += 1
                    place = self._home(name, row)
                    initiators[place] = None
                    self.processes[place].state.from_outside(self.compiled.tables[name], row, is_there=is_there)
                    if is_there:
                        known[row] = None
                    else:
                        del known[row]
        self._start(initiators)

    def _start(self, initiators: Mapping[Value, None]) -> None:
        if not initiators:
            return
        self._runs += 1
        number = self._runs
        self.active |= initiators
        for process in self.processes.values():
            process.reset()
        for place in initiators:
            self.processes[place].state.prepare(number)
        together = self.compiled.together
        if not together:
            return
        takes = any(self.processes[place].state.may_take() for place in initiators)
        self._root = Root(self)
        self.simulation.add(ROOT, self._root, self._processor(next(iter(initiators))))
        self._root.begin((number, together.start, 0 if takes else 1), initiators)

    def step(self) -> bool:
        """The next event of an epoch; whether there was one."""
        if self.simulation.step():
            return True
        self._phases += self._root.phases
        self._root.phases = 0
        if not self.lost:
            return False
        self._recover()
        return True

    def finish(self) -> EpochFigures:
        """Ends an epoch in which nothing happens any more: what it took."""
        self._is_settling = True
        for place in self.active:
            self.processes[place].settle()
        self._is_settling = False
        self.active = {}
        wrong = self.watched.wrong()
        wrong_until = max((time for time, _ in wrong), default=self._started)
        data, support = self.state_bytes()
        return EpochFigures(
            self.epoch,
            self.simulation.figures.total.since(self._before),
            max(self.simulation.last_activity - self._started, 0.0),
            wrong_until - self._started,
            self._phases,
            data + support,
            support,
            self._updates,
            len(self.watched.changes()),
        )

    def state_bytes(self) -> tuple[int, int]:
        """The bytes of all tuples, and of what is kept to know that they are still derivable."""
        sizes = [process.state_bytes() for process in self.processes.values()]
        return sum(data for data, _ in sizes), sum(support for _, support in sizes)

    # -- views

    def tuples(self) -> int:
        """How many tuples the nodes hold, those of helper relations included."""
        return sum(
            sum(1 for _ in each.state.rows(name)) for each in self.processes.values() for name in self.compiled.names
        )

    def rows(self, relation: str, place: Value) -> set[Tuple]:
        return set(self.processes[place].state.rows(relation))

    def relation(self, name: str) -> set[Tuple]:
        """The tuples of a relation at all nodes together."""
        return {row for process in self.processes.values() for row in process.state.rows(name)}

    def views(self) -> dict[str, set[Tuple]]:
        return {name: self.relation(name) for name in self.program.relations}

    def changes(self) -> Changes:
        """What the last epoch has changed in the relations that the program puts out."""
        return self.watched.changes()

    # -- faults

    def crash(self, place: Value, *, after: float, lasting: float, keeps_state: bool = True) -> None:
        """Stops a node some time after now, and has it come back: as it was, or without anything it knew.

        Base tuples are what a node sees of the world; it sees them again.
        """
        self.make_sure_of(place, None)
        begins = self.simulation.now + after
        self.simulation.at(begins, self.simulation.crash, place)
        self.simulation.at(begins + lasting, self._restart, place, keeps_state)

    def _restart(self, place: Value, keeps_state: bool) -> None:
        if keeps_state:
            self.simulation.restart(place)
            return
        self.simulation.restart(place, Joining())
        self.lost[place] = None

    def _recover(self) -> None:
        """Brings nodes that lost what they knew up to date: the others take back what came from them, and tell them again."""
        lost, self.lost = self.lost, {}
        for place in lost:
            for table, name in self.watched_tables.items():
                for row in self.processes[place].state.rows(name):
                    self.watch(place, table, row, False)
            self.processes[place] = NodeProcess(self, place)
            self.simulation.restart(place, self.processes[place])
        for name, rows in self.base.items():
            for row in rows:
                place = self._home(name, row)
                if place in lost:
                    self.processes[place].state.from_outside(self.compiled.tables[name], row, is_there=True)
        for place, process in list(self.processes.items()):
            for each in lost:
                if each != place:
                    process.state.forget(each)
        self._start(dict.fromkeys(self.processes))

    def split(self, *sides: Iterable[Value], after: float, lasting: float) -> None:
        """Cuts the network into sides for a while."""
        begins = self.simulation.now + after
        self.simulation.at(begins, self.simulation.split, [list(side) for side in sides])
        self.simulation.at(begins + lasting, self.simulation.heal)

    # -- checks

    def _home(self, name: str, row: Tuple) -> Value:
        column = self.compiled.home[self.compiled.tables[name]]
        if column == EVERYWHERE:
            return next(iter(self.processes))
        return row[column]

    def _check(self, updates: list[Update]) -> None:
        rows: dict[str, list[Tuple]] = {}
        for op, name, row, _ in updates:
            if name not in self.base:
                what = (
                    f"{name} is derived by rules" if name in self.program.relations else f"there is no relation {name}"
                )
                raise ValueError(f"{what}: only base relations take updates")
            if op not in ("+", "-"):
                raise ValueError(f"{op} is not an operation: + inserts, - deletes")
            rows.setdefault(name, []).append(row)
        for name, each in rows.items():
            check_rows(self.program.relations[name], each, self.program.types)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Nodes hold millions of small objects and make no garbage cycles: looking for some would take most of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _strategy(name: str | Strategy) -> Strategy:
    if not isinstance(name, str):
        return name
    if name not in STRATEGIES:
        raise UnsuitableStrategy(f"there is no strategy {name}; there are {', '.join(STRATEGIES)}")
    return STRATEGIES[name]


def _ship(strategy: Strategy, ship: str | None) -> str | None:
    if ship is None:
        return next(iter(strategy.ships), None)
    if ship not in strategy.ships:
        offered = (
            f"it ships {' or '.join(strategy.ships)}" if strategy.ships else "it ships what there is to tell at once"
        )
        raise UnsuitableStrategy(f"the strategy {strategy.name} does not ship {ship}: {offered}")
    return ship


def _some(nodes: Iterable[Value]) -> str:
    listed = [str(node) for node in nodes]
    return ", ".join(listed[:8]) + (f" and {len(listed) - 8} more" if len(listed) > 8 else "")
