"""Reasoning about rules: which queries are contained in others or the same in a semiring, and queries in terms of views."""

from whence.reasoning.answers import Answer, Counterexample, Mapped, Verdict
from whence.reasoning.decide import contained, equivalent
from whence.reasoning.queries import NotConjunctive, Query, query_of
from whence.reasoning.redundant import Superfluous, redundant_rules
from whence.reasoning.rewriting import Reformulation, View, reformulate

__all__ = [
    "Answer",
    "Counterexample",
    "Mapped",
    "NotConjunctive",
    "Query",
    "Reformulation",
    "Superfluous",
    "Verdict",
    "View",
    "contained",
    "equivalent",
    "query_of",
    "redundant_rules",
    "reformulate",
]
