"""Files that are either there as written or not there: written aside, synced, renamed, and checked when read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex

from whence.io import FactError
from whence.io.updates import reported_writing

PARTIAL = ".partial"


class StateError(FactError):
    """State that cannot be used: what is wrong, and what to do about it."""


class StateWarning(UserWarning):
    """Part of the state was damaged, and made again from what is whole."""


class Damaged(StateError):
    """A file of the state that is missing or not as it was written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            [f"{path}: {reason}"], hints=["restore the folder from a copy, or start anew with another one"]
        )
        self.path = path
        self.reason = reason

    def __reduce__(self) -> tuple[type[Damaged], tuple[Path, str]]:
        # Tasks raise it too.
        return Damaged, (self.path, self.reason)


def checksum(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()


def write_file(path: Path, data: bytes) -> None:
    """Once it returns, the file survives a power failure; if it does not return, what was there before is still there."""
    # Two tasks may write the same file, if Spark believes that the first one is lost.
    partial = path.with_name(f"{path.name}.{token_hex(4)}{PARTIAL}")
    with reported_writing(path):
        try:
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except OSError:
            partial.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_file(path: Path, expected: str) -> bytes:
    """The content, if it has the expected checksum. Raises Damaged."""
    with reported_reading(path):
        data = path.read_bytes()
    if checksum(data) != expected:
        raise Damaged(path, "the content is not what was written there")
    return data


@contextmanager
def reported_reading(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise Damaged(path, "the file is missing") from None
    except OSError as error:
        raise StateError([f"cannot read {path}: {(error.strerror or str(error)).lower()}"]) from None
