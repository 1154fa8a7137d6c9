"""What can be seen of a session: its relations, what it was given, what it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypedDict

from whence.atomic import AtomicTables
from whence.backends.local.backend import LocalBackend
from whence.engine.stats import Stats
from whence.engine.stratum import Ranking
from whence.engine.windows import Windows
from whence.html import shown_block, shown_table, shown_title
from whence.lang.bags import repeated, with_copies
from whence.lang.program import Program, Relation
from whence.lang.types import Tuple
from whence.plan import JoinOrder, Plan
from whence.plan.record import Recording
from whence.prepared import Prepared
from whence.view import View


class Work(TypedDict):
    """What maintaining views took.

    `derivations` were enumerated, in `rounds`; tuples were `suspended` until it was known whether they still follow, and some
    of them `rederived`. `seconds` is by phase: collect, take away, put back, aggregate, recompute, decode, settle.
    """

    rounds: int
    derivations: int
    suspended: int
    rederived: int
    seconds: dict[str, float]


class SessionStats(Work):
    """Work since the session began. `bytes` is by relation, helper relations of the plan included.

    `values` is how many symbols, records, branches and lists have a number, and `value_bytes` about what they take: those of all
    sessions made from the same prepared program.
    """

    epochs: int
    bytes: dict[str, int]
    values: int
    value_bytes: int


def work_of(stats: Stats) -> Work:
    return {
        "rounds": stats.rounds,
        "derivations": stats.derivations,
        "suspended": stats.suspended,
        "rederived": stats.rederived,
        "seconds": dict(stats.seconds),
    }


class Reader:
    """The part of a session that changes no row."""

    def __init__(self, tables: AtomicTables) -> None:
        self._atomic = tables
        self.epoch = -1
        self.last_epoch: Work = work_of(Stats())

    def replan(self, join_order: JoinOrder | None = None) -> None:
        """The same program, planned anew by how large relations are now, with another join order if one is given.

        This is not an epoch: rows and what is known of them stay, and only what later epochs cost can change.
        """
        prepared = self.prepared if join_order is None else replace(self.prepared, join_order=join_order)
        changed = self._atomic.revise(prepared.revised(self.program, self._sizes()))
        assert not changed.inserted
        assert not changed.deleted

    def _sizes(self) -> dict[str, int]:
        return {name: len(table) for name, table in self.backend.tables.items()}

    @property
    def prepared(self) -> Prepared:
        return self._atomic.prepared

    @property
    def program(self) -> Program:
        return self.prepared.program

    @property
    def plan(self) -> Plan:
        return self.prepared.plan

    @property
    def strategy(self) -> str:
        return self.prepared.strategy

    @property
    def recordings(self) -> Mapping[str, Recording]:
        return self.prepared.recordings

    @property
    def tables(self) -> Mapping[str, Relation]:
        """The relations of recorded derivations."""
        return self.prepared.tables

    @property
    def windows(self) -> Windows:
        return self._atomic.windows

    @property
    def backend(self) -> LocalBackend:
        """The tables, for those who look up more than whole relations. Only epochs change them."""
        return self._atomic.backend

    def relation(self, name: str) -> View:
        """The tuples of a relation, in no particular order: to iterate over, or as an Arrow table or a pandas DataFrame."""
        known = {**self.program.relations, **self.tables}
        if name not in known:
            raise ValueError(f"there is no relation {name}; there are {', '.join(known)}")
        if not self.prepared.shows(name):
            raise ValueError(f"{name} is not among the relations that the session shows")
        return View(known[name], self.program.types, lambda: self._atomic.backend)

    def __repr__(self) -> str:
        return f"<session of {', '.join(self.program.relations)}, epoch {self.epoch}>"

    def _repr_html_(self) -> str:
        base = self.prepared.base
        rows = [
            (
                relation.signature,
                "base" if name in base else "view",
                len(self.relation(name)),
            )
            for name, relation in self.program.relations.items()
            if self.prepared.shows(name)
        ]
        return shown_block(shown_title("session", f"epoch {self.epoch}"), shown_table(("relation", "", "tuples"), rows))

    def bag(self, name: str) -> list[Tuple]:
        """The rows of a relation as often as they are there: of a view in SQL that is a bag, some are there several times.

        >>> from whence import Session, load
        >>> session = Session(load("SELECT 1 AS n UNION ALL SELECT 1; ", dialect="sql"))
        >>> list(session.relation("result")), session.bag("result")
        ([(1,)], [(1,), (1,)])
        """
        return list(
            repeated(self.program, name, {each: self.relation(each) for each in with_copies(self.program, [name])})
        )

    def views(self) -> dict[str, set[Tuple]]:
        return {name: set(self.relation(name)) for name in self.program.relations if self.prepared.shows(name)}

    def base(self) -> dict[str, set[Tuple]]:
        """The tuples that were put into base relations from outside."""
        return self._atomic.base()

    def ranking(self, relation: str) -> Ranking:
        """What the ranks of a relation's rows tell."""
        return self._atomic.maintainer.ranking(relation)

    def stats(self) -> SessionStats:
        """What has been done since the session began, and what the tables take. `last_epoch` has the work of one epoch."""
        return {
            **work_of(self._atomic.maintainer.stats),
            "epochs": self.epoch + 1,
            "bytes": {name: table.nbytes for name, table in self.backend.tables.items()},
            "values": len(self.backend.dictionary),
            "value_bytes": self.backend.dictionary.nbytes,
        }
