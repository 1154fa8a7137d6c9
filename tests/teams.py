"""Parts of a program in one process: they hand each other what they say, round by round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from whence import Changes, Update
from whence.io.changes import Changes as _Changes
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.parts import Member, Report, next_turn
from whence.parts.member import Letter
from whence.plan.deal import Dealing


class Team:
    def __init__(self, how: Dealing, parts: int, shown: Iterable[str], limits: Limits = Limits()) -> None:  # noqa: B008
        self.how = how
        self.shown = tuple(shown)
        self.members = [Member(how, part, parts, self.shown, limits=limits) for part in range(parts)]
        self.rounds = self.told = 0

    @property
    def program(self) -> Program:
        return self.how.program

    def apply(self, updates: Iterable[Update], now: float | None = None) -> Changes:
        listed = list(updates)
        parts = len(self.members)
        routed: list[list[Update]] = [[] for _ in range(parts)]
        for update in listed:
            part = self.how.part(update.relation, update.tuple, parts)
            for own in routed if part is None else [routed[part]]:
                own.append(update)
        first = self.members[0].node.epoch < 0
        touched = self.program.relations if first or now is not None else {update.relation for update in listed}
        grows = all(update.op == "+" for update in listed)
        self.rounds = self.told = 0
        reports = [
            member.begin(own, now, touched=touched, grows=grows)
            for member, own in zip(self.members, routed, strict=True)
        ]
        while (turn := self._delivered(reports)) is not None:
            reports = [member.turn(turn) for member in self.members]
        return self._together([member.finish() for member in self.members])

    def _delivered(self, reports: list[Report]):  # type: ignore[no-untyped-def]
        self.rounds += 1
        self.told += sum(each.told for each in reports)
        letters = [member.letters() for member in self.members]
        assert [_rows(each) for each in letters] == [each.told for each in reports]
        for sender, own in enumerate(letters):
            for part, letter in own.items():
                self.members[part].receive(sender, letter)
        return next_turn(reports)

    def _together(self, changes: list[Changes]) -> Changes:
        inserted: dict[str, list[Tuple]] = {}
        deleted: dict[str, list[Tuple]] = {}
        for part, own in enumerate(changes):
            for side, total in ((own.inserted, inserted), (own.deleted, deleted)):
                for name, rows in side.items():
                    if part == 0 or name in self.how.columns:
                        total.setdefault(name, []).extend(rows)
        return _Changes(inserted, deleted)

    def view(self, name: str) -> set[Tuple]:
        holders = self.members if name in self.how.columns else self.members[:1]
        rows = [row for member in holders for row in member.node.relation(name)]
        assert len(rows) == len(set(rows)), "a tuple lives in one part"
        return set(rows)

    def views(self) -> Mapping[str, set[Tuple]]:
        return {name: self.view(name) for name in self.shown}


def _rows(letters: dict[int, Letter]) -> int:
    return sum(len(rows) for letter in letters.values() for rows, _ in letter.values())
