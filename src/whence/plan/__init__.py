"""Programs to plans."""

from whence.plan.compile import (
    Plan,
    compile_counting,
    compile_evaluation,
    compile_plan,
    compile_recomputation,
    restrict,
)

__all__ = ["Plan", "compile_counting", "compile_evaluation", "compile_plan", "compile_recomputation", "restrict"]
