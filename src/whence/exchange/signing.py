"""Signatures of what peers publish: Ed25519, by the library `cryptography`, which is an extra."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from whence.pipeline.extras import extra
from whence.pipeline.files import write_file

if TYPE_CHECKING:
    from whence.exchange.store import Entry, Sign


def make_key(path: Path) -> str:
    """Writes a new private key for its peer's eyes only. Gives the public key, as text for the confederation."""
    with extra("signatures"):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415
    key = Ed25519PrivateKey.generate()
    write_file(path, key.private_bytes_raw().hex().encode())
    path.chmod(0o600)
    return key.public_key().public_bytes_raw().hex()


def signer(path: Path) -> Sign | None:
    """Signs with the key in a file; None if there is none."""
    if not path.exists():
        return None
    with extra("signatures"):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(path.read_text()))
    return lambda data: key.sign(data).hex()


def is_signed(entry: Entry, public_key: str) -> bool:
    with extra("signatures"):
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        key.verify(bytes.fromhex(entry.signature or ""), entry.unsigned())
    except (InvalidSignature, ValueError):
        return False
    return True
