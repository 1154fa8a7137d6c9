"""The reference evaluator: the definition of correct.

Naive bottom-up evaluation over Python sets. It is slow on purpose: every other engine answers to it.
"""

from whence.lang.calls import FunctionError
from whence.reference.evaluate import evaluate
from whence.reference.solve import EvaluationWarning

__all__ = ["EvaluationWarning", "FunctionError", "evaluate"]
