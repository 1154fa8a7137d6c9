import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from whence.backends.local.compiling import compile_all
from whence.backends.local.memory import KERNELS
from whence.cli.compilation_news import CompilationNews

Whence = Callable[..., Result]


def test_all_loops_are_there_after_warming(whence: Whence) -> None:
    assert whence("warm").exit_code == 0
    again = whence("warm")
    assert again.exit_code == 0
    assert again.stdout.startswith("compiled 0 loops in ")
    assert again.stdout.endswith(f" s; {len(KERNELS)} were there\n")


def test_what_was_compiled_ahead_is_what_calls_find(tmp_path: Path) -> None:
    places = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    ahead = "from whence.backends.local.compiling import compile_all; list(compile_all(['append_rows', 'activate']))"
    subprocess.run([sys.executable, "-c", ahead], env=places, check=True)
    code = """
import numpy as np
from whence.backends.local.announcing import LISTENERS
from whence.backends.local.table import Table
told = []
LISTENERS.append(told.append)
table = Table(2)
table.activate(table.add_new(np.array([[1, 2], [3, 4]]), np.zeros(2, dtype=np.int32)), 1)
print(told)
"""
    ran = subprocess.run([sys.executable, "-c", code], env=places, capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_another_process_compiles_at_the_same_time(tmp_path: Path) -> None:
    code = """
import time
from whence.backends.local import object_code, parallel
from whence.backends.local.compiling import SOON, compile_all, compile_beside
from whence.backends.local.memory import KERNELS
parallel.CORES = 2
assert set(SOON) < set(KERNELS)
with compile_beside(["drop_flags"]):
    until = time.monotonic() + 100
    while object_code.find(KERNELS["drop_flags"].file_name) is None and time.monotonic() < until:
        time.sleep(0.1)
    print(list(compile_all(["drop_flags"]))[0][2])
"""
    places = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", code], env=places, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("False\n", "")


def test_a_first_use_begins_what_runs_beside_once() -> None:
    begun: list[int] = []
    news = CompilationNews(lambda: begun.append(1))
    news("join_rows")
    news("add_rows")
    assert begun == [1]


def test_no_garbage_is_collected_while_loops_are_compiled() -> None:
    code = """
import gc
from whence.backends.local.announcing import LISTENERS
from whence.backends.local import compiler
import numba
told = []
LISTENERS.append(lambda name: told.append((name, gc.isenabled())))
@numba.njit
def inner(x): return x + 1
@numba.njit
def outer(x): return inner(x)
outer(1)
print(told, gc.isenabled())
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[('outer', True), ('inner', False)] True\n"


def test_warming_knows_of_every_loop() -> None:
    code = """
from whence.backends.local import compiling
from whence.backends.local.memory import KERNELS
known = set(KERNELS)
import whence.annotated, whence.node, whence.parts.member, whence.session
print(sorted(set(KERNELS) - known))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_compiling_is_announced_with_what_is_compiled() -> None:
    code = """
from whence.backends.local.announcing import LISTENERS
from whence.backends.local import compiler
told = []
LISTENERS.append(told.append)
import numba
def one(x): return x + 1
def two(x): return x + 2
numba.njit(one)(1)
numba.njit(two)(1)
print(told)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "['one', 'two']\n"


def test_a_first_use_says_that_it_compiles_and_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    news = CompilationNews()
    news("join_rows")
    news("add_rows")
    news.told -= 3
    news("find_rows")
    assert capsys.readouterr().err == (
        "compiling the engine's loops; this happens once (whence warm does it ahead)\n"
        "compiling find_rows: 2 done after 0 s\n"
    )


def test_little_work_is_done_without_compiled_loops(tmp_path: Path) -> None:
    """They would take longer to load than it takes to do the work."""
    program = tmp_path / "p.dl"
    program.write_text("p(1). q(x + 1) :- p(x). .output q")
    code = f"""
import sys
from whence.cli import main
sys.argv = ["whence", "eval", {str(program)!r}, "-D", "-"]
try:
    main()
except SystemExit as end:
    assert not end.code
print([name for name in ("numba", "numpy", "whence.engine") if name in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout.splitlines()[-1], ran.stderr) == ("[]", "")


def test_warming_says_what_each_loop_took() -> None:
    done = list(compile_all())
    assert [name for name, _, _ in done] == list(KERNELS)
    assert not any(was_compiled for _, _, was_compiled in done)
