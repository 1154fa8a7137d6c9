"""Mistakes in a command, told as those in a program are: what is wrong, and below it what to write instead.

A message that names a remedy has it behind a semicolon or begins it with `write`, as in `there is no semiring x; did you
mean y?` and `x is no sink: write parquet:FOLDER`; it becomes the hint. Lines are broken between words, so that they can be
read on the narrowest of terminals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from textwrap import wrap
from typing import Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

_WIDTH = 80
_TOO_MUCH = re.compile(r"Got unexpected extra argument\(s\) \((.*)\)", re.DOTALL)
_REMEDY = re.compile(r"; |: (?=write )")
_ABSENT = re.compile(r"(\w+) '(.*)' does not exist\.", re.DOTALL)
_NO_COMMAND = re.compile(r"No such command '(.*?)'\.", re.DOTALL)


def unknown(what: str, name: str, known: Iterable[str], option: str | None = None) -> typer.BadParameter:
    """A name that is not among those that there are."""
    return typer.BadParameter(f"there is no {what} {name}; {instead_of(name, known)}", param_hint=option)


def instead_of(name: str, known: Iterable[str]) -> str:
    """
    >>> instead_of("tropcal", ["boolean", "tropical"]), instead_of("x", ["boolean", "tropical"]), instead_of("x", [])
    ('did you mean tropical?', 'there are boolean, tropical', 'there are none')
    """
    listed = list(known)
    near = get_close_matches(name, listed, 1)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(listed) or 'none'}"


def no_file(path: Path, argument: str | None = None) -> typer.BadParameter:
    """A file that is not there, with one beside it that has almost its name."""
    if path.is_dir():
        inside = sorted(each.name for each in path.iterdir() if each.suffix in (".dl", ".sql"))
        advice = f"; did you mean {path / inside[0]}?" if inside else ""
        return typer.BadParameter(f"{path} is a folder{advice}", param_hint=argument)
    beside = [each.name for each in path.parent.iterdir() if each.is_file()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, beside, 1)
    advice = f"; did you mean {path.parent / near[0]}?" if near else ""
    return typer.BadParameter(f"there is no file {path}{advice}", param_hint=argument)


@contextmanager
def told_mistakes() -> Iterator[None]:
    """Instead of the box that Typer draws around them."""
    try:
        yield
    except TyperException as error:
        # Without arguments there is nothing to say: Typer has shown the help by now.
        if type(error).__name__ != "NoArgsIsHelpError":
            from whence.cli.terminal import err, show  # noqa: PLC0415 - brings the parser, and help needs none

            problem, advice = _told(error)
            show(err, _folded("error: ", problem))
            show(err, _folded("  hint: ", advice))
        raise typer.Exit(error.exit_code) from None


def _told(error: TyperException) -> tuple[str, str]:
    """What is wrong, and what to do."""
    context: Any = getattr(error, "ctx", None)
    command = "whence" if context is None else context.command_path
    manual = f"{command} -h tells how it is called"
    if (option := getattr(error, "option_name", None)) is not None:
        return _about_option(error, option, command)
    if isinstance(error, typer.BadParameter):
        name = _name_of(error)
        if getattr(error, "param_type", None) is not None or type(error).__name__ == "MissingParameter":
            return f"{name or 'an argument'} is missing", f"{_usage(context)}; {manual}"
        problem, *advice = _REMEDY.split(_value_problem(error), maxsplit=1)
        return (f"{name}: {problem}" if name else problem), advice[0] if advice else manual
    if found := _TOO_MUCH.search(error.message):
        return f"too many arguments: {found[1]}", f"{_usage(context)}; {manual}"
    if context is not None and isinstance(context.command, TyperGroup):
        commands = context.command.commands
        if found := _NO_COMMAND.search(error.message):
            near = get_close_matches(found[1], commands, 1)
            what = f"there is no command {found[1]}"
            return what, f"did you mean {near[0]}?" if near else f"{command} -h lists the commands"
        return "a command is missing", f"{command} -h lists the commands"
    return error.format_message(), manual


def _about_option(error: TyperException, option: str, command: str) -> tuple[str, str]:
    if "requires" in error.message:
        return f"{option} needs a value", f"write {option} VALUE"
    if "does not take" in error.message:
        return f"{option} takes no value", f"write {option} alone"
    near = getattr(error, "possibilities", None)
    what = f"{command} has no option {option}"
    return what, f"did you mean {near[0]}?" if near else f"{command} -h lists its options"


def _name_of(error: typer.BadParameter) -> str:
    """The option as it is written, the long name where it has one; or the argument."""
    if error.param_hint is not None:
        return error.param_hint if isinstance(error.param_hint, str) else " or ".join(error.param_hint)
    if error.param is None:
        return ""
    written = [each for each in getattr(error.param, "opts", ()) if each.startswith("-")]
    return max(written, key=len) if written else error.param.get_error_hint().strip("'")


def _value_problem(error: typer.BadParameter) -> str:
    """Values that do not fit their type, in our words; anything else was written by us."""
    problems = getattr(error.__cause__, "errors", None)
    if problems is None:
        return _sentence(error.message)
    found = problems()[0]
    given, bounds = found["input"], found.get("ctx", {})
    choices = getattr(getattr(error.param, "type_descriptor", None), "choices", None)
    if choices:
        return _not_among(str(given), [str(getattr(each, "value", each)) for each in choices])
    return _not_a_number(found["type"], given, bounds) or _sentence(error.message)


def _not_among(given: str, choices: list[str]) -> str:
    near = get_close_matches(given, choices, 1)
    return f"{given} is not one of {', '.join(choices)}" + (f"; did you mean {near[0]}?" if near else "")


def _not_a_number(kind: str, given: object, bounds: Mapping[str, Any]) -> str | None:
    if kind.startswith("int_"):
        return f"{given} is not a whole number"
    if kind.startswith("float_"):
        return f"{given} is not a number"
    for bound, words in (("ge", "at least"), ("le", "at most"), ("gt", "more than"), ("lt", "less than")):
        if bound in bounds:
            return f"{given} is out of range: it has to be {words} {bounds[bound]}"
    return None


def _sentence(message: str) -> str:
    if found := _ABSENT.fullmatch(message):
        return f"there is no {'folder' if found[1].lower() in ('dir', 'directory') else 'file'} {found[2]}"
    return message.removesuffix(".")


def _usage(context: Any) -> str:
    words = context.get_usage().partition(":")[2].split()
    return " ".join(word.removeprefix("{").removesuffix("}") for word in words)


def _folded(label: str, text: str) -> str:
    first, *others = text.split("\n")
    indent = " " * len(label)
    lines = wrap(first, _WIDTH, initial_indent=label, subsequent_indent=indent, break_long_words=False) or [label]
    return "\n".join([*lines, *others])
