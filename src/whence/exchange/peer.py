"""A peer: its tables, its place in the shared store, and what it does there.

A folder holds what the peer has to remember (`folder`). Everything else follows from the store, so a crash at any instant leaves
either the state before or one that the next call completes. `tables.image` is there to be quick: with it, nothing is derived,
and only the entries behind it are read.

    publish   what users changed becomes edits, and an entry of the store
    import    publish; read the entries of others, translate, filter by trust, decide conflicts; apply it to the tables
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

from whence.exchange.check import load_confederation
from whence.exchange.checkpoint import read_checkpoint, write_checkpoint
from whence.exchange.compile import LOCAL, REJECTED, TRUSTED
from whence.exchange.databases import open_tables
from whence.exchange.edits import net_edits
from whence.exchange.explain import ExchangeDerivations, Reason, costs, uses, whynot
from whence.exchange.folder import PeerFolder, Tables
from whence.exchange.instance import PARTS, Delta, Edit, Instance
from whence.exchange.model import Confederation, Files, Relation
from whence.exchange.reconcile import Conflict, deferred, reconcile, resolution, undoing
from whence.exchange.replica import Replica, edits_of, edits_to_json, files_at
from whence.exchange.rows import show_row, sort_rows
from whence.exchange.signing import make_key, signer
from whence.exchange.store import EDITS, Entry, Refused, SharedStore
from whence.exchange.tables import PeerTables, TablesWithChanges
from whence.exchange.versions import KEY, publish_version, with_key, with_policy, without_policy
from whence.io.json_text import Json
from whence.lang.load import Functions
from whence.lang.types import Tuple
from whence.pipeline.files import StateError
from whence.pipeline.lock import StateLock
from whence.provenance.graph import Fact

_CHECKPOINT = "tables.image"
_WORTH = 10  # a checkpoint is written when a tenth of its rows have come since the last


@dataclass(frozen=True)
class Imported:
    """What an exchange did: the entries read, what came and went in the peer's tables, conflicts decided and left open."""

    published: Entry | None
    entries: tuple[Entry, ...]
    delta: Delta
    decisions: tuple[Edit, ...]
    deferred: tuple[Conflict, ...]


@dataclass(frozen=True)
class Status:
    peer: str
    read: int
    last: int
    rows: Mapping[str, Mapping[str, int]]  # by relation: rows, local, rejected, lost
    edits: tuple[Edit, ...]
    deferred: tuple[Conflict, ...]


@dataclass
class Peer:
    """Open with `Peer.open`; one process at a time, until `close`."""

    folder: Path
    name: str
    store: SharedStore
    tables: PeerTables
    read: int
    hash: str
    _memory: PeerFolder
    functions: Functions | None = None
    strategy: str = "support"
    on_step: Callable[[str], None] = lambda _: None
    _lock: StateLock | None = None
    _replica: Replica | None = field(default=None, repr=False)

    # -- beginning and end

    @classmethod
    def create(
        cls,
        folder: Path,
        name: str,
        store: Path,
        *,
        files: Files | None = None,
        signed: bool = False,
        where: str | None = None,
    ) -> Peer:
        """A new peer. `files` is the confederation: the first version of it if the store is new, or one with this peer in it.

        `where` are its tables, as `open_tables` takes it.
        """
        shared = SharedStore.create(store)
        folder.mkdir(parents=True, exist_ok=True)
        if PeerFolder.is_one(folder):
            raise StateError([f"{folder} is a peer's folder already"])
        open_tables(where, folder)  # raises StateError before anything is published
        if signed and files is not None:
            public = make_key(folder / KEY)
            files = tuple((path, with_key(text, name, public)) for path, text in files)
        if files is not None:
            publish_version(shared, name, files, folder)
        replica = Replica.at(shared)
        known = replica.instance.confederation
        if name not in known.peers:
            raise StateError([f"there is no peer {name} here; there are {', '.join(known.peers)}"])
        write_checkpoint(folder / _CHECKPOINT, replica.number, replica.hash, replica.files, replica.instance)
        place: dict[str, Json] = {"store": os.path.relpath(store, folder), "tables": where}
        PeerFolder.create(folder, {"peer": name, **place, "read": replica.number, "hash": replica.hash})
        return cls.open(folder)

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        tables: PeerTables | None = None,
        functions: Functions | None = None,
        strategy: str = "support",
        on_step: Callable[[str], None] = lambda _: None,
    ) -> Peer:
        """Raises StateError if the folder is not a peer's, or in use. What a crash left half done is completed."""
        memory = PeerFolder(folder)
        lock = StateLock(folder)
        try:
            state = memory.state()
            store = SharedStore.open(folder / state["store"])
            own = tables or open_tables(state.get("tables"), folder)
            peer = cls(
                folder,
                state["peer"],
                store,
                own,
                state["read"],
                state["hash"],
                memory,
                functions=functions,
                strategy=strategy,
                on_step=on_step,
                _lock=lock,
            )
            peer._complete()
        except BaseException:
            lock.release()
            raise
        return peer

    def close(self) -> None:
        if self._replica is not None:
            self._replica.instance.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def replica(self) -> Replica:
        """What had been published when the tables were brought up to date the last time."""
        if self._replica is None:
            list(self.store.entries(self.read, self.hash, self.read))  # raises Refused if some are gone
            self._replica = self._replica_at(self.read)
            if self._replica.hash != self.hash:
                raise Refused(self.store.path_of(self.read), f"this is not the entry that {self.name} read")
        return self._replica

    def _replica_at(self, number: int | None) -> Replica:
        start = read_checkpoint(self.folder / _CHECKPOINT)
        if start is not None and number is not None and start.number > number:
            start = None
        return Replica.at(self.store, number, functions=self.functions, strategy=self.strategy, start=start)

    def _keep(self, replica: Replica) -> None:
        """A checkpoint, if enough has come since the last for it to be worth its while."""
        if replica.fresh * _WORTH >= replica.instance.size:
            path = self.folder / _CHECKPOINT
            write_checkpoint(path, replica.number, replica.hash, replica.files, replica.instance)
            replica.fresh = 0

    @property
    def instance(self) -> Instance:
        return self.replica.instance

    @property
    def confederation(self) -> Confederation:
        return self.instance.confederation

    @property
    def relations(self) -> list[Relation]:
        return self.confederation.relations_of(self.name)

    def relation(self, name: str) -> Relation:
        """One of any peer's, by its full name or, if there is one only, by its own."""
        relations = self.confederation.relations
        if name in relations:
            return relations[name]
        own = [each for each in relations.values() if each.name == name]
        preferred = [each for each in own if each.peer == self.name] or own
        if len(preferred) != 1:
            raise ValueError(f"there is no relation {name}; there are {', '.join(relations)}")
        return preferred[0]

    # -- publishing

    def pending_edits(self) -> list[Edit]:
        """What users changed since the last publication or import."""
        relations = self.relations
        return self._edits(relations, self._read_tables(relations)[0])

    def _read_tables(self, relations: Sequence[Relation]) -> tuple[Tables, int | None]:
        """What they hold, and where to go on from where they tell their changes."""
        before = self._memory.baseline()
        if not isinstance(self.tables, TablesWithChanges):
            return self.tables.read(relations), None
        return self.tables.read_since(relations, before, self._memory.position)

    def _edits(self, relations: Sequence[Relation], after: Tables) -> list[Edit]:
        before = self._memory.baseline()
        parts = self._own_parts(relations)
        imported = {each.full_name: self.instance.part(each.full_name, TRUSTED) for each in relations}
        return net_edits(relations, before, after, parts, imported)

    def _own_parts(self, relations: Sequence[Relation]) -> dict[tuple[str, str], set[Tuple]]:
        """The peer's own decisions, those published since the last import included."""
        parts = {
            (each.full_name, part): set(self.instance.part(each.full_name, part))
            for each in relations
            for part in PARTS
        }
        for entry in self.store.entries(self.replica.number, self.replica.hash):
            if entry.peer == self.name and entry.kind == EDITS:
                for op, part, name, row in edits_of(self.store.content(entry)):
                    (parts[name, part].add if op == "+" else parts[name, part].discard)(row)
        return parts

    def publish(self) -> Entry | None:
        """Publishes what users changed; None if nothing is."""
        relations = self.relations
        after, position = self._read_tables(relations)
        edits = self._edits(relations, after)
        if not edits:
            if after != self._memory.baseline() or position != self._memory.position:
                self._memory.look(after, position)
            return None
        id_ = token_hex(8)
        self._memory.begin(after, position, {"step": "publish", "id": id_})
        self.on_step("published")
        entry = self._append(edits, id_)
        self._memory.end()
        return entry

    def _append(self, edits: Sequence[Edit], id_: str | None = None) -> Entry:
        for each in edits:
            self.instance.rows.to_engine(each.relation, each.row)
        sign = signer(self.folder / KEY)
        entry = self.store.publish(self.name, EDITS, edits_to_json(edits), sign=sign, id_=id_)
        assert entry is not None
        return entry

    # -- bringing the tables up to date

    def preview(self) -> Imported:
        """What an import would do now, users' changes included. Nothing is published, no table touched."""
        edits = self.pending_edits()
        replica = self._replica_at(None)
        before = {each.full_name: self.instance.relation(each.full_name) for each in self.relations}
        replica.instance.apply(edits)
        decisions = reconcile(replica.instance, self.name)
        return Imported(
            None,
            tuple(self.store.entries(self.read, self.hash)),
            _difference(before, self._rows_of(replica)),
            tuple(decisions),
            tuple(deferred(replica.instance, self.name)),
        )

    def import_(self) -> Imported:
        """One exchange. The tables are up to date with everything published, and with what follows from it."""
        published = self.publish()
        self.on_step("translating")
        replica = self.replica
        entries = replica.advance()
        decisions: list[Edit] = []
        while fresh := reconcile(replica.instance, self.name):
            self.on_step("deciding")
            # The instance has them already: read from the store they change nothing, but others may have published meanwhile.
            self._append(fresh)
            entries += replica.advance()
            decisions += fresh
        delta = self._apply(replica)
        self._keep(replica)
        return Imported(
            published, tuple(entries), delta, tuple(decisions), tuple(deferred(replica.instance, self.name))
        )

    def _rows_of(self, replica: Replica) -> dict[str, set[Tuple]]:
        relations = replica.instance.confederation.relations_of(self.name)
        return {each.full_name: replica.instance.relation(each.full_name) for each in relations}

    def _apply(self, replica: Replica) -> Delta:
        rows = self._rows_of(replica)
        delta = _difference(self._memory.baseline(), rows)
        pending: dict[str, Json] = {"step": "import", "read": replica.number, "hash": replica.hash}
        self._memory.begin(rows, self._memory.position, pending)
        self.on_step("applying")
        self.tables.apply(delta, replica.instance.confederation.relations_of(self.name))
        self._finish_import(replica.number, replica.hash)
        return delta

    def _finish_import(self, read: int, hash_: str) -> None:
        self.on_step("applied")
        self._memory.end({"read": read, "hash": hash_})
        self.read, self.hash = read, hash_

    def _complete(self) -> None:
        """Goes on with what a crash interrupted."""
        pending, after = self._memory.pending, self._memory.next()
        if pending is None:
            self._memory.forget()
        elif pending["step"] == "publish":
            entries = self.store.entries(self.read, self.hash)
            if after is not None and any(each.id == pending["id"] for each in entries):
                self._memory.end()
            else:
                self._memory.forget()
        else:
            if after is not None:
                files, _ = files_at(self.store, pending["read"])
                delta = _difference(self._memory.baseline(), after)
                self.tables.apply(delta, load_confederation(files).relations_of(self.name))
            self._finish_import(pending["read"], pending["hash"])

    # -- what a peer decides

    def reject(self, relation: str, row: Tuple) -> Imported:
        """The row goes, and stays away in all exchanges to come. Raises ValueError if it is not there."""
        name = self._own(relation, row).full_name
        if not self.instance.holds(name, row):
            raise ValueError(f"there is no {show_row(name, row)}")
        return self._decide(self.rejection(name, row))

    def rejection(self, name: str, row: Tuple) -> list[Edit]:
        edits = [Edit("+", REJECTED, name, row)]
        return [Edit("-", LOCAL, name, row), *edits] if row in self.instance.part(name, LOCAL) else edits

    def unreject(self, relation: str, row: Tuple) -> Imported:
        name = self._own(relation, row).full_name
        if row not in self.instance.part(name, REJECTED):
            raise ValueError(f"{show_row(name, row)} is not rejected")
        return self._decide([Edit("-", REJECTED, name, row)])

    def resolve(self, relation: str, row: Tuple) -> Imported:
        """Decides a conflict for a row, against all others with its key."""
        return self._decide(resolution(self.instance, self._own(relation, row), row))

    def undo(self, relation: str, row: Tuple) -> Imported:
        """Forgets what was decided about the row's key."""
        own = self._own(relation, row)
        edits = undoing(self.instance, own, tuple(row[at] for at in own.key))
        if not edits:
            raise ValueError(f"nothing was decided about {show_row(own.full_name, row)}")
        return self._decide(edits)

    def _own(self, relation: str, row: Tuple) -> Relation:
        found = self.relation(relation)
        if found.peer != self.name:
            raise ValueError(f"{found.full_name} is {found.peer}'s: {self.name} decides about its own rows")
        self.instance.rows.to_engine(found.full_name, row)
        return found

    def _decide(self, edits: Sequence[Edit]) -> Imported:
        self.publish()
        self._append(edits)
        return self.import_()

    def change(self, files: Files) -> Imported:
        """Publishes another version of the confederation: its schemas, mappings or policies. Raises `ProgramError`."""
        self.import_()
        publish_version(self.store, self.name, files, self.folder, functions=self.functions)
        return self.import_()

    def preview_change(self, files: Files) -> Delta:
        """What another version of the confederation would change, for all peers. Raises `ProgramError`."""
        return self._replica_at(None).instance.change(load_confederation(files))

    def trust(self, statement: str) -> Imported:
        """Adds a policy of this peer: `distrusts GUS`, `charges m1 3`, or the whole statement."""
        return self.change(self.with_policy(statement))

    def with_policy(self, statement: str) -> Files:
        return with_policy(files_at(self.store)[0], self.name, statement)

    def trust_again(self, name: str) -> Imported:
        """Takes a policy back, by its name or its text. Raises ValueError if there is none."""
        return self.change(self.without_policy(name))

    def without_policy(self, name: str) -> Files:
        return without_policy(files_at(self.store)[0], self.confederation, self.name, name)

    # -- questions

    def why(self) -> ExchangeDerivations:
        """What provenance's questions are asked of."""
        return ExchangeDerivations(self.instance)

    def whynot(self, relation: str, row: Tuple) -> list[Reason]:
        return whynot(self.instance, self.relation(relation).full_name, row)

    def uses(self, relation: str, row: Tuple) -> dict[Fact, tuple[str, ...]]:
        """Who downstream has rows that follow from this one."""
        return uses(self._replica_at(None).instance, Fact(self.relation(relation).full_name, row))

    def cost(self, relation: str, row: Tuple) -> float:
        fact = Fact(self.relation(relation).full_name, row)
        return costs(self.instance, self.name, [fact])[fact]

    def status(self) -> Status:
        rows = {
            each.full_name: {
                "rows": len(self.instance.relation(each.full_name)),
                **{part: len(self.instance.part(each.full_name, part)) for part in PARTS[:3]},
            }
            for each in self.relations
        }
        open_ = tuple(deferred(self.instance, self.name))
        return Status(self.name, self.read, self.store.last, rows, tuple(self.pending_edits()), open_)

    def differences(self) -> Iterator[str]:
        """What the tables were left with by the last exchange, compared with what follows from the entries read."""
        kept = self._memory.baseline()
        fresh = Replica.at(self.store, self.read, functions=self.functions, strategy="recompute")
        unread = any(each.peer == self.name for each in self.store.entries(self.read, self.hash))
        for name, rows in self._rows_of(fresh).items() if not unread else ():
            delta = _difference({name: kept.get(name, set())}, {name: rows})
            for op, side in (("missing", delta.inserted), ("too much", delta.deleted)):
                yield from (f"{show_row(name, row)} is {op}" for row in sort_rows(side.get(name, set())))


def _difference(before: Tables, after: Tables) -> Delta:
    names = {*before, *after}
    return Delta(
        {name: rows for name in names if (rows := after.get(name, set()) - before.get(name, set()))},
        {name: rows for name in names if (rows := before.get(name, set()) - after.get(name, set()))},
    )


__all__ = ["Imported", "Peer", "Status"]
