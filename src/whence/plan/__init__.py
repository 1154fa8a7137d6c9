"""Programs to plans."""

from whence.plan.compile import (
    Plan,
    UnsuitableStrategy,
    compile_counting,
    compile_evaluation,
    compile_plan,
    compile_recomputation,
    restrict,
)

__all__ = [
    "Plan",
    "UnsuitableStrategy",
    "compile_counting",
    "compile_evaluation",
    "compile_plan",
    "compile_recomputation",
    "restrict",
]
