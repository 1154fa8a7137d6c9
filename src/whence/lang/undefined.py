"""What has no value."""

from __future__ import annotations


class Undefined(ArithmeticError):
    """The functor has no value for these arguments; the message says why."""


class NilArgument(Undefined):
    """An argument is nil. That is what nil means, and no reason to warn."""
