"""The fenced blocks of a Markdown file, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"<!-- not run: .+ -->\s*\Z")


@dataclass(frozen=True)
class Block:
    """`language` is what follows the opening fence; `output` is the block of text that comes right below, if any."""

    path: Path
    line: int
    language: str
    text: str
    not_run: bool
    output: str | None = None

    @property
    def name(self) -> str:
        return f"{self.path.name}:{self.line}"


def blocks(path: Path) -> Iterator[Block]:
    """A block below the comment `<!-- not run: reason -->` is not run."""
    page = path.read_text(encoding="utf-8")
    fences = list(_FENCE.finditer(page))
    for fence, following in pairwise([*fences, None]):
        assert fence is not None
        adjoins = following is not None and not page[fence.end() : following.start()].strip()
        has_output = adjoins and following is not None and following[1].strip() == "text"
        yield Block(
            path=path,
            line=page.count("\n", 0, fence.start()) + 1,
            language=fence[1].strip(),
            text=fence[2],
            not_run=_NOT_RUN.search(page, 0, fence.start()) is not None,
            output=following[2] if has_output and following is not None else None,
        )
