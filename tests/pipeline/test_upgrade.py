"""A state whose program changes: what stays, what is derived anew, and what a failure on the way leaves behind."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from whence import Changes, Program, Update, load, reference, session
from whence.io.changes import Epoch
from whence.lang.program import output_names
from whence.pipeline import files, log, manifest, snapshots
from whence.pipeline.files import StateError, StateWarning
from whence.pipeline.keeper import ResidentKeeper
from whence.pipeline.options import RunOptions
from whence.pipeline.parts.open import open_state
from whence.pipeline.sinks import CallbackSink
from whence.pipeline.store import WholeStore
from whence.pipeline.upgrade import upgrade
from whence.pipeline.verify import verify

LINK = ".decl link(a:number, b:number) .input link\n"
REACH = "reach(x, y) :- link(x, y). reach(x, z) :- reach(x, y), link(y, z). .output reach\n"
Rows = dict[str, set[tuple[object, ...]]]
VERSIONS = [
    LINK + REACH,
    LINK + REACH + "loop(x) :- reach(x, x). .output loop",
    LINK + "reach(x, y) :- link(x, y), x < y. reach(x, z) :- reach(x, y), link(y, z), y != z. .output reach",
    LINK + "reach(x, y, 1) :- link(x, y). .decl reach(a:number, b:number, hops:number) .output reach",
    LINK + "far(x) :- link(x, _), !link(_, x). .output far .decl mark(x:number) .input mark",
    LINK + REACH + "degree(x, n) :- link(x, _), n = count : { link(x, _) }. .output degree",
]


def keeper(folder: Path, program: Program, **options: object) -> ResidentKeeper:
    opened = open_state(folder, program).whole()
    return ResidentKeeper(program, RunOptions(**options), store=opened)  # type: ignore[arg-type]


def epoch(*links: tuple[int, int], op: str = "+") -> Epoch:
    return Epoch([Update(op, "link", each) for each in links])


def views(folder: Path) -> Rows:
    found = WholeStore.read(folder)
    return {name: found.view_at(name, found.last_epoch) for name in found.outputs}


def test_random_versions_in_turn(tmp_path: Path) -> None:
    """Every epoch, those before a change included, is remembered; what sinks hear adds up; the state verifies."""
    draw = random.Random(7)
    for sequence in range(6):
        folder = tmp_path / str(sequence)
        at, remembered = 0, {}
        heard: Rows = {}
        text = VERSIONS[0]
        links: set[tuple[int, int]] = set()
        for _ in range(5):
            program = load(text)
            shapes = {name: program.relations[name].fields for name in output_names(program)}
            heard = {name: rows for name, rows in heard.items() if name in shapes}

            def hear(_: int, changes: Changes, heard: Rows = heard) -> None:
                for name, rows in changes.deleted.items():
                    heard[name] -= set(rows)
                for name, rows in changes.inserted.items():
                    heard.setdefault(name, set()).update(rows)

            current = keeper(
                folder, program, sinks=[CallbackSink(hear)], snapshot_every=draw.choice([2, 100]), retain=99
            )
            for _ in range(draw.randrange(4)):
                at = current.epoch
                remembered[at] = {name: current.view(name) for name in current.outputs}
                link = draw.randrange(5), draw.randrange(5)
                op = draw.choice("++-")
                links = links | {link} if op == "+" else links - {link}
                current.apply([epoch(link, op=op)])
            remembered[current.epoch] = {name: current.view(name) for name in current.outputs}
            assert remembered[current.epoch] == {
                name: reference.evaluate(program, {"link": links})[name] for name in current.outputs
            }
            assert {name: rows for name, rows in heard.items() if rows} == {
                name: rows for name, rows in remembered[current.epoch].items() if rows
            }
            current.close()
            after = draw.choice(VERSIONS)
            done = upgrade(folder, load(after))
            assert (done is None) == (after == text)
            if done is not None:
                now = WholeStore.read(folder)
                assert now.last_epoch == done.epoch == current.epoch + 1
                same = {name for name in now.outputs if shapes.get(name) == now.program.relations[name].fields}
                heard = {name: rows for name, rows in heard.items() if name in same}
            text = after
        found = WholeStore.read(folder)
        for number, expected in remembered.items():
            assert {name: found.view_at(name, number) for name in expected} == expected
        assert list(verify(found, session.evaluate)) == []


def test_sinks_hear_of_versions_that_nobody_ran(tmp_path: Path) -> None:
    first = keeper(tmp_path, load(VERSIONS[0]))
    first.apply([epoch((1, 2)), epoch((2, 1))])
    first.close()
    upgrade(tmp_path, load(VERSIONS[2]))
    upgrade(tmp_path, load(VERSIONS[1]))
    heard: dict[int, Changes] = {}
    keeper(tmp_path, load(VERSIONS[1]), sinks=[CallbackSink(heard.__setitem__)]).close()
    lost = {(2, 1), (2, 2)}
    assert set(heard[3].deleted["reach"]) == lost
    assert {name: set(rows) for name, rows in heard[4].inserted.items()} == {"reach": lost, "loop": {(1,), (2,)}}


def test_comments_and_layout_are_no_change(tmp_path: Path) -> None:
    first = keeper(tmp_path, load(VERSIONS[0]))
    first.apply([epoch((1, 2))])
    first.close()
    again = keeper(tmp_path, load("// what is reached\n\n" + VERSIONS[0].replace(" :- ", "\n  :-  ")))
    assert again.view("reach") == {(1, 2)}
    again.apply([epoch((2, 3))])
    again.close()
    assert WholeStore.read(tmp_path).manifest.text.startswith("// what is reached")
    assert WholeStore.read(tmp_path).last_epoch == 2


def test_another_version_is_refused_with_what_changed(tmp_path: Path) -> None:
    keeper(tmp_path, load(VERSIONS[0])).close()
    with pytest.raises(StateError) as refused:
        open_state(tmp_path, load(VERSIONS[1]))
    assert "new output: loop" in str(refused.value)
    assert "rule added: loop(x) :- reach(x, x)." in str(refused.value)
    assert "--upgrade" in refused.value.hints[0]


def test_columns_are_gained_with_defaults(tmp_path: Path) -> None:
    current = keeper(tmp_path, load(VERSIONS[0]))
    current.apply([epoch((1, 2), (2, 3))])
    current.close()
    wider = load(
        ".decl link(cost:number, a:number, b:number) .input link reach(x, y) :- link(c, x, y), c > 4. .output reach"
    )
    with pytest.raises(StateError, match=r"column cost of link is new, and has no default: --default link.cost=VALUE"):
        upgrade(tmp_path, wider)
    with pytest.raises(StateError, match=r"the default of link.cost: "):
        upgrade(tmp_path, wider, defaults={"link": {"cost": "dear"}})
    assert views(tmp_path) == {"reach": {(1, 2), (2, 3), (1, 3)}}
    done = upgrade(tmp_path, wider, defaults={"link": {"cost": "5"}}, dry_run=True)
    assert done is not None
    assert (done.gained, done.lost) == ({"reach": 0}, {"reach": 1})
    assert WholeStore.read(tmp_path).last_epoch == 1
    upgrade(tmp_path, wider, defaults={"link": {"cost": "5"}})
    assert keeper(tmp_path, wider).session.base() == {"link": {(5, 1, 2), (5, 2, 3)}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("p(1). .output p", "link has 1 tuples, and is not declared any more"),
        (".decl link(a:number) .input link p(x) :- link(x). .output p", "column b of link is gone"),
        (".decl link(a:number, b:symbol) .input link p(x) :- link(x, _). .output p", "holds number, not symbol"),
        (".decl link(a:number, b:number) link(1, 2) :- p(1). p(1). .output p", "is derived by rules now"),
        (LINK + ".lifetime link 5\np(x) :- link(x, _). .output p", "times are not known"),
    ],
)
def test_nothing_is_lost_unasked(tmp_path: Path, text: str, problem: str) -> None:
    current = keeper(tmp_path, load(VERSIONS[0]))
    current.apply([epoch((1, 2))])
    current.close()
    with pytest.raises(StateError, match=problem):
        upgrade(tmp_path, load(text))
    assert views(tmp_path) == {"reach": {(1, 2)}}


def test_a_failure_on_the_way_leaves_one_version_or_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever writing stops: what is there is all of the old version or all of the new one, and the upgrade can go on."""
    real, stopped = files.write_file, 0
    for last in range(30):
        folder = tmp_path / str(last)
        current = keeper(folder, load(VERSIONS[0]))
        current.apply([epoch((1, 2))])
        current.apply([epoch((2, 1))])
        current.close()
        left = [last]

        def write(path: Path, data: bytes, left: list[int] = left) -> None:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            real(path, data)

        with monkeypatch.context() as patched:
            for module in (snapshots, manifest, log):
                patched.setattr(module, "write_file", write)
            try:
                upgrade(folder, load(VERSIONS[1]))
            except KeyboardInterrupt:
                stopped += 1
        found = WholeStore.read(folder)
        if "loop" in found.outputs:
            assert views(folder) == {"reach": {(1, 2), (2, 1), (1, 1), (2, 2)}, "loop": {(1,), (2,)}}
        else:
            assert views(folder) == {"reach": {(1, 2), (2, 1), (1, 1), (2, 2)}}
            assert upgrade(folder, load(VERSIONS[1])) is not None
        told: list[tuple[int, Changes]] = []
        resumed = keeper(folder, load(VERSIONS[1]), sinks=[CallbackSink(lambda *each, told=told: told.append(each))])
        resumed.apply([epoch((3, 3))])
        resumed.close()
        assert [(number, sorted(changes.inserted["loop"])) for number, changes in told] == [
            (3, [(1,), (2,)]),
            (4, [(3,)]),
        ]
        assert list(verify(WholeStore.read(folder), session.evaluate)) == []
        if left[0]:
            break  # nothing was in the way
    assert stopped > 3


def test_a_damaged_snapshot_after_the_change_is_made_again(tmp_path: Path) -> None:
    current = keeper(tmp_path, load(VERSIONS[0]))
    current.apply([epoch((1, 2))])
    current.close()
    upgrade(tmp_path, load(VERSIONS[1]))
    (tmp_path / "snapshots" / f"{2:012d}" / "base" / "link.parquet").write_bytes(b"nothing")
    with pytest.warns(StateWarning, match="using the snapshot before it"):
        resumed = keeper(tmp_path, load(VERSIONS[1]), snapshot_every=1)
    assert resumed.epoch == 2
    resumed.apply([epoch((2, 1))])
    assert resumed.view("loop") == {(1,), (2,)}
    resumed.close()
    assert views(tmp_path)["loop"] == {(1,), (2,)}


JOINS = LINK + (
    ".decl two(a:number, b:number) two(x, z) :- link(x, y), link(y, z){}. .output two\n"
    ".decl many(a:number, n:number) many(x, n) :- two(x, _), n = count : {{ two(x, _) }}. .output many\n"
)


def test_the_tables_of_the_last_run_are_adapted(tmp_path: Path) -> None:
    """Only what the changed rule takes away is derived; the view on top follows; all of it is told with its reason."""
    links = {(x, (x * x + step) % 60) for x in range(60) for step in range(5)}
    current = keeper(tmp_path, load(JOINS.format("")))
    current.apply([epoch(*links)])
    current.close()
    narrower = load(JOINS.format(", x < 50"))
    planned = upgrade(tmp_path, narrower, dry_run=True)
    done = upgrade(tmp_path, narrower)
    assert done is not None
    assert planned is not None
    assert planned.adaptations == done.adaptations
    assert done.anew is None
    (adaptation,) = done.adaptations
    assert adaptation.rules == ("-two(x, y) :- link(x, z), link(z, y), 50 <= x.",)
    assert str(adaptation).startswith(
        "two: reformulated, since what went and came overlaps, or rows that are there tell"
    )
    expected = reference.evaluate(narrower, {"link": links})
    assert views(tmp_path) == {name: expected[name] for name in ("two", "many")}
    before = reference.evaluate(load(JOINS.format("")), {"link": links})
    assert done.lost == {name: len(before[name] - expected[name]) for name in ("two", "many")}
    resumed = keeper(tmp_path, narrower)
    assert resumed.stats()["derivations"] == 0, "it goes on from the adapted tables"
    resumed.apply([epoch((3, 4), op="-")])
    links.discard((3, 4))
    assert resumed.view("many") == reference.evaluate(narrower, {"link": links})["many"]
    resumed.close()


def test_why_views_are_derived_anew(tmp_path: Path) -> None:
    current = keeper(tmp_path, load(VERSIONS[0]))
    current.apply([epoch((1, 2))])
    current.close()
    told = upgrade(tmp_path, load(VERSIONS[3]), dry_run=True)
    assert told is not None
    assert told.anew == "reach would have 3 columns instead of 2"
    (tmp_path / "tables.image").unlink()
    told = upgrade(tmp_path, load(VERSIONS[1]))
    assert told is not None
    assert told.anew == "the last run left no tables to adapt"
    assert (tmp_path / "tables.image").exists(), "those of the new version are left instead"


def test_tables_are_taken_up_only_if_they_are_those_of_the_last_epoch(tmp_path: Path) -> None:
    current = keeper(tmp_path, load(VERSIONS[0]))
    current.apply([epoch((1, 2))])
    current.close()
    image = (tmp_path / "tables.image").read_bytes()
    current = keeper(tmp_path, load(VERSIONS[0]))
    assert current.stats()["derivations"] == 0
    assert current.view("reach") == {(1, 2)}
    current.apply([epoch((2, 3))])
    assert not (tmp_path / "tables.image").exists(), "a crash from here on leaves none"
    current.close()
    (tmp_path / "tables.image").write_bytes(image)
    current = keeper(tmp_path, load(VERSIONS[0]))
    assert current.stats()["derivations"] > 0
    assert current.view("reach") == {(1, 2), (2, 3), (1, 3)}
    current.close()
    image = (tmp_path / "tables.image").read_bytes()
    (tmp_path / "tables.image").write_bytes(image[:-1] + bytes([image[-1] ^ 1]))
    with pytest.warns(StateWarning, match="is not as it was written; what is in it is derived anew"):
        current = keeper(tmp_path, load(VERSIONS[0]))
    assert current.view("reach") == {(1, 2), (2, 3), (1, 3)}
    current.close()


def test_what_functions_made_is_derived_anew(tmp_path: Path) -> None:
    text = LINK + ".functor step(x:number):number\nnext(@step(x)) :- link(x, _). .decl next(x:number) .output next"
    current = keeper(tmp_path, load(text, functions={"step": lambda x: x + 1}))
    current.apply([epoch((1, 2))])
    current.close()
    current = keeper(tmp_path, load(text, functions={"step": lambda x: x + 5}))
    assert current.view("next") == {(6,)}
    current.close()
