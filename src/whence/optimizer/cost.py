"""What operators cost: CPU, I/O and network, in hundredths of what it takes to look at one row.

Costs are whole numbers and cardinalities are fixed-point logarithms, so that sums and products are exact in any order: whoever
adds them up, from whichever side, finds the same cheapest plan. No cost falls when an input grows, and `least_share` says
how much is left when one shrinks; what prunes plans relies on both.
"""

from __future__ import annotations

from math import log2

ROW = 100  # a row is looked at
OUTPUT = 50  # a row is handed on
BYTE = 1  # a byte is copied
PAGE = 4000  # a page is read, one after the other
FETCH = 1500  # a row is fetched by an index
PAGE_BYTES = 8192
MATCH = 4  # two rows are compared by nested loops
BLOCK = 10_000  # rows of the outer side of nested loops that share one pass over the inner side
SORT = 25  # a comparison of a sort
BUILD, PROBE = 180, 120  # of a hash table
NETWORK = 20  # a byte is sent
OPEN = 100  # an index is opened
MOST = 1 << 52  # no operator costs more: sums of some hundred still fit into a word

LOG_ONE = 1 << 20  # a doubling


def to_log(factor: float) -> int:
    """
    >>> to_log(8) // LOG_ONE, to_log(0.25) // LOG_ONE
    (3, -2)
    """
    return round(log2(max(factor, 1e-18)) * LOG_ONE)


def to_rows(log: int) -> float:
    """How many rows a logarithm stands for: one at least."""
    return max(1.0, 2.0 ** (log / LOG_ONE)) if log < 900 * LOG_ONE else float("1e270")


def scaled(cost: float, log: int) -> int:
    """A cost in whole units, changed by a factor that is given as a logarithm."""
    if log:
        cost *= 2.0 ** (log / LOG_ONE)
    return MOST if cost >= MOST else int(cost)


def output(rows: float, width: float) -> float:
    return rows * (OUTPUT + width * BYTE)


def table_scan(rows: float, width: float) -> float:
    return rows * ROW + rows * width / PAGE_BYTES * PAGE


def index_scan(rows: float, found: float) -> float:
    """Rows found by an index: all of them in its order, or those that a filter asks for."""
    return OPEN + min(rows, found) * (ROW + FETCH)


def block_nested_loops(outer: float, inner: float) -> float:
    return outer * ROW + (1 + outer / BLOCK) * inner * ROW + outer * inner * MATCH


def indexed_nested_loops(outer: float) -> float:
    return outer * (ROW + FETCH)


def sort_merge(left: float, right: float) -> float:
    return (left + right) * ROW


def hash_join(build: float, probe: float) -> float:
    return build * BUILD + probe * PROBE


def pipelined_hash(left: float, right: float) -> float:
    return (left + right) * (BUILD + PROBE) / 2 * 1.25


def sort(rows: float) -> float:
    return rows * (ROW + SORT * log2(rows + 2))


def hash_aggregate(rows: float) -> float:
    return rows * BUILD


def sorted_aggregate(rows: float) -> float:
    return rows * ROW


def ship(rows: float, width: float) -> float:
    return rows * width * NETWORK


def least_share(log: int) -> float:
    """The share of its cost that an operator keeps at least, if an input becomes as much smaller as the logarithm says.

    Costs are linear in each input, but for sorts, where the logarithm of the rows falls as well.
    """
    least = ROW + SORT * log2(3)  # of what sorting takes for a row, be there ever so few
    return float(2.0 ** (log / LOG_ONE)) * least / (least - SORT * log / LOG_ONE)
