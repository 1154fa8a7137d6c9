"""What can be wrong with what a page is to show: W13, in the same form as what can be wrong with a program."""

from __future__ import annotations

from whence.lang.diagnostics import Diagnostic


class NotToml(Diagnostic):
    code = "W1301"
    message = "this is not TOML: {problem}"
    hint = "a dashboard is a list of [[widget]]s, each with a kind and a view"


class UnknownWidget(Diagnostic):
    code = "W1302"
    message = "there is no kind of widget {name}"
    hint = "there are {known}"


class UnknownView(Diagnostic):
    code = "W1303"
    message = "there is no view {name}"
    hint = "{advice}"


class UnknownColumn(Diagnostic):
    code = "W1304"
    message = "{view} has no column {name}"
    hint = "it has {known}"


class BadSetting(Diagnostic):
    code = "W1305"
    message = "{problem}"
    hint = "{advice}"


class BadShape(Diagnostic):
    code = "W1306"
    message = "{problem}"
    hint = "{known}"
