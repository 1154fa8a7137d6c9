"""Fields from what people write: `grid:5x8`, `random:60:50:20`, or a file of links."""

from __future__ import annotations

import re
from pathlib import Path

from whence.lang.program import Program
from whence.lang.types import NUMBER
from whence.topology import read_topology
from whence.topology.field import Field, FieldError

FORMS = "grid:ROWSxCOLUMNS[:SPACING], random:NODES:SIDE:RADIUS[:SEED], or a file of links"
_GRID = re.compile(r"grid:(\d+)x(\d+)(?::([\d.]+))?")
_RANDOM = re.compile(r"random:(\d+):([\d.]+):([\d.]+)(?::(\d+))?")


def read_field(text: str, program: Program) -> Field:
    """The field that a text describes; nodes are n0, n1, …, or 0, 1, … if the program names nodes by numbers.

    Raises `FieldError` for what is no field, and `FactError` for a file that cannot be read.
    """
    number = int if _names_by_numbers(program) else None
    if found := _GRID.fullmatch(text):
        rows, columns, spacing = found.groups()
        if not int(rows) or not int(columns):
            raise FieldError("a grid has one row and one column, at least")
        return Field.grid(int(rows), int(columns), spacing=float(spacing or 1), named=number)
    if found := _RANDOM.fullmatch(text):
        nodes, side, radius, seed = found.groups()
        return Field.random(int(nodes), side=float(side), radius=float(radius), seed=int(seed or 0), named=number)
    if text.startswith(("grid:", "random:")) or not Path(text).is_file():
        raise FieldError(f"{text} is not a field", f"a field is {FORMS}")
    topology = read_topology(text)
    if number is None:
        return Field.of(topology)
    odd = next((node for node in topology.nodes if not node.lstrip("-").isdigit()), None)
    if odd is not None:
        raise FieldError(f"{text}: {odd} is not a number, and the program names nodes by numbers")
    return Field.of(topology, named=lambda at: int(topology.nodes[at]))


def _names_by_numbers(program: Program) -> bool:
    return any(
        relation.fields[relation.location].kind == NUMBER
        for relation in program.relations.values()
        if relation.location is not None
    )
