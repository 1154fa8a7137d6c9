"""Lines on their way to Spark: where files of the spool begin and end, and where reading goes on."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread

import pytest
from tests.waiting import PATIENCE, wait_for

from whence import load
from whence.io import FactError
from whence.io.changes import Position
from whence.io.updates import Schema
from whence.pipeline import spool as spools
from whence.pipeline.lines import Lines
from whence.pipeline.records import NumberedLine
from whence.pipeline.spool import EpochEnds, Spool

SCHEMA = Schema.of(load(".decl n(x: number) .input n .output n"))
COMMIT = b'{"commit": true}'


def number(value: int) -> bytes:
    return json.dumps({"op": "+", "relation": "n", "tuple": [value]}).encode()


def files(spool: Spool) -> list[list[bytes]]:
    return [path.read_bytes().split(b"\n")[1:-1] for path in sorted(spool.folder.glob("*.jsonl"))]


def fill(spool: Spool, path: Path, begin: Position = {}, size: int | None = None) -> None:  # noqa: B006 - read only
    spool.fill(Lines(path, begin), EpochEnds(SCHEMA, size), lambda: False)


def test_the_first_epoch_goes_out_at_once_and_others_gather_until_it_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "updates.jsonl"
    lines = [number(1), COMMIT, number(2), COMMIT, number(3), COMMIT]
    path.write_bytes(b"\n".join([*lines, b""]))
    spool = Spool(tmp_path / "spool")
    fill(spool, path)
    assert files(spool) == [lines[:2], lines[2:]]
    spool.taken({"000000000001.jsonl"})
    spool.taken({"000000000002.jsonl"})
    # Those before are done with; the last one tells where reading goes on.
    assert files(spool) == [lines[2:]]
    end = Spool(spool.folder).end()
    assert end == read(path, {})[1]
    assert end is not None
    assert (end["file"], end["line"], end["bytes"]) == (str(path), 6, path.stat().st_size)


def test_epochs_are_not_split_and_other_lines_end_none(tmp_path: Path) -> None:
    path = tmp_path / "updates.jsonl"
    lines = [number(1), b'{"commit": false}', b'"commit"', b"", number(2), COMMIT, number(3)]
    path.write_bytes(b"\n".join(lines))
    spool = Spool(tmp_path / "spool")
    fill(spool, path)
    assert files(spool) == [lines[:6], lines[6:]]


def test_epochs_of_a_size_count_what_can_be_applied(tmp_path: Path) -> None:
    path = tmp_path / "updates.jsonl"
    lines = [number(1), b"?", number(2), COMMIT, number(3), number(4), number(5)]
    path.write_bytes(b"\n".join(lines))
    spool = Spool(tmp_path / "spool")
    fill(spool, path, size=2)
    assert files(spool) == [lines[:3], lines[3:]]


def test_a_spool_goes_on_after_its_last_line(tmp_path: Path) -> None:
    path = tmp_path / "updates.jsonl"
    path.write_bytes(b"\n".join([number(1), COMMIT, b""]))
    fill(Spool(tmp_path / "spool"), path)
    with path.open("ab") as file:
        file.write(number(2) + b"\n")
    again = Spool(tmp_path / "spool")
    end = again.end()
    assert end is not None
    fill(again, path, end)
    assert files(again) == [[number(1), COMMIT], [number(2)]]
    header = json.loads((tmp_path / "spool/000000000002.jsonl").read_bytes().split(b"\n")[0])
    assert (header["line"], header["source"]) == (2, end)


def test_reading_waits_for_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spools, "_LARGE", 1)
    monkeypatch.setattr(spools, "_AHEAD", 3)
    path = tmp_path / "updates.jsonl"
    path.write_bytes(b"\n".join([COMMIT] * 10))
    spool = Spool(tmp_path / "spool")
    reader = Thread(target=fill, args=(spool, path))
    reader.start()
    reader.join(0.5)
    assert reader.is_alive()
    assert len(files(spool)) == 3
    for number_of_file in range(1, 11):
        written = spool.folder / f"{number_of_file:012d}.jsonl"
        wait_for(written.exists)
        spool.taken({written.name})
    reader.join(PATIENCE)
    assert not reader.is_alive()


# -- lines ------------------------------------------------------------------------------------------------------------


def read(path: Path, begin: Position) -> tuple[list[bytes | None], Position]:
    lines = Lines(path, begin)
    return list(lines), lines.place()


def test_a_file_is_read_on_and_another_from_its_beginning(tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"1\n2")
    found, place = read(path, {})
    assert found == [b"1", b"2"]
    path.write_bytes(b"1\n2\n3\n")
    assert read(path, place)[0] == [b"3"]
    other.write_bytes(b"x\n")
    assert read(other, place)[0] == [b"x"]
    path.write_bytes(b"1\n")
    with pytest.raises(FactError, match="became shorter since it was last read: 2 bytes, of which 4 were read"):
        read(path, place)


def test_a_file_that_was_rewritten_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"".join(b"%d\n" % each for each in range(5000)))
    _, place = read(path, {})
    with path.open("ab") as file:
        file.write(b"more\n")
    assert read(path, place)[0] == [b"more"]
    path.write_bytes(b"".join(b"%d\n" % each for each in range(1, 6000)))
    with pytest.raises(FactError, match="is not what was read before: its content before byte 23890 has changed"):
        read(path, place)


def test_the_files_of_a_folder_come_by_name_and_each_ends_an_epoch(tmp_path: Path) -> None:
    for name in ("b", "a", ".hidden"):
        (tmp_path / name).write_text(f"{name}1\n{name}2\n")
    found, place = read(tmp_path, {})
    assert found == [b"a1", b"a2", None, b"b1", b"b2", None]
    (tmp_path / "c").write_text("c1")
    assert read(tmp_path, place)[0] == [None, b"c1", None]


def test_numbers_of_lines_go_on_too(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1\n2\n")
    _, place = read(path, {})
    path.write_text("1\n2\n3\n")
    assert list(Lines(path, place).numbered()) == [NumberedLine(3, b"3")]
