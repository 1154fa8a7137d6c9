"""The compiled loop that follows walks: recursions in which a row leads to others that differ from it in one column only.

All columns but that one, the *walker*, are handed on from row to row and make a *group*: the sources of paths, say. What a row
leads to does not depend on its group then, so it is found once, as a graph of *nodes*: the values of the walker in each
relation. The rows of a group are the nodes that can be reached from those it begins with. Following them takes a number for each
node, which stays in the cache, and nothing is hashed. Rounds, ranks and derivations are those of `StratumEpoch`: all nodes of a
round become present with its rank, and then what they lead to is counted.

The rows are written when their group is done, into lines behind the others and in no slots.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whence.backends.local.hashing import BITS, CAPACITY, LINES, USED, shape_of
from whence.backends.local.kernels import COUNT, FLAGS, RANK, ROWS, WELL, row_end, write_key
from whence.backends.local.memory import halves_at, kernel, words_at
from whence.engine.protocol import ADDED

# What is told: the rank before the first round, the group to go on with and the one to end before, after how many derivations to
# come back; then the derivations met, the most rounds that a group took, and which table has no room for how many lines, or -1.
RANK_BEFORE, GROUP, LAST_GROUP, FUEL, MET, ROUNDS, TABLE, WANTED = range(8)
TOLD = 8
# What is told of a relation: its table, the column that walks, the place in a group of the last column (or -1 if that walks), and
# how many lines a group can need at the most.
ADDRESS, WALKER, BAND, MOST = range(4)
# The lines of `scratch`, each with a number for every node and one more: derivations so far; the nodes of a group in the order
# they were reached; the derivations each of those had when it became present, and its rank; then, where rows share lines, the
# line that a place has, and whose it is: a group's, or a band's.
COUNTS, REACHED, WELLS, RANKS, SHARED, OWNERS = range(6)
SCRATCH = 6


@kernel("words lines lines words lines words rows words ids rows words rows")
def follow_walks(
    told: Any,
    relations: Any,
    columns: Any,
    begins: Any,
    groups: Any,
    bands: Any,
    firsts: Any,
    edges: Any,
    targets: Any,
    nodes: Any,
    words: Any,
    scratch: Any,
) -> None:
    """Follows groups until there are no more, it has done enough, or a table has no room.

    `columns` are those of a group in each relation. A group begins with the rows from its place in `begins` on: `firsts` are
    their nodes, derivations and flags. The targets of a node begin where `edges` says. `nodes` are the relation of each and,
    where rows share lines, the place in `scratch` that its line is kept at; `words` are their values.
    """
    counts, reached, wells, ranks = scratch[COUNTS], scratch[REACHED], scratch[WELLS], scratch[RANKS]
    shared, owners = scratch[SHARED], scratch[OWNERS]
    key = np.zeros(columns.shape[1] + 1, dtype=np.int64)
    key_words = halves_at(key.ctypes.data)
    told[TABLE] = -1
    fuel = told[FUEL]
    while told[GROUP] < told[LAST_GROUP] and fuel > 0:
        group = told[GROUP]
        begin, end = np.int64(0), np.int64(0)
        for first in range(begins[group], begins[group + 1]):
            node = firsts[0, first]
            counts[node] = firsts[1, first]
            reached[end] = node
            end += 1
        rounds, met = np.int64(0), np.int64(0)
        while begin < end:
            rounds += 1
            last = end
            for at in range(begin, last):
                wells[at], ranks[at] = counts[reached[at]], told[RANK_BEFORE] + rounds
            for at in range(begin, last):
                node = reached[at]
                for edge in range(edges[node], edges[node + 1]):
                    target = targets[edge]
                    before = counts[target]
                    counts[target] = before + 1
                    reached[end] = target  # which counts if it is new
                    end += before == 0
                met += edges[node + 1] - edges[node]
            begin = last
        for relation in range(relations.shape[0]):
            table = words_at(relations[relation, ADDRESS])
            most = min(end, relations[relation, MOST])
            if table[CAPACITY] - table[USED] < most:
                told[TABLE], told[WANTED] = relation, most
        if told[TABLE] >= 0:  # it is followed again when there is room
            for at in range(end):
                counts[reached[at]] = 0
            break
        known = begins[group + 1] - begins[group]
        for at in range(end):
            node = np.int64(reached[at])
            own = np.int64(nodes[0, node])
            table = words_at(relations[own, ADDRESS])
            lines, shape, bits = halves_at(table[LINES]), shape_of(table), table[BITS]
            band, word = relations[own, BAND], words[node]
            line = np.int64(table[USED])
            if bits:
                place, owner = np.int64(nodes[1, node]), told[GROUP]
                if band >= 0:
                    word = groups[group, band]
                    place += (word & 63) >> bits
                    owner = bands[group]
                if owners[place] == owner:
                    line = np.int64(shared[place])
                owners[place], shared[place] = owner, line
            if line == table[USED]:
                for column in range(columns.shape[1]):
                    key[columns[own, column]] = groups[group, column]
                key[relations[own, WALKER]] = words[node]
                write_key(lines, shape, line, key_words, 0)
                table[USED] += 1
            row = line << bits
            if bits:
                row |= word & ((np.int64(1) << bits) - 1)
            base = row_end(shape, row)
            lines[base - COUNT], lines[base - WELL], lines[base - RANK] = counts[node], wells[at], ranks[at]
            lines[base - FLAGS] = ADDED if at >= known else firsts[2, begins[group] + at]
            table[ROWS] += 1
            counts[node] = 0
        told[MET] += met
        told[ROUNDS] = max(told[ROUNDS], rounds)
        told[GROUP] += 1
        fuel -= met + end
