"""What can be wrong with a program: one class per code, each with its text and what to do about it.

A diagnostic is a value. Checks hand diagnostics to `Diagnostics`, which keeps them all; `ProgramError` is raised once, at
the end, carrying every one. Codes are stable: W01 syntax, W02 names, W03 types, W04 recursion, W05 directives, W06 SQL,
W07 places, W09 warnings; W08 is event programs, W10 confederations, W14 queries of trees.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from whence.lang.source import Place, Source
from whence.lang.tree import NOWHERE, Span


class Diagnostic:
    """One finding. Subclasses set the texts; `values` fill the braces in them."""

    code: ClassVar[str]
    message: ClassVar[str]
    hint: ClassVar[str] = ""
    severity: ClassVar[str] = "error"

    def __init__(self, span: Span, /, *, related: Iterable[tuple[Span, str]] = (), **values: object) -> None:
        self.span = span
        self.related = tuple(related)
        self.text = self.message.format(**values)
        self.advice = self.hint.format(**values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.span.start}..{self.span.end}: {self.text})"


class Caution(Diagnostic):
    """Something that is probably not meant, but does not keep the program from running."""

    severity = "warning"


# -- syntax -----------------------------------------------------------------------------------------------------------


class UnexpectedText(Diagnostic):
    code = "W0101"
    message = "unexpected {found}"
    hint = "expected {expected}"


class UnterminatedText(Diagnostic):
    code = "W0102"
    message = "this {what} is never closed"
    hint = "close it with {closer}"


class BadLiteral(Diagnostic):
    code = "W0103"
    message = "{literal} {problem}"
    hint = "{advice}"


class MissingInclude(Diagnostic):
    code = "W0104"
    message = "cannot include {name}: {problem}"
    hint = "{advice}"


class BadPreprocessorLine(Diagnostic):
    code = "W0105"
    message = "{problem}"
    hint = "{advice}"


class Unsupported(Diagnostic):
    code = "W0106"
    message = "{feature} is not supported"
    hint = "{advice}"


class BadAggregate(Diagnostic):
    code = "W0107"
    message = "{op} {problem}"
    hint = "{advice}"


class NotALiteral(Diagnostic):
    code = "W0108"
    message = "{what} cannot stand alone in a body"
    hint = "a body is made of atoms r(x, y), comparisons and negations"


class MisplacedLocation(Diagnostic):
    code = "W0109"
    message = "{problem}"
    hint = "`@` marks one argument of a relation: the one that says where the tuple lives"


class TooDeep(Diagnostic):
    code = "W0110"
    message = "this is nested too deeply"
    hint = "split it into several rules"


class TooManyAlternatives(Diagnostic):
    code = "W0111"
    message = "this rule stands for more than {limit} rules without `;`"
    hint = "alternatives multiply: give each group of them a relation of its own"


# -- names ------------------------------------------------------------------------------------------------------------


class UnknownRelation(Diagnostic):
    code = "W0201"
    message = "relation {name} is not declared and no rule derives it"
    hint = "{advice}"


class UnknownType(Diagnostic):
    code = "W0202"
    message = "type {name} is not declared"
    hint = "{advice}"


class UnboundVariable(Diagnostic):
    code = "W0203"
    message = "variable {name} is bound by no positive atom of this rule"
    hint = "{advice}"


class UnknownFunctor(Diagnostic):
    code = "W0204"
    message = "there is no functor {name}"
    hint = "{advice}"


class WrongArity(Diagnostic):
    code = "W0205"
    message = "{what} takes {expected}, not {found}"
    hint = "{advice}"


class Redefined(Diagnostic):
    code = "W0206"
    message = "{what} {name} is already defined"
    hint = "rename one of them"


class UnknownComponent(Diagnostic):
    code = "W0207"
    message = "component {name} is not declared"
    hint = "{advice}"


class UnknownAttribute(Diagnostic):
    code = "W0208"
    message = "relation {relation} has no attribute {name}"
    hint = "it has {attributes}"


class BadComponent(Diagnostic):
    code = "W0209"
    message = "{problem}"
    hint = "{advice}"


class UnknownBranch(Diagnostic):
    code = "W0210"
    message = "type {type} has no branch ${name}"
    hint = "it has {branches}"


class UnregisteredFunction(Diagnostic):
    code = "W0211"
    message = "no Python function is registered as {name}"
    hint = "pass it when the program is loaded: functions={{'{name}': f}}, or --functions FILE.py on the command line"


class MisplacedWildcard(Diagnostic):
    code = "W0212"
    message = "_ stands for no value here"
    hint = "{advice}"


class UncountableWildcard(Diagnostic):
    code = "W0213"
    message = "rows of several alternatives cannot be counted together"
    hint = (
        "name what _ stands for if its values are to count, or derive a relation from the alternatives and count that"
    )


# -- types ------------------------------------------------------------------------------------------------------------


class TypeConflict(Diagnostic):
    code = "W0301"
    message = "{what} is {left}, but {where} is {right}"
    hint = "{advice}"


class UntypedVariable(Diagnostic):
    code = "W0302"
    message = "the type of {what} cannot be inferred"
    hint = "{advice}"


class BadTypeDeclaration(Diagnostic):
    code = "W0303"
    message = "{problem}"
    hint = "{advice}"


class NotApplicable(Diagnostic):
    code = "W0304"
    message = "{functor} does not apply to {type}"
    hint = "{advice}"


class NotASubtype(Diagnostic):
    code = "W0305"
    message = "{what} of type {found} does not fit attribute {attribute} of {relation}, which is {expected}"
    hint = "use as({what}, {expected}) if the value is meant"


class MayBeNil(Diagnostic):
    code = "W0306"
    message = "{what} nil, but {where} is {type}"
    hint = "{advice}"


# -- recursion --------------------------------------------------------------------------------------------------------


class NegationCycle(Diagnostic):
    code = "W0401"
    message = "{relation} depends on its own negation: {cycle}"
    hint = "{advice}"


class AggregateCycle(Diagnostic):
    code = "W0402"
    message = "{relation} depends on an aggregate of itself: {cycle}"
    hint = "{reason}"


class RecursiveCounter(Diagnostic):
    code = "W0403"
    message = "autoinc() cannot be used in the recursive rule for {relation}"
    hint = "number the tuples in a rule that is not recursive"


class RoundlessRule(Diagnostic):
    code = "W0406"
    message = "recursive_iteration_cnt() has no value in this rule"
    hint = "{advice}"


class BadChoice(Diagnostic):
    code = "W0404"
    message = "{problem}"
    hint = "{advice}"


class BadSubsumption(Diagnostic):
    code = "W0405"
    message = "{problem}"
    hint = "{advice}"


# -- directives -------------------------------------------------------------------------------------------------------


class BadDirective(Diagnostic):
    code = "W0501"
    message = "{problem}"
    hint = "{advice}"


class BadWindow(Diagnostic):
    code = "W0502"
    message = "{problem}"
    hint = "{advice}"


# -- SQL --------------------------------------------------------------------------------------------------------------


class SqlSyntax(Diagnostic):
    code = "W0601"
    message = "{problem}"
    hint = "{advice}"


class SqlUnsupported(Diagnostic):
    code = "W0602"
    message = "{feature} is not supported"
    hint = "{advice}"


class SqlUnknownColumn(Diagnostic):
    code = "W0603"
    message = "column {name} {problem}"
    hint = "{advice}"


class SqlUnknownTable(Diagnostic):
    code = "W0604"
    message = "there is no table or view {name}"
    hint = "{advice}"


class SqlShape(Diagnostic):
    code = "W0606"
    message = "{problem}"
    hint = "{advice}"


# -- places -----------------------------------------------------------------------------------------------------------


class UnplacedRelation(Diagnostic):
    code = "W0701"
    message = "{name} has no place, in a program whose relations live on nodes"
    hint = "mark the argument that names its node with @, or declare it `everywhere`"


class UnnamableNode(Diagnostic):
    code = "W0704"
    message = "the nodes of {name} are named by {kind}, {problem}"
    hint = "all nodes of a network are named by numbers, or all by symbols"


class UnconnectedPlaces(Diagnostic):
    code = "W0702"
    message = "rule {rule} reads {relation} at {place}, which nothing it has read by then names"
    hint = "a body goes from place to place over values it has: join {place} with an argument of {known}"


class ComputedPlace(Diagnostic):
    code = "W0705"
    message = "rule {rule} computes the place of {relation} from relations that are everywhere, so no node would ship it there"
    hint = "read a relation that lives somewhere: the node that has it computes the place and ships the row"


class ScatteredAggregate(Diagnostic):
    code = "W0703"
    message = "rule {rule} asks for {what} over {problem}"
    hint = "{what} is made at one node: send the rows there by a rule of their own, or name the node outside of it"


# -- warnings ---------------------------------------------------------------------------------------------------------


class UnusedRelation(Caution):
    code = "W0901"
    message = "relation {name} is never used"
    hint = "use it in a rule, add .output {name}, or remove it"


class UnusedVariable(Caution):
    code = "W0902"
    message = "variable {name} occurs only once in this rule"
    hint = "write _ if its value does not matter"


class EmptyRelation(Caution):
    code = "W0903"
    message = "relation {name} has no rules, no facts and no .input: it is empty"
    hint = "add facts or .input {name}"


class FunctionTerm(Caution):
    code = "W0904"
    message = "{name} is not a functor: {name}(…) is taken as a function term"
    hint = "write ${name}(…) to say so"


class IgnoredInOneShot(Caution):
    code = "W0905"
    message = "{what} {relation} has no effect here: all facts are there at once"
    hint = "it takes effect where updates are streamed"


class NothingShown(Caution):
    code = "W0906"
    message = "the program has no .output: nothing is written"
    hint = "{advice}"


# -- collecting and showing -------------------------------------------------------------------------------------------


@dataclass
class Diagnostics:
    """Everything found so far in one program."""

    source: Source
    found: list[Diagnostic] = field(default_factory=list)

    def add(self, diagnostic: Diagnostic) -> None:
        self.found.append(diagnostic)

    @property
    def errors(self) -> list[Diagnostic]:
        return [each for each in self.sorted() if each.severity == "error"]

    @property
    def warnings(self) -> list[Diagnostic]:
        return [each for each in self.sorted() if each.severity == "warning"]

    def sorted(self) -> list[Diagnostic]:
        """In text order, each said once, and no warning where there is an error."""
        wrong = {each.span.start for each in self.found if each.severity == "error"}
        seen: dict[tuple[int, str, str], Diagnostic] = {}
        for each in sorted(self.found, key=lambda found: (found.span.start, found.code)):
            if each.severity == "error" or each.span.start not in wrong:
                seen.setdefault((each.span.start, each.code, each.text), each)
        return list(seen.values())

    def raise_if_errors(self) -> None:
        if self.errors:
            raise ProgramError(self.source, tuple(self.sorted()))


class ProgramError(Exception):
    """A program that cannot be run, with everything that was found: the errors and the warnings, in text order."""

    def __init__(self, source: Source, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__(source, diagnostics)
        self.source = source
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        return "\n".join(render(each, self.source) for each in self.diagnostics if each.severity == "error")


_WIDTH = 80  # of a terminal


def render(diagnostic: Diagnostic, source: Source) -> str:
    """The diagnostic as text: where, what, the line with the place underlined, and a hint."""
    place = source.place(diagnostic.span)
    lines = [
        f"{place.file.name}:{place.line}:{place.column}: {diagnostic.severity}[{diagnostic.code}]: {diagnostic.text}"
    ]
    lines += _excerpt(place)
    for span, note in diagnostic.related:
        where = source.place(span)
        lines.append(f"  {where.file.name}:{where.line}:{where.column}: {note}")
        lines += _excerpt(where)
    if diagnostic.advice:
        lines.append(f"  hint: {diagnostic.advice}")
    return "\n".join(lines)


def to_json(diagnostic: Diagnostic, source: Source) -> dict[str, object]:
    place = source.place(diagnostic.span)
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.text,
        "hint": diagnostic.advice,
        "file": place.file.name,
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
        "related": [
            {"file": where.file.name, "line": where.line, "column": where.column, "message": note}
            for where, note in ((source.place(span), note) for span, note in diagnostic.related)
        ],
    }


def _excerpt(place: Place) -> list[str]:
    raw = place.file.line(place.line)
    # Tabs would shift the underline: show them as one space each.
    text = raw.replace("\t", " ")
    until = place.end_column if place.end_line == place.line else len(text) + 1
    gutter = f"{place.line:>5} | "
    start, length = place.column - 1, max(1, until - place.column)
    room = _WIDTH - len(gutter)
    if len(text) > room:
        # A terminal would break the line, and the underline would stand below something else.
        first = max(0, min(start - room // 3, len(text) - room))
        cut = "…" if first + room < len(text) else text[first + room - 1]
        text, start = ("…" if first else text[0]) + text[first + 1 : first + room - 1] + cut, start - first
        length = max(1, min(length, room - start))
    return [gutter + text, " " * (len(gutter) + start) + "^" * length]


__all__ = ["NOWHERE", "Diagnostic", "Diagnostics", "ProgramError", "render", "to_json"]
