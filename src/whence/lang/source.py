"""Program text and where each part of it came from.

The parser sees one string: the main file with macros expanded and included files spliced in. A `Source` keeps, for every
stretch of that string, the file and offset it was taken from, so that errors point at what the user wrote.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

from whence.lang.tree import Span


@dataclass(frozen=True)
class File:
    """One file as read; `name` is what errors call it. Files of the library come with Whence."""

    name: str
    text: str
    of_library: bool = False

    @cached_property
    def line_starts(self) -> list[int]:
        return [0, *(at + 1 for at, char in enumerate(self.text) if char == "\n")]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        return self.text.split("\n")[number - 1].rstrip("\r")


@dataclass(frozen=True, slots=True)
class Segment:
    """The preprocessed text from `start` on came from `file` at `origin`.

    A copied segment runs in step with its file; an expanded one (a macro's replacement) stands as a whole for the
    `length` characters of the macro's use.
    """

    start: int
    file: File
    origin: int
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of one file's line: what an error underlines."""

    file: File
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Source:
    text: str
    segments: tuple[Segment, ...] = field(repr=False)

    @classmethod
    def of(cls, text: str, name: str = "<program>") -> Source:
        """Text that needs no preprocessing."""
        return cls(text, (Segment(0, File(name, text), 0),))

    @cached_property
    def _starts(self) -> list[int]:
        return [segment.start for segment in self.segments]

    def _origin(self, offset: int, *, at_end: bool) -> tuple[File, int]:
        segment = self.segments[max(0, bisect_right(self._starts, offset) - 1)]
        if segment.length is not None:
            return segment.file, segment.origin + (segment.length if at_end else 0)
        return segment.file, segment.origin + offset - segment.start

    def place(self, span: Span) -> Place:
        file, start = self._origin(span.start, at_end=False)
        end_file, end = self._origin(max(span.end - 1, span.start), at_end=True)
        segment = self.segments[max(0, bisect_right(self._starts, max(span.end - 1, span.start)) - 1)]
        if segment.length is None:
            end += 1
        if end_file is not file or end <= start:
            end = start + 1
        line, column = file.position(min(start, len(file.text)))
        end_line, end_column = file.position(min(end, len(file.text)))
        return Place(file, line, column, end_line, end_column)
