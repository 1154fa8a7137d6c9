"""Programs to plans."""

from whence.plan.compile import Plan, compile_plan

__all__ = ["Plan", "compile_plan"]
