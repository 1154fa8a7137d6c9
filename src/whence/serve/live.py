"""The views that are served: a session that somebody keeps current, its last epochs, and pages of its relations."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock, RLock

import numpy as np

from whence.backends.local.words import is_number
from whence.io.changes import Changes, Update
from whence.lang.bags import named_relations
from whence.lang.program import Program, Relation, output_names
from whence.lang.types import FLOAT, NUMBER, UNSIGNED, Tuple
from whence.pipeline.report import EpochReport
from whence.serve.columns import Raw
from whence.serve.history import Came, Difference, History, NotRetained, Past, follow
from whence.serve.image import Image, Page, Wanted
from whence.session import Session

_SHARE = 0.05  # of the time may go into taking images of a relation
_MIXED = 20_000  # rows that changed since the image was taken: with more, another is worth its price
_LETTERS = 200

Write = Callable[[Sequence[Update]], EpochReport]


@dataclass
class _Taken:
    """An image, and what has become of the relation by some epoch: asked again, only the epochs since are looked at."""

    image: Image
    until: float  # the next one is due then, if there is a reason for one
    epoch: int
    came: Came
    difference: Difference = Difference()

    def catch_up(self, name: str, history: History) -> None:
        """Raises NotRetained."""
        past = history.between(self.epoch, history.last)
        for each in past:
            follow(self.came, *each.of(name))
            self.epoch = each.epoch
        if past:
            self.difference = Difference.of(self.came)


@dataclass(frozen=True)
class Letter:
    """A record that could not be applied."""

    reason: str
    record: str
    where: str
    at: float


class LiveViews:
    """Whoever applies epochs holds `lock` meanwhile and says what they did with `applied`; viewers ask for the rest.

    `write` applies updates from viewers; without it they may only look.
    """

    def __init__(self, session: Session, *, epoch: int = 0, lock: RLock | None = None, name: str = "program") -> None:
        self.session = session
        self.name = name
        self.lock = lock or RLock()
        self.program: Program = session.program
        self.relations: Mapping[str, Relation] = {
            name: self.program.relations[name] for name in named_relations(self.program) if session.prepared.shows(name)
        }
        self.base = frozenset(session.program.base_relations)
        self.outputs = frozenset(output_names(session.program))
        self.sizes: Counter[str] = Counter({name: len(session.relation(name)) for name in self.relations})
        self.history = History(epoch)
        self.started = time.time()
        self.write: Write | None = None
        self.lag: Callable[[], Mapping[str, int]] = dict
        self.ended = ""  # why no more epochs will come
        self.letters: deque[Letter] = deque(maxlen=_LETTERS)
        self.letter_count = 0
        self._images: dict[str, _Taken] = {}
        self._taking: dict[str, Lock] = {name: Lock() for name in self.relations}
        self._listeners: list[Callable[[], object]] = []

    @property
    def epoch(self) -> int:
        return self.history.last

    # -- epochs

    def applied(self, report: EpochReport, changes: Changes) -> None:
        """An epoch has happened. This is on the way of the next one: it only takes note."""
        for side, sign in ((changes.inserted, 1), (changes.deleted, -1)):
            for name, rows in side.items():
                self.sizes[name] += sign * len(rows)
        self.history.add(Past(report, time.time(), changes, dict(self.sizes)))
        self.tell()

    def end(self, reason: str) -> None:
        self.ended = reason
        self.tell()

    def bury(self, reason: str, record: str, where: str) -> None:
        self.letter_count += 1
        self.letters.append(Letter(reason, record, where, time.time()))
        self.tell()

    def listen(self, listener: Callable[[], object]) -> None:
        """Is called, in the thread that applies epochs, when there is something new."""
        self._listeners.append(listener)

    def tell(self) -> None:
        for each in self._listeners:
            each()

    # -- rows

    def relation(self, name: str) -> Relation:
        """Raises ValueError."""
        if name not in self.relations:
            raise ValueError(f"there is no view {name}; there are {', '.join(self.relations)}")
        return self.relations[name]

    def page(self, name: str, wanted: Wanted, epoch: int | None = None) -> tuple[int, Page]:
        """A page and the epoch that it is of: the one asked for, else the last. Raises ValueError."""
        relation = self.relation(name)
        if wanted.sort >= max(1, relation.arity):
            raise ValueError(f"{name} has {relation.arity} columns")
        with self._taking[name]:
            taken = self._now(name)
            image, shown, difference = taken.image, taken.epoch, taken.difference
            if epoch is not None:
                shown, difference = epoch, self.history.difference(name, taken.epoch, epoch, taken.came)
        return shown, image.page(wanted, difference)

    def warm(self) -> None:
        """Looks at every output once, so that the first viewer need not wait."""
        for name in sorted(self.outputs & self.relations.keys()):
            self.page(name, Wanted())

    def rows(self, name: str, limit: int, epoch: int | None = None) -> list[Tuple]:
        """Rows in the order of their columns, no more than `limit`."""
        return self.page(name, Wanted(limit=limit), epoch)[1].rows

    def _now(self, name: str) -> _Taken:
        """An image, and its difference from the relation after the last epoch."""
        taken = self._images.get(name)
        if taken is None or self._is_outdated(name, taken):
            started = time.monotonic()
            image = self._take(name)
            now = time.monotonic()
            taken = self._images[name] = _Taken(image, now + (now - started) / _SHARE, image.epoch, {})
        return taken

    def _is_outdated(self, name: str, taken: _Taken) -> bool:
        try:
            taken.catch_up(name, self.history)
        except NotRetained:
            return True
        return len(taken.came) > max(_MIXED, taken.image.size // 100) and time.monotonic() >= taken.until

    def _take(self, name: str) -> Image:
        """Only copying is done under the lock."""
        relation = self.relations[name]
        with self.lock:
            epoch, backend = self.epoch, self.session.backend
            table = backend.table(name)
            ids = table.ids()
            raw = []
            for at, field in enumerate(relation.fields):
                words = table.column(ids, at)
                if field.kind in (NUMBER, UNSIGNED, FLOAT):
                    raw.append(Raw(field.kind, words))
                elif is_number(field.kind):
                    distinct, places = np.unique(words, return_inverse=True)
                    values = backend.dictionary.decode_column(distinct, field.kind)
                    raw.append(Raw(field.kind, places, np.arange(len(distinct)), values))
                else:
                    occurs = np.zeros(backend.dictionary.bound(field.kind), dtype=np.bool_)
                    occurs[words] = True
                    distinct = np.flatnonzero(occurs)
                    values = backend.dictionary.decode_column(distinct, field.kind)
                    raw.append(Raw(field.kind, words, distinct, values))
        columns = [each.column() for each in raw]
        return Image(relation.fields, self.program.types, columns, len(ids), epoch)
