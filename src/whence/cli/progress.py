"""What is going on, for work that takes longer than people like to wait in the dark."""

from __future__ import annotations

from threading import Event, Thread
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

PATIENCE = 2.0
_REFRESH = 0.2


class Progress:
    """Shows `text` on the console once two seconds have passed.

    A terminal gets a line that stays current; a log gets a line at growing intervals. A thread does it, because the
    work may be busy in one long call.
    """

    def __init__(self, console: Console, text: str, *, quiet: bool = False) -> None:
        self.text = text
        self._console = console
        self._quiet = quiet
        self._done = Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        if not self._quiet:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if not self._quiet:
            self._thread.join()

    def _watch(self) -> None:
        if self._done.wait(PATIENCE):
            return
        if self._console.is_terminal:
            self._keep_current()
        else:
            self._log()

    def _keep_current(self) -> None:
        spinner = Spinner("dots", Text(self.text))
        # Redirecting would send what is printed to the standard output to this console's stream.
        with Live(spinner, console=self._console, transient=True, redirect_stdout=False, redirect_stderr=False):
            while not self._done.wait(_REFRESH):
                spinner.update(text=Text(self.text))

    def _log(self) -> None:
        pause = PATIENCE
        self._console.print(self.text)
        while not self._done.wait(pause):
            self._console.print(self.text)
            pause *= 2
