"""Several sources as one: their epochs in the order in which they come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from queue import SimpleQueue
from threading import Event, Thread

from whence.io.changes import Epoch, Position
from whence.pipeline.sources import Source


class SeveralSources(Source):
    """A position has that of each source, by its name. A source goes on when its last epoch has been applied."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._sources = sources
        self._ready: SimpleQueue[tuple[str, Epoch | BaseException | None]] = SimpleQueue()
        self._applied = {name: Event() for name in sources}
        self._closing = Event()
        self._threads: list[Thread] = []

    def epochs(self, begin: Position) -> Iterator[Epoch]:
        places = dict(begin.get("sources", {}))
        self._threads = [
            Thread(target=self._read, args=(name, places.get(name, {})), name=f"whence source {name}", daemon=True)
            for name in self._sources
        ]
        for thread in self._threads:
            thread.start()
        running = len(self._threads)
        while running:
            name, found = self._ready.get()
            if isinstance(found, BaseException):
                raise found
            if found is None:
                running -= 1
                continue
            places[name] = found.source
            yield replace(found, source={"sources": dict(places)})
            self._applied[name].set()

    def close(self) -> None:
        self._closing.set()
        for event in self._applied.values():
            event.set()
        for source in self._sources.values():
            source.close()
        for thread in self._threads:
            thread.join(timeout=5)

    def _read(self, name: str, begin: Position) -> None:
        applied = self._applied[name]
        try:
            for epoch in self._sources[name].epochs(begin):
                self._ready.put((name, epoch))
                applied.wait()
                applied.clear()
                if self._closing.is_set():
                    return
            self._ready.put((name, None))
        except BaseException as error:  # noqa: BLE001 - it is raised again where the epochs are taken
            self._ready.put((name, error))
