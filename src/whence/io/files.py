"""Whole files in and out: compressed or not, UTF-8, and never half-written."""

from __future__ import annotations

import gzip
import os
import shutil
import zlib
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

from whence.io.errors import FactError
from whence.memory import look_at_memory

_GZIP = b"\x1f\x8b"
_PIECE, _PART_OF_MEMORY = 1 << 24, 4
_BYTE_ORDER_MARK = "\ufeff"


def read_file(path: Path, *, hint: str) -> bytes:
    """The file's bytes, decompressed if they are compressed. `hint` goes with every error but a damaged file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise FactError([f"cannot read {path}: there is no such file"], hints=[hint]) from None
    except OSError as error:
        raise FactError([f"cannot read {path}: {_reason(error)}"], hints=[hint]) from None
    if not data.startswith(_GZIP):
        return data
    try:
        return _decompressed(data, path)
    except (OSError, EOFError, zlib.error) as error:
        raise FactError([f"cannot decompress {path}: {error}"], hints=["compress it again with gzip"]) from None


def _decompressed(data: bytes, path: Path) -> bytes:
    """Piece by piece: a small file may hold more than there is memory."""
    memory = look_at_memory()
    largest = None if memory is None else memory.available // _PART_OF_MEMORY
    pieces: list[bytes] = []
    with gzip.open(BytesIO(data)) as file:
        size = 0
        while piece := file.read(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if largest is not None and size > largest:
                raise FactError(
                    [
                        f"cannot read {path}: decompressed it has more than {largest:,} bytes, a quarter of the memory left"
                    ],
                    hints=["look whether it is what it should be; if so, split it or read it with more memory"],
                )
    return b"".join(pieces)


def decode(data: bytes, name: str) -> str:
    try:
        return data.decode().removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"{name}:{line}: byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8"
        hint = f"convert the file, for instance with: iconv -f LATIN1 -t UTF-8 {name}"
        raise FactError([problem], hints=[hint]) from None


def encode(text: str, name: str) -> bytes:
    try:
        # A first symbol that starts with the mark keeps it.
        return (_BYTE_ORDER_MARK + text if text.startswith(_BYTE_ORDER_MARK) else text).encode()
    except UnicodeEncodeError as error:
        problem = f"cannot write {name}: {text[error.start : error.end]!r} has no UTF-8 form"
        raise FactError(
            [problem], hints=["half of a surrogate pair is not a character: look where it comes from"]
        ) from None


def write_file(path: Path, data: bytes) -> None:
    """All of the data or nothing: the file is replaced once its new content is on disk."""
    write_pieces(path, (data,))


def write_pieces(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """The same for data that comes piece by piece."""
    try:
        # Through links, so that they stay links.
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and not target.is_file():
            # A device or a pipe has no content to protect, and must not be replaced by a file.
            _write(target, pieces)
            return
        _replace(target, pieces)
    except OSError as error:
        hint = "-D sets the folder that results are written to"
        raise FactError([f"cannot write {path}: {_reason(error)}"], hints=[hint]) from None


def _replace(target: Path, pieces: Iterable[bytes | memoryview]) -> None:
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        _write(draft, pieces)
        if target.exists():
            shutil.copymode(target, draft)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _write(target: Path, pieces: Iterable[bytes | memoryview]) -> None:
    with target.open("wb") as file:
        file.writelines(pieces)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
