"""Trees, rebuilt from a store: by output, by event, by class, by place and time.

A chain of steps is followed back to the event it began with; then its rules are run again, step by step, on the event and the
slow tuples that each step names. What that gives is compared with what was asked for before it is shown. Where a row is
missing, the answer says so: it is incomplete, never shorter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from whence.events.history import rows_of
from whence.events.paths import NotCarried, Path, path_of
from whence.events.schemes import Step
from whence.events.store import SHORT, EventStore
from whence.events.tables import Row
from whence.events.walk import Firing, Walker, grow
from whence.lang.types import Tuple
from whence.provenance.graph import Fact
from whence.provenance.proofs import Proof
from whence.reference.solve import Solver


@dataclass(frozen=True)
class Run:
    """An event as it came in: when, and in which configuration of the slow relations."""

    number: int
    event: Fact
    time: float | None
    configuration: int


@dataclass(frozen=True)
class EventTree:
    """One way in which an output came about, and the runs that went this way."""

    tree: Proof
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Missing:
    """What keeps a tree from being rebuilt."""

    reason: str


@dataclass(frozen=True)
class Trees:
    trees: tuple[EventTree, ...]
    missing: tuple[Missing, ...] = ()

    @property
    def is_complete(self) -> bool:
        return not self.missing


class Unanswerable(Exception):
    """A row that a tree needs is missing or wrong."""


class Questions:
    """Answers about what a store holds."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self._runs: dict[int, Run] = {}
        self._solver = Solver(store.events.program, {})

    # -- which trees

    def of_output(self, output: Fact, event: Fact | None = None) -> Trees:
        """All trees of an output; given an event, those that began with it.

        Of relations that are not of interest nothing is kept but what came in: their trees come from running that again.
        """
        if output.relation not in self.store.kept:
            return self.replayed(output, event)
        place, short = self.store.texts.place(output), self.store.ids.tuple_id(output)[:SHORT]
        rows = [row for row in self.store.tables["outputs"].where("short", short) if row[0] == place]
        return self._trees(rows, output, event)

    def of_event(self, event: Fact) -> Trees:
        """The trees of all outputs that an event led to, whenever it came in."""
        short = self.store.ids.tuple_id(event)[:SHORT]
        runs = [row[1] for row in self.store.tables["events"].where("short", short)]
        return self._of_runs(runs, event)

    def of_class(self, values: Tuple) -> Trees:
        """The trees of all events that have these values in the keys."""
        return self._of_runs(run.number for run in self.runs() if self.store.class_of(run.event.tuple) == values)

    def of_place(self, place: str, since: float | None = None, until: float | None = None) -> Trees:
        """The trees of all outputs at a place, of events that came in between two times."""
        rows = self.store.tables["outputs"].where("place", place)
        return self._trees([row for row in rows if self._came_between(row[4], since, until)], None, None)

    def _of_runs(self, runs: Iterable[int], event: Fact | None = None) -> Trees:
        rows = [row for run in runs for row in self.store.tables["outputs"].where("run", run)]
        return self._trees(rows, None, event)

    def _came_between(self, run: int, since: float | None, until: float | None) -> bool:
        time = self.run(run).time
        if since is None and until is None:
            return True
        return time is not None and (since is None or time >= since) and (until is None or time <= until)

    def _trees(self, rows: Iterable[Row], output: Fact | None, event: Fact | None) -> Trees:
        found: dict[Row, tuple[Proof, list[Run]]] = {}
        missing: list[Missing] = []
        for place, short, at_place, at, run in rows:
            try:
                one = self.run(run)
                if event is not None and one.event != event:
                    continue
                tree = self.rebuild(one, at_place, at)
            except Unanswerable as reason:
                missing.append(Missing(str(reason)))
                continue
            if output is not None and tree.fact != output:
                continue  # another tuple whose id begins alike
            if self.store.ids.tuple_id(tree.fact)[:SHORT] != short or self.store.texts.place(tree.fact) != place:
                missing.append(Missing(f"run {run} does not lead to the output that was kept of it"))
                continue
            found.setdefault((at_place, at, one.event), (tree, []))[1].append(one)
        return Trees(tuple(EventTree(tree, tuple(runs)) for tree, runs in found.values()), tuple(missing))

    def replayed(self, fact: Fact, event: Fact | None = None) -> Trees:
        """The trees of a derived tuple, from running all events again, each class of them once in each configuration."""
        walkers: dict[int, Walker] = {}
        ways: dict[tuple[int, Tuple], list[Path] | None] = {}
        found: dict[tuple[Fact, int], tuple[Proof, list[Run]]] = {}
        for run in self.runs():
            if event is not None and run.event != event:
                continue
            walker = walkers.get(run.configuration)
            if walker is None:
                rows = rows_of(self.store.history.rows(run.configuration))
                walker = walkers[run.configuration] = Walker(self.store.events, rows)
            key = run.configuration, self.store.class_of(run.event.tuple)
            if key not in ways:
                ways[key] = self._paths(walker, run.event)
            paths = ways[key]
            if paths is not None and all(path.output(run.event.tuple, self._solver) != fact for path in paths):
                continue
            trees = [hop.tree for hop in walker.run(run.event, hops=self.store.hops) if hop.firing.head == fact]
            for at, tree in enumerate(trees):
                found.setdefault((run.event, at), (tree, []))[1].append(run)
        return Trees(tuple(EventTree(tree, tuple(runs)) for tree, runs in found.values()))

    def hypothetical(self, event: Fact, configuration: int) -> Trees:
        """What an event leads to in a configuration, whether or not it ever came in."""
        walker = Walker(self.store.events, rows_of(self.store.history.rows(configuration)))
        return Trees(tuple(EventTree(tree, ()) for tree in walker.outputs(event, hops=self.store.hops)))

    def _paths(self, walker: Walker, event: Fact) -> list[Path] | None:
        try:
            return [path_of(hop.tree, self.store.events) for hop in walker.run(event, hops=self.store.hops)]
        except NotCarried:
            return None

    # -- rebuilding

    def runs(self) -> Iterator[Run]:
        for _, number, relation, text, _, time, configuration in self.store.tables["events"]:
            yield Run(number, Fact(relation, self.store.texts.parse(relation, text)), time, configuration)

    def run(self, number: int) -> Run:
        if number not in self._runs:
            rows = self.store.tables["events"].where("run", number)
            if not rows:
                raise Unanswerable(f"the event of run {number} is missing")
            _, _, relation, text, _, time, configuration = rows[0]
            self._runs[number] = Run(
                number, Fact(relation, self.store.texts.parse(relation, text)), time, configuration
            )
        return self._runs[number]

    def rebuild(self, run: Run, place: str, step: bytes) -> Proof:
        """The tree that ends with a step. Raises Unanswerable."""
        tree = Proof(run.event)
        for at, each in reversed(list(self.chain(place, step))):
            if self.store.texts.place(tree.fact) != at:
                raise Unanswerable(f"rule {each.rule} ran at {at}, where its event was not")
            slow = tuple(self._slow(identity, each) for identity in each.slow)
            head = self.store.walker.again(each.rule, tree.fact, slow)
            if head is None:
                raise Unanswerable(f"rule {each.rule} does not fire again at {at}: a row of the store is wrong")
            tree = grow(tree, Firing(each.rule, head, tree.fact, slow))
        return tree

    def chain(self, place: str, step: bytes) -> Iterator[tuple[str, Step]]:
        """The steps back to the event, each with its place."""
        at: tuple[str, bytes] | None = (place, step)
        while at is not None:
            found = self.store.scheme.step(*at)
            if found is None:
                raise Unanswerable(f"the step {at[1].hex()[:12]} at {at[0]} is missing")
            if found.rule not in self.store.events.by_name:
                raise Unanswerable(
                    f"the step {at[1].hex()[:12]} at {at[0]} names a rule {found.rule} that there is not"
                )
            yield at[0], found
            at = found.before

    def steps(self, place: str, step: bytes) -> set[tuple[str, bytes]]:
        """The places and ids of the steps back to the event, as far as they are there."""
        found: set[tuple[str, bytes]] = set()
        at: tuple[str, bytes] | None = (place, step)
        while at is not None and at not in found:
            row = self.store.scheme.step(*at)
            if row is None:
                break
            found.add(at)
            at = row.before
        return found

    def _slow(self, identity: bytes, step: Step) -> Fact:
        fact = self.store.history.fact(identity)
        if fact is None:
            raise Unanswerable(f"a slow tuple that rule {step.rule} used is missing: {identity.hex()[:12]}")
        return fact
