"""The binary form of what nodes tell each other under strategies with provenance.

shipment   phase; for each relation: its number, how many rows, and each row with its annotation; 0 rows of relation 0 end
           that; then how many variables are dead, and each: its home and its serial
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from whence.lang.types import Value
from whence.network.annotations import Algebra, Key, Rename, Variable
from whence.network.codec import Codec, Reader, Texts
from whence.network.compiled import Compiled
from whence.plan.localize import place_kind
from whence.runtime.figures import Size
from whence.runtime.termination import Phase
from whence.runtime.varints import varint


class PlaceNames:
    """How nodes and rows are written: a node as the value that it is, a row behind the number of its table."""

    def __init__(self, compiled: Compiled, codec: Codec) -> None:
        self.codec = codec
        self.kind = place_kind(compiled.program)

    def write_place(self, place: Value, texts: Texts) -> bytes:
        return self.codec.value(self.kind, place, texts)

    def read_place(self, reader: Reader) -> Value:
        return self.codec.read_value(self.kind, reader)

    def write_row(self, key: Key, texts: Texts) -> bytes:
        return varint(key[0]) + self.codec.row(*key, texts)

    def read_row(self, reader: Reader) -> Key:
        table = reader.number()
        return table, self.codec.read_row(table, reader)


class Language(NamedTuple):
    """What both sides of a message have to know to write and to read it."""

    algebra: Algebra[Any]
    compiled: Compiled
    codec: Codec


class AnnotatedShipment:
    """What one node tells another at once: rows with annotations, then the variables that are dead."""

    def __init__(
        self,
        phase: Phase,
        items: list[tuple[Key, Any]],
        deaths: Sequence[Variable],
        language: Language,
    ) -> None:
        self.phase = phase
        self.items = items
        self.deaths = deaths
        self.language = language
        self._size: Size | None = None
        language.algebra.hold(self)

    def size(self) -> Size:
        if self._size is None:
            self.encode()
        assert self._size is not None
        return self._size

    def encode(self) -> bytes:
        texts: Texts = {}
        algebra, compiled, codec = self.language
        names = PlaceNames(compiled, codec)
        book = algebra.book(names, texts)
        head = b"".join(varint(part) for part in self.phase)
        control, provenance, data = len(head), 0, 0
        out = [head]
        for table, items in _runs(self.items):
            front = varint(table) + varint(len(items))
            out.append(front)
            control += len(front)
            for key, annotation in items:
                row = codec.row(*key, texts)
                why = book.write(annotation)
                data += len(row)
                provenance += len(why)
                out += (row, why)
        dead = b"\0\0" + varint(len(self.deaths))
        control += len(dead)
        out.append(dead)
        for home, serial in self.deaths:
            news = names.write_place(home, texts) + varint(serial)
            provenance += len(news)
            out.append(news)
        self._size = Size(data, provenance, control, len(self.items))
        return b"".join(out)

    @classmethod
    def decode(cls, data: bytes, language: Language) -> AnnotatedShipment:
        algebra, compiled, codec = language
        reader = Reader(data)
        names = PlaceNames(compiled, codec)
        shelf = algebra.shelf(names)
        phase = (reader.number(), reader.number(), reader.number())
        items: list[tuple[Key, Any]] = []
        while True:
            table, count = reader.number(), reader.number()
            if not count:
                break
            for _ in range(count):
                row = codec.read_row(table, reader)
                items.append(((table, row), shelf.read(reader)))
        deaths = [Variable(names.read_place(reader), reader.number()) for _ in range(reader.number())]
        return cls(phase, items, deaths, language)

    def shown(self, compiled: Compiled) -> Iterable[str]:
        for (table, row), annotation in self.items:
            yield f"+{compiled.names[table]}({', '.join(map(str, row))}) {self.language.algebra.show(annotation)}"
        for home, serial in self.deaths:
            yield f"-{home}{serial}"

    def annotations(self) -> Iterable[Any]:
        return [annotation for _, annotation in self.items]

    def rewrite(self, rename: Rename[Any]) -> None:
        self.items = [(key, rename(annotation)) for key, annotation in self.items]


def _runs(items: list[tuple[Key, Any]]) -> list[tuple[int, list[tuple[Key, Any]]]]:
    runs: list[tuple[int, list[tuple[Key, Any]]]] = []
    for item in items:
        if runs and runs[-1][0] == item[0][0]:
            runs[-1][1].append(item)
        else:
            runs.append((item[0][0], [item]))
    return runs
