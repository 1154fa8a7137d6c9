"""Text for people: colours on a terminal, plain text everywhere else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from whence.lang.diagnostics import Diagnostic, render
from whence.lang.source import Source

out = Console(soft_wrap=True, markup=False, emoji=False, highlight=False)
err = Console(stderr=True, soft_wrap=True, markup=False, emoji=False, highlight=False)

_STYLES = (
    (re.compile(r"^\S.*?:\d+:(?:\d+:)?", re.MULTILINE), "bold"),
    (re.compile(r"\berror(?:\[W\d+\])?:"), "bold red"),
    (re.compile(r"\bwarning(?:\[W\d+\])?:"), "bold yellow"),
    (re.compile(r"^ *\^+$", re.MULTILINE), "red"),
    (re.compile(r"^  hint:", re.MULTILINE), "bold green"),
    (re.compile(r"^ *\d+ \| ", re.MULTILINE), "dim"),
)


def show(console: Console, text: str) -> None:
    painted = Text(text)
    for pattern, style in _STYLES:
        painted.highlight_regex(pattern, style)
    console.print(painted)


def show_diagnostic(console: Console, diagnostic: Diagnostic, source: Source) -> None:
    show(console, render(diagnostic, source))


def summary_of(diagnostics: Iterable[Diagnostic]) -> str:
    """
    >>> summary_of([])
    '0 errors'
    """
    severities = Counter(each.severity for each in diagnostics)
    errors = counted(severities["error"], "error")
    return f"{errors}, {counted(severities['warning'], 'warning')}" if severities["warning"] else errors


def counted(number: int, noun: str) -> str:
    plural = "strata" if noun == "stratum" else f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
