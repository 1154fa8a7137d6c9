"""What a peer has read, folded: the confederation of an entry and the rows that everything follows from, in one file.

With it a command reads only the entries behind. It is written by renaming, holds a checksum, and says which entry it is of by
number and hash; without it, or if it is damaged, everything is read from the store again.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from whence.exchange.instance import Edit
from whence.exchange.model import Files
from whence.exchange.rows import row_from_json, row_to_json
from whence.io.json_text import Json
from whence.pipeline.files import StateWarning, checksum, write_file

_FORMAT = 1


@dataclass(frozen=True)
class Checkpoint:
    number: int
    hash: str
    files: Files
    edits: list[Edit]


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    rows: dict[tuple[str, str], list[Json]] = {}
    for _, part, relation, row in checkpoint.edits:
        rows.setdefault((part, relation), []).append(row_to_json(row))
    edits = [[part, relation, listed] for (part, relation), listed in rows.items()]
    body = json.dumps([checkpoint.files, edits], ensure_ascii=False).encode(errors="surrogatepass")
    head = {"format": _FORMAT, "number": checkpoint.number, "hash": checkpoint.hash, "checksum": checksum(body)}
    write_file(path, json.dumps(head).encode() + b"\n" + body)


def read_checkpoint(path: Path) -> Checkpoint | None:
    """None if there is none. One that is damaged is as good as none, and somebody may want to know why."""
    if not path.exists():
        return None
    try:
        line, _, body = path.read_bytes().partition(b"\n")
        head = json.loads(line)
        if head["format"] == _FORMAT and head["checksum"] == checksum(body):
            files, edits = json.loads(body)
            named = tuple((name, text) for name, text in files)
            return Checkpoint(head["number"], head["hash"], named, list(_edits(edits)))
    except (OSError, ValueError, KeyError, TypeError):
        pass  # the warning says what is done about it
    warnings.warn(f"{path} is not as it was written; all entries are read again", StateWarning, stacklevel=2)
    return None


def _edits(found: Iterable[tuple[str, str, list[list[Json]]]]) -> Iterator[Edit]:
    for part, relation, rows in found:
        for row in rows:
            yield Edit("+", part, relation, row_from_json(row))
