"""Slow relations through time: every tuple that ever was there, with the configurations in which it was.

A configuration is a number that grows with every change of a slow relation. What has been is never forgotten by a change:
steps of old runs name tuples that may be gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from whence.events.digests import Ids
from whence.events.tables import StoredTable
from whence.events.texts import Texts
from whence.events.walk import SlowTable
from whence.lang.types import Tuple
from whence.provenance.graph import Fact


@dataclass(frozen=True, slots=True)
class Interval:
    """From which configuration on a tuple was there, and until which it no longer was, with the times if they are known."""

    since: int
    until: int | None = None
    since_time: float | None = None
    until_time: float | None = None

    def covers(self, configuration: int) -> bool:
        return self.since <= configuration < (inf if self.until is None else self.until)


@dataclass
class History:
    """`configuration` is the current one."""

    table: StoredTable
    ids: Ids
    texts: Texts
    configuration: int = 0
    _facts: dict[bytes, Fact] = field(default_factory=dict)
    _intervals: dict[bytes, list[Interval]] = field(default_factory=dict)

    def load(self) -> None:
        """What the table holds already."""
        for _, identity, relation, text, op, configuration, time in sorted(self.table, key=lambda row: int(row[5])):
            self._note(identity, Fact(relation, self.texts.parse(relation, text)), op, configuration, time)
            self.configuration = configuration

    def change(self, op: str, fact: Fact, time: float | None) -> None:
        """A tuple comes or goes; whoever calls has made sure that it was not there, or was."""
        self.configuration += 1
        identity = self.ids.tuple_id(fact)
        place, text = self.texts.place(fact), self.texts.text(fact)
        self.table.insert((place, identity, fact.relation, text, op, self.configuration, time))
        self._note(identity, fact, op, self.configuration, time)

    def _note(self, identity: bytes, fact: Fact, op: str, configuration: int, time: float | None) -> None:
        self._facts[identity] = fact
        intervals = self._intervals.setdefault(identity, [])
        if op == "+":
            intervals.append(Interval(configuration, None, time))
        else:
            last = intervals.pop()
            intervals.append(Interval(last.since, configuration, last.since_time, time))

    def at(self, time: float) -> int:
        """The configuration at a time: the last whose change was not later. Changes without a time count as long ago."""
        times = [
            (number, when)
            for intervals in self._intervals.values()
            for each in intervals
            for number, when in ((each.since, each.since_time), (each.until, each.until_time))
            if number is not None and (when is None or when <= time)
        ]
        return max((number for number, _ in times), default=0)

    def fact(self, identity: bytes) -> Fact | None:
        return self._facts.get(identity)

    def intervals(self, fact: Fact) -> list[Interval]:
        return self._intervals.get(self.ids.tuple_id(fact), [])

    def held(self, fact: Fact, configuration: int) -> bool:
        return any(each.covers(configuration) for each in self.intervals(fact))

    def rows(self, configuration: int) -> Iterator[Fact]:
        """The slow tuples of a configuration."""
        for identity, fact in self._facts.items():
            if any(each.covers(configuration) for each in self._intervals[identity]):
                yield fact

    def restore(self, tables: Mapping[str, SlowTable]) -> None:
        """Puts the tuples of the current configuration into tables."""
        for name, row in self.rows(self.configuration):
            tables[name].add(row)

    def known(self) -> list[tuple[Fact, list[Interval]]]:
        return [(fact, self._intervals[identity]) for identity, fact in self._facts.items()]


def rows_of(facts: Iterator[Fact]) -> dict[str, set[Tuple]]:
    found: dict[str, set[Tuple]] = {}
    for name, row in facts:
        found.setdefault(name, set()).add(row)
    return found
