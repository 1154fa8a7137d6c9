"""Peers in folders, with tables that tests edit as users do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from whence.exchange.instance import Delta
from whence.exchange.model import Files
from whence.exchange.peer import Imported, Peer
from whence.exchange.replica import Replica
from whence.exchange.store import SharedStore
from whence.exchange.tables import CsvTables
from whence.lang.types import Tuple


class Network:
    """A store and some peers of one confederation. Every action opens and closes its peer, as commands do."""

    def __init__(self, folder: Path, text: str, *, signed: tuple[str, ...] = (), **options: Any) -> None:
        self.folder = folder
        self.options = options
        self.files: Files = (("test.peers", text),)
        self.store = SharedStore.create(folder / "store")
        self.signed = signed

    def path(self, name: str) -> Path:
        return self.folder / name

    def join(self, *names: str) -> None:
        for name in names:
            first = self.store.last == 0
            files = self.files if first else None
            signed = name in self.signed
            peer = Peer.create(self.path(name), name, self.folder / "store", files=files, signed=signed and first)
            peer.close()

    def open(self, name: str) -> Peer:
        return Peer.open(self.path(name), **self.options)

    def tables(self, name: str) -> dict[str, set[Tuple]]:
        relations = self.replica().instance.confederation.relations_of(name)
        found = CsvTables(self.path(name) / "tables").read(relations)
        return {full.partition(".")[2]: rows for full, rows in found.items()}

    def edit(self, name: str, relation: str, *, add: set[Tuple] = frozenset(), drop: set[Tuple] = frozenset()) -> None:  # type: ignore[assignment]
        relations = self.replica().instance.confederation.relations_of(name)
        full = f"{name}.{relation}"
        CsvTables(self.path(name) / "tables").apply(Delta({full: set(add)}, {full: set(drop)}), relations)

    def exchange(self, *names: str) -> Imported:
        result: Imported | None = None
        for name in names:
            with self.open(name) as peer:
                result = peer.import_()
        assert result is not None
        return result

    def replica(self) -> Replica:
        return Replica.at(self.store)
