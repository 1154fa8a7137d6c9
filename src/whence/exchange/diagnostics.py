"""What can be wrong with a confederation: W10, in the same form as what can be wrong with a program."""

from __future__ import annotations

from whence.lang.diagnostics import Diagnostic


class UnexpectedStatement(Diagnostic):
    code = "W1001"
    message = "unexpected {found}"
    hint = "expected {expected}"


class UnknownName(Diagnostic):
    code = "W1002"
    message = "there is no {what} {name}"
    hint = "{advice}"


class AmbiguousRelation(Diagnostic):
    code = "W1003"
    message = "several peers have a relation {name}"
    hint = "write {choices}"


class DefinedTwice(Diagnostic):
    code = "W1004"
    message = "{what} {name} is already defined"
    hint = "rename one of them"


class WrongColumns(Diagnostic):
    code = "W1005"
    message = "{relation} has {expected}, not {found}"
    hint = "its columns are {columns}"


class MismatchedTypes(Diagnostic):
    code = "W1006"
    message = "{what} is {left} here, but {right} in {where}"
    hint = "{advice}"


class NotAMapping(Diagnostic):
    code = "W1007"
    message = "{problem}"
    hint = "{advice}"


class NotWeaklyAcyclic(Diagnostic):
    code = "W1008"
    message = "these mappings may invent values for ever: {cycle}"
    hint = "use a value that is there instead of an invented one, or take one of the mappings out: {mappings}"


class BadPolicy(Diagnostic):
    code = "W1009"
    message = "{problem}"
    hint = "{advice}"
