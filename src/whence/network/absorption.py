"""Absorption provenance: annotations are positive Boolean functions, kept as binary decision diagrams.

Diagrams are canonical, so whatever another derivation already implies is absorbed, and a dead variable is set to false. How large
they are depends on the order of variables. One for all nodes has to be agreed on: as variables came, or depth first along the
links that they stand for, worked out anew or kept by labels. Or each node has its own: what it heard of last comes first. What is
near, which ways to all places begin with, is at the bottom then, where diagrams have the most in common. Diagrams are renamed
where they arrive, and nobody has to agree with anybody.

A book writes the nodes of diagrams from the bottom up, each node once: its variable, and how far back those two nodes are that
it leads to. The order of variables is not written; whoever reads builds the function in an order of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
from biodivine_aeon import Bdd

from whence.lang.types import Value
from whence.network.annotations import Algebra, Holder, Key, Names, Variable
from whence.network.codec import Reader, Texts
from whence.runtime.varints import varint
from whence.semiring.bdd import FormulaDiagrams
from whence.semiring.depth_first import DepthFirstOrder
from whence.semiring.labelled_order import LabelledOrder

_ROOT_BYTES = 2  # where a row has its diagram in the table of a node
_LinkOrder = DepthFirstOrder[Variable] | LabelledOrder[Variable]
_ALONG_LINKS: dict[str, type[_LinkOrder]] = {"depth-first": DepthFirstOrder, "labels": LabelledOrder}
OWN = "own"
ORDERS = (*_ALONG_LINKS, "arrival", OWN)
_NODE = struct.Struct(
    "<HII"
)  # of a diagram in the library's own form: a variable's level, and two nodes; 0 and 1 come first


class Absorption:
    """Diagrams over the variables of a network, or of what one of its nodes knows of it."""

    def __init__(self, order: str = "depth-first") -> None:
        self.diagrams: FormulaDiagrams[Variable] = FormulaDiagrams(newest_first=order == OWN)
        self.links: _LinkOrder | None = _ALONG_LINKS[order]() if order in _ALONG_LINKS else None
        self.arrived: dict[Variable, None] = {}
        self.waiting: dict[Variable, None] = {}  # announced, not used yet
        self.unplaced: dict[Variable, None] = {}  # without a level, at the end of the order
        self.links_came = False  # others without a level are further up in it
        self.dealt = 0  # how many variables there were when all levels were dealt out
        self.holders: WeakSet[Holder[Bdd]] = WeakSet()
        self._table = np.empty((0, 3), dtype=np.int64)
        self._fresh: list[tuple[int, int, int]] = []  # nodes that are not in the table yet
        self._nodes: dict[tuple[int, int, int], int] = {}
        self._numbered: dict[Bdd, tuple[int, ...]] = {}

    def announce(self, variable: Variable, key: Key, ends: Sequence[Value]) -> None:  # noqa: ARG002
        if self.links is not None and len(ends) > 1:
            self.links.insert(variable, ends[0], ends[1])
            self.links_came = True
        else:
            self.arrived[variable] = self.unplaced[variable] = None
        self.waiting[variable] = None

    def base(self, key: Key, variable: Variable) -> Bdd:  # noqa: ARG002
        if variable not in self.diagrams.levels:
            self._place()
        self.waiting.pop(variable, None)
        return self.diagrams.literal(variable)

    def heard(self, annotation: Bdd, teller: Algebra[Bdd]) -> Bdd:
        if teller is self:
            return annotation
        assert isinstance(teller, Absorption)
        spoken_of = dict.fromkeys(teller.variables(annotation))
        if any(each not in self.diagrams.levels for each in spoken_of):
            for each in spoken_of:
                if each not in self.arrived:
                    self.arrived[each] = self.unplaced[each] = None
            before = self.waiting
            self.waiting = before | spoken_of
            self._place()
            self.waiting = before
        return self.diagrams.taken_from(teller.diagrams, annotation)

    def _place(self) -> None:
        """Gives variables that have none a level, where the order has them."""
        # Placing next to neighbours drifts away from the order: every so often, all levels are dealt out anew.
        if len(self.diagrams.levels) + len(self.unplaced) < 2 * self.dealt and self._place_between():
            return
        order = self._order()
        holders = list(self.holders)
        used = {each for holder in holders for value in holder.annotations() for each in self.diagrams.support(value)}
        for variable in order:
            if variable in self.diagrams.levels and variable not in used and variable not in self.waiting:
                self._forget(variable)
        order = self._order()
        self.dealt = max(len(order), 8)
        before = dict(self.diagrams.tokens)
        self.diagrams.deal_out(order, [])
        self._nodes.clear()
        self._fresh.clear()
        self._numbered.clear()
        renamed: dict[Bdd, Bdd] = {}

        def rename(value: Bdd) -> Bdd:
            found = renamed.get(value)
            if found is None:
                found = renamed[value] = self.diagrams.moved(value, before)
            return found

        for holder in holders:
            holder.rewrite(rename)
        self.unplaced, self.links_came = {}, False

    def _place_between(self) -> bool:
        """Leaves the levels of the others as they are; whether there was room."""
        diagrams = self.diagrams
        if not (diagrams.place(self._order()) if self.links_came else diagrams.place_last(list(self.unplaced))):
            return False
        self.unplaced, self.links_came = {}, False
        return True

    def _order(self) -> list[Variable]:
        return [*([] if self.links is None else self.links.edges()), *self.arrived]

    def _forget(self, variable: Variable) -> None:
        if variable in self.arrived:
            del self.arrived[variable]
            self.unplaced.pop(variable, None)
        elif self.links is not None:
            self.links.delete(variable)

    def always(self, key: Key) -> Bdd:  # noqa: ARG002
        return self.diagrams.one

    def join(self, head: Key, used: Iterable[tuple[Key, Bdd]]) -> Bdd:  # noqa: ARG002
        made = self.diagrams.one
        for _, each in used:
            made = each if made is self.diagrams.one else made.l_and(each)
        return made

    def plus(self, left: Bdd, right: Bdd) -> Bdd:
        return left.l_or(right)

    def covers(self, known: Bdd, other: Bdd) -> bool:
        return bool(known.l_or(other) == known)

    def without(self, key: Key, annotation: Bdd, dead: Collection[Variable]) -> Bdd | None:  # noqa: ARG002
        known = [each for each in dead if each in self.diagrams.levels]
        if not known:
            return annotation
        left = self.diagrams.restrict(annotation, known)
        return None if left.is_false() else left

    def variables(self, annotation: Bdd) -> list[Variable]:
        return self.diagrams.support(annotation)

    def show(self, annotation: Bdd) -> str:
        words = sorted(
            "·".join(f"{known.home}{known.serial}" for known in sorted(each, key=repr)) or "true"  # type: ignore[attr-defined]
            for each in self.diagrams.witnesses(annotation)
        )
        return " | ".join(words)

    def hold(self, holder: Holder[Bdd]) -> None:
        self.holders.add(holder)

    def book(self, names: Names, texts: Texts) -> DiagramBook:
        return DiagramBook(self.diagrams, names, texts)

    def state_bytes(self, annotations: Iterable[Bdd], names: Names) -> int:  # noqa: ARG002
        nodes: set[int] = set()
        count = 0
        for each in annotations:
            nodes.update(self._nodes_of(each))
            count += 1
        self._fill_table()
        # One table of nodes, those below before those above, as a book writes them.
        kept = np.array(sorted(nodes), dtype=np.int64)
        levels, lows, highs = self._table[kept].T
        places = np.unique(levels, return_inverse=True)[1]
        own = np.arange(2, len(kept) + 2)
        back = [np.where(each < 2, each, own - (np.searchsorted(kept, each) + 2)) for each in (lows, highs)]
        return sum(int(_varint_bytes(each).sum()) for each in (places, *back)) + _ROOT_BYTES * count

    def _fill_table(self) -> None:
        """Adds the nodes that are new to the table of all."""
        count = len(self._nodes) + 2
        if count > len(self._table):
            self._table = np.concatenate([self._table, np.empty((2 * count - len(self._table), 3), dtype=np.int64)])
        if self._fresh:
            self._table[count - len(self._fresh) : count] = self._fresh
            self._fresh.clear()

    def _nodes_of(self, value: Bdd) -> tuple[int, ...]:
        """The nodes of a diagram, by numbers that are the same for the same nodes of others."""
        known = self._numbered.get(value)
        if known is None:
            numbers = [0, 1]
            for level, low, high in islice(_NODE.iter_unpack(bytes(value.data_bytes())), 2, None):
                node = (level, numbers[low], numbers[high])
                number = self._nodes.get(node)
                if number is None:
                    number = self._nodes[node] = len(self._nodes) + 2
                    self._fresh.append(node)
                numbers.append(number)
            known = self._numbered[value] = tuple(numbers[2:])
        return known

    def shelf(self, names: Names) -> DiagramShelf:
        return DiagramShelf(self, names)


def _varint_bytes(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return 1 + (values >= 1 << 7).astype(np.int64) + (values >= 1 << 14) + (values >= 1 << 21)


class DiagramBook:
    """The number of new nodes, these, and how far back the root is. A node is its variable and two nodes, likewise far back;
    a variable that the book does not have yet is 0, its home and its serial, and its number after that."""

    def __init__(self, diagrams: FormulaDiagrams[Variable], names: Names, texts: Texts) -> None:
        self.diagrams = diagrams
        self.names = names
        self.texts = texts
        self.variables: dict[int, int] = {}
        self.nodes: dict[tuple[int, int, int], int] = {}
        self.roots: dict[Bdd, int] = {}

    def write(self, annotation: Bdd) -> bytes:
        root = self.roots.get(annotation)
        out: list[bytes] = []
        if root is None:
            root = self.roots[annotation] = self._add(annotation, out)
        fresh = len(out)
        return varint(fresh) + b"".join(out) + varint(self._back(root))

    def _back(self, node: int) -> int:
        """0 and 1 are the constants; nodes count back from the last one."""
        return node if node < 2 else len(self.nodes) + 2 - node + 1

    def _add(self, annotation: Bdd, out: list[bytes]) -> int:
        data = bytes(annotation.data_bytes())
        numbers: list[int] = []
        for at, (level, low, high) in enumerate(_NODE.iter_unpack(data)):
            if at < 2:
                numbers.append(at)
                continue
            node = (level, numbers[low], numbers[high])
            known = self.nodes.get(node)
            if known is None:
                out.append(self._variable(level) + varint(self._back(node[1])) + varint(self._back(node[2])))
                known = self.nodes[node] = len(self.nodes) + 2
            numbers.append(known)
        return numbers[-1]

    def _variable(self, level: int) -> bytes:
        number = self.variables.get(level)
        if number is not None:
            return varint(number)
        self.variables[level] = len(self.variables) + 1
        home, serial = self.diagrams.token_of(level)
        return b"\0" + self.names.write_place(home, self.texts) + varint(serial)


class DiagramShelf:
    def __init__(self, algebra: Absorption, names: Names) -> None:
        self.algebra = algebra
        self.names = names
        self.variables: list[Variable] = []
        self.nodes: list[Bdd] = [algebra.diagrams.zero, algebra.diagrams.one]

    def read(self, reader: Reader) -> Bdd:
        for _ in range(reader.number()):
            number = reader.number()
            if not number:
                self.variables.append(Variable(self.names.read_place(reader), reader.number()))
                number = len(self.variables)
            low, high = self._node(reader.number()), self._node(reader.number())
            self.nodes.append(low.l_or(self.algebra.diagrams.literal(self.variables[number - 1]).l_and(high)))
        return self._node(reader.number())

    def _node(self, back: int) -> Bdd:
        return self.nodes[back if back < 2 else len(self.nodes) - back + 1]
