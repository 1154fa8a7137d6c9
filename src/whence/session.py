"""A program with its data: apply updates, get the changes of its views."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, NoReturn, cast

from whence.admission import admitted
from whence.atomic import AtomicTables
from whence.backends.local.image import Image
from whence.column_keys import check_columns, values_in_columns
from whence.constraints import Broken, ConstraintError, check_references, values_in
from whence.engine.profile import Profile
from whence.engine.stats import Stats
from whence.engine.stratum import Ranking
from whence.engine.windows import Windows
from whence.io.changes import Changes, Update
from whence.io.fact_text import read_fact
from whence.io.frames import Frame, is_frame, rows_of_table, table_of
from whence.io.plain_columns import PlainColumns
from whence.lang.differences import why_rows_would_differ
from whence.lang.fit import check_rows, holds_compounds, with_compounds
from whence.lang.program import Program, lasting
from whence.lang.revise import add_rules, drop_rule
from whence.lang.tables import numbered
from whence.lang.types import Tuple
from whence.limits import Limits
from whence.prepared import STRATEGIES, Prepared, prepare
from whence.query import Answer, ask
from whence.reader import Reader, SessionStats, Work, work_of

if TYPE_CHECKING:
    from whence.engine.adapt import Adaptation

__all__ = ["STRATEGIES", "Ranking", "Session", "SessionStats", "Work", "evaluate", "evaluated"]


class Session(Reader):
    """Keeps the views of a program exact under updates.

    `facts` are there from the start: rows, or a table that speaks Arrow, such as a DataFrame of pandas, polars or Spark; or a
    list of facts, each as text (`'link("a", "b")'`) or as relation and tuple.

    `wanted` names the relations to be seen, by default all: what they do not need is not derived. The derivations of the
    relations in `record` are kept as relations too, which can be looked at and change like any other: `recordings` says where.
    A program that many sessions are made of is better prepared once (`whence.prepared`); then it says all that. `windows` are
    those of an earlier session whose base tuples are the facts of this one, which goes on where that one was. A `profile` is
    filled with what each rule costs; `whence.profile` tells it.

    >>> from whence import Update, load
    >>> session = Session(load("reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z)."
    ...                        ".decl link(x:symbol, y:symbol) .input link .output reach"))
    >>> _ = session.apply([Update("+", "link", ("a", "b")), Update("+", "link", ("b", "c"))])
    >>> sorted(session.relation("reach"))
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    >>> sorted(session.apply([Update("-", "link", ("b", "c"))]).deleted["reach"])
    [('a', 'c'), ('b', 'c')]
    """

    def __init__(
        self,
        program: Program | Prepared,
        *,
        facts: Mapping[str, Iterable[Tuple] | Frame | PlainColumns] | Iterable[str | tuple[str, Tuple]] | None = None,
        wanted: Iterable[str] | None = None,
        strategy: str = "support",
        record: Collection[str] = (),
        windows: Windows | None = None,
        limits: Limits = Limits(),  # noqa: B008 - immutable
        on_round: Callable[[str, int, int], None] | None = None,
        profile: Profile | None = None,
    ) -> None:
        stated = program.program if isinstance(program, Prepared) else program
        given = facts if isinstance(facts, Mapping) else _by_relation(facts or (), stated)
        if isinstance(program, Prepared):
            if wanted is not None or record or strategy != "support":
                raise ValueError("a prepared program has its wanted relations, strategy and recordings already")
            prepared = program
        else:
            sizes = {name: len(rows) for name, rows in given.items() if isinstance(rows, Sized)}
            prepared = prepare(program, wanted=wanted, strategy=strategy, record=record, sizes=sizes)
        super().__init__(AtomicTables(prepared, limits=limits, on_round=on_round, windows=windows, profile=profile))
        stats = self._atomic.stats
        with stats.phase("collect"):
            for name in given:
                self._check_relation(name)
            listed: dict[str, list[Tuple]] = {}
            columns: dict[str, PlainColumns] = {}
            for name, each in given.items():
                rows = self._rows(name, each)
                if isinstance(rows, PlainColumns):
                    columns[name] = rows
                else:
                    listed[name] = rows
            for name, rows in listed.items():
                check_rows(self.program.relations[name], rows, self.program.types)
                if holds_compounds(self.program.relations[name]):
                    rows[:] = map(with_compounds, rows)
            if self.prepared.constraints and windows is None:  # what was let in before need not be looked at again
                listed = self._let_in(listed)
                check_columns(columns, self.prepared.constraints)
                values = {name: values_in(rows) for name, rows in listed.items()}
                values |= {
                    name: values_in_columns(each, self.program.relations[name]) for name, each in columns.items()
                }
                check_references(values, self.prepared.constraints)
        self._atomic.start(listed, columns)
        self.epoch += 1
        self.last_epoch = work_of(stats)

    def image(self) -> Image | None:
        """All that it holds, to be taken up again by `resumed`, without deriving anything.

        None where a stratum is evaluated anew with each epoch, and where a strategy keeps more than rows. What functions made
        that were registered from Python is part of it, though they may be others the next time.
        """
        return self._atomic.image()

    @classmethod
    def resumed(
        cls,
        prepared: Prepared,
        image: Image,
        *,
        windows: Windows | None = None,
        limits: Limits = Limits(),  # noqa: B008 - immutable
        profile: Profile | None = None,
    ) -> Session | None:
        """A session as it was when its image was made. None if the image is of another program, or of another version of the
        machine: facts are to be given then.

        >>> from whence import Session, Update, load
        >>> from whence.prepared import prepare
        >>> program = load(".decl p(x:number) .input p .decl q(x:number) q(x + 1) :- p(x). .output q")
        >>> image = Session(program, facts={"p": [(1,)]}).image()
        >>> session = Session.resumed(prepare(program), image)
        >>> session.apply([Update("+", "p", (2,))]).inserted["q"]
        [(3,)]
        """
        tables = AtomicTables(prepared, limits=limits, on_round=None, windows=windows, profile=profile)
        if not tables.restore(image):
            return None
        session = cls.__new__(cls)  # without the first epoch
        Reader.__init__(session, tables)
        session.epoch = 1  # what was there at first is not known any more
        return session

    @property
    def initial(self) -> Changes:
        """What the first epoch brought: all there is, as long as no other has been applied."""
        if self.epoch:
            raise RuntimeError("updates have been applied: what was there at first is not known any more")
        shown = (name for name in self.program.relations if self.prepared.shows(name))
        return Changes({name: list(view) for name in shown if (view := self.relation(name))})

    def apply(
        self,
        updates: Iterable[Update | tuple[str, str, Tuple] | str],
        now: float | None = None,
        *,
        checked: bool = False,
        of: Collection[str] | None = None,
    ) -> Changes:
        """One epoch: all updates at once, the last one for a tuple deciding. Gives the net changes of all relations, or `of`
        some. In a table of SQL that has no key, an insertion adds a copy of a row, and a deletion takes one away.

        The clock moves to the latest time of the updates, or to `now`, and what expires by then is deleted in this epoch.
        An update may be text too: `'+ link("a", "b")'`. Raises ValueError for one that does not fit, and ConstraintError for
        one that a table of SQL cannot take. Whatever is raised, nothing is applied then. Updates that were read by the program's
        own types (`io.updates`, for one) and admitted (`admit`) are `checked` already: they are not looked at once more.
        """
        self._atomic.mend()
        stats = self._atomic.stats
        before = stats.copy()
        with stats.phase("collect"):
            listed: list[Update] = list(updates) if checked else self._checked(updates, now)  # type: ignore[arg-type]
        result = self._atomic.apply(listed, now, self.prepared.shows if of is None else of.__contains__)
        self._count(before)
        return result

    def admit(self, updates: Sequence[Update], refuse: Callable[[Broken], None]) -> list[Update]:
        """The updates of an epoch as the relations behind tables take them, to be applied as `checked` ones.

        Those that would break a constraint are told to `refuse`, and left out.
        """
        return admitted(updates, self.prepared.constraints, self.backend, refuse)

    def trial(
        self,
        updates: Iterable[Update | tuple[str, str, Tuple] | str],
        now: float | None = None,
        *,
        referring: bool = True,
    ) -> Changes:
        """What `apply` would change. The session stays as it is: the epoch is taken back, windows and clock included.

        If not `referring`, rows may refer to what is not there.
        """
        self._atomic.mend()
        before = self._atomic.stats.copy()
        changes = self._atomic.trial(self._checked(updates, now, referring=referring), now)
        self.last_epoch = work_of(self._atomic.stats.since(before))
        return changes

    def query(self, text: str, *, limit: int | None = None, timeout: float | None = None) -> Answer:
        """The answer to a question that is asked once: a body of literals, or a SELECT. Nothing is kept of it.

        The columns are the variables of the body. With a `limit` no more rows are looked for; `more` says if there are some.

        >>> from whence import load
        >>> session = Session(load(".decl p(x:number, y:number) p(1, 2). p(2, 3). .output p"))
        >>> session.query("p(x, y), p(y, z)").rows
        [(1, 2, 3)]
        >>> session.query("SELECT max(p.y) AS most FROM p").rows
        [(3,)]
        """
        return ask(self, text, limit=limit, timeout=timeout)

    def add_rule(self, text: str) -> Changes:
        """Adds rules to the program, with facts and declarations that come with them. Gives what that changes, as an epoch.

        Raises `ProgramError` if the program would not be right with them; it stays as it was then.

        >>> from whence import load
        >>> session = Session(load("p(1). p(2). .decl q(x:number) .output p, q"))
        >>> session.add_rule("double: q(2 * x) :- p(x).").inserted
        {'q': [(2,), (4,)]}
        >>> session.drop_rule("double").deleted
        {'q': [(2,), (4,)]}
        """
        return self.revise(add_rules(self.program, text))

    def drop_rule(self, name: str) -> Changes:
        """Takes a rule out of the program; `session.program.rules` has their names. Gives what that changes, as an epoch.

        Raises ValueError if there is no such rule, and `ProgramError` if the program would not be right without it.
        """
        return self.revise(drop_rule(self.program, name))

    def revise(self, program: Program, *, wanted: Iterable[str] | None = None) -> Changes:
        """Another program for the same base tuples. Gives what that changes, as an epoch.

        Only derivations of rules that come or go are looked at, where relations depend on each other as before, or rows that
        are there already and tell the same. `adaptations` says what was done. `wanted` are the relations to be seen from now on,
        if not those of before and outputs that are new. Raises ValueError if a relation would have other columns.
        """
        for problem in why_rows_would_differ(self.program, program):
            raise ValueError(problem)
        prepared = self.prepared.revised(program, self._sizes(), wanted)
        stats = self._atomic.stats.copy()
        result = self._atomic.revise(prepared)
        self._count(stats)
        return result

    @property
    def adaptations(self) -> tuple[Adaptation, ...]:
        """How the views were adapted whose rules changed last, and why so.

        >>> from whence import load
        >>> text = ".decl r(x:number, y:number) .input r .decl v(x:number, y:number) v(x, y) :- r(x, z), r(z, y)"
        >>> session = Session(load(text + "."), facts={"r": [(x % 50, x * x % 50) for x in range(200)]})
        >>> _ = session.revise(load(text + ", x < 45."))
        >>> [each.rules for each in session.adaptations]
        [('-v(x, y) :- r(x, z), r(z, y), 45 <= x.',)]
        """
        return self._atomic.adaptations

    def _count(self, before: Stats) -> None:
        self.last_epoch = work_of(self._atomic.stats.since(before))
        self.epoch += 1

    # -- what comes from Python

    def _rows(self, name: str, given: Iterable[Tuple] | Frame | PlainColumns) -> list[Tuple] | PlainColumns:
        if isinstance(given, PlainColumns):
            return given
        if not is_frame(given):
            return list(cast("Iterable[Tuple]", given))
        from whence.io.frame_columns import columns_of_table  # noqa: PLC0415 - brings Arrow

        table, relation = table_of(given), self.program.relations[name]
        # A window looks at each row, and so does a CHECK.
        by_row = self._atomic.windows.forgets(name) or self.prepared.constraints.look_at_rows(name)
        found = None if by_row else columns_of_table(table, relation, name)
        return rows_of_table(table, relation, name) if found is None else found

    def _let_in(self, given: dict[str, list[Tuple]]) -> dict[str, list[Tuple]]:
        """Facts as the relations behind tables take them. Raises ConstraintError."""
        made = dict(given)
        for name, table in self.prepared.constraints.tables.items():
            if name not in given and not table.checks:
                continue
            for broken in self.prepared.constraints.broken(name, given.get(name, ())):
                raise ConstraintError(broken, "the program" if broken.at < 0 else f"row {broken.at + 1}")
            if table.copies is not None and name in given:
                made[name], again = numbered(given[name], self.prepared.constraints.written[name])
                made[table.copies] = [*made.get(table.copies, ()), *again]
        return made

    def _checked(
        self, updates: Iterable[Update | tuple[str, str, Tuple] | str], now: float | None, *, referring: bool = True
    ) -> list[Update]:
        if isinstance(updates, Update | str):
            raise TypeError(f"an epoch is a list of updates: [{updates!r}]")
        listed = [self._as_update(update) for update in updates]
        rows: dict[str, list[Tuple]] = {}
        _check_time(now)
        for op, name, row, time in listed:
            if name not in rows:
                self._check_relation(name)
                self._refuse_behind_table(name)
            if op not in ("+", "-"):
                raise ValueError(f"{op} is not an operation: + inserts, - deletes")
            _check_time(time)
            rows.setdefault(name, []).append(row)
        for name, each in rows.items():
            check_rows(self.program.relations[name], each, self.program.types)
        if any(holds_compounds(self.program.relations[name]) for name in rows):
            listed = [update._replace(tuple=with_compounds(update.tuple)) for update in listed]
        return admitted(listed, self.prepared.constraints, self.backend, _refuse, referring=referring)

    def _as_update(self, given: object) -> Update:
        if isinstance(given, Update):
            return given
        if isinstance(given, str):
            text = given.strip()
            if text[:1] not in ("+", "-"):
                raise ValueError(f"{given} is not an update: + inserts a fact, - deletes it")
            return Update(text[0], *read_fact(text[1:], self.program))
        if not isinstance(given, tuple) or len(given) not in (3, 4):
            raise ValueError(f"{given!r} is not an update: write Update(op, relation, tuple)")
        return Update(*given)

    def _refuse_behind_table(self, name: str) -> None:
        if name in self.prepared.constraints.behind:
            raise ValueError(f"{name} follows from what its table holds: updates are of the table")

    def _check_relation(self, name: str) -> None:
        if name not in self.program.relations:
            raise ValueError(f"there is no relation {name}")
        if name not in self.prepared.base:
            raise ValueError(f"{name} is derived by rules: only base relations take updates")


def _refuse(broken: Broken) -> NoReturn:
    raise ConstraintError(broken, f"update {broken.at + 1}")


def _by_relation(facts: Iterable[str | tuple[str, Tuple]], program: Program) -> dict[str, list[Tuple]]:
    found: dict[str, list[Tuple]] = {}
    for each in facts:
        name, row = read_fact(each, program) if isinstance(each, str) else each
        found.setdefault(name, []).append(row)
    return found


def _check_time(time: object) -> None:
    if time is not None and not (isinstance(time, Real) and isfinite(float(time))):
        raise ValueError(f"{time!r} is not a time: a finite number is")


def evaluate(
    program: Program,
    facts: Mapping[str, Iterable[Tuple]],
    *,
    wanted: Iterable[str] | None = None,
    limits: Limits = Limits(),  # noqa: B008 - immutable
    on_round: Callable[[str, int, int], None] | None = None,
    simplify: bool = False,
) -> dict[str, set[Tuple]]:
    """The wanted relations of the program (all by default): one evaluation, in which windows and lifetimes forget nothing."""
    return evaluated(program, facts, wanted=wanted, limits=limits, on_round=on_round, simplify=simplify).views()


def evaluated(
    program: Program,
    facts: Mapping[str, Iterable[Tuple] | PlainColumns],
    *,
    wanted: Iterable[str] | None = None,
    limits: Limits = Limits(),  # noqa: B008 - immutable
    on_round: Callable[[str, int, int], None] | None = None,
    simplify: bool = False,
    profile: Profile | None = None,
) -> Session:
    """The same, as a session to be looked at."""
    sizes = {name: len(rows) for name, rows in facts.items() if isinstance(rows, Sized)}
    prepared = prepare(lasting(program), wanted=wanted, sizes=sizes, simplify=simplify, lean=True)
    return Session(prepared, facts=facts, limits=limits, on_round=on_round, profile=profile)
