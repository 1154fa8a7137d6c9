"""How views are maintained across nodes: what a strategy has to provide.

A strategy compiles a program, or refuses it by name, and makes the state of each node. A node's state reacts; it knows neither
time nor channels. Whatever it tells others goes out through `tell`, as messages with a binary form (`size`). Epochs go like this:

1. `from_outside` for each update of the node's base tuples, then `prepare` with the epoch's number. Levels that need nobody else
   (`Compiled.alone_before`) are completed.
2. `advance` to the phase (epoch, level, turn) that begins: turn 0 if `may_take` says so of any node, otherwise turn 1. Messages
   that arrive carry the phase of their sender, to which the receiver advances before it is handed the message.
3. If `detects` says that others have to know when a phase is over, its messages are answered for (Dijkstra and Scholten), at a
   price. When it is over, the earliest phase that any node has a `wish` for begins, for those who wished.
4. When nothing is under way and nobody wishes for anything, the epoch is over: `settle` completes what gives nothing to others.

A strategy without phases starts at turn 1, detects nothing and wishes for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Protocol

from whence.lang.program import Program
from whence.lang.types import Tuple, Value
from whence.network.codec import Codec
from whence.network.compiled import Compiled, compile_for_nodes
from whence.network.dred import DredNode
from whence.network.node import SupportNode
from whence.network.provenance import WITH_PROVENANCE
from whence.runtime.process import Message
from whence.runtime.termination import Phase


class Shipped(Message, Protocol):
    """What one node tells another of tuples."""

    @property
    def phase(self) -> Phase: ...

    def shown(self, compiled: Compiled) -> Iterable[str]:
        """Each thing that is told, as a line of a trace."""
        ...


class NodeState(Protocol):
    """One node under a strategy; the module's text says when what is called."""

    phase: Phase

    def from_outside(self, table: int, row: Tuple, *, is_there: bool) -> None: ...
    def prepare(self, epoch: int) -> None: ...
    def may_take(self) -> bool: ...
    def advance(self, phase: Phase) -> None: ...
    def receive(self, sender: Hashable, message: Shipped) -> None: ...

    def on_timer(self, name: Hashable) -> None:
        """A timer that was asked for has run out."""
        ...

    def detects(self, phase: Phase) -> bool: ...
    def wish(self) -> Phase | None: ...
    def settle(self) -> None: ...

    def forget(self, sender: Value) -> None:
        """A node has lost what it knew: nothing that it said holds any more, and it has to be told everything again."""
        ...

    def rows(self, relation: str) -> Iterable[Tuple]: ...

    def state_bytes(self) -> tuple[int, int]:
        """The bytes of the tuples that the node holds, and of what it keeps to know that they are still derivable."""
        ...


class Surroundings(Protocol):
    """What a node's state may ask for."""

    compiled: Compiled
    codec: Codec
    place: Value

    def tell(self, target: Value, message: Shipped) -> None: ...
    def set_timer(self, after: float, name: Hashable) -> None: ...

    def nodes(self) -> Iterable[Value]:
        """All nodes there are."""
        ...

    def changed(self, table: int, row: Tuple, is_there: bool) -> None:
        """To be called for each row that comes or goes, for those who watch the views."""
        ...


class Strategy(Protocol):
    """`ships` are the ways of shipping it offers, the default first; none if there is nothing to choose."""

    name: str
    ships: tuple[str, ...]

    def compile(self, program: Program) -> Compiled:
        """Raises `ProgramError` or `UnsuitableStrategy` if it cannot run the program."""
        ...

    def node(self, around: Surroundings, ship: str | None) -> NodeState: ...


class _Counting:
    """Support counting and delete and rederive."""

    ships: tuple[str, ...] = ()

    def __init__(self, name: str, make: Callable[[Surroundings], NodeState]) -> None:
        self.name = name
        self._make = make

    def compile(self, program: Program) -> Compiled:
        return compile_for_nodes(program, strategy=self.name)

    def node(self, around: Surroundings, ship: str | None) -> NodeState:  # noqa: ARG002 - there is one way to ship
        return self._make(around)


STRATEGIES: Mapping[str, Strategy] = {
    "support": _Counting("support", SupportNode),
    "dred": _Counting("dred", DredNode),
    **{name: strategy() for name, strategy in WITH_PROVENANCE.items()},
}
