"""What can be wrong with a query of trees or with a document: W14, in the same form as what can be wrong with a program."""

from __future__ import annotations

from whence.lang.diagnostics import Diagnostic


class UnexpectedText(Diagnostic):
    code = "W1401"
    message = "unexpected {found}"
    hint = "expected {expected}"


class UnknownVariable(Diagnostic):
    code = "W1402"
    message = "nothing binds ${name}"
    hint = "{advice}"


class WrongType(Diagnostic):
    code = "W1403"
    message = "{what} is {found}, and {wanted} is needed here"
    hint = "{advice}"


class BadAnnotation(Diagnostic):
    code = "W1404"
    message = "{problem}"
    hint = "the annotations here are those of {semiring}"


class UnbalancedTags(Diagnostic):
    code = "W1405"
    message = "<{opened}> is closed by </{closed}>"
    hint = "write </{opened}>, or </> for short"


class TooDeep(Diagnostic):
    code = "W1406"
    message = "this is nested deeper than {limit} levels"
    hint = "{advice}"


class BadDocument(Diagnostic):
    code = "W1407"
    message = "{problem}"
    hint = "{advice}"
