"""What the page is made with that others wrote: packages of npm, fetched at set-up and checked against their digests.

`python -m whence.serve.assets` puts them beside the other files of the environment; wheels of Whence bring them along.
"""

from __future__ import annotations

import base64
import hashlib
import io
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

FOLDER = Path("share/whence/page")


@dataclass(frozen=True)
class Package:
    """A package of npm, and which of its files the page loads, under which name."""

    name: str
    version: str
    sha512: str
    path: str
    file: str

    @property
    def url(self) -> str:
        return f"https://registry.npmjs.org/{self.name}/-/{self.name}-{self.version}.tgz"


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
    return (
        f"{', '.join(lacking)} is not installed, so nothing is drawn: run python -m whence.serve.assets"
        if lacking
        else ""
    )


def fetch(folder: Path) -> None:
    """Raises OSError if the registry cannot be reached, and ValueError if it sends something else."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in PACKAGES:
        if (folder / each.file).is_file():
            continue
        with urlopen(each.url, timeout=60) as answer:  # noqa: S310 - the address is ours
            data = answer.read()
        if base64.b64encode(hashlib.sha512(data).digest()).decode() != each.sha512:
            raise ValueError(f"{each.url} is not what it was")
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            found = archive.extractfile(each.path)
            assert found is not None
            (folder / each.file).write_bytes(found.read())


if __name__ == "__main__":
    try:
        fetch(installed())
    except OSError as error:
        # Everything else works without.
        print(f"{error}: the page of whence serve will draw no graphs; run this again", file=sys.stderr)
