"""`whence shell`: a prompt to ask at."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import typer

from whence.cli.programs import ConfinedOption, FunctionsOption
from whence.cli.questions import FactsOption, SubjectArgument, answering, open_session
from whence.cli.shell_lines import Mistake, Shell
from whence.cli.terminal import err, out, show
from whence.lang.bags import named_relations

_QUIT = (".quit", ".exit", "quit", "exit")


def shell(
    program: SubjectArgument,
    *,
    facts: FactsOption = Path(),
    functions: FunctionsOption = None,
    confined: ConfinedOption = False,
) -> None:
    """Ask questions, try updates and rules out, at a prompt.

    A line is a query (reach(x, "b"), or SELECT …), a question (why, how, whynot, whatif), an update (+ or - and a fact), or a
    rule. What changes here changes nothing on disk. Lines of a pipe or a file are taken like lines that are typed; the exit code
    is 1 if one of them is wrong.
    """
    with answering():
        asked = Shell(open_session(program, functions, facts, confined=confined))
        wrong = False
        lines = _typed(asked) if sys.stdin.isatty() else (line.rstrip("\n") for line in sys.stdin)
        for line in lines:
            if line.strip() in _QUIT:
                break
            try:
                for each in asked.execute(line):
                    show(out, each)
            except Mistake as mistake:
                wrong = True
                show(err, str(mistake))
            except KeyboardInterrupt:
                show(err, "stopped")
        if wrong and not sys.stdin.isatty():
            raise typer.Exit(1)


def _typed(asked: Shell) -> Iterator[str]:
    # A prompt is only for who types.
    from prompt_toolkit import PromptSession  # noqa: PLC0415
    from prompt_toolkit.auto_suggest import AutoSuggestFromHistory  # noqa: PLC0415
    from prompt_toolkit.history import FileHistory  # noqa: PLC0415

    from whence.cli.shell_words import Colours, Words  # noqa: PLC0415

    prompt: PromptSession[str] = PromptSession(
        history=FileHistory(str(_history())),
        completer=Words(asked),
        lexer=Colours(),
        auto_suggest=AutoSuggestFromHistory(),
        complete_while_typing=False,
    )
    relations = len(named_relations(asked.session.program))
    show(out, f"{relations} relations; .help shows what can be asked, Tab completes")
    while True:
        try:
            yield prompt.prompt("whence> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _history() -> Path:
    """Where earlier lines are kept, for this user alone."""
    base = os.environ.get("XDG_STATE_HOME")
    folder = (Path(base) if base else Path.home() / ".local" / "state") / "whence"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "shell_history"
    path.touch(mode=0o600)
    return path
