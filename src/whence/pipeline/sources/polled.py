"""Pages and files that are looked at now and then: what has changed since the last look is an epoch.

A page that holds a table (HTML, CSV, JSON) or a calendar (iCalendar) is the content of one relation. What was there at the last
look is part of the position, so that a run that goes on finds the difference; such sources are small.
"""

from __future__ import annotations

import csv
import io
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urldefrag

from whence.io import FactError
from whence.io.changes import Epoch, Position, Update
from whence.io.json_rows import fields_from_json
from whence.io.json_text import write_json
from whence.io.updates import POLL, DeadLetter, as_json
from whence.io.values import parse_value
from whence.lang.program import Program, Relation
from whence.lang.types import Tuple, Types
from whence.pipeline.extras import extra
from whence.pipeline.records import Bury
from whence.pipeline.sources import Source
from whence.pipeline.sources.figures import Rows, from_metrics, from_profile

PREFIX = "poll+"
_MOST = 10_000  # rows
_SECONDS_TO_ANSWER = 10.0


@dataclass(frozen=True)
class Poll:
    """`poll+http://HOST/PAGE#relation=power&every=5&format=html`: where to look, how often, and what is there."""

    url: str
    relation: str
    every: float
    format: str

    @classmethod
    def named(cls, text: str) -> Poll:
        """Raises ValueError."""
        url, fragment = urldefrag(text.removeprefix(PREFIX))
        if url.startswith("file:"):
            url = Path(url.removeprefix("file:").removeprefix("//")).resolve().as_uri()
        settings = {name: values[-1] for name, values in parse_qs(fragment).items()}
        unknown = settings.keys() - {"relation", "every", "format"}
        if unknown or "relation" not in settings:
            raise ValueError(
                "a page is named poll+http://HOST/PAGE#relation=R, if wanted with &every=SECONDS&format=csv"
            )
        form = settings.get("format") or url.rpartition(".")[2]
        if form not in FORMATS:
            raise ValueError(f"{form} is not a format of pages; there are {', '.join(FORMATS)}")
        try:
            every = float(settings.get("every", "10"))
        except ValueError:
            every = 0.0
        if not every > 0:
            raise ValueError("every= is a number of seconds")
        return cls(url, settings["relation"], every, form)


class PolledSource(Source):
    """The rows of a page. One that cannot be read, or is not of its form, is a dead letter, and changes nothing."""

    def __init__(
        self,
        poll: Poll,
        program: Program,
        bury: Bury,
        *,
        follow: bool = False,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        if poll.relation not in program.base_relations:
            raise FactError([f"{poll.url} is to feed {poll.relation}, which is not a base relation of the program"])
        self._poll = poll
        self._relation = program.relations[poll.relation]
        self._types = program.types
        self._bury = bury
        self._follow = follow
        self._stopped = stopped

    def epochs(self, begin: Position) -> Iterator[Epoch]:
        before = {fields_from_json(row, self._relation.fields, self._types) for row in begin.get("seen", ())}
        looks = int(begin.get("looks", 0))
        while not self._stopped():
            looks += 1
            try:
                rows = self._look()
            except ValueError as error:
                self._bury(DeadLetter(looks, str(error), self._poll.url), {"file": self._poll.url})
            else:
                updates = [Update("-", self._relation.name, row) for row in before - rows]
                updates += [Update("+", self._relation.name, row) for row in rows - before]
                before = rows
                if updates:
                    kept = [as_json(row, self._relation, self._types) for row in rows]
                    yield Epoch(updates, None, {"seen": kept, "looks": looks}, refuse=self._refusing(looks, updates))
            if not self._follow:
                return
            self._wait()

    def _refusing(self, looks: int, updates: list[Update]) -> Callable[[int, str], None]:
        def refuse(at: int, reason: str) -> None:
            row = write_json(as_json(updates[at].tuple, self._relation, self._types))
            self._bury(DeadLetter(looks, reason, row), {"file": self._poll.url})

        return refuse

    def _wait(self) -> None:
        until = time.monotonic() + self._poll.every
        while not self._stopped() and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, POLL))

    def _look(self) -> set[Tuple]:
        """Raises ValueError."""
        try:
            with urllib.request.urlopen(self._poll.url, timeout=_SECONDS_TO_ANSWER) as answer:  # noqa: S310 - the user's own
                text = answer.read().decode()
        except (OSError, urllib.error.URLError) as error:
            if self._poll.format in FIGURES and isinstance(getattr(error, "reason", error), FileNotFoundError):
                return set()  # the run has no figures before its first epoch
            raise ValueError(f"cannot read it: {getattr(error, 'reason', error)}") from None
        rows = set(FORMATS[self._poll.format](text, self._relation, self._types))
        if len(rows) > _MOST:
            raise ValueError(f"it has {len(rows):,} rows; a page that is looked at has {_MOST:,} at most")
        return rows


# -- forms

Reader = Callable[[str, Relation, Types], Iterator[Tuple]]


def _from_json(text: str, relation: Relation, types: Types) -> Iterator[Tuple]:
    """A list of rows, each a list or an object."""
    found = json.loads(text)
    if not isinstance(found, list):
        raise ValueError("it is not a list of rows")  # noqa: TRY004 - every reason is a ValueError
    return (fields_from_json(row, relation.fields, types) for row in found)


def _from_csv(text: str, relation: Relation, types: Types) -> Iterator[Tuple]:
    """With the names of the columns in the first line."""
    return _by_name(list(csv.reader(io.StringIO(text))), relation, types)


def _from_html(text: str, relation: Relation, types: Types) -> Iterator[Tuple]:
    """The first table whose head has the relation's columns."""
    reader = _Tables()
    reader.feed(text)
    names = {each.name.casefold() for each in relation.fields}
    for table in reader.tables:
        if table and names <= {cell.casefold() for cell in table[0]}:
            return _by_name(table, relation, types)
    raise ValueError(f"it has no table with the columns {', '.join(each.name for each in relation.fields)}")


def _figures(read: Callable[[str, Collection[str]], Rows]) -> Reader:
    """What a run tells of itself; it tells nothing before its first epoch."""

    def reader(text: str, relation: Relation, types: Types) -> Iterator[Tuple]:
        return _by_name(read(text, {each.name.casefold() for each in relation.fields}), relation, types)

    return reader


def _from_calendar(text: str, relation: Relation, types: Types) -> Iterator[Tuple]:
    """A row for each event: columns are named after properties (`summary`, `location`, `uid`, …); `start` and `end` are seconds.

    Events that recur daily or weekly, `COUNT` and `UNTIL` included, are told one by one, for a year at most.
    """
    with extra("calendar"):
        import icalendar  # noqa: PLC0415

    calendar = icalendar.Calendar.from_ical(text)
    rows = [["start", "end", "uid", "summary", "location"]]
    for event in calendar.walk("VEVENT"):
        start, end = _seconds(event.get("dtstart").dt), _seconds(_end(event))
        words = [str(event.get(name, "")) for name in ("uid", "summary", "location")]
        rows += [[repr(start + shift), repr(end + shift), *words] for shift in _shifts(event, start)]
    return _by_name(rows, relation, types)


def _end(event: Any) -> date | datetime:
    if "dtend" in event:
        return event["dtend"].dt  # type: ignore[no-any-return]
    start = event["dtstart"].dt
    # Without either, an event of a day takes that day, and another one no time.
    length = event["duration"].dt if "duration" in event else timedelta(days=not isinstance(start, datetime))
    return start + length  # type: ignore[no-any-return]


def _shifts(event: Any, start: float) -> Iterator[float]:
    """By how many seconds an event comes again."""
    rule = event.get("rrule")
    if rule is None:
        yield 0.0
        return
    step = {"DAILY": timedelta(days=1), "WEEKLY": timedelta(weeks=1)}.get(rule.get("freq", [""])[0])
    if step is None or rule.keys() - {"FREQ", "COUNT", "UNTIL", "INTERVAL", "WKST"}:
        raise ValueError(f"events that recur by {rule.to_ical().decode()} are not understood: daily and weekly are")
    seconds = step.total_seconds() * int(rule.get("interval", [1])[0])
    until = _seconds(rule["until"][0]) if "until" in rule else start + timedelta(days=366).total_seconds()
    times = int(rule["count"][0]) if "count" in rule else _MOST
    yield from (at * seconds for at in range(times) if start + at * seconds <= until)


def _seconds(when: date | datetime) -> float:
    """Since 1970. Times without a zone are taken as UTC."""
    moment = when if isinstance(when, datetime) else datetime(when.year, when.month, when.day, tzinfo=UTC)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _by_name(rows: list[list[str]], relation: Relation, types: Types) -> Iterator[Tuple]:
    if not rows:
        raise ValueError("it is empty")
    places = {name.strip().casefold(): at for at, name in enumerate(rows[0])}
    missing = [each.name for each in relation.fields if each.name.casefold() not in places]
    if missing:
        raise ValueError(f"it has no column {missing[0]}")
    columns = [(places[each.name.casefold()], each.kind) for each in relation.fields]
    for row in rows[1:]:
        if row:
            yield tuple(parse_value(row[at].strip() if at < len(row) else "", kind, types) for at, kind in columns)


class _Tables(HTMLParser):
    """The cells of the tables of a page, row by row."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: list[list[list[str]]] = []
        self._is_cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in ("td", "th") and self.tables and self.tables[-1]:
            self.tables[-1][-1].append("")
            self._is_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "tr", "table"):
            self._is_cell = False

    def handle_data(self, data: str) -> None:
        if self._is_cell:
            self.tables[-1][-1][-1] += data


FIGURES: Mapping[str, Reader] = {"metrics": _figures(from_metrics), "profile": _figures(from_profile)}
FORMATS: Mapping[str, Reader] = {
    "json": _from_json,
    "csv": _from_csv,
    "html": _from_html,
    "ics": _from_calendar,
    **FIGURES,
}
