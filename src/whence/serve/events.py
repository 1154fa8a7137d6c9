"""What happens, as server-sent events: every viewer is told of epochs as they come, several in one event if they come fast.

A viewer who was away names the last event it had, and gets what it missed if that is still known; else it is told to begin anew.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from pathlib import Path
from secrets import token_hex

from whence.serve.as_json import epoch_to_json, rows_to_json
from whence.serve.history import NotRetained, Past
from whence.serve.live import LiveViews

_GAP = 0.05  # between two events, at least
_HEARTBEAT = 15.0
_ROWS = 200  # of a relation in an event; the others are counted
_LISTED = 60  # epochs
_WORTH = 5_000  # changed rows: of more, only counts are sent
_KEPT = 32


class TooManyViewers(Exception):
    pass


class Events:
    """Made once; `start` in the loop that the server runs in."""

    def __init__(self, live: LiveViews, *, viewers: int = 100) -> None:
        self.live = live
        self.instance = token_hex(4)
        self.viewers = 0
        self._most = viewers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()
        self._is_told = False
        self._closing = False
        self._messages: OrderedDict[tuple[int, int, int, tuple[str, ...]], str] = OrderedDict()
        live.listen(self._tell)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """Viewers are let go."""
        self._closing = True
        self._tell()

    def _tell(self) -> None:
        if self._loop is not None and not self._is_told and not self._loop.is_closed():
            self._is_told = True
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._is_told = False
        self._changed.set()
        self._changed = asyncio.Event()

    async def stream(self, views: tuple[str, ...], last: str) -> AsyncIterator[str]:
        """The events for one viewer, who wants to see changed rows of some views. Raises TooManyViewers."""
        if self.viewers >= self._most:
            raise TooManyViewers
        self.viewers += 1
        try:
            async for event in self._events(views, self._resumed(last)):
                yield event
        finally:
            self.viewers -= 1

    async def _events(self, views: tuple[str, ...], resumed: int | None) -> AsyncIterator[str]:
        seen = self.live.epoch if resumed is None else resumed
        letters = -1
        ended = ""
        yield f"retry: 1000\nevent: hello\ndata: {json.dumps({'instance': self.instance, 'resumed': resumed is not None})}\n\n"
        while not self._closing:
            changed = self._changed
            epoch = self.live.epoch
            if (epoch, self.live.letter_count, self.live.ended) != (seen, letters, ended):
                try:
                    yield self._message(seen, epoch, views)
                except NotRetained:
                    yield f"event: reset\nid: {self.instance}-{epoch}\ndata: {{}}\n\n"
                seen, letters, ended = epoch, self.live.letter_count, self.live.ended
                await asyncio.sleep(_GAP)
            else:
                try:
                    await asyncio.wait_for(changed.wait(), _HEARTBEAT)
                except TimeoutError:
                    yield ": still there\n\n"

    def _resumed(self, last: str) -> int | None:
        instance, _, epoch = last.partition("-")
        if instance != self.instance or not epoch.isdecimal():
            return None
        return int(epoch) if self.live.history.oldest <= int(epoch) <= self.live.epoch else None

    def _message(self, after: int, epoch: int, views: tuple[str, ...]) -> str:
        """Viewers who look at the same are sent the same."""
        key = (after, epoch, self.live.letter_count, views)
        found = self._messages.get(key)
        if found is None:
            past = self.live.history.between(after, epoch)
            data = json.dumps(status(self.live) | self._changes(past, after, epoch, views))
            found = self._messages[key] = f"event: epochs\nid: {self.instance}-{epoch}\ndata: {data}\n\n"
            while len(self._messages) > _KEPT:
                self._messages.popitem(last=False)
        return found

    def _changes(self, past: list[Past], after: int, epoch: int, views: tuple[str, ...]) -> dict[str, object]:
        inserted: Counter[str] = Counter()
        deleted: Counter[str] = Counter()
        for each in past:
            for counts, side in ((inserted, each.changes.inserted), (deleted, each.changes.deleted)):
                for name, rows in side.items():
                    counts[name] += len(rows)
        changed = {name: [inserted[name], deleted[name]] for name in inserted.keys() | deleted.keys()}
        return {
            "after": after,
            "epoch": epoch,
            "epochs": [epoch_to_json(each) for each in past[-_LISTED:]],
            "changed": changed,
            "changes": {name: self._rows(name, after, epoch, sum(changed[name])) for name in views if name in changed},
        }

    def _rows(self, name: str, after: int, epoch: int, number: int) -> dict[str, object]:
        if number > _WORTH:
            return {"added": [], "gone": [], "cut": number}
        difference = self.live.history.difference(name, after, epoch)
        added, gone = list(difference.added)[:_ROWS], list(difference.gone)[:_ROWS]
        return {
            "added": rows_to_json(name, added),
            "gone": rows_to_json(name, gone),
            "cut": len(difference) - len(added) - len(gone),
        }


def status(live: LiveViews) -> dict[str, object]:
    """How it goes, in numbers."""
    return {
        "epoch": live.epoch,
        "oldest": live.history.oldest,
        "sizes": dict(live.sizes),
        "dead_letters": live.letter_count,
        "lag": dict(live.lag()),
        "memory": _resident(),
        "ended": live.ended,
    }


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
