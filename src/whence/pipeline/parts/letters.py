"""What parts say to each other as bytes: relation by relation, tuples and ranks."""

from __future__ import annotations

import pickle

from whence.io.arrow import as_stream, from_stream
from whence.lang.fit import holds_compounds
from whence.lang.program import Program, Relation
from whence.lang.types import Tuple, Types
from whence.parts.member import Letter
from whence.pipeline.snapshots import as_table, from_table


def encode_letter(letter: Letter, program: Program) -> bytes:
    content = [
        (name, _encode(rows, program.relations[name], program.types), ranks) for name, (rows, ranks) in letter.items()
    ]
    return pickle.dumps(content, pickle.HIGHEST_PROTOCOL)


def decode_letter(data: bytes, program: Program) -> Letter:
    return {
        name: (_decode(encoded, program.relations[name], program.types), ranks)
        for name, encoded, ranks in pickle.loads(data)  # noqa: S301 - parts of one run speak to each other
    }


def _encode(rows: list[Tuple], relation: Relation, types: Types) -> list[Tuple] | bytes:
    if not holds_compounds(relation):
        return rows
    # Values nest deeper than pickle goes.
    return as_stream(as_table(rows, relation, types))


def _decode(encoded: list[Tuple] | bytes, relation: Relation, types: Types) -> list[Tuple]:
    if isinstance(encoded, list):
        return encoded
    return from_table(from_stream(encoded), relation, types)
