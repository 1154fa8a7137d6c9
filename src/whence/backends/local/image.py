"""The tables of a backend and the words of their values as bytes, and back.

What a row has behind its columns (derivations, rank, flags) is part of it, so nothing has to be derived again. Indexes and slots
are not: they are made when they are first asked for, as for any table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from whence.backends.local.backend import LocalBackend
from whence.backends.local.cells import Cells
from whence.backends.local.hashing import BITS, STEP, Halves
from whence.backends.local.memory import DIGEST
from whence.io.json_text import Json
from whence.lang.types import PRIMITIVES, AdtKind, Kind, ListKind, Nullable, Primitive, RecordKind


class Image(NamedTuple):
    """`head` says what the bytes are, which follow each other in `pieces`."""

    head: dict[str, Json]
    pieces: Sequence[bytes | memoryview]


def image_of(backend: LocalBackend) -> Image:
    dictionary = backend.dictionary
    texts = [None if text is None else text.encode(errors="surrogatepass") for text in dictionary.values]
    lengths = np.array([-1 if text is None else len(text) for text in texts], dtype=np.int32)
    pieces = [lengths.tobytes(), b"".join(text or b"" for text in texts)]
    cells: list[Json] = []
    for kind, each in dictionary.cells.items():
        parts: list[Json] = [[_kind_to_json(part) for part in parts] for parts in each.parts]
        cells.append([_kind_to_json(kind), [*each.names], parts, each.columns])
        pieces.append(each.rows.lines[: each.used].tobytes())
    tables: list[Json] = []
    for name, table in backend.tables.items():
        tables.append([name, table.fields[STEP], table.fields[BITS]])
        pieces.append(table.used_lines().tobytes())
    sizes: list[Json] = [len(each) for each in pieces]
    return Image({"layout": DIGEST, "cells": cells, "tables": tables, "sizes": sizes}, pieces)


def fits(backend: LocalBackend, head: Mapping[str, Any]) -> bool:
    """Whether an image with this head is one of tables like these, written by loops like these."""
    return head["layout"] == DIGEST and {name for name, *_ in head["tables"]} == backend.tables.keys()


def restore(backend: LocalBackend, image: Image) -> None:
    """Fills tables and a dictionary of which nothing is known yet."""
    assert not len(backend.dictionary)
    head: Mapping[str, Any] = image.head
    pieces = iter(image.pieces)
    lengths, texts = np.frombuffer(next(pieces), dtype=np.int32), bytes(next(pieces))
    listed: list[Cells] = []
    for kind, names, parts, columns in head["cells"]:
        cells = Cells(_kind_of_json(kind))
        cells.restore(
            names, [tuple(map(_kind_of_json, each)) for each in parts], _lines(next(pieces), cells.width_of(columns))
        )
        listed.append(cells)
    backend.dictionary.restore(list(_texts(lengths.tolist(), texts)), listed)
    for name, step, bits in head["tables"]:
        table = backend.tables[name]
        table.restore(_lines(next(pieces), table.width_of(step, bits)), step, bits)


def split(head: Mapping[str, Any], data: memoryview) -> Sequence[memoryview]:
    """The pieces of an image whose bytes follow each other."""
    ends = accumulate(head["sizes"], initial=0)
    return [data[begin:end] for begin, end in pairwise(ends)]


def _texts(lengths: Sequence[int], data: bytes) -> Iterator[str | None]:
    end = 0
    for length in lengths:
        if length < 0:
            yield None
            continue
        begin, end = end, end + length
        yield data[begin:end].decode(errors="surrogatepass")


def _lines(data: bytes | memoryview, width: int) -> Halves:
    return np.frombuffer(data, dtype=np.int32).reshape(-1, width)


def _kind_to_json(kind: Kind) -> Json:
    match kind:
        case ListKind(element):
            return ["list", _kind_to_json(element)]
        case RecordKind(name):
            return ["record", name]
        case AdtKind(name):
            return ["data", name]
        case Nullable(of):
            return ["or nil", of.name]
        case Primitive(name):
            return ["plain", name]


def _kind_of_json(found: Sequence[Any]) -> Kind:
    what, of = found
    match what:
        case "list":
            return ListKind(_kind_of_json(of))
        case "record":
            return RecordKind(of)
        case "data":
            return AdtKind(of)
        case "or nil":
            return Nullable(PRIMITIVES[of])
        case _:
            return PRIMITIVES[of]
