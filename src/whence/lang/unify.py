"""Kinds that are being found: slots, their shapes, and making two of them one.

What is not known yet is a `Slot`, which may be limited to a set of primitives (a literal `1` fits any numeric kind) or have
a shape: a bracket `[a, b]` is a record or a list, `$f(x)` a branch of some type.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from whence.lang.types import (
    PRIMITIVES,
    SYMBOL,
    AdtKind,
    Field,
    Kind,
    ListKind,
    Primitive,
    RecordKind,
    Types,
    base,
    is_among,
)


@dataclass(frozen=True, slots=True)
class ListShape:
    element: Slot


@dataclass(frozen=True, slots=True)
class TupleShape:
    """`[a, b]`, not known yet to be a record or a list."""

    items: tuple[Inferred, ...]


@dataclass(frozen=True, slots=True)
class TermShape:
    """Branches of a type not known yet."""

    branches: dict[str, tuple[Inferred, ...]]


@dataclass(frozen=True, slots=True)
class NilShape:
    """`nil`: of a record or of a primitive type."""


Shape = ListShape | TupleShape | TermShape | NilShape


class Slot:
    """A kind to be found. Unified slots share a root, reached through `parent`."""

    __slots__ = ("kind", "options", "parent")

    def __init__(self, options: frozenset[Primitive] | None = None, kind: Kind | Shape | None = None) -> None:
        self.parent: Slot | None = None
        self.options = options
        self.kind = kind

    def root(self) -> Slot:
        slot = self
        while slot.parent is not None:
            slot = slot.parent
        return slot


Inferred = Kind | Slot


class Mismatch(Exception):
    """Two kinds that cannot be one; they are as they were before."""


@dataclass
class Unifier:
    """Unifies kinds under the declared types, and invents types for records and function terms that none declares."""

    declared: Types
    records: dict[str, tuple[Field, ...]] = field(default_factory=dict)
    adts: dict[str, dict[str, tuple[Field, ...]]] = field(default_factory=dict)

    def unify(self, left: Inferred, right: Inferred) -> Inferred:
        """Whether a value may be nil is not looked at: `nullable` finds that out once kinds are known."""
        if left is right or left == right:
            return left
        left = left.root() if isinstance(left, Slot) else base(left)
        right = right.root() if isinstance(right, Slot) else base(right)
        if left is right or left == right:
            return left
        if isinstance(left, Slot):
            if isinstance(right, Slot):
                self._join(left, right)
            else:
                self._assign(left, right)
            return right
        if isinstance(right, Slot):
            self._assign(right, left)
            return left
        raise Mismatch

    def _join(self, left: Slot, right: Slot) -> None:
        """Makes two roots one, which knows all that either did."""
        one, other, options = left.kind, right.kind, right.options
        was = other
        if left.options is not None:
            options = left.options if options is None else options & left.options
        if options is not None:  # nil is a value of these types, too
            one, other = (None if isinstance(each, NilShape) else each for each in (one, other))
            if not options or isinstance(one, Shape) or isinstance(other, Shape):
                raise Mismatch
        before = right.options
        left.parent, right.options = right, options
        try:
            if isinstance(one, Shape) and isinstance(other, Shape):
                right.kind = self._merge(one, other)
            elif one is not None and not isinstance(one, Shape):
                self._assign(right, one)
            elif other is not None and not isinstance(other, Shape):
                right.kind = one
                self._assign(right, other)
            else:
                right.kind = one or other
        except Mismatch:
            left.parent, right.options, right.kind = None, before, was
            raise

    def _assign(self, slot: Slot, kind: Kind) -> None:
        """Gives a root slot its kind, and what is inside its shape theirs."""
        shape = slot.kind
        if shape == kind:
            return
        if not (shape is None or isinstance(shape, Shape)):
            raise Mismatch
        if slot.options is not None and not is_among(kind, slot.options):
            raise Mismatch
        slot.kind = kind
        try:
            self._assign_parts(shape, kind)
        except Mismatch:
            slot.kind = shape
            raise

    def _assign_parts(self, shape: Shape | None, kind: Kind) -> None:
        match shape, kind:
            case None, _:
                pass
            case ListShape(element=element), ListKind(element=inner):
                self.unify(element, inner)
            case TupleShape(items=items), ListKind(element=inner):
                for item in items:
                    self.unify(item, inner)
            case TupleShape(items=items), RecordKind(name=name):
                fields = self._record_fields(name)
                if len(fields) != len(items):
                    raise Mismatch
                for item, each in zip(items, fields, strict=True):
                    self.unify(item, each.kind)
            case NilShape(), RecordKind() | Primitive():
                pass
            case TermShape(branches=branches), AdtKind(name=name):
                declared = self.declared.adts[name]
                for branch, args in branches.items():
                    if branch not in declared or len(declared[branch]) != len(args):
                        raise Mismatch
                    for arg, each in zip(args, declared[branch], strict=True):
                        self.unify(arg, each.kind)
            case _:
                raise Mismatch

    def _record_fields(self, name: str) -> tuple[Field, ...]:
        return self.declared.records.get(name) or self.records.get(name, ())

    def _merge(self, left: Shape, right: Shape) -> Shape:
        match left, right:
            case ListShape(element=one), ListShape(element=other):
                self.unify(one, other)
                return right
            case (ListShape(element=one) as shape, TupleShape(items=items)) | (
                TupleShape(items=items),
                ListShape(element=one) as shape,
            ):
                for item in items:
                    self.unify(item, one)
                return shape
            case TupleShape(items=one), TupleShape(items=other) if len(one) == len(other):
                for first, second in zip(one, other, strict=True):
                    self.unify(first, second)
                return right
            case TupleShape(items=one), TupleShape(items=other):
                element = Slot()
                for item in (*one, *other):
                    self.unify(item, element)
                return ListShape(element)
            case TermShape(branches=one), TermShape(branches=other):
                for branch, args in one.items():
                    if branch in other:
                        if len(other[branch]) != len(args):
                            raise Mismatch
                        for first, second in zip(args, other[branch], strict=True):
                            self.unify(first, second)
                    else:
                        other[branch] = args
                return right
            case (NilShape(), TupleShape() | NilShape()) | (TupleShape(), NilShape()):
                return left if isinstance(right, NilShape) else right
            case _:
                raise Mismatch

    def resolve(self, inferred: Inferred) -> Kind | None:
        """The kind found, defaults filled in; None if nothing is known of it."""
        if not isinstance(inferred, Slot):
            return inferred
        slot = inferred.root()
        match slot.kind:
            case None:
                if slot.options is None:
                    return None
                slot.kind = next((kind for kind in PRIMITIVES.values() if kind in slot.options), None)
            case ListShape(element=element):
                slot.kind = None  # a list of itself has no kind
                inner = self.resolve(element)
                slot.kind = None if inner is None else ListKind(inner)
                return slot.kind
            case TupleShape(items=items):
                slot.kind = None
                kinds = [self.resolve(item) for item in items]
                if None in kinds:
                    return None
                name = f"[{', '.join(str(kind) for kind in kinds)}]"
                self.records[name] = tuple(Field(f"f{at}", str(kind), kind) for at, kind in enumerate(kinds, 1) if kind)
                slot.kind = RecordKind(name)
            case TermShape(branches=branches):
                slot.kind = self._function_type(slot, branches)
            case NilShape():
                return None
        return slot.kind

    def assume(self, inferred: Inferred, kind: Kind) -> None:
        """Settles what nothing is known of."""
        if isinstance(inferred, Slot):
            slot = inferred.root()
            slot.kind, slot.options = kind, None

    def _function_type(self, slot: Slot, branches: dict[str, tuple[Inferred, ...]]) -> Kind:
        candidates = [
            name
            for name, declared in self.declared.adts.items()
            if all(branch in declared and len(declared[branch]) == len(args) for branch, args in branches.items())
        ]
        if len(candidates) == 1:
            self._assign(slot, AdtKind(candidates[0]))
            return AdtKind(candidates[0])
        name = "$" + next(iter(branches))
        while name in self.adts:
            name += "'"
        self.adts[name] = {}
        slot.kind = AdtKind(name)
        for branch, args in branches.items():
            kinds = [self.resolve(arg) or SYMBOL for arg in args]
            self.adts[name][branch] = tuple(Field(f"f{at}", str(kind), kind) for at, kind in enumerate(kinds, 1))
        return AdtKind(name)

    def types(self) -> Types:
        """The declared and the invented types together."""
        kinds = {name: RecordKind(name) for name in self.records} | {name: AdtKind(name) for name in self.adts}
        return Types(
            {**self.declared.kinds, **kinds},
            {**self.declared.records, **self.records},
            {**self.declared.adts, **self.adts},
            self.declared.members,
        )
