"""Versions of a confederation: checked, published, and made only by peers that they concern."""

from __future__ import annotations

from pathlib import Path

from whence.exchange.check import load_confederation
from whence.exchange.compile import compile_confederation
from whence.exchange.model import Confederation, Files
from whence.exchange.parser import VERBS
from whence.exchange.replica import files_at, files_to_json, foreign_change
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
    functions: Functions | None = None,
) -> None:
    """Raises `ProgramError` for a wrong confederation, StateError for a change that is not the peer's to make."""
    after = load_confederation(files)
    compile_confederation(after, functions)
    base = 0
    if store.last:
        before, base = files_at(store)
        if reason := foreign_change(peer, load_confederation(before), after):
            raise StateError([reason], hints=["a peer changes its schema, its policies, and mappings that concern it"])
    entry = store.publish(
        peer,
        CATALOGUE,
        files_to_json(files, base),
        sign=signer(folder / KEY),
        behind=base,
        allowed=lambda each: each.kind == EDITS,
    )
    if entry is None:
        raise StateError(["another peer changed the confederation meanwhile"], hints=["try again: import comes first"])


def with_key(text: str, peer: str, public: str) -> str:
    for before in (f"peer {peer} {{", f"peer {peer}{{"):
        text = text.replace(before, f'peer {peer} signs with "{public}" {{')
    return text


def with_policy(files: Files, peer: str, statement: str) -> Files:
    """The text with one more policy of a peer, in the peer's own file if it has one."""
    text = statement.strip().removesuffix(".")
    if text.partition(" ")[0] in VERBS:
        text = f"{peer} {text}"
    listed = list(files)
    at = next((at for at, (name, _) in enumerate(listed) if Path(name).stem == peer), len(listed) - 1)
    name, content = listed[at]
    listed[at] = (name, f"{content.rstrip()}\n{text}.\n")
    return tuple(listed)


def without_policy(files: Files, confederation: Confederation, peer: str, name: str) -> Files:
    """The text without a policy, given by its name or its text. Raises ValueError if there is none."""
    wanted = name.strip().removesuffix(".")
    for policy in confederation.policies_of(peer):
        text = confederation.source.text[policy.span.start : policy.span.end]
        shown = confederation.text_of(policy.span).removesuffix(".")
        if wanted in (getattr(policy, "name", None), shown, shown.removeprefix(f"{peer} ")):
            return tuple((path, content.replace(text, "").rstrip() + "\n") for path, content in files)
    raise ValueError(f"{peer} has no policy {name}")
