"""What can be wrong with a confederation: W07, in the same form as what can be wrong with a program."""

from __future__ import annotations

from whence.lang.diagnostics import Diagnostic


class UnexpectedStatement(Diagnostic):
    code = "W0701"
    message = "unexpected {found}"
    hint = "expected {expected}"


class UnknownName(Diagnostic):
    code = "W0702"
    message = "there is no {what} {name}"
    hint = "{advice}"


class AmbiguousRelation(Diagnostic):
    code = "W0703"
    message = "several peers have a relation {name}"
    hint = "write {choices}"


class DefinedTwice(Diagnostic):
    code = "W0704"
    message = "{what} {name} is already defined"
    hint = "rename one of them"


class WrongColumns(Diagnostic):
    code = "W0705"
    message = "{relation} has {expected}, not {found}"
    hint = "its columns are {columns}"


class MismatchedTypes(Diagnostic):
    code = "W0706"
    message = "{what} is {left} here, but {right} in {where}"
    hint = "{advice}"


class NotAMapping(Diagnostic):
    code = "W0707"
    message = "{problem}"
    hint = "{advice}"


class NotWeaklyAcyclic(Diagnostic):
    code = "W0708"
    message = "these mappings may invent values for ever: {cycle}"
    hint = "use a value that is there instead of an invented one, or take one of the mappings out: {mappings}"


class BadPolicy(Diagnostic):
    code = "W0709"
    message = "{problem}"
    hint = "{advice}"
