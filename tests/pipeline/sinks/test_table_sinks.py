"""Tables that sinks keep equal the views after every epoch, also when epochs arrive again, as they do after a crash."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
from deltalake import DeltaTable

from whence import Changes, Session, Update, load
from whence.lang.types import Tuple
from whence.pipeline.postgres import PostgresError
from whence.pipeline.sinks import Sink, SinkWarning
from whence.pipeline.sinks.delta import DeltaChangesSink, DeltaViewsSink
from whence.pipeline.sinks.postgres import PostgresSink

PROGRAM = load(
    """
    .type Pair = [x: number, y: number]
    .decl fact(n: number, u: unsigned, f: float, s: symbol)
    .input fact
    .decl Mixed(n: number, u: unsigned, F: float, order: symbol, p: Pair)
    Mixed(n, u, f, s, [n, n]) :- fact(n, u, f, s).
    .output Mixed
    .decl reach(inserted: symbol, to: symbol)
    reach(x, y) :- fact(_, _, _, x), fact(_, _, _, y), x != y.
    .output reach
    """
)
TEXTS = ("plain", "", 'it\'s "quoted"', "tab\tand\nline", "\\N {a,b} NULL", "日本", "%s")
NUMBERS = (0, -1, 2**63 - 1, -(2**63))
UNSIGNED = (0, 1, 2**64 - 1)
FLOATS = (0.5, -1e300, float("inf"), 0.1 + 0.2)

Shown = dict[str, set[Tuple]]


class _Target:
    """Where a sink writes: makes the sink, and reads back what is there."""

    def __init__(self, sink: Callable[[], Sink], read: Callable[[], Shown]) -> None:
        self.sink = sink
        self.read = read


def _read_postgres(database: str) -> Shown:
    with psycopg.connect(database) as connection:
        mixed = connection.execute('SELECT n, u, "F", "order", p FROM "Mixed"').fetchall()
        return {
            "Mixed": {(n, int(u), f, s, p) for n, u, f, s, p in mixed},
            "reach": set(connection.execute("TABLE reach")),
        }


def _read_delta_views(folder: Path) -> Shown:
    return {name: {_plain(row.values()) for row in _rows(folder / name)} for name in ("Mixed", "reach")}


def _read_delta_changes(folder: Path) -> Shown:
    shown: Shown = {"Mixed": set(), "reach": set()}
    for name, held in shown.items():
        rows = _rows(folder / name) if (folder / name).exists() else []
        for row in sorted(rows, key=lambda row: (row["epoch"], row["op"] == "+")):
            _, op, *values = row.values()
            # The changes add up: nothing is inserted twice or deleted without being there.
            assert (_plain(values) in held) == (op == "-")
            held.symmetric_difference_update([_plain(values)])
    return shown


def _rows(path: Path) -> list[dict]:
    return DeltaTable(path).to_pyarrow_table().to_pylist()


def _plain(values) -> Tuple:
    return tuple(int(value) if isinstance(value, Decimal) else value for value in values)


@pytest.fixture(params=["postgres", "delta views", "delta changes"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[_Target]:
    with ExitStack() as stack:
        match request.param:
            case "postgres":
                database = request.getfixturevalue("database")

                def opened() -> PostgresSink:
                    sink = PostgresSink(database, PROGRAM)
                    stack.callback(sink.close)
                    return sink

                yield _Target(opened, lambda: _read_postgres(database))
            case "delta views":
                yield _Target(lambda: DeltaViewsSink(tmp_path, PROGRAM), lambda: _read_delta_views(tmp_path))
            case _:
                yield _Target(lambda: DeltaChangesSink(tmp_path, PROGRAM), lambda: _read_delta_changes(tmp_path))


def _expected(session: Session) -> Shown:
    mixed = {(n, u, f, s, f"[{n}, {n}]") for n, u, f, s, _ in session.relation("Mixed")}
    return {"Mixed": mixed, "reach": set(session.relation("reach"))}


@pytest.mark.parametrize("seed", range(2))
def test_tables_follow_the_views(seed: int, target: _Target) -> None:
    choose = random.Random(seed)
    session, sink = Session(PROGRAM), target.sink()
    written: list[Changes] = [session.initial]
    sink.write(0, session.initial)
    for epoch in range(1, 13):
        rows = [tuple(map(choose.choice, (NUMBERS, UNSIGNED, FLOATS, TEXTS))) for _ in range(6)]
        old = [Update("-", "fact", row) for row in session.relation("fact") if choose.random() < 0.4]
        written.append(session.apply([*old, *(Update("+", "fact", row) for row in rows)] if epoch % 5 else ()))
        sink.write(epoch, written[epoch])
        if choose.random() < 0.4:
            # A crash: a new sink gets the last epochs again.
            sink = target.sink()
            for again in range(max(1, epoch - choose.randrange(4)), epoch + 1):
                sink.write(again, written[again])
        assert target.read() == _expected(session)


def test_a_new_beginning_replaces_what_was_there(target: _Target) -> None:
    first, second = Session(PROGRAM), Session(PROGRAM)
    sink = target.sink()
    sink.write(0, first.initial)
    sink.write(1, first.apply([Update("+", "fact", (1, 1, 1.0, "old"))]))
    sink = target.sink()
    sink.write(0, second.initial)
    sink.write(1, second.apply([Update("+", "fact", (2, 2, 2.0, "new"))]))
    assert target.read() == _expected(second)


def test_a_postgres_sink_notices_missing_epochs(database: str) -> None:
    sink = PostgresSink(database, PROGRAM)
    with pytest.raises(ValueError, match="epoch 3 cannot follow nothing"):
        sink.write(3, Changes())
    sink.write(0, Changes())
    with pytest.raises(ValueError, match="epoch 2 cannot follow epoch 0"):
        sink.write(2, Changes())
    sink.close()


def test_a_postgres_sink_changes_all_tables_or_none(database: str) -> None:
    session = Session(PROGRAM)
    with psycopg.connect(database, autocommit=True) as connection:
        sink = PostgresSink(database, PROGRAM)
        sink.write(0, session.initial)
        connection.execute("ALTER TABLE reach ADD CHECK (inserted <> 'bad')")
        changes = session.apply([Update("+", "fact", (1, 1, 1.0, text)) for text in ("bad", "good")])
        with pytest.raises(psycopg.errors.CheckViolation):
            sink.write(1, changes)
        assert _read_postgres(database) == {"Mixed": set(), "reach": set()}
        connection.execute("ALTER TABLE reach DROP CONSTRAINT reach_inserted_check")
        sink.write(1, changes)
        assert _read_postgres(database) == _expected(session)
        sink.close()


def test_a_postgres_sink_survives_a_lost_connection(database: str) -> None:
    session = Session(PROGRAM)
    sink = PostgresSink(database, PROGRAM)
    sink.write(0, session.initial)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    changes = session.apply([Update("+", "fact", (1, 1, 1.0, "x"))])
    sink.write(1, changes)
    assert _read_postgres(database) == _expected(session)
    sink.close()


def test_a_database_that_is_not_there_is_an_error() -> None:
    with pytest.raises(PostgresError, match="nowhere"):
        PostgresSink("postgresql:///db?host=/nowhere", PROGRAM).write(0, Changes())


def test_tables_of_others_are_left_alone(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE reach (x int)")
    with pytest.raises(ValueError, match=r"there is a table reach\(x\), not reach\(inserted, to\)"):
        PostgresSink(database, PROGRAM).write(0, Changes())
    sink = PostgresSink(database, PROGRAM, schema="my views")
    sink.write(0, Changes())
    sink.close()


# What PostgreSQL cannot hold: it has no NUL, a key has 2,700 bytes; half of a surrogate pair has no UTF-8 form.
UNFIT = ("a\0b", "\ud800", "".join(random.Random(1).choices("abcdefghijklmnop", k=20_000)))


def test_postgres_rows_that_do_not_fit_are_set_aside(database: str) -> None:
    program = load(".decl fact(s: symbol) .input fact .decl shown(s: symbol) shown(s) :- fact(s). .output shown")
    session = Session(program)
    sink = PostgresSink(database, program, schema="a%sb")
    sink.write(0, session.initial)
    choose = random.Random(7)
    for epoch in range(1, 15):
        rows = choose.sample([*UNFIT, *TEXTS], 4)
        changes = session.apply([Update("-" if choose.random() < 0.5 else "+", "fact", (text,)) for text in rows])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SinkWarning)
            sink.write(epoch, changes)
        if epoch % 5 == 0:
            sink.close()
            sink = PostgresSink(database, program, schema="a%sb")
        with psycopg.connect(database) as connection:
            held = {text for (text,) in connection.execute('TABLE "a%sb".shown')}
            aside = [json.loads(row[0])[0] for row in connection.execute('SELECT tuple FROM "a%sb".whence_set_aside')]
        there = {text for (text,) in session.relation("shown")}
        assert held == there - set(UNFIT)
        assert sorted(aside) == sorted(there & set(UNFIT))
    sink.close()


@pytest.mark.parametrize("make", [DeltaViewsSink, DeltaChangesSink])
def test_delta_rows_without_utf8_are_set_aside(make: Callable[..., Sink], tmp_path: Path) -> None:
    program = load(".decl fact(s: symbol) .input fact .decl shown(s: symbol) shown(s) :- fact(s). .output shown")
    session = Session(program, facts={"fact": [("\ud800",), ("a\0b",)]})
    sink = make(tmp_path, program)
    with pytest.warns(SinkWarning, match="Delta cannot hold some rows of shown: they are in"):
        sink.write(0, session.initial)
    changes = session.apply([Update("-", "fact", ("\ud800",)), Update("+", "fact", ("\udfff",))])
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SinkWarning)
            sink.write(1, changes)
    assert {row["s"] for row in _rows(tmp_path / "shown")} == {"a\0b"}
    aside = {(row["epoch"], row["op"], json.loads(row["tuple"])[0]) for row in _rows(tmp_path / "whence_set_aside")}
    assert aside == {(0, "+", "\ud800"), (1, "-", "\ud800"), (1, "+", "\udfff")}
    sink.write(0, Session(program).initial)
    assert _rows(tmp_path / "whence_set_aside") == []


@pytest.mark.parametrize("make", [PostgresSink, DeltaViewsSink, DeltaChangesSink])
def test_relations_without_columns_are_refused(make: Callable[..., Sink]) -> None:
    with pytest.raises(ValueError, match="has no columns"):
        make("nowhere", load(".decl fact(x: number) .input fact .decl some() some() :- fact(_). .output some"))


def test_columns_of_the_table_of_changes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has a column op"):
        DeltaChangesSink(tmp_path, load(".decl f(op: number) .input f .decl g(op: number) g(x) :- f(x). .output g"))
