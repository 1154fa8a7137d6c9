"""Tables as text: for prompts, and for objects that are printed."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size


def aligned(rows: list[list[str]]) -> str:
    """Columns that begin below each other; a line break in a value would end its row."""
    cells = [[each.replace("\n", "\\n") for each in row] for row in rows]
    widths = [max(cell_len(row[at]) for row in cells) for at in range(len(cells[0]))]
    return "\n".join(
        "  ".join(set_cell_size(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )
