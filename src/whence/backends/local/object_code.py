"""Object code of loops: kept on disk, and loaded into this process. That takes LLVM, but no compiler.

Each loop's stands in a file whose name says all that it was made from, after a digest of the code itself: what is not whole is
not run. It is written under another name and renamed, so that processes may compile at once.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import llvmlite
from llvmlite import binding

_DIGEST = hashlib.sha256().digest_size


def folders() -> Iterator[Path]:
    """Where object code is looked for, and put where that can be done first: beside the package, or with what else is kept for
    the user. Only where the user says, if so."""
    if named := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(named) / "whence"
        return
    yield Path(__file__).parent / "__pycache__"
    if named := os.environ.get("XDG_CACHE_HOME"):
        yield Path(named) / "whence"
    elif (home := os.path.expanduser("~")) != "~":  # noqa: PTH111 - which says by that that there is none
        yield Path(home) / ".cache" / "whence"


def file_name(loop: str, *made_from: bytes) -> str:
    digest = hashlib.sha256(_machine())
    for each in made_from:
        digest.update(hashlib.sha256(each).digest())
    return f"{loop}-{digest.hexdigest()[:20]}.o"


@cache
def _machine() -> bytes:
    """What object code is made by and made for: other machines and versions may use the same folder."""
    numba = find_spec("numba")
    assert numba is not None
    assert numba.origin is not None
    # The package takes a quarter of a second to import; what says its version is a file of its own.
    compiler = Path(numba.origin).with_name("_version.py").read_bytes()
    cpu = binding.get_process_triple(), binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    told = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    python = sys.implementation.cache_tag, object.__basicsize__
    return repr((compiler, llvmlite.__version__, cpu, told, python)).encode()


def find(name: str) -> bytes | None:
    for folder in folders():
        path = folder / name
        if path.exists():
            written = path.read_bytes()
            digest, code = written[:_DIGEST], written[_DIGEST:]
            if digest == hashlib.sha256(code).digest():
                return code
    return None


def keep(name: str, code: bytes) -> None:
    refused: OSError | None = None
    for folder in folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            begun = folder / f"{name}.{secrets.token_hex(8)}"
            begun.write_bytes(hashlib.sha256(code).digest() + code)
            begun.replace(folder / name)
        except OSError as error:  # the next folder is for that
            refused = error
        else:
            return
    assert refused is not None
    raise refused


@cache
def _engine() -> binding.ExecutionEngine:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(jit=True)
    return binding.create_mcjit_compiler(binding.parse_assembly(""), target)


def load(code: bytes) -> None:
    _engine().add_object_file(binding.ObjectFileRef.from_data(code))
    _engine().finalize_object()


def address_of(symbol: str) -> int:
    """Where something in loaded code is, or 0 if there is no such thing."""
    found: int = _engine().get_function_address(symbol)
    return found


def tell(symbol: str, address: int) -> None:
    """What code that is loaded later finds under this name."""
    binding.add_symbol(symbol, address)
