"""JSON of any depth: Python's own reader and writer, and where these recurse too deeply, others that do not recurse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_DECODER = json.JSONDecoder()
_READABLE = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_ASCII = json.JSONEncoder(allow_nan=False)
_ANYTHING = json.JSONEncoder(ensure_ascii=False)  # nan too
_SPACE = re.compile(r"[ \t\n\r]*")


def read_json(text: str) -> Json:
    """Raises JSONDecodeError, and ValueError for a number with more digits than Python converts.

    >>> read_json('{"a": [1, null]}')
    {'a': [1, None]}
    """
    try:
        value: Json = _DECODER.decode(text)
    except RecursionError:
        return _Reader(text).read()
    return value


def write_json(value: Json, *, ascii_only: bool = False) -> str:
    encoder = _ASCII if ascii_only else _READABLE
    try:
        return encoder.encode(value)
    except RecursionError:
        return "".join(_pieces(value, encoder))


def show_json(value: Json, most: int) -> str:
    """Its text if that has no more characters than `most`, or a little more than that many of its characters."""
    shown: list[str] = []
    size = 0
    for piece in _pieces(value, _ANYTHING):
        shown.append(piece)
        size += len(piece)
        if size > most:
            break
    return "".join(shown)


# A container under way, with the key whose value comes next if it is an object.
_Open = list[Json] | tuple[dict[str, Json], str]


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def read(self) -> Json:
        open_containers: list[_Open] = []
        while True:
            value, is_whole = self._begin()
            if not is_whole:
                open_containers.append(self._entered(value))
                continue
            # What a value completes may complete what it stands in.
            while open_containers:
                inner = open_containers[-1]
                if isinstance(inner, list):
                    inner.append(value)
                else:
                    inner[0][inner[1]] = value
                found = self._next()
                if found == ",":
                    if isinstance(inner, tuple):
                        open_containers[-1] = (inner[0], self._key())
                    break
                if found != ("]" if isinstance(inner, list) else "}"):
                    self._fail("Expecting ',' delimiter", self.at - 1)
                open_containers.pop()
                value = inner if isinstance(inner, list) else inner[0]
            else:
                self._skip_space()
                if self.at < len(self.text):
                    self._fail("Extra data", self.at)
                return value

    def _begin(self) -> tuple[Json, bool]:
        """The value that begins here, and whether it ends here too: not so a list or object that is not empty."""
        self._skip_space()
        if self.text.startswith(("[", "{"), self.at):
            opener = self._next()
            self._skip_space()
            if self.text.startswith("]" if opener == "[" else "}", self.at):
                self.at += 1
                return ([] if opener == "[" else {}), True
            return ([] if opener == "[" else {}), False
        value, self.at = _DECODER.raw_decode(self.text, self.at)
        return value, True

    def _entered(self, container: Json) -> _Open:
        if isinstance(container, dict):
            return container, self._key()
        assert isinstance(container, list)
        return container

    def _key(self) -> str:
        self._skip_space()
        if not self.text.startswith('"', self.at):
            self._fail("Expecting property name enclosed in double quotes", self.at)
        key, self.at = _DECODER.raw_decode(self.text, self.at)
        if self._next() != ":":
            self._fail("Expecting ':' delimiter", self.at - 1)
        return str(key)

    def _next(self) -> str:
        self._skip_space()
        self.at += 1
        return self.text[self.at - 1 : self.at]

    def _skip_space(self) -> None:
        found = _SPACE.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def _fail(self, problem: str, at: int) -> None:
        raise json.JSONDecodeError(problem, self.text, at)


def _pieces(value: Json, encoder: json.JSONEncoder) -> Iterator[str]:
    # Text to write as it is, or a value.
    pending: list[tuple[str] | Json] = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, tuple):
            yield each[0]
        elif isinstance(each, list):
            pending.append(("]",))
            for at in range(len(each) - 1, -1, -1):
                pending += (each[at], (", " if at else "",))
            yield "["
        elif isinstance(each, dict):
            pending.append(("}",))
            for at, (key, inner) in reversed(list(enumerate(each.items()))):
                pending += (inner, (f"{', ' if at else ''}{encoder.encode(key)}: ",))
            yield "{"
        else:
            yield encoder.encode(each)
