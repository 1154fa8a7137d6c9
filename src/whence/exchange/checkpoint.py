"""What a peer has read, translated: the tables of its instance in one file, as of an entry.

With it a command derives nothing and reads only the entries behind. The file says which entry it is of by number and hash;
without it, or if it is damaged or of another version of Whence, everything is read from the store again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whence.backends.local.image import Image
from whence.exchange.instance import Edit, Instance, OtherImage
from whence.exchange.model import Confederation, Files
from whence.exchange.rows import row_from_json, row_to_json
from whence.io.json_text import Json
from whence.lang.load import Functions
from whence.pipeline.kept import keep, read_kept


@dataclass(frozen=True)
class Checkpoint:
    number: int
    hash: str
    files: Files
    waiting: tuple[Edit, ...]
    image: Image

    def instance(
        self, confederation: Confederation, *, functions: Functions | None = None, strategy: str = "support"
    ) -> Instance | None:
        """None if it is of another version of Whence.

        Where rows were made by functions, which may be others by now, or are kept in another way, only what they follow from
        is taken.
        """
        try:
            found = Instance(confederation, self.waiting, functions=functions, image=self.image)
        except OtherImage:
            return None
        if not functions and strategy == found.strategy:
            return found
        return Instance(confederation, found.edits(), functions=functions, strategy=strategy)


def write_checkpoint(path: Path, number: int, hash_: str, files: Files, instance: Instance) -> None:
    if instance.strategy != "support":
        return
    waiting: list[Json] = [[each.part, each.relation, row_to_json(each.row)] for each in instance.waiting()]
    texts: list[Json] = [[name, text] for name, text in files]
    keep(path, instance.session, {"number": number, "hash": hash_, "files": texts, "waiting": waiting})


def read_checkpoint(path: Path) -> Checkpoint | None:
    kept = read_kept(path)
    if kept is None:
        return None
    of: Mapping[str, Any] = kept.of
    files = tuple((name, text) for name, text in of["files"])
    waiting = tuple(Edit("+", part, relation, row_from_json(row)) for part, relation, row in of["waiting"])
    return Checkpoint(of["number"], of["hash"], files, waiting, kept.image)
