import io
from collections.abc import Callable

import pytest
from rich.console import Console
from tests.waiting import wait_for

from whence.cli import progress
from whence.cli.progress import Progress


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.02)
    monkeypatch.setattr(progress, "_REFRESH", 0.01)


def shown(*, terminal: bool, work: Callable[[Progress, io.StringIO], None], quiet: bool = False) -> str:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=80, markup=False)
    with Progress(console, "reading [edge]", quiet=quiet) as current:
        work(current, stream)
    return stream.getvalue()


def long_work(current: Progress, stream: io.StringIO) -> None:
    """It takes until each text has been shown."""
    wait_for(lambda: "reading [edge]" in stream.getvalue())
    current.text = "evaluating path: round 7"
    wait_for(lambda: "evaluating path: round 7" in stream.getvalue())


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 60.0)
    assert shown(terminal=False, work=lambda *_: None) == ""
    assert shown(terminal=True, work=lambda *_: None) == ""


def test_a_log_gets_lines_ever_more_rarely() -> None:
    lines = shown(terminal=False, work=long_work).splitlines()
    assert lines[0] == "reading [edge]"
    assert lines[-1] == "evaluating path: round 7"
    assert len(lines) <= 6


def test_a_terminal_gets_a_line_that_stays_current_and_goes_away() -> None:
    text = shown(terminal=True, work=long_work)
    assert "reading [edge]" in text
    assert "evaluating path: round 7" in text
    assert text.endswith("\x1b[2K")


def test_quiet_shows_nothing() -> None:
    assert shown(terminal=False, work=lambda *_: None, quiet=True) == ""
