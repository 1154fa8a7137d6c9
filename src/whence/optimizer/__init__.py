"""Query optimization as a view that is kept: plans of SQL queries, found again when costs turn out otherwise."""

from whence.optimizer.best_first import Effort, Optimizer, Prunings
from whence.optimizer.bottom_up import BottomUp
from whence.optimizer.memo import Memo
from whence.optimizer.plans import Plan
from whence.optimizer.query import Query
from whence.optimizer.query_space import QuerySpace
from whence.optimizer.space import Alternative, Node, Space, Touch
from whence.optimizer.sql import QueryError, parse_query
from whence.optimizer.statistics import (
    Column,
    Statistics,
    StatisticsError,
    Table,
    read_statistics,
    statistics_from_json,
    statistics_to_json,
    summarize,
)
from whence.optimizer.top_down import TopDown

__all__ = [
    "Alternative",
    "BottomUp",
    "Column",
    "Effort",
    "Memo",
    "Node",
    "Optimizer",
    "Plan",
    "Prunings",
    "Query",
    "QueryError",
    "QuerySpace",
    "Space",
    "Statistics",
    "StatisticsError",
    "Table",
    "TopDown",
    "Touch",
    "parse_query",
    "read_statistics",
    "statistics_from_json",
    "statistics_to_json",
    "summarize",
]
