"""Where the object code of loops is kept, and when it is looked for elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from whence.backends.local import object_code
from whence.backends.local.compiling import compile_all

EVALUATE = """
import sys
from whence.cli import main
sys.argv = ["whence", "eval", "--engine", "local", "-F", sys.argv[2], "-D", "-", sys.argv[1]]
try:
    main()
except SystemExit as end:
    assert not end.code
print([each for each in ("numba", "scipy") if each in sys.modules])
"""


def test_loops_that_are_kept_are_run_without_the_compiler() -> None:
    list(compile_all())
    example = Path("examples/reachability")
    command = [sys.executable, "-c", EVALUATE, str(example / "program.dl"), str(example / "facts")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    assert ran.stdout.splitlines()[-2:] == ["===============", "[]"]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    found = [tmp_path / "one", tmp_path / "other"]
    monkeypatch.setattr(object_code, "folders", lambda: iter(found))
    return found


def test_code_is_kept_in_the_first_folder_that_can_be_written(folders: list[Path]) -> None:
    folders[0].write_text("no folder")
    object_code.keep("a.o", b"code")
    assert (folders[1] / "a.o").read_bytes().endswith(b"code")
    folders[0].unlink()
    assert object_code.find("a.o") == b"code", "which others may have written, and where nothing can be written now"
    object_code.keep("a.o", b"code")
    assert [each.name for each in folders[0].iterdir()] == ["a.o"], "and nothing besides"


def test_code_that_is_not_whole_is_not_there(folders: list[Path]) -> None:
    object_code.keep("a.o", b"code")
    path = folders[0] / "a.o"
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        assert object_code.find("a.o") is None
    path.write_bytes(whole[:-1] + b"f")
    assert object_code.find("a.o") is None
    object_code.keep("a.o", b"code")
    assert object_code.find("a.o") == b"code"


def test_code_that_can_be_kept_nowhere_is_an_error(folders: list[Path]) -> None:
    for each in folders:
        each.write_text("no folder")
    with pytest.raises(OSError, match="exists"):
        object_code.keep("a.o", b"code")


def test_other_versions_and_machines_have_files_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {object_code.file_name("loop", b"a", b"b"), object_code.file_name("loop", b"ab", b"")}
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    object_code._machine.cache_clear()
    names.add(object_code.file_name("loop", b"a", b"b"))
    monkeypatch.setattr("llvmlite.__version__", "0.0")
    object_code._machine.cache_clear()
    names.add(object_code.file_name("loop", b"a", b"b"))
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_name", lambda: "another")
    object_code._machine.cache_clear()
    names.add(object_code.file_name("loop", b"a", b"b"))
    monkeypatch.undo()
    object_code._machine.cache_clear()
    assert len(names) == 5
    assert object_code.file_name("loop", b"a", b"b") in names


def test_a_folder_that_is_named_is_the_only_one_and_there_may_be_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Path(object_code.__file__).parent / "__pycache__"
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/named")
    monkeypatch.setenv("XDG_CACHE_HOME", "/home/of/caches")
    assert [*object_code.folders()] == [Path("/named/whence")]
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    assert [*object_code.folders()] == [own, Path("/home/of/caches/whence")]
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert [*object_code.folders()] == [own, Path("/home/somebody/.cache/whence")]
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert [*object_code.folders()] == [own]
