"""Why a row is there, as strategies with provenance keep it and ship it.

A base tuple is a *variable*, a fresh one each time that it is inserted. An annotation of a row says which sets of variables are
enough to derive it. Nodes only ever hear that variables are dead; what is left of an annotation then decides about its row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from whence.lang.types import Tuple, Value
from whence.network.codec import Reader, Texts

A = TypeVar("A")
Written_contra = TypeVar("Written_contra", contravariant=True)
Read_co = TypeVar("Read_co", covariant=True)
Key = tuple[int, Tuple]  # a row and its table
Rename = Callable[[A], A]


class Variable(NamedTuple):
    """One insertion of a base tuple: the node that it lives at, and the number that this node gave it."""

    home: Value
    serial: int


class Holder(Protocol[A]):
    """Whatever holds annotations, for those that have to be written anew when the order of variables changes."""

    def rewrite(self, rename: Rename[A]) -> None: ...
    def annotations(self) -> Iterable[A]: ...


class Names(Protocol):
    """How nodes and rows are written in a message."""

    def write_place(self, place: Value, texts: Texts) -> bytes: ...
    def read_place(self, reader: Reader) -> Value: ...
    def write_row(self, key: Key, texts: Texts) -> bytes: ...
    def read_row(self, reader: Reader) -> Key: ...


class Book(Protocol[Written_contra]):
    """Writes annotations one after the other; what an earlier one has in common with a later one is written once."""

    def write(self, annotation: Written_contra) -> bytes: ...


class Shelf(Protocol[Read_co]):
    """Reads what a book wrote."""

    def read(self, reader: Reader) -> Read_co: ...


class Algebra(Protocol[A]):
    """Annotations of one kind. The nodes of a network share an algebra, or each has its own."""

    def announce(self, variable: Variable, key: Key, ends: Sequence[Value]) -> None:
        """A variable that will be used; `ends` are the nodes that its row is about."""
        ...

    def base(self, key: Key, variable: Variable) -> A: ...

    def always(self, key: Key) -> A:
        """The annotation of what is there without any base tuple."""
        ...

    def join(self, head: Key, used: Iterable[tuple[Key, A]]) -> A:
        """What a derivation says of its head."""
        ...

    def plus(self, left: A, right: A) -> A: ...

    def covers(self, known: A, other: A) -> bool:
        """Whether the other says nothing new."""
        ...

    def without(self, key: Key, annotation: A, dead: Collection[Variable]) -> A | None:
        """What is left of a row's annotation without some variables; None if the row cannot be derived any more."""
        ...

    def heard(self, annotation: A, teller: Algebra[A]) -> A:
        """What a node was told, as it keeps it: the teller may have an algebra of its own."""
        ...

    def variables(self, annotation: A) -> Iterable[Variable]: ...
    def show(self, annotation: A) -> str: ...
    def hold(self, holder: Holder[A]) -> None: ...
    def book(self, names: Names, texts: Texts) -> Book[A]: ...
    def shelf(self, names: Names) -> Shelf[A]: ...

    def state_bytes(self, annotations: Iterable[A], names: Names) -> int:
        """What annotations take at a node that keeps once what they have in common."""
        ...
