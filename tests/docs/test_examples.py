"""What the pages say is what a reader gets: every block is run and its output compared, character by character.

A `datalog` or `sql` block is saved as program.dl or program.sql and given to `whence eval -D -`, or to `whence check` if
the text below begins with a diagnostic; without text below it has to load. A `console` block is typed into a shell
beside the examples, a `python` block into Python.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.blocks import Block, blocks
from typer.testing import CliRunner

from whence.cli import app
from whence.lang import diagnostics, load_file
from whence.lang.signatures import SIGNATURES

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAGES = [ROOT / "README.md", EXAMPLES / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [block for page in PAGES for block in blocks(page) if not block.not_run]
PROGRAMS = {"datalog": "program.dl", "sql": "program.sql"}
CHECKED = re.compile(r"program\.(?:dl|sql):\d+:\d+: (?:error|warning)\[|ok: ")
PROGRESS = re.compile(
    r"(?:^|(?<=\x1e))(?:compiling|reading|evaluating|writing|trying|working out shares|verifying|compacting)\b.*\n",
    re.MULTILINE,
)
COMMAND = re.compile(r"^\$ (.*)\n", re.MULTILINE)


def _of(*languages: str) -> list[Block]:
    return [block for block in BLOCKS if block.language in languages]


def _name(block: Block) -> str:
    return block.name


@pytest.mark.parametrize("block", _of(*PROGRAMS), ids=_name)
def test_program_prints_what_the_page_shows(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = Path(PROGRAMS[block.language])
    program.write_text(block.text, encoding="utf-8")
    if block.output is None:
        load_file(program)
        return
    only_checked = CHECKED.match(block.output) and "-" * 15 not in block.output
    command = ["check"] if only_checked else ["eval", "-D", "-"]
    result = CliRunner().invoke(app, [*command, str(program)])
    assert result.output == block.output


@pytest.mark.parametrize("block", _of("console"), ids=_name)
def test_command_prints_what_the_page_shows(block: Block, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    _, *parts = COMMAND.split(block.text)
    commands = parts[::2]
    # A record separator ends the output of each command; the exit code survives for a following echo $?.
    script = "".join(f"{command}\n{{ s=$?; printf '\\036'; (exit $s); }}\n" for command in commands)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    # What is going on is said after two seconds, which a busy machine may need.
    printed = PROGRESS.sub("", done.stdout).split("\036")
    shown = "".join(f"$ {each}\n{text}" for each, text in zip(commands, printed, strict=False))
    assert shown == block.text


@pytest.mark.parametrize("block", _of("python"), ids=_name)
def test_python_prints_what_the_page_shows(block: Block, request: pytest.FixtureRequest) -> None:
    if "SparkSession" in block.text:
        request.getfixturevalue("spark")  # the page finds it there
    test = doctest.DocTestParser().get_doctest(block.text, {}, block.name, str(block.path), block.line)
    assert test.examples, "write it as it looks at the prompt: >>> …"
    failures: list[str] = []
    doctest.DocTestRunner().run(test, out=failures.append)
    assert not failures, "".join(failures)


# A folder with a script of its own is run by a test of its own.
@pytest.mark.parametrize(
    "folder",
    sorted(path.parent for path in EXAMPLES.glob("*/program.*") if not (path.parent / "main.py").exists()),
    ids=lambda path: path.name,
)
def test_example_gives_its_expected_views(folder: Path, tmp_path: Path) -> None:
    (program,) = (path for path in folder.glob("program.*") if path.suffix in (".dl", ".sql"))
    assert program.read_text(encoding="utf-8").startswith(("// ", "-- ")), "the first line says what the example shows"
    assert f"[{folder.name}]({folder.name}/)" in (EXAMPLES / "README.md").read_text(encoding="utf-8")
    command = ["eval", str(program), "-F", str(folder / "facts"), "-D", str(tmp_path)]
    if (folder / "updates.jsonl").exists():
        changes = tmp_path / "changes.jsonl"
        command = [
            "run",
            str(program),
            "--updates",
            str(folder / "updates.jsonl"),
            "--changes",
            str(changes),
            "--quiet",
            "--no-spark",
        ]
    if (folder / "functions.py").exists():
        command += ["--functions", str(folder / "functions.py")]
    result = CliRunner().invoke(app, command)
    assert (result.exit_code, result.output) == (0, "")
    written = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_text(encoding="utf-8") for path in (folder / "expected").iterdir()}


def test_every_diagnostic_is_in_the_table() -> None:
    page = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    codes = {each.code for each in vars(diagnostics).values() if isinstance(each, type) and hasattr(each, "code")}
    assert set(re.findall(r"^\| (W\d{4}) \|", page, re.MULTILINE)) == codes


def test_every_functor_is_in_the_tables() -> None:
    page = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    described = {
        word for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for word in re.findall(r"[^`\s(]+", row)
    }
    assert set(SIGNATURES) - described == set()


@pytest.mark.parametrize(
    "page", [*PAGES, *ROOT.glob("*.md"), ROOT / "src/whence/README.md"], ids=lambda page: page.name
)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        linked = (page.parent / file).resolve() if file else page
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {_anchor(heading) for heading in headings}, target


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
