"""Sources by the names that users give them: a file, a folder, a pipe, `-`, or a URL; or several of them.

Behind the name of a table of updates may stand what its rows are: `links.csv#relation=link`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from io import BufferedIOBase
from pathlib import Path
from threading import Lock
from typing import cast
from urllib.parse import urlsplit

from whence.io.changes import Position
from whence.io.updates import DeadLetter, Schema
from whence.lang.program import Program
from whence.pipeline.feeds import FeedLines, is_feed
from whence.pipeline.lines import Lines, StreamLines, is_pipe, open_pipe, open_socket
from whence.pipeline.records import Bury
from whence.pipeline.sources import Source
from whence.pipeline.sources.lines import LineSource
from whence.pipeline.sources.polled import PREFIX, Poll, PolledSource
from whence.pipeline.sources.several import SeveralSources

STDIN = "-"
_TABLES = ("postgresql", "postgres")
_PAGES = (f"{PREFIX}http", f"{PREFIX}https", f"{PREFIX}file")
_URLS = ("socket", "kafka", "mqtt", *_TABLES, *_PAGES)
_RELATION = "#relation="


@dataclass(frozen=True)
class NamedSource:
    """Checked when it is made. Raises ValueError, without what may be a password."""

    text: str

    def __post_init__(self) -> None:
        if self.path is not None:
            if not self.path.exists():
                raise ValueError(f"there is no file {self.path}")
            if self.path.suffix == ".gz":
                raise ValueError(f"{self.path} is compressed: write gunzip -c {self.path} | whence run … --updates -")
            if _RELATION in self.text and not self.is_feed:
                raise ValueError(f"{self.path} is not a table: its records name their relations")
        elif self.scheme == "socket":
            self._address()
        elif self.scheme == "kafka":
            servers, topics = self._topics()
            if not servers or not all(topics):
                raise ValueError("a topic is named kafka://HOST:PORT/TOPIC, or several with commas between them")
        elif self.scheme == "mqtt":
            self._address()
            if not all(self._topics()[1]):
                raise ValueError("topics are named mqtt://HOST:PORT/TOPIC, several with commas between them")
        elif self.scheme in _PAGES:
            Poll.named(self.text)

    @property
    def scheme(self) -> str:
        """Of a URL; empty for what is not one."""
        found, separator, _ = self.text.partition(":" if self.text.startswith(PREFIX) else "://")
        return found if separator and found in _URLS else ""

    @property
    def path(self) -> Path | None:
        """Of what is in the file system."""
        return None if self.scheme or self.text == STDIN else Path(self.text.partition(_RELATION)[0])

    @property
    def is_feed(self) -> bool:
        """Whether it is a table of updates, or a folder of such tables."""
        return self.path is not None and is_feed(self.path)

    @property
    def name(self) -> str:
        """What messages call it."""
        return "<stdin>" if self.text == STDIN else f"{self.scheme}://…" if self.scheme in _TABLES else self.text

    @property
    def is_lines(self) -> bool:
        return self.scheme in ("", "socket")

    @property
    def comes_once(self) -> bool:
        """Whether it cannot be read again from where an epoch ended."""
        return self.text == STDIN or self.scheme == "socket" or (self.path is not None and is_pipe(self.path))

    @property
    def is_folder(self) -> bool:
        return self.path is not None and self.path.is_dir()

    def lines(self, begin: Position, schema: Schema, *, follow: bool, stopped: Callable[[], bool]) -> Lines:
        """Raises FactError."""
        if self.text == STDIN:
            return StreamLines(cast(BufferedIOBase, sys.stdin.buffer), stopped=stopped)
        if self.path is None:
            return open_socket(*self._address(), stopped=stopped)
        if self.comes_once:
            return open_pipe(self.path, stopped=stopped)
        if self.is_feed:
            relation = self.text.partition(_RELATION)[2] or None
            return FeedLines(self.path, begin, schema, relation, follow=follow, stopped=stopped)
        return Lines(self.path, begin, follow=follow, stopped=stopped)

    def opened(
        self, program: Program, bury: Bury, *, size: int | None, follow: bool, stopped: Callable[[], bool]
    ) -> Source:
        """Raises FactError and MissingExtra."""
        schema = Schema.of(program)
        if self.is_lines:
            return LineSource(partial(self.lines, schema=schema, follow=follow, stopped=stopped), schema, size, bury)
        if self.scheme == "kafka":
            from whence.pipeline.sources.topics import TopicSource  # noqa: PLC0415 - an extra

            return TopicSource(*self._topics(), schema, bury, size=size, follow=follow, stopped=stopped)
        if self.scheme == "mqtt":
            from whence.pipeline.sources.mqtt import MqttSource  # noqa: PLC0415 - an extra

            topics = self._topics()[1]
            return MqttSource(self._address(), topics, schema, bury, size=size, follow=follow, stopped=stopped)
        if self.scheme in _PAGES:
            return PolledSource(Poll.named(self.text), program, bury, follow=follow, stopped=stopped)
        from whence.pipeline.postgres import url_and_schema  # noqa: PLC0415 - an extra
        from whence.pipeline.sources.tables import TableSource  # noqa: PLC0415 - an extra

        url, named = url_and_schema(self.text)
        return TableSource(url, program, bury, schema=named, size=size, follow=follow, stopped=stopped)

    def place_of(self, place: Position) -> str:
        """The file or the like of a position."""
        found = place.get("file")
        if found is None:
            return self.name
        if self.path is None:
            return str(found)
        return str(self.path / Path(found).name if self.is_folder else self.path)

    def _address(self) -> tuple[str, int]:
        parts = urlsplit(self.text)
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if host is None or port is None:
            what = "a broker" if self.scheme == "mqtt" else "a socket"
            raise ValueError(f"{what} is named {self.scheme}://HOST:PORT")
        return host, port

    def _topics(self) -> tuple[str, list[str]]:
        servers, _, topics = self.text.partition("://")[2].partition("/")  # a topic may have a # in it
        return servers, topics.strip("/").split(",")


@dataclass(frozen=True)
class NamedSources:
    """Several of them, which a run in one process reads side by side."""

    sources: tuple[NamedSource, ...]
    path: None = None
    is_lines: bool = False
    is_folder: bool = False

    @property
    def name(self) -> str:
        return ", ".join(each.name for each in self.sources)

    @property
    def comes_once(self) -> bool:
        return any(each.comes_once for each in self.sources)

    def opened(
        self, program: Program, bury: Bury, *, size: int | None, follow: bool, stopped: Callable[[], bool]
    ) -> Source:
        """Dead letters name their source. Raises FactError and MissingExtra."""

        one_at_a_time = Lock()

        def of(source: NamedSource) -> Bury:
            def bury_its(letter: DeadLetter, place: Position) -> None:
                with one_at_a_time:
                    bury(letter, {**place, "file": source.place_of(place)})

            return bury_its

        return SeveralSources(
            {
                each.text: each.opened(
                    program, of(each), size=size, follow=follow and not each.comes_once, stopped=stopped
                )
                for each in self.sources
            }
        )

    def place_of(self, place: Position) -> str:
        return str(place.get("file", self.name))
