"""A node whose rows are annotated: why each is there decides whether it stays.

Rows come as *insertions*, each with an annotation; a row's own is all that was ever said of it and still holds.

- *Fixpoint.* If an insertion says something new of a row, the row is joined with what is there, and what follows is inserted at
  home, here or elsewhere. Derivations are never taken back one by one.
- *Death.* When a base tuple goes, its variable is dead. Whoever hears of it takes it out of all annotations; rows without one
  go. Then it passes the news on to those that it has ever told of the variable, except where it heard of it. It keeps the
  dead in mind: what was under way may still speak of them. A tuple that comes again has a new variable.
- *Order.* What a node tells in place of what is dead goes before the news, on the same channel, so that news from a node does not
  overtake the alternatives that this node knows. From another node it may: then a row is away until they arrive.

At rest all annotations are true of base tuples that are there, so a row with one is derivable; and whatever is derived from rows
that are there has been told to its home, by MinShip's promise that a home knows one derivation as long as there is one. By
induction over derivations that is what a fresh evaluation gives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from whence.lang.types import Tuple, Value
from whence.network.aggregate_selection import AggregateSelection
from whence.network.annotated_codec import AnnotatedShipment, Language, PlaceNames
from whence.network.annotations import Algebra, Key, Rename, Variable
from whence.network.codec import state_bytes
from whence.network.compiled import EVERYWHERE, LOCAL
from whence.network.groups import Groups
from whence.network.linear import LinearProgram, Used
from whence.network.minship import MinShip, Policy
from whence.network.triggers import Indexes, key_of
from whence.runtime.termination import Phase
from whence.runtime.varints import varint

if TYPE_CHECKING:
    from whence.network.strategy import Shipped, Surroundings

A = TypeVar("A")
_FLUSH = "flush"


class Serials:
    """The numbers of variables by home, which a node keeps even if it loses everything else."""

    def __init__(self) -> None:
        self.next: dict[Value, int] = {}
        self.since: dict[Value, int] = {}  # where the numbers of a node's present life begin

    def begin_life(self, home: Value) -> None:
        self.since[home] = self.next.get(home, 0)

    def take(self, home: Value) -> Variable:
        serial = self.next.get(home, 0)
        self.next[home] = serial + 1
        return Variable(home, serial)


class AnnotatedNode(Generic[A]):
    """The state of one node. `policy` None tells every derivation at once."""

    def __init__(
        self,
        around: Surroundings,
        algebra: Algebra[A],
        serials: Serials,
        *,
        policy: Policy | None,
        selections: Mapping[int, AggregateSelection],
        ends: Mapping[int, tuple[int, ...]],
    ) -> None:
        assert isinstance(around.compiled, LinearProgram)
        self.around = around
        self.compiled: LinearProgram = around.compiled
        self.codec = around.codec
        self.place = around.place
        self.algebra = algebra
        self.serials = serials
        self.ends = ends
        tables = len(self.compiled.home)
        # All rows, and those that joins and views see: an aggregate selection may keep some from them.
        self.known: list[dict[Tuple, A]] = [{} for _ in range(tables)]
        self.present: list[dict[Tuple, A]] = [{} for _ in range(tables)]
        self.indexes: Indexes = [{} for _ in self.compiled.numbering.indexes]
        self.indexed: list[list[tuple[int, Callable[[Tuple], Value]]]] = [[] for _ in range(tables)]
        for (table, columns), number in self.compiled.numbering.indexes.items():
            self.indexed[table].append((number, key_of(columns)))
        self.selections = {table: each.fresh() for table, each in selections.items()}
        self.policy = policy
        self.ship = MinShip(algebra, policy or Policy(), {table: each.fresh() for table, each in selections.items()})
        self.groups = Groups(self.compiled, self.present, self._regroup)  # type: ignore[arg-type]
        self.own: dict[Key, Variable] = {}  # the variables of base tuples that live here
        self.coming: list[tuple[Key, Variable | None]] = []
        self.dead: set[Variable] = set()
        self.lives: dict[Value, int] = {}  # variables of a node with lower numbers are dead: it has lost what it knew
        self.listeners: dict[Variable, dict[Value, None]] = {}  # who was told of a variable
        self.died_lately: dict[Variable, None] = {}  # of the own ones, since the network was last at rest
        self.tells_all = False  # of own deaths, since somebody has forgotten whom it told of what
        self.queue: deque[tuple[Key, A]] = deque()
        self.out: dict[Value, list[tuple[Key, A]]] = {}
        self.deaths: dict[Value, dict[Variable, None]] = {}
        self.has_timer = False
        self.has_begun = False
        self.phase: Phase = (0, 0, 0)
        serials.begin_life(self.place)
        algebra.hold(self)

    # -- phases: there is one

    def from_outside(self, table: int, row: Tuple, *, is_there: bool) -> None:
        self.coming.append(((table, row), self._fresh((table, row)) if is_there else None))

    def _fresh(self, key: Key) -> Variable:
        variable = self.serials.take(self.place)
        table, row = key
        self.algebra.announce(variable, key, [row[column] for column in self.ends.get(table, ())])
        return variable

    def prepare(self, epoch: int) -> None:
        self.phase = (epoch, 0, 0)
        self.has_timer = False  # one that ran out while the node was down never rings

    def may_take(self) -> bool:
        return False

    def detects(self, phase: Phase) -> bool:  # noqa: ARG002 - nobody has to know when it is over
        return False

    def wish(self) -> Phase | None:
        return None

    def settle(self) -> None:
        self.died_lately.clear()

    def advance(self, phase: Phase) -> None:
        self.phase = max(self.phase, phase)
        if not self.has_begun:
            self.has_begun = True
            self._begin()
        coming, self.coming = self.coming, []
        for key, variable in coming:
            if variable is not None:
                self._insert_base(key, variable)
        self._run()
        self._die([self.own.pop(key) for key, variable in coming if variable is None], None)
        self._finish()

    def _begin(self) -> None:
        """What is there before the first update: the node's own name, facts that live here, and what needs no row."""
        compiled = self.compiled
        stated = [*compiled.facts, *([] if compiled.here is None else [(compiled.here, (self.place,))])]
        for table, row in stated:
            home = compiled.home[table]
            if home == EVERYWHERE or (home >= 0 and row[home] == self.place):
                self.queue.append(((table, row), self.algebra.always((table, row))))
        found: list[tuple[Tuple, tuple[Used, ...]]] = []
        for derive, head in compiled.always:
            derive(self.present, self.indexes, (), None, found)
            for row, _ in found:
                self._derive(head, row, self.algebra.always((compiled.aliases.get(head, head), row)))
            found.clear()

    def receive(self, sender: Hashable, message: Shipped) -> None:
        assert isinstance(message, AnnotatedShipment)
        for key, annotation in message.items:
            alive = self._alive(key, self.algebra.heard(annotation, message.language.algebra))
            if alive is not None:
                self.queue.append((key, alive))
        self._run()
        self._die([each for each in message.deaths if not self._is_dead(each)], sender)
        self._finish()

    def on_timer(self, name: Hashable) -> None:
        assert name == _FLUSH
        self.has_timer = False
        self._post(self.ship.flush())
        self._finish()

    def _finish(self) -> None:
        self._run()
        while self.groups.touched:
            self.groups.settle()
            self._run()
        self._tell()

    # -- fixpoint

    def _insert_base(self, key: Key, variable: Variable) -> None:
        self.own[key] = variable
        annotation = self.algebra.base(key, variable)
        self.queue.append((key, annotation))
        if self.compiled.home[key[0]] == EVERYWHERE:
            self._ship(key, annotation)

    def _run(self) -> None:
        queue = self.queue
        while queue:
            self._insert(*queue.popleft())

    def _insert(self, key: Key, annotation: A) -> None:
        table, row = key
        known = self.known[table]
        before = known.get(row)
        if before is not None:
            annotated = self.algebra.plus(before, annotation)
            if annotated == before:
                return
            known[row] = annotated
        else:
            known[row] = annotation
        selection = self.selections.get(table)
        if before is not None:
            if row in self.present[table]:
                self.present[table][row] = known[row]
                self._follow(key, annotation)
        elif selection is None:
            self._appear(key)
        else:
            self._select(table, selection.insert(row))

    def _select(self, table: int, events: Iterable[tuple[Tuple, bool]]) -> None:
        for row, comes in events:
            if comes and row in self.known[table]:
                self._appear((table, row))
            elif row in self.present[table]:
                self._disappear((table, row))

    def _appear(self, key: Key) -> None:
        table, row = key
        self.present[table][row] = self.known[table][row]
        for number, index_key in self.indexed[table]:
            self.indexes[number].setdefault(index_key(row), {})[row] = None
        self.groups.change(table, row, 0, is_there=True)
        self.around.changed(table, row, True)
        self._follow(key, self.known[table][row])

    def _disappear(self, key: Key) -> None:
        table, row = key
        del self.present[table][row]
        for number, index_key in self.indexed[table]:
            value = index_key(row)
            bucket = self.indexes[number][value]
            del bucket[row]
            if not bucket:
                del self.indexes[number][value]
        self.groups.change(table, row, 0, is_there=False)
        self.around.changed(table, row, False)

    def _follow(self, key: Key, annotation: A) -> None:
        """The joins of a row of which something new is known."""
        table, row = key
        found: list[tuple[Tuple, tuple[Used, ...]]] = []
        for derive, head in self.compiled.follows[table]:
            shown = self.compiled.aliases.get(head, head)
            derive(self.present, self.indexes, row, None, found)
            for made, used in found:
                others = [((other, each), known) for other, each, known in used]
                self._derive(head, made, self.algebra.join((shown, made), [(key, annotation), *others]))
            found.clear()

    def _derive(self, table: int, row: Tuple, annotation: A) -> None:
        key = (self.compiled.aliases.get(table, table), row)
        home = self.compiled.home[table]
        if home == LOCAL or (home >= 0 and row[home] == self.place):
            self.queue.append((key, annotation))
        else:
            if home == EVERYWHERE:
                self.queue.append((key, annotation))
            self._ship(key, annotation)

    def _regroup(self, table: int, row: Tuple, rank: int, *, is_new: bool) -> None:  # noqa: ARG002
        """The row of a group comes or goes."""
        key = (table, row)
        if is_new:
            self._insert_base(key, self._fresh(key))
            self._run()
        else:
            self._die([self.own.pop(key)], None, self.compiled.above(table))

    # -- death

    def _is_dead(self, variable: Variable) -> bool:
        return variable in self.dead or variable.serial < self.lives.get(variable.home, 0)

    def _alive(self, key: Key, annotation: A) -> A | None:
        """What is left of an annotation that arrives."""
        if not self.dead and not self.lives:
            return annotation
        dead = [each for each in self.algebra.variables(annotation) if self._is_dead(each)]
        return self.algebra.without(key, annotation, dead) if dead else annotation

    def _die(self, variables: list[Variable], teller: Hashable, tables: Collection[int] | None = None) -> None:
        """`tables` are those that may speak of the variables; None if all may."""
        if not variables:
            return
        self.dead.update(variables)
        self._take_out(variables, range(len(self.known)) if tables is None else tables)
        for variable in variables:
            listeners: Iterable[Value] = self.listeners.pop(variable, ())
            if variable.home == self.place:
                self.died_lately[variable] = None
                listeners = self.around.nodes() if self.tells_all else listeners
            for target in listeners:
                if target not in (teller, variable.home, self.place):
                    self.deaths.setdefault(target, {})[variable] = None

    def _take_out(self, variables: list[Variable], tables: Collection[int]) -> None:
        """Takes dead variables out of the annotations of tables."""
        gone: list[Key] = []
        for table in tables:
            known = self.known[table]
            present = self.present[table]
            for row, annotation in list(known.items()):
                left = self.algebra.without((table, row), annotation, variables)
                if left is None:
                    del known[row]
                    gone.append((table, row))
                elif left is not annotation:
                    known[row] = left
                    if row in present:
                        present[row] = left
        for table, row in gone:
            if row in self.present[table]:
                self._disappear((table, row))
        for table, row in gone:
            if table in self.selections:
                self._select(table, self.selections[table].delete(row))
        # What is about to be told has to live, too.
        for target, items in self.out.items():
            self.out[target] = self._those_alive(items, variables)
        self.queue = deque(self._those_alive(self.queue, variables))
        self._post(self.ship.die(variables, tables))
        self._run()

    def _those_alive(self, items: Iterable[tuple[Key, A]], dead: list[Variable]) -> list[tuple[Key, A]]:
        left = [(key, self.algebra.without(key, annotation, dead)) for key, annotation in items]
        return [(key, annotation) for key, annotation in left if annotation is not None]

    # -- shipping

    def _ship(self, key: Key, annotation: A) -> None:
        if self.policy is None:
            self._post([(key, annotation)])
            return
        self._post(self.ship.insert(key, annotation))
        if self.ship.held and self.policy.period is not None and not self.has_timer:
            self.has_timer = True
            self.around.set_timer(self.policy.period, _FLUSH)

    def _post(self, news: Iterable[tuple[Key, A]]) -> None:
        for key, annotation in news:
            for target in self._homes(key):
                self.out.setdefault(target, []).append((key, annotation))

    def _homes(self, key: Key) -> list[Value]:
        table, row = key
        home = self.compiled.home[table]
        return [row[home]] if home >= 0 else [node for node in self.around.nodes() if node != self.place]

    def _tell(self) -> None:
        out, self.out = self.out, {}
        deaths, self.deaths = self.deaths, {}
        for target in dict.fromkeys((*out, *deaths)):
            items = out.get(target, [])
            for _, annotation in items:
                for variable in self.algebra.variables(annotation):
                    if variable.home != target:
                        self.listeners.setdefault(variable, {})[target] = None
            if items or target in deaths:
                news = list(deaths.get(target, ()))
                self.around.tell(
                    target,
                    AnnotatedShipment(self.phase, items, news, Language(self.algebra, self.compiled, self.codec)),
                )

    # -- what there is

    def rows(self, relation: str) -> Iterable[Tuple]:
        return self.present[self.compiled.tables[relation]].keys()

    def forget(self, sender: Value) -> None:
        """A node has lost what it knew. What it derived from others' tuples is still true; its own tuples have new variables."""
        self.lives[sender] = self.serials.since[sender]
        old = {each for known in self.annotations() for each in self.algebra.variables(known) if each.home == sender}
        self._take_out([each for each in old if self._is_dead(each)], range(len(self.known)))
        # It has forgotten whom it told of what, and may have missed a death that others wait to hear of from it.
        self.tells_all = True
        for variable in self.died_lately:
            for target in self.around.nodes():
                if target != self.place:
                    self.deaths.setdefault(target, {})[variable] = None
        # It is told everything again, with what other nodes are told when the epoch begins.
        if self.policy is None:
            self._tell_again(sender)
            return
        for key, annotation in self.ship.again(key for key in self.ship.told if sender in self._homes(key)):
            self.out.setdefault(sender, []).append((key, annotation))

    def _tell_again(self, sender: Value) -> None:
        """Derives again what lives at a node that has forgotten it: without MinShip nobody knows what was told."""
        out, self.out = self.out, {}
        for table, rows in enumerate(self.present):
            for row in list(rows):
                self._follow((table, row), rows[row])
        for key, variable in self.own.items():
            if self.compiled.home[key[0]] == EVERYWHERE:
                self._post([(key, self.algebra.base(key, variable))])
        told, self.out = self.out.get(sender, []), out
        self.out.setdefault(sender, []).extend(told)
        self._run()

    def annotations(self) -> Iterable[A]:
        for known in self.known:
            yield from known.values()
        yield from self.ship.annotations()
        for _, annotation in self.queue:
            yield annotation
        for items in self.out.values():
            for _, annotation in items:
                yield annotation

    def rewrite(self, rename: Rename[A]) -> None:
        for table, known in enumerate(self.known):
            for row in known:
                known[row] = rename(known[row])
            for row in self.present[table]:
                self.present[table][row] = known[row]
        self.ship.rewrite(rename)
        self.queue = deque((key, rename(annotation)) for key, annotation in self.queue)
        for target, items in self.out.items():
            self.out[target] = [(key, rename(annotation)) for key, annotation in items]

    def state_bytes(self) -> tuple[int, int]:
        """The bytes of rows, and of annotations, what was told, who listens and who is dead; what is common is kept once."""
        data = state_bytes(self.codec, dict(enumerate(self.known)))
        kept = self.algebra.state_bytes(self.annotations(), PlaceNames(self.compiled, self.codec))
        # A row that was told or held back is one that a join of rows here gives; it is kept with its annotation.
        for key in dict.fromkeys((*self.ship.told, *self.ship.held)):
            kept += len(self.codec.row(key[0], key[1], {}))
        for variable, listeners in self.listeners.items():
            kept += len(varint(variable.serial)) + 1 + len(listeners)
        kept += sum(1 + len(varint(variable.serial)) for variable in self.dead)
        return data, kept
