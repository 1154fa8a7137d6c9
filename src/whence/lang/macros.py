"""Macros: what `#define` means and how a use is replaced.

Replacement works on tokens, each carrying the macros it came out of: a macro is never replaced inside its own
expansion, and a function-like macro named at the end of an expansion takes its arguments from the text that follows
(Prosser's algorithm, which the C standard paraphrases). In a body, `#x` is the text of an argument as a string, and `##` joins
what stands on its two sides, arguments as they were written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from whence.lang.diagnostics import BadPreprocessorLine, Diagnostic, TooDeep, Unsupported, UnterminatedText
from whence.lang.tree import Span

NAME = r"[A-Za-z_?][A-Za-z0-9_?]*+"
COMMENT = r"//[^\n]*+|/\*(?s:.*?)\*/"
STRING = r'"(?:[^"\\\n]|\\.)*+"'
# What replacement must tell apart. `open` is a string or comment that never ends; digits keep the x of 0x10 from being
# taken for a name.
LEXEMES = (
    r"(?P<directive>^[ \t]*+(?:\#|\.(?:include|once)(?![A-Za-z0-9_?(])))"
    rf'|{STRING}|(?P<comment>{COMMENT})|(?P<open>"[^\n]*+|/\*(?s:.*+))|(?P<name>{NAME})|[0-9][A-Za-z0-9_?]*+'
)
_TOKEN = re.compile(rf"{LEXEMES}|\n|[^\S\n]++|.", re.MULTILINE)
_OPENING = re.compile(rf"(?:\s|{COMMENT})*+\(")
_DEFINITION = re.compile(rf"({NAME})(?:\(([^)]*)\))?(.*)", re.DOTALL)

_LARGEST = 4_000_000  # characters that all expansions may have together: a few nested macros can ask for terabytes
_DEEPEST = 64
_NOT_HIDDEN: frozenset[str] = frozenset()


class Refused(Exception):
    """A directive or a macro use that cannot be carried out; what to report, once it is known where."""

    def __init__(self, kind: type[Diagnostic], **values: str) -> None:
        super().__init__(kind, values)
        self.kind = kind
        self.values = values

    def at(self, span: Span) -> Diagnostic:
        return self.kind(span, related=(), **self.values)


def refuse_unterminated(text: str) -> Refused:
    if text.startswith('"'):
        return Refused(UnterminatedText, what="string", closer='"')
    return Refused(UnterminatedText, what="comment", closer="*/")


@dataclass(frozen=True, slots=True)
class Macro:
    """`params` is None for a macro used without parentheses."""

    params: tuple[str, ...] | None
    body: tuple[str, ...]


# Souffle's: numbers have 64 bits.
PREDEFINED = {"RAM_DOMAIN_SIZE": Macro(None, ("64",))}


class _Token(NamedTuple):
    text: str
    hidden: frozenset[str]


class _Rest:
    """The text after a macro's use, from which a call's arguments are taken."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at

    def open_call(self) -> bool:
        opening = _OPENING.match(self.text, self.at)
        if opening:
            self.at = opening.end()
        return opening is not None

    def take(self, macro: str) -> _Token:
        found = _TOKEN.match(self.text, self.at)
        if found is None:
            raise Refused(UnterminatedText, what=f"call of the macro {macro}", closer=")")
        if found["directive"] is not None:
            raise Refused(
                BadPreprocessorLine,
                problem=f"the arguments of the macro {macro} run into a directive",
                advice="close the call with ) before this line",
            )
        self.at = found.end()
        if found["open"] is not None:
            raise refuse_unterminated(found[0])
        # A comment that ends at its line's end would swallow what the macro's body puts after the argument.
        return _Token(found[0] if found["comment"] is None else " ", _NOT_HIDDEN)


class Macros:
    """The macros defined so far."""

    def __init__(self) -> None:
        self.defined: dict[str, Macro] = dict(PREDEFINED)
        self._left = _LARGEST

    def define(self, line: str) -> None:
        """Takes what follows `#define`, without comments and on one line."""
        found = _DEFINITION.match(line)
        if found is None:
            raise Refused(BadPreprocessorLine, problem="#define needs a name", advice="write #define NAME text")
        name, listed, body = found.groups()
        params = None if listed is None else _params(name, listed)
        macro = Macro(params, _body(body.strip(), params))
        if self.defined.get(name, macro) != macro:
            raise Refused(
                BadPreprocessorLine,
                problem=f"{name} is already defined differently",
                advice=f"write #undef {name} first",
            )
        self.defined[name] = macro

    def replace(self, text: str, at: int) -> tuple[str, int, Refused | None]:
        """What the macro use at an offset stands for, where the use ends, and why it could not be replaced, if so."""
        name = _TOKEN.match(text, at)
        assert name is not None
        rest = _Rest(text, name.end())
        try:
            expansion = self._expand([_Token(name[0], _NOT_HIDDEN)], rest, 0)
        except Refused as refused:
            return text[at : rest.at], rest.at, refused
        return _text(expansion), rest.at, None

    def replace_all(self, text: str) -> str:
        tokens = [_Token(found[0], _NOT_HIDDEN) for found in _TOKEN.finditer(text)]
        return _text(self._expand(tokens[::-1], _Rest("", 0), 0))

    def _expand(self, pending: list[_Token], rest: _Rest, depth: int) -> list[_Token]:
        """Replaces until nothing is pending; `pending` is last token first."""
        if depth > _DEEPEST:
            raise Refused(TooDeep)
        done = []
        while pending:
            token = pending.pop()
            name = token.text
            macro = self.defined.get(name)
            if macro is None or name in token.hidden:
                done.append(token)
            elif macro.params is None:
                hidden = token.hidden | {name}
                self._push(pending, [_Token(part.text, hidden) for part in _filled(macro.body, {}, {})])
            elif _call_follows(pending, rest):
                args, closing = _arguments(name, pending, rest)
                given = _bind(name, macro, args)
                expanded = {
                    param: self._expand(arg[::-1], _Rest("", 0), depth + 1)
                    for param, arg in given.items()
                    if param in macro.body
                }
                hidden = (token.hidden & closing.hidden) | {name}
                self._refuse_too_much(_length(macro.body, given, expanded))
                body = _filled(macro.body, given, expanded)
                self._push(pending, [_Token(part.text, part.hidden | hidden) for part in body])
            else:
                done.append(token)
        return done

    def _push(self, pending: list[_Token], tokens: list[_Token]) -> None:
        length = sum(len(token.text) for token in tokens)
        self._refuse_too_much(length)
        self._left -= length
        pending.extend(reversed(tokens))

    def _refuse_too_much(self, length: int) -> None:
        if length > self._left:
            self.defined.clear()  # every further use would be refused too: say it once
            raise Refused(
                BadPreprocessorLine,
                problem=f"the program's macros expand to more than {_LARGEST:,} characters",
                advice="generate the program's text with a script instead",
            )


def _bind(name: str, macro: Macro, args: list[list[_Token]]) -> dict[str, list[_Token]]:
    params = macro.params or ()
    if not params and args == [[]]:
        args = []
    if len(args) != len(params):
        raise Refused(
            BadPreprocessorLine,
            problem=f"the macro {name} takes {_count(len(params))}, not {len(args)}",
            advice=f"write {name}({', '.join(params)})",
        )
    return dict(zip(params, args, strict=True))


def _length(body: tuple[str, ...], given: dict[str, list[_Token]], expanded: dict[str, list[_Token]]) -> int:
    """About how many characters the filled body has, known before it is made: arguments may stand in it many times."""
    lengths = {
        param: max(sum(len(token.text) for token in tokens) for tokens in (arg, expanded.get(param, [])))
        for param, arg in given.items()
    }
    return sum(lengths.get(text, len(text)) for text in body)


def _filled(body: tuple[str, ...], given: dict[str, list[_Token]], expanded: dict[str, list[_Token]]) -> list[_Token]:
    """A macro's body with arguments in the place of parameters: beside `##` and behind `#` as given, else expanded."""
    filled: list[_Token] = []
    left: list[_Token] | None = None  # what a ## joins the next part with
    for at, text in enumerate(body):
        if text in _JOINING:
            continue
        before, after = body[at - 1 : at], body[at + 1 : at + 2]
        if before == ("#",):
            part = [_Token(_quoted(given[text]), _NOT_HIDDEN)]
        elif text in given and ("##",) in (before, after):
            part = given[text]
        else:
            part = expanded.get(text, [_Token(text, _NOT_HIDDEN)])
        if left and part:
            filled[-1] = _Token(left[-1].text + part[0].text, left[-1].hidden & part[0].hidden)
            part = part[1:]
            left = filled[-1:]
        filled += part
        left = (part or left) if after == ("##",) else None
    return filled


def _quoted(tokens: list[_Token]) -> str:
    text = re.sub(r"\s+", " ", _text(tokens))
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _params(name: str, text: str) -> tuple[str, ...]:
    if "..." in text:
        raise Refused(Unsupported, feature="a macro with any number of arguments (...)", advice="name each argument")
    params = tuple(param.strip() for param in text.split(",")) if text.strip() else ()
    if len(set(params)) < len(params) or not all(re.fullmatch(NAME, param) for param in params):
        raise Refused(
            BadPreprocessorLine,
            problem=f"the parameters of the macro {name} must be different names",
            advice=f"write #define {name}(x, y) text",
        )
    return params


_JOINING = ("#", "##")


def _body(text: str, params: tuple[str, ...] | None) -> tuple[str, ...]:
    # A `#` that opens the body is a directive to the pattern; around `##` and behind `#`, space does not count.
    spaced = re.sub(r"\s*##\s*", "##", text)
    tokens = [found[0] for found in _TOKEN.finditer(spaced)]
    body: list[str] = []
    for token in tokens:
        if token == "#" and body[-1:] == ["#"]:
            body[-1] = "##"
        elif not (token.isspace() and body[-1:] == ["#"]):
            body.append(token)
    for at, token in enumerate(body):
        if token == "##" and not 0 < at < len(body) - 1:
            raise Refused(BadPreprocessorLine, problem="## has nothing to join", advice="write it between two names")
        if token == "#" and (at + 1 == len(body) or body[at + 1] not in (params or ())):
            raise Refused(
                BadPreprocessorLine,
                problem="# is not followed by a parameter of the macro",
                advice="#x is the text of the argument x, as a string",
            )
    return tuple(body)


def _call_follows(pending: list[_Token], rest: _Rest) -> bool:
    """Whether the next token is an opening parenthesis; if so, passes it."""
    ahead = len(pending)
    while ahead and pending[ahead - 1].text.isspace():
        ahead -= 1
    follows = pending[ahead - 1].text == "(" if ahead else rest.open_call()
    if follows:
        del pending[max(0, ahead - 1) :]
    return follows


def _arguments(name: str, pending: list[_Token], rest: _Rest) -> tuple[list[list[_Token]], _Token]:
    """The arguments up to the parenthesis that closes the call, and that parenthesis."""
    args: list[list[_Token]] = [[]]
    depth = 1
    while True:
        token = pending.pop() if pending else rest.take(name)
        depth += (token.text in "([{") - (token.text in ")]}")
        if depth == 0:
            return [_stripped(arg) for arg in args], token
        if token.text == "," and depth == 1:
            args.append([])
        else:
            args[-1].append(token)


def _stripped(tokens: list[_Token]) -> list[_Token]:
    solid = [at for at, token in enumerate(tokens) if not token.text.isspace()]
    return tokens[solid[0] : solid[-1] + 1] if solid else []


def _text(tokens: list[_Token]) -> str:
    return "".join(token.text for token in tokens)


def _count(arguments: int) -> str:
    return f"{arguments} argument{'' if arguments == 1 else 's'}"
