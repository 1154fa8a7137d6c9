"""The text that the parser reads: included files spliced in, macros replaced, conditional parts left out.

Text without directives passes unchanged after one scan. A directive leaves empty lines, which stand for it in the
segments, so that a problem with a directive points at it although its text is gone.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePath

from whence.lang.conditions import Conditions, condition_holds
from whence.lang.diagnostics import BadPreprocessorLine, Diagnostic, MissingInclude
from whence.lang.macros import COMMENT, LEXEMES, NAME, PREDEFINED, STRING, Macros, Refused, refuse_unterminated
from whence.lang.source import File, Segment, Source
from whence.lang.tree import Span

_PLAIN = re.compile(rf'(?:[^"/]++|{STRING}|{COMMENT}|/(?!\*))*+')
# Inside of a comment or a string it means nothing, which is for the reader to find out.
_MARK = re.compile(r"^[ \t]*(?:\#|\.include|\.once)", re.MULTILINE)
_LEXEME = re.compile(LEXEMES, re.MULTILINE)
_SPLICE = r"\\[ \t\r]*+\n"
_LINE = re.compile(
    rf'(?:{_SPLICE}|"(?:{_SPLICE}|\\.|[^"\\\n])*+"?|//(?:{_SPLICE}|[^\n])*+|/\*(?s:.*?)(?:\*/|\Z)|[^\n])*+\n?'
)
_DIRECTIVE = re.compile(r"\s*(#|\.)\s*([A-Za-z_]*)\s*(.*)", re.DOTALL)
_GUARD = re.compile(rf"(?:\s|{COMMENT})*+\#[ \t]*ifndef[ \t]+({NAME})")
_CONDITIONALS = ("if", "ifdef", "ifndef", "elif", "else", "endif")
_DEEPEST = 64
# Files that include others twice each can ask for more text than there is memory: all includes of a program are counted.
_MOST_INCLUDES = 10_000
_LARGEST = 64_000_000
_RELATIVE = "the path is taken relative to the including file"

# Files that come with Whence: `.include "whence/paths.dl"` means the one here, whatever lies beside the program.
LIBRARY = Path(__file__).parents[1] / "library"
_LIBRARY_PREFIX = "whence/"


def preprocess(text: str, name: str, folder: Path | None, *, confined: bool = False) -> tuple[Source, list[Diagnostic]]:
    """`folder` is where `text` was read from; without one, nothing can be included, and if confined only what is below it."""
    if _MARK.search(text) is None and _PLAIN.fullmatch(text) and not any(name in text for name in PREDEFINED):
        return Source.of(text, name), []
    run = _Run(folder.resolve() if folder is not None and confined else None)
    path = None if folder is None else folder / PurePath(name).name
    _Reader(File(name, text), path, run, parents=()).read()
    return Source("".join(run.parts), tuple(run.segments)), run.found


class _Run:
    """What all files of one program share: the output so far and what has been defined.

    Only files below `bounds` are included, if there are any.
    """

    def __init__(self, bounds: Path | None) -> None:
        self.bounds = bounds
        self.parts: list[str] = []
        self.length = 0
        self.segments: list[Segment] = []
        self.macros = Macros()
        self.once: set[str] = set()
        self.found: list[Diagnostic] = []
        self.includes = self.included = 0
        self.is_full = False

    def copy(self, file: File, start: int, end: int) -> Span:
        last = self.segments[-1] if self.segments else None
        in_step = (
            last is not None
            and last.file is file
            and last.length is None
            and last.origin + self.length - last.start == start
        )
        if end > start and not in_step:
            self.segments.append(Segment(self.length, file, start))
        return self._add(file.text[start:end])

    def replace(self, file: File, start: int, end: int, text: str) -> Span:
        if text:
            self.segments.append(Segment(self.length, file, start, end - start))
        return self._add(text)

    def count_include(self, name: str, characters: int) -> None:
        self.includes += 1
        self.included += characters
        if self.includes <= _MOST_INCLUDES and self.included <= _LARGEST:
            return
        self.is_full = True
        counted = (
            f"{_MOST_INCLUDES:,} times" if self.includes > _MOST_INCLUDES else f"more than {_LARGEST:,} characters"
        )
        problem = f"the program has included {counted} already"
        raise Refused(MissingInclude, name=name, problem=problem, advice=_RELATIVE)

    def _add(self, text: str) -> Span:
        start = self.length
        self.parts.append(text)
        self.length += len(text)
        return Span(start, self.length)


class _Reader:
    """One file being read; `parents` are the files whose includes led to it."""

    def __init__(self, file: File, path: Path | None, run: _Run, *, parents: tuple[_Reader, ...]) -> None:
        self.file = file
        self.path = path
        self.identity = None if path is None else os.path.realpath(path)
        self.run = run
        self.chain = (*parents, self)
        self.conditions = Conditions()

    def read(self) -> None:
        at = 0
        while at < len(self.file.text):
            at = self._copy(at) if self.conditions.live else self._skip(at)
            if at < len(self.file.text):
                at = self._directive(at)
        self.run.found += self.conditions.unclosed()

    def _copy(self, at: int) -> int:
        """Passes text on, with macros replaced, up to the next directive."""
        text = self.file.text
        start = at
        while found := _LEXEME.search(text, at):
            at = found.end()
            if found.lastgroup == "directive":
                self.run.copy(self.file, start, found.start())
                return found.start()
            if found.lastgroup == "name" and found[0] in self.run.macros.defined:
                self.run.copy(self.file, start, found.start())
                start = at = self._replace(found.start())
            elif found.lastgroup == "open":
                self.run.copy(self.file, start, found.start())
                span = self.run.copy(self.file, found.start(), at)
                self.run.found.append(refuse_unterminated(found[0]).at(span))
                start = at
        self.run.copy(self.file, start, len(text))
        return len(text)

    def _replace(self, at: int) -> int:
        expansion, end, refused = self.run.macros.replace(self.file.text, at)
        if refused is not None:
            self.run.found.append(refused.at(self.run.copy(self.file, at, end)))
        elif expansion == self.file.text[at:end]:
            self.run.copy(self.file, at, end)
        else:
            self.run.replace(self.file, at, end, expansion)
        return end

    def _skip(self, at: int) -> int:
        """Leaves text out, up to the next directive outside a comment."""
        start, text = at, self.file.text
        while found := _LEXEME.search(text, at):
            at = found.end()
            if found.lastgroup == "directive":
                self.run.replace(self.file, start, found.start(), "\n" * text.count("\n", start, found.start()))
                return found.start()
            if found.lastgroup == "open" and found[0].startswith("/*"):
                span = self.run.replace(self.file, found.start(), found.end(), "\n")
                self.run.found.append(refuse_unterminated(found[0]).at(span))
        return len(text)

    def _directive(self, start: int) -> int:
        line = _LINE.match(self.file.text, start)
        assert line is not None
        shown = start + len(line[0].rstrip())
        span = self.run.replace(self.file, start, shown, "\n" * max(1, line[0].count("\n")))
        text, unterminated = _without_comments(line[0])
        if unterminated and self.conditions.live:
            self.run.found.append(refuse_unterminated(unterminated).at(span))
        try:
            self._obey(text, span)
        except Refused as refused:
            self.run.found.append(refused.at(span))
        return line.end()

    def _obey(self, line: str, span: Span) -> None:
        directive = _DIRECTIVE.match(line)
        assert directive is not None
        mark, keyword, rest = directive[1], directive[2], directive[3].rstrip()
        if mark == "#" and keyword in _CONDITIONALS:
            self._branch(keyword, rest, span)
        elif not self.conditions.live or keyword == "line" or (not keyword and rest[:1].isdigit()):
            return
        elif keyword == "include":
            self._include(f"{mark}include", rest)
        elif mark == ".":
            _expect_nothing(".once", rest)
            if self.identity is not None:
                self.run.once.add(self.identity)
        elif keyword == "define":
            self.run.macros.define(rest)
        elif keyword == "undef":
            self.run.macros.defined.pop(_one_name("undef", rest), None)
        else:
            raise Refused(
                BadPreprocessorLine,
                problem=f"#{keyword} is not a directive" if keyword else "# begins no directive",
                advice="a comment begins with //; directives are #define, #undef, #include, #if, #ifdef, #ifndef, "
                "#elif, #else and #endif",
            )

    def _branch(self, keyword: str, rest: str, span: Span) -> None:
        conditions, macros = self.conditions, self.run.macros
        if keyword == "endif":
            conditions.end()
        elif keyword in ("elif", "else"):
            conditions.next_branch(keyword)
        else:
            conditions.begin(keyword, span)
        if keyword in ("endif", "else"):
            _expect_nothing(f"#{keyword}", rest)
        if keyword == "endif" or not conditions.undecided:
            return
        if keyword in ("ifdef", "ifndef"):
            conditions.decide((_one_name(keyword, rest) in macros.defined) == (keyword == "ifdef"))
        else:
            conditions.decide(keyword == "else" or condition_holds(rest, macros))

    def _include(self, directive: str, rest: str) -> None:
        if not re.fullmatch(r'"[^"]+"', rest):
            raise Refused(
                BadPreprocessorLine,
                problem=f"{directive} needs the name of one file in double quotes",
                advice=f'write {directive} "file.dl"',
            )
        name = rest[1:-1]
        if self.run.is_full:  # said once
            return
        if name.startswith(_LIBRARY_PREFIX):
            path = _find_in_library(name)
            file = File(name, _read(name, path), of_library=True)
        elif self.path is None:
            problem = "the program was not read from a file"
            raise Refused(MissingInclude, name=name, problem=problem, advice=_RELATIVE)
        else:
            path = self.path.parent / name
            if self.run.bounds is not None and not path.resolve().is_relative_to(self.run.bounds):
                problem, advice = (
                    "it is not below the program's folder",
                    "leave out --confined if you trust the program",
                )
                raise Refused(MissingInclude, name=name, problem=problem, advice=advice)
            file = File(str(PurePath(self.file.name).parent / name), _read(name, path), self.file.of_library)
        reader = _Reader(file, path, self.run, parents=self.chain)
        if reader.identity in self.run.once:
            return
        self._refuse_cycle(name, reader)
        self.run.count_include(name, len(file.text))
        reader.read()
        # The file may end in the middle of a line, even in a // comment.
        self.run.replace(file, len(file.text), len(file.text), "\n")

    def _refuse_cycle(self, name: str, reader: _Reader) -> None:
        guard = _GUARD.match(reader.file.text)
        if guard is not None and guard[1] in self.run.macros.defined and len(self.chain) < _DEEPEST:
            return
        for at, parent in enumerate(self.chain):
            if parent.identity == reader.identity:
                cycle = " -> ".join(each.file.name for each in reader.chain[at:])
                problem = f"files include each other: {cycle}"
                raise Refused(MissingInclude, name=name, problem=problem, advice=_RELATIVE)
        if len(self.chain) >= _DEEPEST:
            problem = f"includes are nested more than {_DEEPEST} deep"
            raise Refused(MissingInclude, name=name, problem=problem, advice=_RELATIVE)


def _find_in_library(name: str) -> Path:
    held = {f"{_LIBRARY_PREFIX}{path.name}": path for path in sorted(LIBRARY.glob("*.dl"))}
    if name not in held:
        problem, advice = "the library has no such file", f"it has {', '.join(held)}"
        raise Refused(MissingInclude, name=name, problem=problem, advice=advice)
    return held[name]


def _read(name: str, path: Path) -> str:
    try:
        if path.is_file():
            return path.read_text(encoding="utf-8")
        problem = "there is no such file"
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text"
    except OSError as error:
        problem = error.strerror or str(error)
    raise Refused(MissingInclude, name=name, problem=problem, advice=_RELATIVE)


def _without_comments(line: str) -> tuple[str, str]:
    """A directive on one line, up to the string or comment that it does not close, and that."""
    kept: list[str] = []
    spliced = re.sub(_SPLICE, "", line)
    at = 0
    for found in _LEXEME.finditer(spliced):
        if found.lastgroup == "open":
            return "".join((*kept, spliced[at : found.start()])), found[0]
        if found.lastgroup == "comment":
            kept += (spliced[at : found.start()], " ")
            at = found.end()
    return "".join((*kept, spliced[at:])), ""


def _expect_nothing(directive: str, rest: str) -> None:
    if rest:
        raise Refused(
            BadPreprocessorLine, problem=f"unexpected text after {directive}", advice="put it on a line of its own"
        )


def _one_name(keyword: str, rest: str) -> str:
    if not re.fullmatch(NAME, rest):
        raise Refused(BadPreprocessorLine, problem=f"#{keyword} needs one name", advice=f"write #{keyword} NAME")
    return rest
