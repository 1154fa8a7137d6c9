"""What peers have published: a folder that all of them can read, and that only ever grows.

    log/00000001.json       who published what, the hash of the content and of the entry before: a chain
    contents/<hash>.json    what was published: edits, or a version of the confederation

Files are never changed. An entry is there once its name is, and a name can be taken once only, so of two peers that publish at
once one comes first and the other second; what was written before a crash and has no entry is not there. An object store with
conditional writes does as well as a file system.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any

from whence.io.json_text import Json
from whence.io.updates import reported_writing
from whence.pipeline.files import StateError, reported_reading, sync_folder, write_file

EDITS, CATALOGUE = "edits", "catalogue"
START = "0" * 64
Sign = Callable[[bytes], str]


class Refused(StateError):
    """Something published that is damaged, or that its peer cannot have published."""

    def __init__(self, path: Path, reason: str) -> None:
        hint = "nothing from here on was read; restore the file, or ask the peer that published it"
        super().__init__([f"{path}: {reason}"], hints=[hint])


@dataclass(frozen=True)
class Entry:
    """One link of the chain. `id` is the publisher's own, by which it finds its entry again after a crash."""

    number: int
    peer: str
    kind: str
    content: str
    previous: str
    id: str
    signature: str | None = None

    def unsigned(self) -> bytes:
        return canonical({name: value for name, value in asdict(self).items() if name != "signature"})

    def to_bytes(self) -> bytes:
        return canonical(asdict(self))

    @property
    def hash(self) -> str:
        return sha256(self.to_bytes()).hexdigest()


def canonical(content: Json) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass")


class SharedStore:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log, self._contents = folder / "log", folder / "contents"

    @classmethod
    def create(cls, folder: Path) -> SharedStore:
        with reported_writing(folder):
            (folder / "log").mkdir(parents=True, exist_ok=True)
            (folder / "contents").mkdir(exist_ok=True)
        return cls(folder)

    @classmethod
    def open(cls, folder: Path) -> SharedStore:
        if not (folder / "log").is_dir():
            hint = "whence exchange init makes one"
            raise StateError([f"{folder} is not a place where peers publish"], hints=[hint])
        return cls(folder)

    @property
    def last(self) -> int:
        return max((int(path.stem) for path in self._log.glob("[0-9]*.json")), default=0)

    def path_of(self, number: int) -> Path:
        return self._log / f"{number:08}.json"

    def read(self, number: int) -> Entry:
        """Raises Refused for an entry that cannot be one."""
        path = self.path_of(number)
        with reported_reading(path):
            data = path.read_bytes()
        try:
            entry = Entry(**json.loads(data))
        except (ValueError, TypeError):
            raise Refused(path, "this is not an entry") from None
        if entry.number != number or entry.to_bytes() != data or entry.kind not in (EDITS, CATALOGUE):
            raise Refused(path, "this is not an entry as peers write them")
        return entry

    def content(self, entry: Entry) -> dict[str, Any]:
        path = self._contents / f"{entry.content}.json"
        with reported_reading(path):
            data = path.read_bytes()
        if sha256(data).hexdigest() != entry.content:
            raise Refused(path, f"the content of entry {entry.number} is not what {entry.peer} published")
        try:
            found = json.loads(data)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise Refused(path, f"the content of entry {entry.number} cannot be read")
        return found

    def entries(self, after: int = 0, previous: str = START, upto: int | None = None) -> Iterator[Entry]:
        """The chain behind an entry whose hash is known. Raises Refused, naming the first link that does not fit."""
        last = self.last
        if last < after:
            path = self.path_of(after)
            raise Refused(path, f"entries {last + 1} to {after} were read before, and are gone")
        for number in range(after + 1, (last if upto is None else min(last, upto)) + 1):
            entry = self.read(number)
            if entry.previous != previous:
                raise Refused(self.path_of(number), f"this does not follow on entry {number - 1} as it was")
            yield entry
            previous = entry.hash

    def publish(
        self,
        peer: str,
        kind: str,
        content: Json,
        *,
        sign: Sign | None = None,
        id_: str | None = None,
        behind: int | None = None,
        allowed: Callable[[Entry], bool] = lambda _: True,
    ) -> Entry | None:
        """Appends an entry. None, and nothing is published, if one `behind` some number is not `allowed`."""
        data = canonical(content)
        digest = sha256(data).hexdigest()
        target = self._contents / f"{digest}.json"
        if not target.exists():
            write_file(target, data)
        while True:
            number = self.last + 1
            for each in range(number if behind is None else behind + 1, number):
                if not allowed(self.read(each)):
                    return None
            previous = self.read(number - 1).hash if number > 1 else START
            entry = Entry(number, peer, kind, digest, previous, id_ or token_hex(8))
            if sign is not None:
                entry = replace(entry, signature=sign(entry.unsigned()))
            if self._claim(entry):
                return entry

    def _claim(self, entry: Entry) -> bool:
        """Whether the entry got its number: a name can be linked once."""
        path = self.path_of(entry.number)
        aside = path.with_name(f"{path.name}.{token_hex(4)}.partial")
        with reported_writing(path):
            try:
                with aside.open("wb") as file:
                    file.write(entry.to_bytes())
                    file.flush()
                    os.fsync(file.fileno())
                os.link(aside, path)
            except FileExistsError:
                return False
            finally:
                aside.unlink(missing_ok=True)
            sync_folder(path.parent)
        return True
