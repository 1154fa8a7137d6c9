"""Foreign keys at the end of each epoch, beside SQLite's deferred ones."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from whence import ProgramError, Session, Update, load
from whence.constraints import Broken, ConstraintError
from whence.io.changes import Epoch
from whence.lang.types import Tuple
from whence.pipeline.files import StateError
from whence.pipeline.keeper import ResidentKeeper
from whence.pipeline.options import RunOptions
from whence.pipeline.store import WholeStore
from whence.pipeline.upgrade import upgrade
from whence.provenance import CannotExplain, Fact, rank_dependence, whatif, whynot
from whence.provenance.repairs import Repair

DEFERRED = "DEFERRABLE INITIALLY DEFERRED"
SCHEMA = f"""
CREATE TABLE town(id INTEGER PRIMARY KEY, name TEXT, UNIQUE (name, id));
CREATE TABLE person(id INTEGER PRIMARY KEY, town INTEGER REFERENCES town {DEFERRED},
  boss INTEGER REFERENCES person(id) {DEFERRED});
CREATE TABLE visit(name TEXT, town INTEGER, person INTEGER REFERENCES person(id) {DEFERRED},
  FOREIGN KEY (name, town) REFERENCES town(name, id) {DEFERRED});
"""
VIEWS = "CREATE VIEW v AS SELECT person, COUNT(*) AS n FROM visit GROUP BY person;"
COLUMNS = {"town": 2, "person": 3, "visit": 3}


def random_row(random: Random, table: str) -> Tuple:
    def number() -> int | None:
        return None if random.random() < 0.2 else random.randrange(3)

    if table == "town":
        return (random.randrange(3), random.choice(("a", "b", None)))
    if table == "person":
        return (random.randrange(3), number(), number())
    return (random.choice(("a", "b", None)), number(), number())


def random_epoch(random: Random, there: Counter[tuple[str, Tuple]]) -> list[Update]:
    made = []
    for _ in range(random.randint(1, 7)):
        present = list(there)
        if present and random.random() < 0.5:
            made.append(Update("-", *random.choice(present)))
        else:
            table = random.choice(list(COLUMNS))
            made.append(Update("+", table, random_row(random, table)))
    return made


class Sqlite:
    def __init__(self) -> None:
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.execute("PRAGMA foreign_keys = ON")
        self.database.executescript(SCHEMA)

    def takes(self, updates: list[Update], *, for_good: bool) -> bool:
        """Whether it takes an epoch as a transaction."""
        self.database.execute("BEGIN")
        try:
            for op, table, row, _ in updates:
                if op == "+":
                    self.database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
                else:
                    columns = [each[1] for each in self.database.execute(f"PRAGMA table_info({table})")]
                    same = " AND ".join(f"{column} IS ?" for column in columns)
                    one = f"SELECT rowid FROM {table} WHERE {same} LIMIT 1"
                    self.database.execute(f"DELETE FROM {table} WHERE rowid IN ({one})", row)
            if for_good:
                self.database.execute("COMMIT")
                return True
            return not self.database.execute("PRAGMA foreign_key_check").fetchall()
        except sqlite3.IntegrityError:
            return False
        finally:
            if self.database.in_transaction:
                self.database.execute("ROLLBACK")

    def rows(self) -> Counter[tuple[str, Tuple]]:
        return Counter((name, row) for name in COLUMNS for row in self.database.execute(f"SELECT * FROM {name}"))


def rows_of(session: Session) -> Counter[tuple[str, Tuple]]:
    return Counter((name, row) for name in COLUMNS for row in session.bag(name))


@pytest.mark.parametrize("chunk", range(4))
def test_epochs_are_taken_as_sqlite_takes_transactions(chunk: int) -> None:
    refusals = 0
    for seed in range(chunk, 80, 4):
        random = Random(seed)
        session, other = Session(load(SCHEMA + VIEWS, dialect="sql")), Sqlite()
        for _ in range(8):
            epoch = random_epoch(random, rows_of(session))
            refused: dict[int, Broken] = {}
            updates = session.admit(epoch, lambda broken, refused=refused: refused.update({broken.at: broken}))  # type: ignore[misc]
            # It refuses something if and only if SQLite refuses the whole, and what is left SQLite takes.
            assert other.takes(epoch, for_good=False) == (not refused), (seed, epoch, refused)
            assert other.takes([each for at, each in enumerate(epoch) if at not in refused], for_good=True), (
                seed,
                epoch,
            )
            session.apply(updates, checked=True)
            assert rows_of(session) == other.rows()
            refusals += len(refused)
    assert refusals > 50


def test_the_order_in_an_epoch_does_not_matter() -> None:
    epoch = [
        Update("+", "visit", ("a", 1, 7)),
        Update("+", "person", (7, 1, 8)),
        Update("+", "person", (8, 1, 7)),
        Update("+", "person", (9, 2, None)),  # there is no town 2
        Update("+", "visit", (None, 2, 9)),  # so there is no person 9
        Update("+", "town", (1, "a")),
    ]
    for seed in range(20):
        given = Random(seed).sample(epoch, len(epoch))
        session = Session(load(SCHEMA + VIEWS, dialect="sql"))
        refused: list[Broken] = []
        session.apply(session.admit(given, refused.append), checked=True)
        assert {(each.relation, each.row) for each in refused} == {("person", (9, 2, None)), ("visit", (None, 2, 9))}


@pytest.fixture
def session() -> Session:
    facts: dict[str, list[Tuple]] = {"town": [(1, "a"), (2, "b")], "person": [(7, 1, None)], "visit": [("a", 1, 7)] * 2}
    return Session(load(SCHEMA + VIEWS, dialect="sql"), facts=facts)


def test_what_is_referred_to_stays_as_long_as_a_copy_refers_to_it(session: Session) -> None:
    person, visit = Update("-", "person", (7, 1, None)), Update("-", "visit", ("a", 1, 7))
    with pytest.raises(ConstraintError, match=r"person\(7, 1, nil\) cannot go: visit\(\"a\", 1, 7\) refers to it"):
        session.apply([person, visit])
    session.apply([person, visit, visit])
    assert not session.relation("person")


def test_a_key_may_be_handed_over(session: Session) -> None:
    session.apply([Update("-", "person", (7, 1, None)), Update("+", "person", (7, 2, None))])
    assert set(session.relation("person")) == {(7, 2, None)}


def test_a_deletion_that_is_refused_keeps_its_key(session: Session) -> None:
    # The new person would live in a town that is not there, so the old one stays.
    refused: list[Broken] = []
    updates = [Update("-", "person", (7, 1, None)), Update("+", "person", (7, 3, None))]
    assert session.admit(updates, refused.append) == []
    assert len(refused) == 2


def test_facts_and_rows_of_the_text_are_looked_at() -> None:
    program = load(SCHEMA + VIEWS, dialect="sql")
    with pytest.raises(
        ConstraintError, match=r"row 2: person\(8, 3, nil\) breaks FOREIGN KEY \(town\) REFERENCES town \(id\)"
    ):
        Session(program, facts={"town": [(1, "a")], "person": [(7, 1, None), (8, 3, None)]})
    text = SCHEMA + VIEWS + "INSERT INTO person VALUES (7, 1, NULL);"
    with pytest.raises(ConstraintError, match=r"the program: person\(7, 1, nil\) breaks"):
        Session(load(text, dialect="sql"))
    Session(load(text, dialect="sql"), facts={"town": [(1, "a")]})


def test_facts_by_column_are_looked_at() -> None:
    pandas = pytest.importorskip("pandas")
    text = "CREATE TABLE p(id BIGINT PRIMARY KEY, s TEXT); CREATE TABLE c(p BIGINT REFERENCES p, x DOUBLE); "
    program = load(text + "CREATE VIEW v AS SELECT COUNT(*) AS n FROM c;", dialect="sql")
    parents = pandas.DataFrame({"id": [1, 2], "s": ["a", None]})
    Session(program, facts={"p": parents, "c": pandas.DataFrame({"p": [1, 2, 1], "x": [0.5, 1.5, 0.5]})})
    with pytest.raises(ConstraintError, match=r"row 2: c\(3, 1.5\) breaks FOREIGN KEY"):
        Session(program, facts={"p": parents, "c": pandas.DataFrame({"p": [1, 3, 1], "x": [0.5, 1.5, 0.5]})})


def test_repairs_bring_what_a_row_refers_to() -> None:
    text = """
        CREATE TABLE town(id INTEGER PRIMARY KEY); CREATE TABLE person(name TEXT PRIMARY KEY, town INTEGER REFERENCES town);
        CREATE VIEW lives AS SELECT name, town FROM person;
        CREATE VIEW empty AS SELECT id FROM town WHERE id NOT IN (SELECT town FROM person WHERE town IS NOT NULL);
    """
    asked = Session(load(text, dialect="sql"), facts={"town": [(1,)], "person": [("ada", 1)]})
    assert whynot(asked, "lives", ("eve", 1)).repairs[0] == Repair((Fact("person", ("eve", 1)),), ())
    both = Repair((Fact("person", ("eve", 2)), Fact("town", (2,))), ())
    assert whynot(asked, "lives", ("eve", 2)).repairs[0] == both


def test_what_if_keeps_to_references_and_a_ranking_does_not(session: Session) -> None:
    with pytest.raises(CannotExplain, match=r"cannot go: visit.* refers to it; delete what refers to it as well"):
        whatif(session, without=["person(7, 1, nil)"])
    with pytest.raises(CannotExplain, match="breaks PRIMARY KEY"):
        whatif(session, given=["person(7, 2, nil)"])
    lost = {each.fact: each.lost + each.changed for each in rank_dependence(session)}
    assert lost[Fact("visit", ("a", 1, 7))] == 1
    assert lost[Fact("person", (7, 1, None))] == 0


def test_a_state_is_not_brought_over_to_a_reference_that_its_rows_break(tmp_path: Path) -> None:
    plain = "CREATE TABLE p(id BIGINT PRIMARY KEY); CREATE TABLE c(p BIGINT {}); CREATE VIEW v AS SELECT p FROM c;"
    before, after = (load(plain.format(each), dialect="sql", name="p.sql") for each in ("", "REFERENCES p"))
    keeper = ResidentKeeper(before, RunOptions(), store=WholeStore.open(tmp_path, before))
    keeper.apply([Epoch([Update("+", "c", (1,))])])
    keeper.close()
    with pytest.raises(StateError, match="breaks FOREIGN KEY"):
        upgrade(tmp_path, after)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("CREATE TABLE c(p BIGINT REFERENCES q);", "there is no table or view q"),
        ("CREATE TABLE c(p BIGINT REFERENCES v);", "v is no table to refer to"),
        ("CREATE TABLE c(p BIGINT REFERENCES p(s));", "what is referred to is no key of p"),
        ("CREATE TABLE c(p BIGINT REFERENCES p(x));", "p has no column x"),
        ("CREATE TABLE c(p BIGINT REFERENCES b);", "b has no PRIMARY KEY to refer to"),
        ("CREATE TABLE c(p TEXT REFERENCES p);", "p has number where c has symbol"),
        ("CREATE TABLE c(p BIGINT, FOREIGN KEY (q) REFERENCES p);", "c has no column q"),
        ("CREATE TABLE c(p BIGINT REFERENCES p ON DELETE CASCADE);", "ON DELETE CASCADE is not supported"),
    ],
)
def test_what_is_wrong_with_a_reference_is_reported(table: str, problem: str) -> None:
    text = (
        "CREATE TABLE p(id BIGINT PRIMARY KEY, s TEXT); CREATE TABLE b(x BIGINT); CREATE VIEW v AS SELECT id FROM p; "
    )
    with pytest.raises(ProgramError) as found:
        load(text + table, dialect="sql")
    assert problem in str(found.value)
