"""What a state folder holds: which program, which snapshots. Replaced as a whole; the one before is kept beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from whence.io.json_text import Json
from whence.lang import Program, load
from whence.lang.differences import is_same
from whence.lang.load import Functions
from whence.pipeline.files import Damaged, StateError, checksum, reported_reading, write_file
from whence.pipeline.snapshots import Snapshot
from whence.plan.record import RecordedProgram, with_derivations

FORMAT = 1
NAME, PREVIOUS = "manifest.json", "manifest.previous.json"


@dataclass(frozen=True)
class Earlier:
    """A program that the state was of until the end of epoch `last`; `defaults` is what columns that came after it begin with.

    `parts`, `columns` and `ships` are those of the state until then.
    """

    name: str
    text: str
    record: tuple[str, ...]
    last: int
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    parts: int | None = None
    columns: Mapping[str, int] = field(default_factory=dict)
    ships: bool = False

    def program(self, functions: Functions | None) -> Program:
        return _loaded(self.name, self.text, self.record, functions)


@dataclass(frozen=True)
class Manifest:
    """`delivered` is an epoch that every sink has; those after it may have to be delivered again.

    `record` names the relations whose derivations are recorded. `parts` is their number if the state is kept in parts, and
    `columns` what its relations are split by; if it `ships`, parts need something of each other. `earlier` are the programs
    before this one, oldest first.
    """

    name: str
    text: str
    snapshots: tuple[Snapshot, ...] = ()
    delivered: int = -1
    record: tuple[str, ...] = ()
    parts: int | None = None
    columns: Mapping[str, int] = field(default_factory=dict)
    ships: bool = False
    earlier: tuple[Earlier, ...] = ()

    @classmethod
    def of(cls, program: Program) -> Manifest:
        name = program.source.segments[0].file.name if program.source.segments else "<program>"
        return cls(name, program.source.text, record=_recorded(program))

    def is_of(self, program: Program) -> bool:
        """Comments and layout may be others."""
        if self.record != _recorded(program):
            return False
        return self.text == program.source.text or is_same(self.program(program.functions), program)

    def now_of(self, program: Program, last: int, defaults: Mapping[str, Mapping[str, Any]]) -> Manifest:
        """The same for another program, from the epoch after `last` on."""
        before = Earlier(self.name, self.text, self.record, last, defaults, self.parts, dict(self.columns), self.ships)
        made = Manifest.of(program)
        return replace(self, name=made.name, text=made.text, record=made.record, earlier=(*self.earlier, before))

    def program(self, functions: Functions | None = None) -> Program:
        """The program as it was when the state began. Functions are not part of its text."""
        return _loaded(self.name, self.text, self.record, functions)

    def with_snapshots(self, snapshots: tuple[Snapshot, ...], delivered: int) -> Manifest:
        """Programs of epochs that no snapshot reaches back to are forgotten."""
        earlier = tuple(each for each in self.earlier if each.last >= snapshots[0].epoch)
        return replace(self, snapshots=snapshots, delivered=delivered, earlier=earlier)


def _loaded(name: str, text: str, record: tuple[str, ...], functions: Functions | None) -> Program:
    dialect = "sql" if name.endswith(".sql") else "datalog"
    program = load(text, name=name, dialect=dialect, functions=functions)
    return with_derivations(program, record) if record else program


def write_manifest(folder: Path, manifest: Manifest) -> None:
    content: dict[str, Json] = {
        "format": FORMAT,
        "program": {"name": manifest.name, "text": manifest.text},
        "snapshots": [each.as_json() for each in manifest.snapshots],
        "delivered": manifest.delivered,
        "record": list(manifest.record),
        "parts": manifest.parts,
        "columns": dict(manifest.columns),
        "ships": manifest.ships,
        "earlier": [asdict(each) for each in manifest.earlier],
    }
    path, previous = folder / NAME, folder / PREVIOUS
    if path.exists():
        # A copy under another name, which stays when the name below is given to the new content.
        aside = folder / f"{PREVIOUS}.link"
        aside.unlink(missing_ok=True)
        os.link(path, aside)
        aside.replace(previous)
    body = _canonical(content)
    write_file(path, json.dumps({**content, "checksum": checksum(body)}, indent=1).encode())


def read_manifest(folder: Path) -> tuple[Manifest, list[str]] | None:
    """The newest that is whole, and what is wrong with the one after it; None if there never was one. Raises Damaged."""
    try:
        return _read(folder / NAME), []
    except Damaged as error:
        if (folder / PREVIOUS).exists():
            return _read(folder / PREVIOUS), [f"{error.problems[0]}; using the one before it"]
        if (folder / NAME).exists():
            raise
        return None


def _read(path: Path) -> Manifest:
    with reported_reading(path):
        data = path.read_bytes()
    try:
        content: dict[str, Any] = json.loads(data)
        expected = content.pop("checksum")
    except (ValueError, KeyError, AttributeError):
        raise Damaged(path, "this is not a manifest") from None
    if checksum(_canonical(content)) != expected:
        raise Damaged(path, "the content is not what was written there")
    if content["format"] != FORMAT:
        raise StateError([f"{path} has format {content['format']}; this version reads format {FORMAT}"])
    snapshots = tuple(Snapshot(**each) for each in content["snapshots"])
    program = content["program"]
    kept = {name: content[name] for name in ("delivered", "parts", "columns", "ships") if name in content}
    earlier = tuple(Earlier(**{**each, "record": tuple(each["record"])}) for each in content.get("earlier", ()))
    record = tuple(content.get("record", ()))
    return Manifest(program["name"], program["text"], snapshots, record=record, earlier=earlier, **kept)


def _recorded(program: Program) -> tuple[str, ...]:
    return program.record if isinstance(program, RecordedProgram) else ()


def _canonical(content: dict[str, Json]) -> bytes:
    return json.dumps(content, sort_keys=True).encode(errors="surrogatepass")
