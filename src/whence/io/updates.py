"""Update records in, change records out: one JSON object a line.

A line becomes an update, the end of an epoch, a tick of the clock, or a dead letter: what cannot be applied is data too.
Attributes of a record that mean nothing here are ignored, so that a producer may add its own, and changes read as updates.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from io import BufferedIOBase, UnsupportedOperation
from pathlib import Path
from sys import float_info

from whence.io.changes import Update
from whence.io.errors import FactError
from whence.io.json_rows import fields_from_json, fields_to_json, shown
from whence.io.json_text import Json, read_json, write_json
from whence.io.order import sort_rows
from whence.lang.program import Program, Relation
from whence.lang.tables import taking_updates
from whence.lang.transfers import Options
from whence.lang.types import Tuple, Types

POLL = 0.2
IDLE = 1.0
_PORTION = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
AS_LISTS = Options(
    name="", filename=None, json=True, delimiter="", headers=False, rfc4180=False, compress=False, objects=False, columns=None
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Commit:
    """The epoch ends here."""


@dataclass(frozen=True, slots=True)
class Tick:
    """The clock moves to `time` in the current epoch."""

    time: float


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A line that cannot be applied. Bytes of it that are not UTF-8 stand in `record` as `\\xNN`."""

    line: int
    reason: str
    record: str


Applicable = Update | Commit | Tick
Record = Applicable | DeadLetter


@dataclass(frozen=True)
class Schema:
    """What records may name: the relations of a program, and which of them take updates."""

    relations: Mapping[str, Relation]
    base: frozenset[str]
    types: Types

    @classmethod
    def of(cls, program: Program) -> Schema:
        return cls(program.relations, frozenset(taking_updates(program)), program.types)


# -- reading ----------------------------------------------------------------------------------------------------------


def parse_record(line: bytes, number: int, schema: Schema) -> Record | None:
    """What a line says, or None if it is blank.

    >>> from whence.lang import load
    >>> schema = Schema.of(load(".decl link(x: symbol, y: symbol) .input link .output link"))
    >>> parse_record(b'{"op": "+", "relation": "link", "tuple": ["a", "b"]}', 1, schema)
    Update(op='+', relation='link', tuple=('a', 'b'), time=None)
    >>> parse_record(b'{"tick": "noon"}', 2, schema).reason
    'tick: "noon" is not a finite number'
    """
    line = line.rstrip(b"\r\n")
    if number == 1:
        line = line.removeprefix(_BYTE_ORDER_MARK)
    if not line.strip():
        return None
    try:
        return _record(_object(line), schema)
    except ValueError as error:
        return DeadLetter(number, str(error), line.decode(errors="backslashreplace"))


def _object(line: bytes) -> dict[str, Json]:
    try:
        value = read_json(line.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"byte 0x{line[error.start]:02x} at offset {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"this is not JSON: {error.msg} at character {error.colno}") from None
    except ValueError:
        # Python converts only so many digits.
        raise ValueError("a number has too many digits") from None
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, found {shown(value)}")  # noqa: TRY004 - every reason is a ValueError
    return value


def _record(found: dict[str, Json], schema: Schema) -> Applicable:
    if "commit" in found:
        if found["commit"] is not True:
            raise ValueError(f"commit: {shown(found['commit'])} is not true")
        return Commit()
    if "tick" in found:
        return Tick(_time(found, "tick"))
    for name in ("op", "relation", "tuple"):
        if name not in found:
            raise ValueError(f"{name} is missing")
    op = found["op"]
    if op not in ("+", "-") or not isinstance(op, str):
        raise ValueError(f'op: {shown(op)} is neither "+" nor "-"')
    relation = _relation(found["relation"], schema)
    when = None if found.get("time") is None else _time(found, "time")
    return Update(op, relation.name, _tuple(found["tuple"], relation, schema.types), when)


def _time(found: dict[str, Json], name: str) -> float:
    value = found[name]
    # Not so for nan and the infinities either.
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max:
        return float(value)
    raise ValueError(f"{name}: {shown(value)} is not a finite number")


def _relation(name: Json, schema: Schema) -> Relation:
    if not isinstance(name, str):
        raise ValueError(f"relation: {shown(name)} is not a name")  # noqa: TRY004 - every reason is a ValueError
    if name in schema.base:
        return schema.relations[name]
    if name in schema.relations:
        raise ValueError(f"{name} is derived by rules: only base relations take updates")
    near = get_close_matches(name, schema.base, n=1)
    raise ValueError(f"there is no relation {name}" + (f"; did you mean {near[0]}?" if near else ""))


def _tuple(value: Json, relation: Relation, types: Types) -> Tuple:
    try:
        return fields_from_json(value, relation.fields, types)
    except ValueError as error:
        signature = ", ".join(f"{each.name}: {each.type}" for each in relation.fields)
        raise ValueError(f"{relation.name}({signature}): {error}") from None


def read_lines(
    stream: BufferedIOBase, name: str, *, follow: bool, stopped: Callable[[], bool]
) -> Iterator[bytes | None]:
    """The lines of a stream as they come, until it ends or `stopped` says so.

    To `follow` is to wait for more where a file ends; None then says that nothing has come for a while. What is written
    of a line that has not ended is not a line yet.
    """
    rest = b""
    last = time.monotonic()
    told = True
    while not stopped():
        if not _has_more(stream):
            continue
        portion = stream.read1(_PORTION)
        if portion:
            *lines, rest = (rest + portion).split(b"\n")
            for line in lines:
                yield line
                # What has been read of a pipe cannot be read again.
                if stopped() and stream.seekable():
                    return
            last, told = time.monotonic(), False
        elif not follow:
            if rest:
                yield rest
            return
        else:
            _refuse_truncation(stream, name)
            time.sleep(POLL)
            if not told and time.monotonic() - last >= IDLE:
                told = True
                yield None


def _has_more(stream: BufferedIOBase) -> bool:
    """Waits a moment for a pipe or terminal; a file is always ready, at its end too."""
    try:
        descriptor = stream.fileno()
    except UnsupportedOperation:
        return True
    return bool(select.select([descriptor], [], [], POLL)[0])


def _refuse_truncation(stream: BufferedIOBase, name: str) -> None:
    if not stream.seekable():
        return
    at = stream.tell()
    end = stream.seek(0, 2)
    stream.seek(at)
    if end < at:
        problem = f"{name} became shorter while it was followed: {end} bytes, of which {at} were read"
        raise FactError([problem], hints=["append to it, or start again with another file"])


# -- writing ----------------------------------------------------------------------------------------------------------


def format_changes(
    epoch: int,
    deleted: Mapping[str, Iterable[Tuple]],
    inserted: Mapping[str, Iterable[Tuple]],
    outputs: Iterable[Relation],
    types: Types,
) -> Iterator[bytes]:
    """A line for each change of the output relations: deletions, then insertions, each in the order of their values."""
    shown_relations = list(outputs)
    for op, side in (("-", deleted), ("+", inserted)):
        for relation in shown_relations:
            rows = sort_rows(side.get(relation.name, ()), [each.kind for each in relation.fields])
            for row in rows:
                yield _line(
                    {"epoch": epoch, "op": op, "relation": relation.name, "tuple": as_json(row, relation, types)}
                )


def as_json(row: Tuple, relation: Relation, types: Types) -> Json:
    """The tuple of a record."""
    return fields_to_json(row, relation.fields, AS_LISTS, types)


# Which source a letter is from: its file or the like. And where in it: batch and line.
_Source = tuple[str, ...]
_Place = tuple[int, ...]


@dataclass
class DeadLetterFile:
    """Exists only if there is something in it; what an earlier run left there goes with the first letter.

    Or the file is resumed: after a crash a source repeats itself from some place on, and its letters that are in the file are
    not added again. One that does not repeat itself may count its lines anew.
    """

    path: Path
    resume: bool = False
    repeats: bool = True
    count: int = 0
    _there: set[tuple[_Source, _Place]] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.resume and self.path.exists():
            with reported_writing(self.path), self.path.open("r+b") as file:
                whole = 0
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    whole += len(line)
                    if self.repeats:
                        self._remember(line)
                file.truncate(whole)

    def _remember(self, line: bytes) -> None:
        """Lines that are not letters are left as they are."""
        try:
            found = read_json(line.decode())
        except ValueError:
            return
        if isinstance(found, dict) and isinstance(found.get("line"), int):
            place = {name: value for name, value in found.items() if name not in ("reason", "record")}
            self._there.add(_told_apart(place))

    def add(self, letter: DeadLetter, **place: int | str) -> None:
        """`place` says where the line is, if its number is not enough."""
        if _told_apart({**place, "line": letter.line}) not in self._there:
            with reported_writing(self.path):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("ab" if self.count or self.resume else "wb") as file:
                    file.write(_line({**place, "line": letter.line, "reason": letter.reason, "record": letter.record}))
                    file.flush()
                    os.fsync(file.fileno())
        self.count += 1


def _told_apart(place: Mapping[str, Json]) -> tuple[_Source, _Place]:
    source = tuple(value for value in place.values() if isinstance(value, str))
    return source, tuple(value for value in place.values() if isinstance(value, int))


@contextmanager
def reported_writing(path: Path) -> Iterator[None]:
    """A FactError for what the system refuses, except that nobody reads a pipe any more."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FactError([f"cannot write {path}: {(error.strerror or str(error)).lower()}"]) from None


def _line(record: dict[str, Json]) -> bytes:
    try:
        return f"{write_json(record)}\n".encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair has no UTF-8 form, but it has an escape.
        return f"{write_json(record, ascii_only=True)}\n".encode()
