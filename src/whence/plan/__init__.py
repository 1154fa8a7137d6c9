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
from whence.plan.join_order import JoinOrder, most_bound

__all__ = [
    "JoinOrder",
    "Plan",
    "UnsuitableStrategy",
    "compile_counting",
    "compile_evaluation",
    "compile_plan",
    "compile_recomputation",
    "most_bound",
    "restrict",
]
