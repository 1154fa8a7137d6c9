"""The binary form of what nodes tell each other: its bytes are what is counted.

    shipment   phase, then for each relation: its number, how many tuples, and each tuple with what is said of it
    phase      epoch, level and round
    said       0 if the sender does not derive the tuple any more, otherwise 1 + the lowest rank of its derivations

Whole numbers take seven bits a byte, signed ones zigzag. A text is written once in a message and referred to by its number
after that. Floats take eight bytes. Records, lists and branches begin with how many parts they have.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from whence.lang.deep import compound
from whence.lang.scalars import of_whole, to_whole
from whence.lang.types import (
    FLOAT,
    NUMBER,
    SYMBOL,
    UNSIGNED,
    AdtKind,
    Kind,
    ListKind,
    Nullable,
    RecordKind,
    Tuple,
    Types,
    Value,
    Variant,
    is_whole,
)
from whence.network.ranks import shown
from whence.runtime.figures import Size
from whence.runtime.termination import Phase
from whence.runtime.varints import varint

if TYPE_CHECKING:
    from whence.network.compiled import Compiled

_REAL = struct.Struct("<d")


def zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


Texts = dict[str, int]
_Write = Callable[[Value, Texts], bytes]


class Reader:
    """Reads what was written, from the front."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.texts: list[str] = []

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def signed(self) -> int:
        value = self.number()
        return -(value + 1 >> 1) if value & 1 else value >> 1

    def real(self) -> float:
        self.at += 8
        value: float = _REAL.unpack_from(self.data, self.at - 8)[0]
        return value

    def text(self) -> str:
        number = self.number()
        if number:
            return self.texts[number - 1]
        size = self.number()
        self.at += size
        self.texts.append(self.data[self.at - size : self.at].decode(errors="surrogatepass"))
        return self.texts[-1]

    @property
    def is_over(self) -> bool:
        return self.at == len(self.data)


def write_number(value: Value, _: Texts) -> bytes:
    assert isinstance(value, int)
    return varint(zigzag(value))


def write_unsigned(value: Value, _: Texts) -> bytes:
    assert isinstance(value, int)
    return varint(value)


def write_real(value: Value, _: Texts) -> bytes:
    assert isinstance(value, int | float)
    return _REAL.pack(value)


def write_text(value: Value, texts: Texts) -> bytes:
    assert isinstance(value, str)
    known = texts.get(value)
    if known is not None:
        return varint(known)
    texts[value] = len(texts) + 1
    written = value.encode(errors="surrogatepass")
    return b"\0" + varint(len(written)) + written


@dataclass
class Codec:
    """Writes and reads the values of a program's relations."""

    types: Types
    kinds: Sequence[tuple[Kind, ...]]  # by relation number, those of its columns
    _writers: dict[Kind, _Write] = field(
        default_factory=lambda: {
            NUMBER: write_number,
            UNSIGNED: write_unsigned,
            FLOAT: write_real,
            SYMBOL: write_text,
        }
    )
    _columns: dict[int, tuple[_Write, ...]] = field(default_factory=dict)

    def row(self, table: int, row: Tuple, texts: Texts) -> bytes:
        columns = self._columns.get(table)
        if columns is None:
            columns = self._columns[table] = tuple(self._writer(kind) for kind in self.kinds[table])
        return b"".join([write(value, texts) for write, value in zip(columns, row, strict=True)])

    def value(self, kind: Kind, value: Value, texts: Texts) -> bytes:
        return self._writer(kind)(value, texts)

    def _writer(self, kind: Kind) -> _Write:
        if isinstance(kind, Nullable) and kind not in self._writers:
            write = self._writer(kind.of)
            self._writers[kind] = lambda value, texts: b"\0" if value is None else b"\1" + write(value, texts)
        if is_whole(kind) and kind not in self._writers:
            whole = to_whole(kind)
            self._writers[kind] = lambda value, texts: write_number(whole(value), texts)
        if kind not in self._writers:
            self._writers[kind] = lambda value, texts: self._compound(value, kind, texts)
        return self._writers[kind]

    def _compound(self, value: Value, kind: Kind, texts: Texts) -> bytes:
        if value is None:
            return b"\0"
        match value:
            case Variant(branch=branch, args=args):
                front, parts = b"\1" + write_text(branch, texts), args
            case _:
                assert isinstance(value, tuple)
                front, parts = varint(len(value) + 1), value
        written = [self._writer(each)(part, texts) for each, part in zip(self._inside(kind, value), parts, strict=True)]
        return front + b"".join(written)

    def _inside(self, kind: Kind, value: Value) -> Sequence[Kind]:
        match kind, value:
            case ListKind(element=element), tuple():
                return [element] * len(value)
            case RecordKind(name=name), _:
                return [each.kind for each in self.types.records[name]]
            case AdtKind(name=name), Variant(branch=branch):
                return [each.kind for each in self.types.adts[name][branch]]
        raise AssertionError(kind)

    def read_row(self, table: int, reader: Reader) -> Tuple:
        return tuple(self.read_value(kind, reader) for kind in self.kinds[table])

    def read_value(self, kind: Kind, reader: Reader) -> Value:
        if kind == NUMBER:
            return reader.signed()
        if kind == UNSIGNED:
            return reader.number()
        if kind == FLOAT:
            return reader.real()
        if kind == SYMBOL:
            return reader.text()
        if is_whole(kind):
            return of_whole(kind)(reader.signed())
        count = reader.number()
        if count == 0:
            return None
        if isinstance(kind, Nullable):
            return self.read_value(kind.of, reader)
        if isinstance(kind, AdtKind):
            branch = reader.text()
            fields = self.types.adts[kind.name][branch]
            return Variant(branch, compound(self.read_value(each.kind, reader) for each in fields))
        kinds = self._inside(kind, (None,) * (count - 1))
        return compound(self.read_value(each, reader) for each in kinds)


# A tuple that is told of: its relation's number, and the lowest rank of what derives it; None if nothing does any more.
Told = tuple[int, Tuple, int | None]


@dataclass(slots=True)
class Shipment:
    """What one node tells another at once, in the order of telling."""

    phase: Phase
    items: list[Told]
    codec: Codec
    _size: Size | None = None

    def size(self) -> Size:
        if self._size is None:
            self.encode()
        assert self._size is not None
        return self._size

    def encode(self) -> bytes:
        head = b"".join(varint(part) for part in self.phase)
        control, provenance, data = len(head), 0, 0
        out = [head]
        texts: Texts = {}
        row_bytes = self.codec.row
        for table, items in _runs(self.items):
            front = varint(table) + varint(len(items))
            out.append(front)
            control += len(front)
            for _, row, rank in items:
                said = varint(0 if rank is None else rank + 1)
                written = row_bytes(table, row, texts)
                provenance += len(said)
                data += len(written)
                out.append(said)
                out.append(written)
        self._size = Size(data, provenance, control, len(self.items))
        return b"".join(out)

    def shown(self, compiled: Compiled) -> Iterable[str]:
        """Each thing that is told, as a line of a trace."""
        for table, row, rank in self.items:
            values = ", ".join(map(str, row))
            yield f"{'-' if rank is None else '+'}{compiled.names[table]}({values})" + (
                f" rank {shown(rank)}" if rank else ""
            )

    @classmethod
    def decode(cls, data: bytes, codec: Codec) -> Shipment:
        reader = Reader(data)
        phase = (reader.number(), reader.number(), reader.number())
        items: list[Told] = []
        while not reader.is_over:
            table = reader.number()
            for _ in range(reader.number()):
                said = reader.number()
                items.append((table, codec.read_row(table, reader), said - 1 if said else None))
        return cls(phase, items, codec)


def _runs(items: list[Told]) -> list[tuple[int, list[Told]]]:
    runs: list[tuple[int, list[Told]]] = []
    for item in items:
        if runs and runs[-1][0] == item[0]:
            runs[-1][1].append(item)
        else:
            runs.append((item[0], [item]))
    return runs


def state_bytes(codec: Codec, tables: Mapping[int, Mapping[Tuple, object]]) -> int:
    """The bytes of tuples as they would be written one by one, every text each time it occurs."""
    return sum(len(codec.row(table, row, {})) for table, rows in tables.items() for row in rows)
