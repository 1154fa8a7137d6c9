"""What parts say to each other as bytes: relation by relation, tuples and ranks."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pyarrow as pa

from whence.lang.fit import holds_compounds
from whence.lang.program import Program, Relation
from whence.lang.types import Tuple, Types
from whence.node import Support
from whence.parts.member import Letter
from whence.pipeline.snapshots import as_table, from_table


def encode_letter(letter: Letter, program: Program) -> bytes:
    rows: dict[str, list[Tuple]] = {}
    ranks: dict[str, list[int | None]] = {}
    for name, row, rank in letter:
        rows.setdefault(name, []).append(row)
        ranks.setdefault(name, []).append(rank)
    content = [
        (name, _encode(listed, program.relations[name], program.types), ranks[name]) for name, listed in rows.items()
    ]
    return pickle.dumps(content, pickle.HIGHEST_PROTOCOL)


def decode_letter(data: bytes, program: Program) -> Iterator[Support]:
    for name, encoded, ranks in pickle.loads(data):  # noqa: S301 - parts of one run speak to each other
        rows = _decode(encoded, program.relations[name], program.types)
        yield from (Support(name, row, rank) for row, rank in zip(rows, ranks, strict=True))


def _encode(rows: list[Tuple], relation: Relation, types: Types) -> list[Tuple] | bytes:
    if not holds_compounds(relation):
        return rows
    # Values nest deeper than pickle goes.
    table = as_table(rows, relation, types)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _decode(encoded: list[Tuple] | bytes, relation: Relation, types: Types) -> list[Tuple]:
    if isinstance(encoded, list):
        return encoded
    with pa.ipc.open_stream(encoded) as reader:
        return from_table(reader.read_all(), relation, types)
