"""What a peer remembers, in its folder.

`peer.json` says which entries are in its tables, and `baseline.json` what these held then. While something is under way,
`pending.json` says what, and `baseline.next.json` what the tables will hold. Every step is one file that appears or goes, so a
crash leaves either the state before or one that can be completed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from whence.exchange.rows import row_from_json, row_to_json
from whence.io.json_text import Json
from whence.lang.types import Tuple
from whence.pipeline.files import Damaged, StateError, reported_reading, write_file

Tables = Mapping[str, set[Tuple]]  # the rows of the peer's relations, by full name
_STATE, _BASELINE, _NEXT, _PENDING = "peer.json", "baseline.json", "baseline.next.json", "pending.json"


class PeerFolder:
    """`position` is up to which changes of the tables are in the baseline, where they tell their changes."""

    def __init__(self, path: Path) -> None:
        if not (path / _STATE).exists():
            hint = "whence exchange init makes one"
            raise StateError([f"{path} is not a peer's folder"], hints=[hint])
        self.path = path
        self.position: int | None = None
        self._baseline: Tables | None = None
        self._next: Tables | None = None
        self._next_position: int | None = None

    @classmethod
    def create(cls, path: Path, state: Mapping[str, Json]) -> None:
        _write_json(path / _BASELINE, {"position": None, "rows": {}})
        _write_json(path / _STATE, {"format": 1, **state})

    @staticmethod
    def is_one(path: Path) -> bool:
        return (path / _STATE).exists()

    def state(self) -> dict[str, Any]:
        return _read_json(self.path / _STATE)

    def baseline(self) -> Tables:
        """What the tables held when they were last looked at."""
        if self._baseline is None:
            found = _read_json(self.path / _BASELINE)
            self.position, self._baseline = found["position"], _rows_of_json(found["rows"])
        return self._baseline

    def look(self, rows: Tables, position: int | None) -> None:
        """The tables hold something else, which nobody needs to be told."""
        self._write(_BASELINE, rows, position)
        self._baseline, self.position = rows, position

    # -- what is under way

    def begin(self, rows: Tables, position: int | None, pending: Mapping[str, Json]) -> None:
        self._write(_NEXT, rows, position)
        self._next, self._next_position = rows, position
        _write_json(self.path / _PENDING, pending)

    @property
    def pending(self) -> dict[str, Any] | None:
        return _read_json(self.path / _PENDING) if (self.path / _PENDING).exists() else None

    def next(self) -> Tables | None:
        """What the tables will hold; None if it has become what they held."""
        if self._next is None and (self.path / _NEXT).exists():
            found = _read_json(self.path / _NEXT)
            self._next, self._next_position = _rows_of_json(found["rows"]), found["position"]
        return self._next

    def end(self, state: Mapping[str, Json] | None = None) -> None:
        """It is done, and part of the state may be another one."""
        if state is not None:
            _write_json(self.path / _STATE, {**self.state(), **state})
        if (self.path / _NEXT).exists():
            (self.path / _NEXT).replace(self.path / _BASELINE)
        self._baseline, self.position, self._next = self._next, self._next_position, None
        (self.path / _PENDING).unlink()

    def forget(self) -> None:
        """Nothing has happened, or nothing is under way."""
        (self.path / _NEXT).unlink(missing_ok=True)
        (self.path / _PENDING).unlink(missing_ok=True)
        self._next = None

    def _write(self, name: str, rows: Tables, position: int | None) -> None:
        content = {relation: [row_to_json(row) for row in each] for relation, each in rows.items()}
        _write_json(self.path / name, {"position": position, "rows": content})


def _rows_of_json(found: Mapping[str, Sequence[Sequence[Json]]]) -> Tables:
    return {relation: {row_from_json(row) for row in rows} for relation, rows in found.items()}


def _write_json(path: Path, content: object) -> None:
    write_file(path, json.dumps(content, ensure_ascii=False).encode(errors="surrogatepass"))


def _read_json(path: Path) -> dict[str, Any]:
    with reported_reading(path):
        data = path.read_bytes()
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Damaged(path, "this is not what was written there")
    return found
