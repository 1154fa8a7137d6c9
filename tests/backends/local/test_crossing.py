"""What Python passes to loops, and has from them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest

from whence.backends.local import kernels
from whence.backends.local.table import Table

IDS, WORDS = np.zeros(4, dtype=np.int32), np.zeros(4, dtype=np.int64)
READ_ONLY = np.zeros(4, dtype=np.int32)
READ_ONLY.flags.writeable = False
UNALIGNED = np.frombuffer(bytearray(17), dtype=np.int8)[1:].view(np.int32)


def some_table() -> Table:
    table = Table(2)
    table.activate(table.add_new(np.array([[1, 2], [3, 4]]), np.zeros(2, dtype=np.int32)), 1)
    return table


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        4,
        [1, 2],
        np.int32(1),
        np.array(1, dtype=np.int32),
        np.zeros((2, 2), dtype=np.int32),
        WORDS,
        WORDS.astype(np.uint32),
        IDS.view(np.float32),
        IDS.astype(">i4"),
        IDS.astype(object),
        IDS.view("V4"),
        IDS.view("m8[s]"),
        IDS[::2],
        IDS[::-1],
        READ_ONLY,
        UNALIGNED,
        IDS.view(np.matrix),
        np.ma.zeros(4, dtype=np.int32),
    ],
    ids=repr,
)
def test_what_is_no_plain_array_of_ids_is_refused(wrong: Any) -> None:
    table = some_table()
    expected = "read_halves: ids has to be an array of int32 with 1 dimension, contiguous, aligned and writable"
    with pytest.raises(TypeError, match=expected):
        kernels.read_halves(table.address, wrong, 0, np.empty(4, dtype=np.int32))


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((4, 2), dtype=np.int64, order="F"),
        np.zeros((4, 4), dtype=np.int64)[:, :2],
        np.zeros((2, 4), dtype=np.int64).T,
        np.zeros(4, dtype=np.int64),
        np.zeros((4, 2, 1), dtype=np.int64),
        np.zeros((4, 2), dtype=np.int32),
    ],
)
def test_what_is_no_plain_array_of_lines_is_refused(wrong: Any) -> None:
    table = some_table()
    with pytest.raises(TypeError, match=r"find_rows: keys has to be an array of int64 with 2 dimensions"):
        kernels.find_rows(table.address, 0, 0, wrong, np.empty(4, dtype=np.int32))


def test_arguments_are_counted_and_words_are_words() -> None:
    table, out = some_table(), np.empty(4, dtype=np.int32)
    for arguments in ((), (table.address, IDS, 0), (table.address, IDS, 0, out, out)):
        with pytest.raises(TypeError, match="read_halves: takes 4 arguments"):
            kernels.read_halves(*arguments)
    with pytest.raises(TypeError):
        kernels.read_halves(table.address, IDS, 1.0, out)
    with pytest.raises(TypeError):
        kernels.read_halves(table.address, IDS, None, out)
    with pytest.raises(OverflowError):
        kernels.read_halves(table.address, IDS, 1 << 63, out)


def test_words_are_passed_as_they_are() -> None:
    """Those of NumPy as those of Python, and -1, which is also what tells of an error."""
    table = some_table()
    keys = np.array([[3, 4], [1, 2], [5, 6]])
    for nothing in (0, np.int64(0), np.int32(0), False):
        out = np.full(3, 9, dtype=np.int32)
        kernels.find_rows(table.by_value(), nothing, nothing, keys, out)
        assert out.tolist() == [1, 0, -1]
    with pytest.raises(TypeError, match="keys"):
        kernels.find_rows(table.address, -1, -1, None, IDS)
    assert kernels.choose_rows(table.address, -1, np.empty(4, dtype=np.int32)) == 0


def test_arrays_without_lines_and_views_that_are_contiguous_are_taken() -> None:
    table = some_table()
    kernels.read_halves(table.address, IDS[:0], 1, IDS[:0])
    kernels.find_rows(table.address, 0, 0, np.zeros((0, 2), dtype=np.int64), IDS[:0])
    keys = np.array([[9, 9], [3, 4], [1, 2]])
    out = np.full(4, 9, dtype=np.int32)
    kernels.find_rows(table.by_value(), 0, 0, keys[1:], out[1:3])
    assert out.tolist() == [9, 1, 0, 9]


LOOPS = """
import numpy as np
from whence.backends.local.memory import kernel

@kernel("ids int")
def longer(ids, more):
    if more == 0:
        return ids
    found = np.empty(len(ids) + more, dtype=np.int32)
    for at in range(len(found)):
        found[at] = ids[at % len(ids)]
    return found

@kernel("lines blocks int")
def both(lines, blocks, more):
    larger = np.zeros((2 * more, 3), dtype=np.int64)
    larger[:] = more
    return larger, lines, blocks, more

@kernel("ids int")
def last(ids, first):
    return ids[first:]

@kernel("int int")
def divided(number, by):
    return number // by

@kernel("int")
def none(number):
    if number < 0:
        raise KeyError("below", 0)

@kernel("int")
def allocated(size):
    return np.empty(size, dtype=np.int64)
"""


def run(folder: Path, code: str) -> str:
    (folder / "loops.py").write_text(LOOPS)
    path = os.pathsep.join([str(folder), *sys.path])
    places = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": path}
    command = [sys.executable, "-c", f"import sys\nfrom loops import *\n{code}"]
    ran = subprocess.run(command, env=places, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    return ran.stdout


def test_arrays_come_back_as_what_was_passed_or_in_memory_of_their_own(tmp_path: Path) -> None:
    code = """
import gc, tracemalloc
ids = np.array([1, 2, 3], dtype=np.int32)
print(longer(ids, 0) is ids, longer(ids, 2).tolist(), longer(ids, 2).dtype, longer(ids, 2).flags.writeable)
lines, blocks = np.ones((2, 2), dtype=np.int64), np.ones((2, 2, 2), dtype=np.int64)
larger, same, others, more = both(lines, blocks, 2)
print(larger.tolist(), same is lines, others is blocks, more, type(larger))
kept = longer(ids, 5)[1:]
def refused():
    try:
        longer(None, 1)
    except TypeError:
        pass
for call in (lambda: none(1), lambda: longer(ids, 0), lambda: longer(ids, 1), refused):
    call()
    arrays, nones = sys.getrefcount(ids), sys.getrefcount(None)
    for _ in range(1000):
        call()
    assert arrays == sys.getrefcount(ids)
    assert abs(nones - sys.getrefcount(None)) < 500  # some are had, or let go, by what else goes on
tracemalloc.start()
for _ in range(50):
    longer(ids, 1 << 20)
gc.collect()
held, most = tracemalloc.get_traced_memory()
print(held < 1 << 16, 1 << 22 < most < 1 << 24)
print(kept.tolist(), longer(longer(ids, 1), 1).tolist())
"""
    expected = (
        "True [1, 2, 3, 1, 2] int32 True\n"
        "[[2, 2, 2], [2, 2, 2], [2, 2, 2], [2, 2, 2]] True True 2 <class 'numpy.ndarray'>\n"
        "True True\n"
        "[2, 3, 1, 2, 3, 1, 2] [1, 2, 3, 1, 1]\n"
    )
    assert run(tmp_path, code) == expected
    assert run(tmp_path, code) == expected, "kept on disk"


def test_a_part_of_an_array_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    code = """
ids = np.array([1, 2, 3], dtype=np.int32)
print(last(ids, 0) is ids)
for first in (1, 3):
    try:
        last(ids, first)
    except AssertionError:
        print("refused")
"""
    assert run(tmp_path, code) == "True\nrefused\nrefused\n"


def test_errors_of_loops_are_raised(tmp_path: Path) -> None:
    code = """
print(divided(7, 2), divided(-7, 2), none(1))
for call in (lambda: divided(1, 0), lambda: none(-1), lambda: allocated(-1), lambda: allocated(1 << 58)):
    for _ in range(2):
        try:
            print(call())
        except Exception as error:
            print(repr(error))
print("numba" in sys.modules)
"""
    raised = (
        "ZeroDivisionError('integer division by zero')",
        "KeyError('below', 0)",
        "ValueError('negative dimensions not allowed')",
        "MemoryError('Allocation failed (probably too large).')",
    )
    expected = "3 -4 None\n" + "".join(f"{each}\n{each}\n" for each in raised)
    assert run(tmp_path, code) == f"{expected}True\n"
    assert run(tmp_path, code) == f"{expected}False\n", "kept on disk, and raised without the compiler"


def test_threads_that_call_a_loop_first_at_once_load_it_once(tmp_path: Path) -> None:
    code = """
from threading import Barrier, Thread
ids, found, begin = np.array([1, 2, 3], dtype=np.int32), [], Barrier(8)
def call():
    begin.wait()
    found.append(longer(ids, 2).tolist())
threads = [Thread(target=call) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
print(found == [[1, 2, 3, 1, 2]] * 8)
"""
    assert run(tmp_path, code) == "True\n"
    assert run(tmp_path, code) == "True\n", "kept on disk"


def test_other_threads_go_on_while_a_loop_runs() -> None:
    """Each waits for the other inside of `run`, which could not end if the first had to return before the second begins."""
    table = some_table()
    begin, address = Barrier(4), table.by_value()
    found: list[list[int]] = []

    def look_up() -> None:
        keys, out = np.tile(np.array([[3, 4], [1, 2]]), (50_000, 1)), np.empty(100_000, dtype=np.int32)
        begin.wait()
        for _ in range(5):
            kernels.find_rows(address, 0, 0, keys, out)
        found.append(out[:2].tolist())

    threads = [Thread(target=look_up) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [[1, 0]] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_calls_what_its_parent_has_loaded_and_loads_more(tmp_path: Path) -> None:
    code = """
import os
from threading import Thread
ids = np.array([1, 2, 3], dtype=np.int32)
longer(ids, 1)
beside = Thread(target=divided, args=(1, 1))  # which holds the lock while it compiles
beside.start()
child = os.fork()
if child == 0:
    os._exit(longer(ids, 1).sum() + divided(60, 2) + 1)
beside.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), divided(60, 3))
"""
    assert run(tmp_path, code) == "38 20\n"
    assert run(tmp_path, code) == "38 20\n", "kept on disk"


def test_functions_can_be_looked_into_when_all_modules_are_gone() -> None:
    """As Python's last collection of garbage does."""
    script = """
import ctypes, gc
from whence.backends.local import crossing
function, flags = crossing.callable_at("some", 8), crossing._FASTCALL
method = ctypes.c_void_p.from_address(id(function) + object.__basicsize__).value
vars(crossing).clear()
gc.collect()
assert ctypes.c_int.from_address(method + 16).value == flags
"""
    subprocess.run([sys.executable, "-c", script], env=os.environ | {"PYTHONMALLOC": "debug"}, check=True)
