"""What triggers compute: functors, comparisons and ranges, where a functor may have no value."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from whence.lang.calls import FunctionError, checked_call
from whence.lang.functors import holds, implementation, solutions_of_range
from whence.lang.program import Program, Rule
from whence.lang.types import Value
from whence.lang.undefined import Undefined
from whence.plan.steps import Compute
from whence.reference import EvaluationWarning

UNDEFINED = object()  # in place of a value that is not there


class Computed:
    """Functions for the triggers of a program. Each rule says once, and for all nodes, why something it asks for has no value."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.warned: set[tuple[str, str]] = set()

    def functor(self, step: Compute, rule: Rule) -> Callable[..., object]:
        if step.functor == "constant":
            return lambda value: value
        if step.functor in self.program.functions:
            function = self._registered(step, rule)
        else:
            function = implementation(step.functor, step.arg_kinds[0] if step.arg_kinds else None, step.kind)
        return self._otherwise(function, UNDEFINED, rule)

    def comparison(self, rule: Rule) -> Callable[..., object]:
        return self._otherwise(holds, False, rule)

    def range(self, rule: Rule) -> Callable[..., object]:
        return self._otherwise(lambda *bounds: list(solutions_of_range(*bounds)), (), rule)

    def _registered(self, step: Compute, rule: Rule) -> Callable[..., object]:
        function, types = self.program.functions[step.functor], self.program.types

        def call(*values: Value) -> object:
            try:
                return checked_call(step.functor, function, values, step.kind, types)
            except FunctionError as error:
                raise FunctionError(f"{self._where(rule)}: {error}") from error.__cause__

        return call

    def _otherwise(self, function: Callable[..., object], default: object, rule: Rule) -> Callable[..., object]:
        def defined(*values: Value) -> object:
            try:
                return function(*values)
            except Undefined as reason:
                self._warn(rule, str(reason))
                return default

        return defined

    def _where(self, rule: Rule) -> str:
        place = self.program.source.place(rule.span)
        return f"{place.file.name}:{place.line}: rule {rule.name.partition('!')[0]}"

    def _warn(self, rule: Rule, reason: str) -> None:
        where = self._where(rule)
        if (where, reason) not in self.warned:
            self.warned.add((where, reason))
            warnings.warn(f"{where}: {reason}; nothing is derived there", EvaluationWarning, stacklevel=2)
