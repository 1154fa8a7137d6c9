"""Values of any depth.

A linked list of records nests as deep as it is long, and Python hashes, compares and shows nested tuples recursively. Records,
branches and lists are therefore made by `compound`: one that holds more than a few values below it knows its hash and compares
without recursion, so that no operation on values goes deeper than these few. Tuples and compounds that hold the same are equal.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, TypeVar

from whence.lang.types import Value, Variant

FEW = 32
_LEAVES = frozenset((int, float, str, type(None)))

T = TypeVar("T")

# A computation that yields those it needs the results of.
Steps = Generator["Steps[Any]", Any, T]


def without_recursion(steps: Steps[T]) -> T:
    """What the computation returns, however deep the computations that it asks for ask for others."""
    under_way: list[Steps[Any]] = [steps]
    result: Any = None
    while under_way:
        try:
            asked = under_way[-1].send(result)
        except StopIteration as done:
            under_way.pop()
            result = done.value
        else:
            under_way.append(asked)
            result = None
    return result  # type: ignore[no-any-return]


def compound(parts: Iterable[Value]) -> tuple[Value, ...]:
    """The fields of a record, the arguments of a branch or the items of a list, as the value that holds them.

    >>> compound([1, (2, None)])
    (1, (2, None))
    """
    whole = tuple(parts)
    return Compound(whole) if _holds_many(whole) else whole


def compounded(value: Value) -> Value:
    """The same value, made of compounds where it comes from somebody who makes tuples."""
    parts = value.args if isinstance(value, Variant) else value
    if not isinstance(parts, tuple) or isinstance(parts, Compound) or not _holds_many(parts):
        return value
    return _put_together(_taken_apart(value))


class Compound(tuple[Value, ...]):
    """A tuple of values that was hashed and measured when it was made."""

    # A tuple cannot have slots.
    _hash: int
    size: int

    def __new__(cls, parts: tuple[Value, ...]) -> Compound:
        made = super().__new__(cls, parts)
        made._hash = tuple.__hash__(made)
        made.size = 1 + len(parts)
        if not _LEAVES.issuperset(map(type, parts)):
            made.size += sum(map(size_of, parts))
        return made

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple):
            return NotImplemented
        return self is other or _are_equal(self, other)

    def __ne__(self, other: object) -> bool:
        if not isinstance(other, tuple):
            return NotImplemented
        return self is not other and not _are_equal(self, other)

    def __repr__(self) -> str:
        return _shown(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _put_together, (_taken_apart(self),)


def size_of(value: Value) -> int:
    """How many values are in a value, at any depth and as often as they stand there, and how many hold them. A leaf has none.

    >>> size_of((1, (2, 3)))
    6
    """
    size, pending = 0, [value]
    while pending:  # what is in no compound is small
        part = pending.pop()
        if isinstance(part, Variant):
            part = part.args
        if isinstance(part, Compound):
            size += part.size
        elif isinstance(part, tuple):
            size += 1 + len(part)
            pending += part
    return size


def _holds_many(whole: tuple[Value, ...]) -> bool:
    """Whether there are more than a few values in it, not counting those in other compounds."""
    count = len(whole)
    if count > FEW:
        return True
    pending = [part for part in whole if part.__class__ is tuple or part.__class__ is Variant]
    while pending:
        part = pending.pop()
        if isinstance(part, Variant):
            part = part.args
            if part.__class__ is not tuple:
                continue
        assert isinstance(part, tuple)
        count += len(part) + 1
        if count > FEW:
            return True
        pending += [each for each in part if each.__class__ is tuple or each.__class__ is Variant]
    return False


def _are_equal(one: Value, other: Value) -> bool:
    pending: list[tuple[Value, Value]] = [(one, other)]
    while pending:
        one, other = pending.pop()
        if one is other:
            continue
        if isinstance(one, Variant) and isinstance(other, Variant):
            if one.branch != other.branch:
                return False
            one, other = one.args, other.args
        if isinstance(one, tuple) and isinstance(other, tuple):
            if len(one) != len(other):
                return False
            if isinstance(one, Compound) and isinstance(other, Compound) and hash(one) != hash(other):
                return False
            pending += zip(one, other, strict=True)
        elif one != other:
            return False
    return True


def _shown(value: Value) -> str:
    parts: list[str] = []
    pending: list[Value | _Text] = [value]
    while pending:
        match pending.pop():
            case _Text(text):
                parts.append(text)
            case Variant(branch, args):
                pending += (_Text(")"), args, _Text(f"Variant(branch={branch!r}, args="))
            case tuple() as items:
                pending.append(_Text(",)" if len(items) == 1 else ")"))
                for at in range(len(items) - 1, -1, -1):
                    pending += (items[at], _Text(", " if at else "("))
                if not items:
                    pending.append(_Text("("))
            case leaf:
                parts.append(repr(leaf))
    return "".join(parts)


class _Text:
    """Text among values, which may be text too."""

    __match_args__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def _taken_apart(value: Value) -> list[tuple[int, Any]]:
    """A value as a list that does not nest: leaves as they are (-1), compounds by how many values before them they take."""
    found: list[tuple[int, Any]] = []
    pending: list[Value] = [value]
    while pending:  # a compound before its parts, the last part first; turned round, parts come in order before it
        match pending.pop():
            case Variant(branch, args):
                found.append((len(args), branch))
                pending += args
            case tuple() as items:
                found.append((len(items), None))
                pending += items
            case leaf:
                found.append((-1, leaf))
    found.reverse()
    return found


def _put_together(parts: list[tuple[int, Any]]) -> Value:
    made: list[Value] = []
    for count, what in parts:
        if count < 0:
            made.append(what)
            continue
        whole = compound(made[len(made) - count :])
        del made[len(made) - count :]
        made.append(whole if what is None else Variant(what, whole))
    return made[0]
