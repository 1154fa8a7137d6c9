"""Versions of a confederation: checked, published, and made only by peers that they concern."""

from __future__ import annotations

from pathlib import Path

from whence.exchange.check import load_confederation
from whence.exchange.compile import compile_confederation
from whence.exchange.replica import Files, Replica, files_to_json, foreign_change
from whence.exchange.signing import signer
from whence.exchange.store import CATALOGUE, EDITS, SharedStore
from whence.lang.load import Functions
from whence.pipeline.files import StateError

KEY = "key"


def publish_version(
    store: SharedStore,
    peer: str,
    files: Files,
    folder: Path,
    *,
    replica: Replica | None = None,
    functions: Functions | None = None,
) -> None:
    """Raises `ProgramError` for a wrong confederation, StateError for a change that is not the peer's to make."""
    compile_confederation(load_confederation(files), functions)
    if replica is None and store.last:
        replica = Replica.at(store)
    base = 0
    if replica is not None:
        base = replica.number
        if reason := foreign_change(peer, replica.instance.confederation, load_confederation(files)):
            raise StateError([reason], hints=["a peer changes its schema, its policies, and mappings that concern it"])
    entry = store.publish(
        peer,
        CATALOGUE,
        files_to_json(files, base),
        sign=signer(folder / KEY),
        allowed=lambda each: each.number <= base or each.kind == EDITS,
    )
    if entry is None:
        raise StateError(["another peer changed the confederation meanwhile"], hints=["try again: import comes first"])


def with_key(text: str, peer: str, public: str) -> str:
    for before in (f"peer {peer} {{", f"peer {peer}{{"):
        text = text.replace(before, f'peer {peer} signs with "{public}" {{')
    return text
