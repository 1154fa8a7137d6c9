"""Loops that call others by address."""

import os
import subprocess
import sys
from pathlib import Path

# In a file, by which they are kept; and with a process for each test, since loops are known to all of one.
LOOPS = """
import numpy as np
from whence.backends.local.announcing import LISTENERS
from whence.backends.local.memory import KERNELS, called, compiled, kernel

announced = []
LISTENERS.append(announced.append)

@compiled
def one_more(words):
    return words[0] + 1

@kernel("words int")
def raised(words, most):
    if most < 0:
        raise ValueError("below zero")
    return min(one_more(words), most)

raised_apart = called(raised, "int")

@kernel("words ids int")
def added(words, ids, most):
    for at in range(len(ids)):
        words[0] = raised_apart(words, most) + ids[at]

added_apart = called(added, "none")

@compiled
def added_twice(words, ids, most):
    added_apart(words, ids, most)
    added_apart(words, ids, most)

@kernel("words ids int")
def doubled(words, ids, most):
    added_twice(words, ids, most)

raised_for_nothing = called(raised, "none")

@kernel("words int")
def misled(words, most):
    raised_for_nothing(words, most)

def compiled_loops():
    return [name for name in announced if name in KERNELS]
"""


def run(folder: Path, code: str) -> str:
    (folder / "loops.py").write_text(LOOPS)
    path = os.pathsep.join([str(folder), *sys.path])
    places = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": path}
    command = [sys.executable, "-c", f"from loops import *\n{code}"]
    ran = subprocess.run(command, env=places, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    return ran.stdout


def test_a_loop_calls_others_which_call_others(tmp_path: Path) -> None:
    code = """
words = np.array([1])
doubled(words, np.array([10, 20], dtype=np.int32), 1000)
print(words[0], compiled_loops())
"""
    # 1, then twice over: one more and 10 more, one more and 20 more.
    assert run(tmp_path, code) == "65 ['added', 'raised', 'doubled']\n"
    assert run(tmp_path, code) == "65 []\n", "kept on disk, and at other addresses"


def test_what_a_loop_calls_is_not_compiled_with_it(tmp_path: Path) -> None:
    code = """
print(doubled.load(), compiled_loops())
"""
    assert run(tmp_path, code) == "True ['doubled']\n"


def test_errors_of_what_a_loop_calls_are_its_own(tmp_path: Path) -> None:
    code = """
try:
    doubled(np.array([1]), np.array([10], dtype=np.int32), -1)
except ValueError as error:
    print(error)
"""
    assert run(tmp_path, code) == "below zero\n"


def test_what_a_loop_is_said_to_return_is_checked(tmp_path: Path) -> None:
    code = """
try:
    misled(np.array([1]), 5)
except AssertionError as error:
    print(error)
"""
    assert run(tmp_path, code) == "raised does not return none\n"
