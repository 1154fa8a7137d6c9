"""What the page is made with that others wrote: packages of npm, fetched at set-up and checked against their digests.

`whence.serve.assets.main()` puts them beside the other files of the environment; wheels of Whence bring them along.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path("share/whence/page")


@dataclass(frozen=True)
class Package:
    """A package of npm, and which of its files the page loads, under which name."""

    name: str
    version: str
    sha512: str
    path: str
    file: str

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


PACKAGES = (
    Package(
        "d3",
        "7.9.2",
        "ZKb/mONPVKzaO5UlcWcwN8bS4ezvQaYu+bsou+XgNABdGC800kwH651ADTbbTxMPHW13UlvbQafdmJQDk1w7Mg==",
        "package/dist/d3.min.js",
        "d3.min.js",
    ),
)


def installed() -> Path:
    """Where the files are, or would be."""
    return Path(sys.prefix) / FOLDER


def missing() -> str:
    """What to do about files that are not there; empty if all are."""
    lacking = [each.name for each in PACKAGES if not (installed() / each.file).is_file()]
    return f"{', '.join(lacking)} is not installed, so nothing is drawn: run make setup" if lacking else ""


def fetch(folder: Path) -> None:
    """Raises OSError if a package cannot be had, and ValueError if it is not what it was."""
    npm = shutil.which("npm")
    folder.mkdir(parents=True, exist_ok=True)
    for each in PACKAGES:
        if (folder / each.file).is_file():
            continue
        if npm is None:
            raise FileNotFoundError("npm is not installed: tools/ensure_npm.sh does that")
        with TemporaryDirectory() as aside:
            archive = _packed(npm, each, Path(aside))
            if base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode() != each.sha512:
                raise ValueError(f"{each} is not what it was")
            with tarfile.open(archive, mode="r:gz") as opened:
                found = opened.extractfile(each.path)
                assert found is not None
                (folder / each.file).write_bytes(found.read())


def _packed(npm: str, package: Package, folder: Path) -> Path:
    """The package as npm has it, from wherever npm is told to get packages."""
    done = subprocess.run(  # noqa: S603 - what is run is found above, and all words are ours
        [npm, "pack", str(package), "--silent"], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        raise OSError(f"npm cannot get {package}: {(done.stderr or done.stdout).strip()}")
    return folder / done.stdout.split()[-1]


def main() -> None:
    try:
        fetch(installed())
    except OSError as error:
        # Everything else works without.
        print(f"{error}: the page of whence serve will draw no graphs; run this again", file=sys.stderr)
