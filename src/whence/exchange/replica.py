"""A copy of everything published up to some entry: the confederation as it was then, and its instance.

It can be brought forward entry by entry, or made for any number at once; both give the same. What does not follow the rules (a
row of another peer's relation, a change of another peer's policies, a signature that is missing) is refused and named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from whence.exchange.check import load_confederation, statements_of
from whence.exchange.checkpoint import Checkpoint
from whence.exchange.instance import PARTS, Edit, Instance
from whence.exchange.model import Confederation, Files, peer_of
from whence.exchange.rows import fitted, is_null, row_from_json, row_to_json
from whence.exchange.signing import is_signed
from whence.exchange.store import CATALOGUE, START, Entry, Refused, SharedStore
from whence.io.json_text import Json
from whence.lang.diagnostics import ProgramError
from whence.lang.load import Functions
from whence.lang.types import Tuple


@dataclass
class Replica:
    """`number` and `hash` are those of the last entry that is in it; `files` is the text of the confederation then.

    `fresh` counts the edits behind the checkpoint that it was made from.
    """

    store: SharedStore
    instance: Instance
    files: Files
    number: int
    hash: str
    fresh: int = 0

    @classmethod
    def at(
        cls,
        store: SharedStore,
        number: int | None = None,
        *,
        functions: Functions | None = None,
        strategy: str = "support",
        start: Checkpoint | None = None,
    ) -> Replica:
        """The copy as of an entry, by default the last: everything is folded first, and evaluated once."""
        if start is not None:
            known = load_confederation(start.files)
            resumed = start.instance(known, functions=functions, strategy=strategy)
            if resumed is not None:
                replica = cls(store, resumed, start.files, start.number, start.hash)
                replica.advance(number)
                return replica
        edits: dict[tuple[str, str, Tuple], None] = {}
        confederation: Confederation | None = None
        files: Files = ()
        last, hash_, fresh = 0, START, 0
        for entry in store.entries(last, hash_, number):
            content = store.content(entry)
            check_entry(store, entry, content, confederation)
            if entry.kind == CATALOGUE:
                files, before = files_of(content), confederation
                confederation = _loaded(store, entry, files)
                if before is not None:
                    edits = {key: None for key in edits if _stays(key[1], before, confederation)}
            else:
                for op, part, relation, row in edits_of(content):
                    fresh += 1
                    if op == "+":
                        edits[part, relation, row] = None
                    else:
                        edits.pop((part, relation, row), None)
            last, hash_ = entry.number, entry.hash
        if confederation is None:
            raise Refused(store.path_of(1), "there is no confederation here yet")
        kept = [Edit("+", *key) for key in edits]
        instance = Instance(confederation, kept, functions=functions, strategy=strategy)
        return cls(store, instance, files, last, hash_, fresh)

    def advance(self, upto: int | None = None) -> list[Entry]:
        """Reads what has been published since. Edits of entries that follow each other are translated together."""
        read: list[Entry] = []
        edits: list[Edit] = []
        for entry in self.store.entries(self.number, self.hash, upto):
            content = self.store.content(entry)
            check_entry(self.store, entry, content, self.instance.confederation)
            if entry.kind == CATALOGUE:
                self._apply(edits, read)
                edits = []
                files = files_of(content)
                self.instance.change(_loaded(self.store, entry, files))
                self.files = files
            else:
                edits += edits_of(content)
            read.append(entry)
        self._apply(edits, read)
        return read

    def _apply(self, edits: Sequence[Edit], read: Sequence[Entry]) -> None:
        if edits:
            self.instance.apply(edits)
            self.fresh += len(edits)
        if read:
            self.number, self.hash = read[-1].number, read[-1].hash


def files_at(store: SharedStore, number: int | None = None) -> tuple[Files, int]:
    """The text of the confederation as of an entry, by default the last, and the number of that entry."""
    files: Files = ()
    last = 0
    for entry in store.entries(upto=number):
        last = entry.number
        if entry.kind == CATALOGUE:
            files = files_of(store.content(entry))
    if not files:
        raise Refused(store.path_of(1), "there is no confederation here yet")
    return files, last


def _stays(relation: str, before: Confederation, after: Confederation) -> bool:
    return relation in after.relations and before.relations.get(relation) == after.relations[relation]


def _loaded(store: SharedStore, entry: Entry, files: Files) -> Confederation:
    try:
        return load_confederation(files)
    except ProgramError as error:
        first = error.diagnostics[0]
        raise Refused(store.path_of(entry.number), f"its confederation is wrong: {first.text} ({first.code})") from None


# -- contents ---------------------------------------------------------------------------------------------------------


def edits_to_json(edits: Sequence[Edit]) -> Json:
    return {"edits": [[each.op, each.part, each.relation, row_to_json(each.row)] for each in edits]}


def edits_of(content: dict[str, Any]) -> list[Edit]:
    """Raises ValueError for what cannot be edits."""
    found: list[Edit] = []
    for op, part, relation, row in content["edits"]:
        if op not in ("+", "-") or part not in PARTS or not isinstance(relation, str) or not isinstance(row, list):
            raise ValueError(f"{[op, part, relation, row]} is not an edit")
        found.append(Edit(op, part, relation, row_from_json(row)))
    return found


def files_to_json(files: Files, base: int) -> Json:
    """`base` is the entry of the version that this one was made from."""
    return {"files": [[name, text] for name, text in files], "base": base}


def files_of(content: dict[str, Any]) -> Files:
    return tuple((str(name), str(text)) for name, text in content["files"])


def check_entry(store: SharedStore, entry: Entry, content: dict[str, Any], confederation: Confederation | None) -> None:
    """Raises Refused if the peer cannot have published this."""
    path = store.path_of(entry.number)
    try:
        known = _check_catalogue if entry.kind == CATALOGUE else _check_edits
        reason = known(entry, content, confederation)
    except (KeyError, TypeError, ValueError):
        reason = "its content cannot be read"
    if reason is not None:
        raise Refused(path, reason)
    key = None if confederation is None else confederation.keys.get(entry.peer)
    if key is not None and not is_signed(entry, key):
        raise Refused(path, f"this is not signed by {entry.peer}")


def _check_edits(entry: Entry, content: dict[str, Any], confederation: Confederation | None) -> str | None:
    for each in edits_of(content):
        if peer_of(each.relation) != entry.peer:
            return f"{entry.peer} cannot publish rows of {each.relation}"
        if confederation is None or each.relation not in confederation.relations:
            return f"there is no relation {each.relation}"
        columns = confederation.relations[each.relation].columns
        if len(each.row) != len(columns):
            return f"{each.relation} has other columns"
        for value, column in zip(each.row, columns, strict=True):
            if not is_null(value):
                fitted(value, column.type)
    return None


def _check_catalogue(entry: Entry, content: dict[str, Any], confederation: Confederation | None) -> str | None:
    files = files_of(content)
    if confederation is None:
        return None
    try:
        after = load_confederation(files)
    except ProgramError:
        return None  # the one who loads it says what is wrong
    return foreign_change(entry.peer, confederation, after)


def foreign_change(peer: str, before: Confederation, after: Confederation) -> str | None:
    """What a version changes that is not the peer's business: only statements that concern it are."""
    old, new = statements_of(before), statements_of(after)
    for statement, peers in {**old, **new}.items():
        if (statement in old) != (statement in new) and peer not in peers:
            return f"{peer} cannot change what concerns {' and '.join(sorted(peers))} only"
    return None
