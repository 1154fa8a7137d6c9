"""Commits: which segments of the parts hold some consecutive epochs.

An epoch happens when the file of its commit gets its name, which says which epochs it holds and has the checksum. Segments that
no commit names do not count: they are left by tasks whose epochs were never committed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from whence.io.changes import Position
from whence.pipeline.files import checksum, read_file, write_file
from whence.pipeline.log import Segment

SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Header:
    """What is known of an epoch as a whole."""

    epoch: int
    now: float | None
    source: Position
    ignored: int


@dataclass(frozen=True, slots=True)
class PartsCommit:
    """Consecutive epochs, the segment of each part that holds them, and the sizes of the output relations after them."""

    epochs: Sequence[Header]
    segments: Sequence[str]
    tuples: Mapping[str, int]


def write_commit(folder: Path, commit: PartsCommit) -> Segment:
    data = json.dumps(asdict(commit)).encode(errors="surrogatepass")
    segment = Segment(commit.epochs[0].epoch, commit.epochs[-1].epoch, checksum(data))
    write_file(folder / file_name(segment), data)
    return segment


def read_commit(folder: Path, segment: Segment) -> PartsCommit:
    """Raises Damaged."""
    content: dict[str, Any] = json.loads(read_file(folder / file_name(segment), segment.checksum))
    return PartsCommit([Header(**each) for each in content["epochs"]], content["segments"], content["tuples"])


def file_name(segment: Segment) -> str:
    return segment.stem + SUFFIX
